/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Around the tree: what catches a fault, and the loop of the helper process. Compiled by itself, with the C library.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
			else
				sigaction(number, &before[i], NULL);
		}
}

static void guard(void)
{
	static int on;
	struct sigaction action;
	size_t i;

	if (on)
		return;
	on = 1;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_signal;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, &before[i]);
}

/* One request. Words of the answer, or minus the kind of fault, with the fault itself in the answer. */
EXPORT long sd_request(const uint64_t *in, unsigned long in_words, uint64_t *out, unsigned long out_words)
{
	long words = 0;

	fault.kind = FAULT_NONE;
	guard();
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
