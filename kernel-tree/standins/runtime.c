/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Around the tree: what catches a fault, what keeps and puts back its state, and the loop of the helper process. Compiled
 * by itself, with the C library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern long sd_handle(const uint64_t *in, unsigned long in_words, uint64_t *out, unsigned long out_words);

#define EXPORT __attribute__((visibility("default")))

/* Why a request ended without an answer; the caller has the same numbers. */
enum { FAULT_NONE, FAULT_SIGNAL, FAULT_BUG, FAULT_LOOP, FAULT_ANSWER };

/*
 * An object answers one thread at a time: `inside` is that thread while it does, so that a fault of another one is not
 * taken for its own. Coming back from a fault needs no more than the frame, except where a sanitizer follows the stack.
 */
#ifdef SD_SANITIZED
static sigjmp_buf back;
#define COME_BACK sigsetjmp(back, 0)
#define GO_BACK siglongjmp(back, 1)
#else
static void *back[5];
#define COME_BACK __builtin_setjmp(back)
#define GO_BACK __builtin_longjmp(back, 1)
#endif
static volatile pthread_t inside;
static volatile int is_inside;
static struct { uint64_t kind, number, line, address; char text[96]; } fault;

extern int sd_line;

static void leave(int kind, uint64_t number, uint64_t line, uint64_t address, const char *text)
{
	size_t i;

	fault.kind = kind;
	fault.number = number;
	fault.line = line;
	fault.address = address;
	for (i = 0; i + 1 < sizeof(fault.text) && text[i]; i++)
		fault.text[i] = text[i];
	fault.text[i] = 0;
	GO_BACK;
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
static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM };
static struct sigaction before[sizeof(signals) / sizeof(signals[0])];

static const char *name_of(int number)
{
	switch (number) {
	case SIGSEGV:
		return "Segmentation fault";
	case SIGBUS:
		return "Bus error";
	case SIGFPE:
		return "Arithmetic exception";
	default:
		return "Illegal instruction";
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	size_t i;

	if (is_inside && pthread_equal(inside, pthread_self())) {
		/* The caller's watch: it takes too long, in a place without marks. */
		if (number == SIGVTALRM)
			leave(FAULT_LOOP, 0, (uint64_t)sd_line, 0, "");
		leave(FAULT_SIGNAL, (uint64_t)number, (uint64_t)sd_line, (uint64_t)(uintptr_t)info->si_addr, name_of(number));
	}
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i] == number) {
			if (before[i].sa_flags & SA_SIGINFO && before[i].sa_sigaction)
				before[i].sa_sigaction(number, info, context);
			else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN)
				before[i].sa_handler(number);
			else if (number != SIGVTALRM)
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

/*
 * The machine's memory. It is mapped for it alone, with pages before and after it that nobody may touch: what runs over the
 * end of something of the tree's ends in a fault of the tree's, not in the caller's memory. A sanitizer has a better way.
 */
#define ARENA_SIZE (1UL << 32)
#define ARENA_GUARD (1UL << 20)
#define ARENA_STEP (1UL << 16)
static struct { char *start; unsigned long used, open; } arena;

#ifdef SD_SANITIZED
static struct piece { struct piece *next; } *pieces;

void *sd_arena(unsigned long size)
{
	struct piece *piece = calloc(1, size + 64);

	if (!piece)
		sd_bug("out of memory", 0);
	piece->next = pieces;
	pieces = piece;
	return (char *)piece + 64;
}

void sd_arena_clear(void)
{
	while (pieces) {
		struct piece *next = pieces->next;

		free(pieces);
		pieces = next;
	}
}

static void make_arena(void) { }
#else
static void make_arena(void)
{
	int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *start = mmap(NULL, ARENA_SIZE, PROT_NONE, kind, -1, 0);

	if (start != MAP_FAILED)
		arena.start = start + ARENA_GUARD;
}

