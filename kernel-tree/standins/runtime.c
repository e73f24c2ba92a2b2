/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Around the tree: what catches a fault, what keeps and puts back its state, and the loop of the helper process. Compiled
 * by itself, with the C library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern long sd_handle(const uint64_t *in, unsigned long in_words, uint64_t *out, unsigned long out_words);

#define EXPORT __attribute__((visibility("default")))

/* Why a request ended without an answer; the caller has the same numbers. */
enum { FAULT_NONE, FAULT_SIGNAL, FAULT_BUG, FAULT_LOOP, FAULT_ANSWER };

static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t inside;
static struct { uint64_t kind, number, line, address; char text[96]; } fault;

extern int sd_line;

static void leave(int kind, uint64_t number, uint64_t line, uint64_t address, const char *text)
{
	fault.kind = kind;
	fault.number = number;
	fault.line = line;
	fault.address = address;
	snprintf(fault.text, sizeof(fault.text), "%s", text);
	siglongjmp(back, 1);
}

void sd_bug(const char *what, int line)
{
	leave(FAULT_BUG, 0, (uint64_t)line, 0, what);
	abort();
}

void sd_out_of_fuel(void)
{
	leave(FAULT_LOOP, 0, (uint64_t)sd_line, 0, "");
}

/*
 * Handlers stay once they are set: several of these objects can be in one process, each gives on what is not its own, and
 * none of them is ever unloaded. A thread of the caller has its own stack for signals; the helper process makes one.
 */
static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
static struct sigaction before[sizeof(signals) / sizeof(signals[0])];

static void on_signal(int number, siginfo_t *info, void *context)
{
	size_t i;

	if (inside)
		leave(FAULT_SIGNAL, (uint64_t)number, (uint64_t)sd_line, (uint64_t)(uintptr_t)info->si_addr, strsignal(number));
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i] == number) {
			if (before[i].sa_flags & SA_SIGINFO && before[i].sa_sigaction)
				before[i].sa_sigaction(number, info, context);
			else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN)
				before[i].sa_handler(number);
			else
				sigaction(number, &before[i], NULL);
		}
}

/*
 * A signal outside of the tree's code, after which nothing in this process can be trusted: said once, and the end. Asked
 * for by the caller of the first of these objects in a process, before any has its own handlers.
 */
static void on_last(int number)
{
	static const char text[] =
		"sisdiff: a fatal signal in its own code after it ran a kernel tree's, which may have written where it must not;"
		" run again with --isolation process, or with --sanitize\n";
	ssize_t unused = write(2, text, sizeof(text) - 1);

	(void)unused, (void)number;
	_exit(2);
}

EXPORT void sd_last_resort(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	struct sigaction action;
	size_t i;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_last;
	action.sa_flags = SA_ONSTACK;
	for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		sigaction(fatal[i], &action, NULL);
}

static void guard(void)
{
	static int on;
	struct sigaction action;
	size_t i;

#ifdef SD_SANITIZED
	/* The sanitizer reports faults itself. */
	on = 1;
#endif
	if (on)
		return;
	on = 1;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, &before[i]);
}

/*
 * State. The machine's blocks are the glue's; static variables, those that a patch adds among them, are the writable part
 * of this object, without what the linker made read-only after it relocated it.
 */
struct sd_block { struct sd_block *next; unsigned long size, saved; uint64_t data[]; };
extern struct sd_block *sd_blocks;
extern void sd_free_all(void);

struct image { char *start; unsigned long size; };
static struct image statics;
static struct { char *bytes; unsigned long size, room; } kept, fresh;

static int find_statics(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t here = (uintptr_t)&statics, fixed = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	int i;

	(void)size, (void)unused;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *head = &info->dlpi_phdr[i];

		if (head->p_type == PT_GNU_RELRO)
			fixed = (info->dlpi_addr + head->p_vaddr + head->p_memsz) & ~page;
	}
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *head = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + head->p_vaddr, end = start + head->p_memsz;

		if (head->p_type != PT_LOAD || !(head->p_flags & PF_W) || here < start || here >= end)
			continue;
		if (fixed > start && fixed <= end)
			start = fixed;
		statics.start = (char *)start;
		statics.size = end - start;
		return 1;
	}
	return 0;
}

/* A sanitizer keeps space between static variables that nobody may touch, not even to copy it. */
#ifdef SD_SANITIZED
__attribute__((no_sanitize("address"), noinline)) static void copy(void *to, const void *from, unsigned long size)
{
	volatile char *out = to;
	const volatile char *in = from;

	while (size--)
		*out++ = *in++;
}
#else
#define copy memcpy
#endif

