/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is put into the tree's functions: a mark before each statement, and one around each returned value.
 *
 * A mark burns fuel, so that a loop without end is found wherever it is, and says where the walk is, so that a fault has
 * its line.
 */
#ifndef SISDIFF_INSTRUMENT_H
#define SISDIFF_INSTRUMENT_H

/* Of a walk: what it may still burn, where it is, what it read, how many CPUs its loops turned to. */
static long sd_fuel;
extern int sd_line;
static u64 sd_reads, sd_turns;
static int sd_recording;
/* How often each statement was reached since the caller last asked. */
static u32 sd_hits[SD_NR_STATEMENTS + 1];
void sd_out_of_fuel(void) __attribute__((noreturn));

/* The record: two words an event, the kind in the top byte of the first. */
#define SD_EVENT_PROBE 1ULL
#define SD_EVENT_RETURN 2ULL
#define SD_EVENT_ENTER 3ULL
#define SD_EVENT_WARN 4ULL
#define SD_EVENT_SEARCH 5ULL
#define SD_EVENT_MISS 6ULL
static u64 *sd_events;
static unsigned int sd_nr_events, sd_max_events;
static inline void sd_event(u64 kind, u64 what, u64 value)
{
	if (__builtin_expect(sd_nr_events < sd_max_events, 1)) {
		sd_events[2 * sd_nr_events] = kind << 56 | what;
		sd_events[2 * sd_nr_events + 1] = value;
	}
	sd_nr_events++;
}

/* Statement number n, which reads the kinds of input in mask. */
#define SD_AT(n, mask) do { \
	sd_line = __LINE__; \
	sd_hits[n]++; \
	sd_reads |= (mask); \
	if (__builtin_expect(--sd_fuel < 0, 0)) \
		sd_out_of_fuel(); \
	} while (0);
/* One operand of a condition. */
#define SD_READ(mask, x) (sd_reads |= (mask), (x))
/* The value that return statement number n gives back. */
#define SD_RETURN(n, x) ({ __auto_type __rv = (x); sd_event(SD_EVENT_RETURN, n, (u64)(s64)__rv); __rv; })
#define SD_ENTER(n) do { if (__builtin_expect(sd_recording, 0)) sd_event(SD_EVENT_ENTER, n, 0); } while (0);
#define SD_SEARCH(n, target) do { sd_event(SD_EVENT_SEARCH, n, (u64)(s64)(target)); } while (0);
#define SD_TURN(n) sd_turns++;
#define SD_MISS sd_event(SD_EVENT_MISS, 0, 0);

#endif