void *sd_arena(unsigned long size)
{
	char *at = arena.start + arena.used;

	size = (size + 63) & ~63UL;
	if (!arena.start || size > ARENA_SIZE - 2 * ARENA_GUARD - arena.used)
		sd_bug("out of memory", 0);
	arena.used += size;
	if (arena.used > arena.open) {
		unsigned long open = (arena.used + ARENA_STEP - 1) & ~(ARENA_STEP - 1);

		if (mprotect(arena.start, open, PROT_READ | PROT_WRITE))
			sd_bug("out of memory", 0);
		arena.open = open;
	}
	memset(at, 0, size);
	return at;
}

void sd_arena_clear(void)
{
	arena.used = 0;
}
#endif

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
	make_arena();
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
	volatile long words = 0;

	guard();
	remember_fresh();
	fault.kind = FAULT_NONE;
	inside = pthread_self();
	if (COME_BACK == 0) {
		is_inside = 1;
		words = sd_handle(in, in_words, out, out_words);
		if (words < 0)
			fault.kind = FAULT_ANSWER;
	}
	is_inside = 0;
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
/*
 * The helper process. Standard input is memory that it shares with its caller: a request is put there and a number raised,
 * and so is the answer. Who waits looks a while, lets others run, and sleeps in the end. Standard output is a pipe that
 * nobody writes to: when its reader is gone, so is the caller.
 */
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>

/* The caller has the same layout: see ring.rs. */
struct half { uint32_t number, asleep; uint64_t words; int64_t result; char pad[40]; };
struct shared { struct half question, answer; char pad[4096 - 2 * sizeof(struct half)]; uint64_t words[]; };
#define LOOKS 100
#define YIELDS 100
#define GONE_MS 100

static void end_with_caller(int unused)
{
	struct pollfd reader = { .fd = 1, .events = 0 };

	(void)unused;
	if (poll(&reader, 1, 0) > 0 && reader.revents & (POLLERR | POLLHUP | POLLNVAL))
		_exit(0);
}

/* Until the number is no longer `old`; sleeps are ended by the timer's signal, too. */
static uint32_t next(struct half *half, uint32_t old)
{
	uint32_t now;
	int turn;

	for (turn = 0; ; turn++) {
		now = __atomic_load_n(&half->number, __ATOMIC_ACQUIRE);
		if (now != old)
			return now;
		if (turn < LOOKS) {
			__asm__ __volatile__("" : : : "memory");
		} else if (turn < LOOKS + YIELDS) {
			sched_yield();
		} else {
			__atomic_store_n(&half->asleep, 1, __ATOMIC_SEQ_CST);
			if (__atomic_load_n(&half->number, __ATOMIC_SEQ_CST) == old)
				syscall(SYS_futex, &half->number, FUTEX_WAIT, old, NULL, NULL, 0);
			__atomic_store_n(&half->asleep, 0, __ATOMIC_SEQ_CST);
		}
	}
}

int main(int argc, char **argv)
{
	static char stack[1 << 16];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct itimerval timer = { { 0, GONE_MS * 1000 }, { 0, GONE_MS * 1000 } };
	struct sigaction action;
	unsigned long room, answer_room;
	struct shared *shared;
	uint32_t number = 0;

	if (argc < 3)
		return 1;
	room = strtoul(argv[1], NULL, 10);
	answer_room = strtoul(argv[2], NULL, 10);
	shared = mmap(NULL, sizeof(*shared) + 8 * (room + answer_room), PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);
	if (shared == MAP_FAILED)
		return 1;
#ifndef SD_SANITIZED
	sigaltstack(&alternate, NULL);
#else
	(void)alternate;
#endif
	memset(&action, 0, sizeof(action));
	action.sa_handler = end_with_caller;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (;;) {
		unsigned long words;

		number = next(&shared->question, number);
		words = shared->question.words;
		if (words > room)
			return 1;
		shared->answer.result = sd_request(shared->words, words, shared->words + room, answer_room);
		__atomic_store_n(&shared->answer.number, number, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&shared->answer.asleep, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &shared->answer.number, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}
#endif
