/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is put into the tree's functions: a mark before each statement, and one around each returned value.
 *
 * A mark burns fuel, so that a loop without end is found wherever it is, and says where the walk is, so that a fault has
 * its line.
 */
extern long sd_fuel;
extern int sd_line;
extern u64 sd_reads;
extern unsigned char sd_hits[];
void sd_out_of_fuel(void) __attribute__((noreturn));
void sd_note_return(u64 statement, u64 value);
void sd_note_at(u64 statement);
void sd_note_enter(u64 function);

/* Statement number n, which reads the kinds of input in mask. */
#define SD_AT(n, mask) do { \
	sd_line = __LINE__; \
	sd_hits[n] = 1; \
	sd_reads |= (mask); \
	if (__builtin_expect(--sd_fuel < 0, 0)) \
		sd_out_of_fuel(); \
	sd_note_at(n); \
	} while (0);
/* One operand of a condition. */
#define SD_READ(mask, x) (sd_reads |= (mask), (x))
/* The value that return statement number n gives back. */
#define SD_RETURN(n, x) ({ __auto_type __rv = (x); sd_note_return(n, (u64)__rv); __rv; })