static unsigned long blocks_size(void)
{
	struct sd_block *block;
	unsigned long size = 0;

	for (block = sd_blocks; block; block = block->next)
		if (block->saved)
			size += block->size;
	return size;
}

/* All state, until sd_restore() puts it back. Blocks made in between stay, but nobody knows them any more. */
void sd_save(void)
{
	struct sd_block *block;
	unsigned long size;
	char *to;

	if (!statics.size)
		dl_iterate_phdr(find_statics, NULL);
	size = blocks_size() + statics.size;
	if (kept.room < size) {
		free(kept.bytes);
		kept.bytes = malloc(size);
		kept.room = kept.bytes ? size : 0;
	}
	if (!kept.bytes)
		sd_bug("out of memory", 0);
	kept.size = size;
	to = kept.bytes;
	for (block = sd_blocks; block; block = block->next)
		if (block->saved) {
			copy(to, block->data, block->size);
			to += block->size;
		}
	copy(to, statics.start, statics.size);
}

void sd_restore(void)
{
	struct sd_block *block;
	const char *from = kept.bytes;

	if (!kept.size)
		sd_bug("nothing was saved", 0);
	/* The statics first: they have the head of the list as it was. */
	copy(statics.start, kept.bytes + kept.size - statics.size, statics.size);
	for (block = sd_blocks; block; block = block->next)
		if (block->saved) {
			copy(block->data, from, block->size);
			from += block->size;
		}
}

/* The state of an object that was just opened: remembered at the first request, put back by this. */
static void remember_fresh(void)
{
	if (fresh.bytes)
		return;
	dl_iterate_phdr(find_statics, NULL);
	fresh.size = statics.size;
	fresh.bytes = malloc(fresh.size);
	if (fresh.bytes)
		copy(fresh.bytes, statics.start, fresh.size);
}

void sd_reset(void)
{
	sd_free_all();
	if (fresh.bytes) {
		free(kept.bytes);
		copy(statics.start, fresh.bytes, fresh.size);
	}
}

/* One request. Words of the answer, or minus the kind of fault, with the fault itself in the answer. */
EXPORT long sd_request(const uint64_t *in, unsigned long in_words, uint64_t *out, unsigned long out_words)
{
	long words = 0;

	guard();
	remember_fresh();
	fault.kind = FAULT_NONE;
	if (sigsetjmp(back, 0) == 0) {
		inside = 1;
		words = sd_handle(in, in_words, out, out_words);
		if (words < 0)
			fault.kind = FAULT_ANSWER;
	}
	inside = 0;
	if (fault.kind == FAULT_NONE)
		return words;
	if (out_words >= 16) {
		out[0] = fault.number;
		out[1] = fault.line;
		out[2] = fault.address;
		memcpy(&out[4], fault.text, sizeof(fault.text));
	}
	return -(long)fault.kind;
}

#ifdef SD_HELPER
/* The helper process: requests from standard input, answers to standard output, until there are no more. */

#define SECONDS_FOR_ONE_REQUEST 20
#define ANSWER_WORDS 131072

static int all(int descriptor, void *buffer, size_t size, int out)
{
	char *at = buffer;

	while (size) {
		ssize_t done = out ? write(descriptor, at, size) : read(descriptor, at, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return 0;
		at += done;
		size -= (size_t)done;
	}
	return 1;
}

int main(void)
{
	static uint64_t answer[ANSWER_WORDS + 2];
	static char stack[1 << 16];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	uint64_t *question = NULL, words, room = 0;

#ifndef SD_SANITIZED
	sigaltstack(&alternate, NULL);
#else
	(void)alternate;
#endif
	while (all(0, &words, sizeof(words), 0)) {
		long result;

		if (words > room) {
			free(question);
			room = words * 2;
			question = malloc(room * sizeof(*question));
		}
		if (!question || !all(0, question, words * sizeof(*question), 0))
			return 1;
		alarm(SECONDS_FOR_ONE_REQUEST);
		result = sd_request(question, words, answer + 2, ANSWER_WORDS);
		alarm(0);
		answer[0] = (uint64_t)result;
		answer[1] = result < 0 ? 16 : (uint64_t)result;
		if (!all(1, answer, (2 + answer[1]) * sizeof(*answer), 1))
			return 1;
	}
	return 0;
}
#endif
