/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU masks. Decides: nr_cpumask_bits is nr_cpu_ids (as with CPUMASK_OFFSTACK), and the variable of a for_each_cpu*()
 * loop that ran to its end is nr_cpu_ids.
 */
#ifndef SISDIFF_CPUMASK_H
#define SISDIFF_CPUMASK_H

#define SD_MASK_LONGS BITS_TO_LONGS(NR_CPUS)
struct cpumask { unsigned long bits[SD_MASK_LONGS]; };
typedef struct cpumask cpumask_t;
typedef struct cpumask cpumask_var_t[1];
extern unsigned int sd_mask_words;
extern struct cpumask sd_possible_mask, sd_online_mask;

#define nr_cpumask_bits nr_cpu_ids
#define small_cpumask_bits nr_cpu_ids
#define large_cpumask_bits nr_cpu_ids
#define cpu_possible_mask ((const struct cpumask *)&sd_possible_mask)
#define cpu_present_mask ((const struct cpumask *)&sd_possible_mask)
/* Decides: every online CPU is active. */
#define cpu_online_mask ((const struct cpumask *)&sd_online_mask)
#define cpu_active_mask ((const struct cpumask *)&sd_online_mask)
#define cpumask_bits(m) ((m)->bits)
#define to_cpumask(bitmap) ((struct cpumask *)(bitmap))
#define this_cpu_cpumask_var_ptr(x) this_cpu_ptr(x)
#define __cpumask_var_read_mostly
#define zalloc_cpumask_var(m, f) 1
#define alloc_cpumask_var(m, f) 1
#define free_cpumask_var(m) do { } while (0)
#define cpumask_available(m) 1

static inline bool sd_test_bit(unsigned long nr, const unsigned long *bits)
{
	return nr < NR_CPUS && ((bits[nr / 64] >> (nr % 64)) & 1);
}
#define test_bit(nr, addr) ((((const unsigned long *)(addr))[(nr) / 64] >> ((nr) % 64)) & 1)
#define set_bit(nr, addr) (((unsigned long *)(addr))[(nr) / 64] |= 1UL << ((nr) % 64))
#define clear_bit(nr, addr) (((unsigned long *)(addr))[(nr) / 64] &= ~(1UL << ((nr) % 64)))
#define __set_bit(nr, addr) set_bit(nr, addr)
#define __clear_bit(nr, addr) clear_bit(nr, addr)

/* The first bit at or after from, below nr_cpu_ids, of the words that WORD gives for index i; else nr_cpu_ids. */
#define SD_FIND(from, WORD) ({ \
	unsigned int __found = nr_cpu_ids; \
	unsigned long __from = (from); \
	if (__from < nr_cpu_ids) { \
		unsigned int i = __from / 64; \
		unsigned long __w = (WORD) & (~0UL << (__from % 64)); \
		while (!__w && ++i < sd_mask_words) \
			__w = (WORD); \
		if (__w) \
			__found = i * 64 + __builtin_ctzl(__w); \
		if (__found > nr_cpu_ids) \
			__found = nr_cpu_ids; \
	} \
	__found; })

static inline unsigned int sd_find(const struct cpumask *m, unsigned long from) { return SD_FIND(from, m->bits[i]); }
static inline unsigned int sd_find_zero(const struct cpumask *m, unsigned long from) { return SD_FIND(from, ~m->bits[i]); }
static inline unsigned int sd_find_and(const struct cpumask *a, const struct cpumask *b, unsigned long from) { return SD_FIND(from, a->bits[i] & b->bits[i]); }
static inline unsigned int sd_find_andnot(const struct cpumask *a, const struct cpumask *b, unsigned long from) { return SD_FIND(from, a->bits[i] & ~b->bits[i]); }
static inline unsigned int sd_find_or(const struct cpumask *a, const struct cpumask *b, unsigned long from) { return SD_FIND(from, a->bits[i] | b->bits[i]); }

static inline unsigned int cpumask_first(const struct cpumask *m) { return sd_find(m, 0); }
static inline unsigned int cpumask_first_zero(const struct cpumask *m) { return sd_find_zero(m, 0); }
static inline unsigned int cpumask_first_and(const struct cpumask *a, const struct cpumask *b) { return sd_find_and(a, b, 0); }
static inline unsigned int cpumask_first_andnot(const struct cpumask *a, const struct cpumask *b) { return sd_find_andnot(a, b, 0); }
static inline unsigned int cpumask_next(int n, const struct cpumask *m) { return sd_find(m, (unsigned long)(n + 1)); }
static inline unsigned int cpumask_next_zero(int n, const struct cpumask *m) { return sd_find_zero(m, (unsigned long)(n + 1)); }
static inline unsigned int cpumask_next_and(int n, const struct cpumask *a, const struct cpumask *b) { return sd_find_and(a, b, (unsigned long)(n + 1)); }
static inline unsigned int cpumask_next_andnot(int n, const struct cpumask *a, const struct cpumask *b) { return sd_find_andnot(a, b, (unsigned long)(n + 1)); }
static inline unsigned int cpumask_next_or(int n, const struct cpumask *a, const struct cpumask *b) { return sd_find_or(a, b, (unsigned long)(n + 1)); }
static inline unsigned int cpumask_last(const struct cpumask *m)
{
	unsigned int i;
	for (i = sd_mask_words; i--; )
		if (m->bits[i])
			return i * 64 + 63 - __builtin_clzl(m->bits[i]);
	return nr_cpu_ids;
}
/* Decides: cpumask_any() and its kin take the first CPU. */
#define cpumask_any(m) cpumask_first(m)
#define cpumask_any_and(a, b) cpumask_first_and(a, b)
static inline unsigned int cpumask_any_but(const struct cpumask *m, unsigned int cpu) { unsigned int c = sd_find(m, 0); return c == cpu ? sd_find(m, c + 1) : c; }
static inline unsigned int cpumask_any_andnot_but(const struct cpumask *a, const struct cpumask *b, unsigned int cpu) { unsigned int c = sd_find_andnot(a, b, 0); return c == cpu ? sd_find_andnot(a, b, c + 1) : c; }
static inline unsigned int cpumask_any_and_but(const struct cpumask *a, const struct cpumask *b, unsigned int cpu) { unsigned int c = sd_find_and(a, b, 0); return c == cpu ? sd_find_and(a, b, c + 1) : c; }
#define cpumask_any_distribute(m) cpumask_first(m)
#define cpumask_any_and_distribute(a, b) cpumask_first_and(a, b)

static inline bool cpumask_test_cpu(int cpu, const struct cpumask *m) { return sd_test_bit((unsigned int)cpu, m->bits); }
static inline void cpumask_set_cpu(unsigned int cpu, struct cpumask *m) { if (cpu < NR_CPUS) m->bits[cpu / 64] |= 1UL << (cpu % 64); }
static inline void cpumask_clear_cpu(int c, struct cpumask *m) { unsigned int cpu = c; if (cpu < NR_CPUS) m->bits[cpu / 64] &= ~(1UL << (cpu % 64)); }
#define __cpumask_set_cpu(cpu, m) cpumask_set_cpu(cpu, m)
#define __cpumask_clear_cpu(cpu, m) cpumask_clear_cpu(cpu, m)
#define cpumask_assign_cpu(cpu, m, v) ((v) ? cpumask_set_cpu(cpu, m) : cpumask_clear_cpu(cpu, m))
static inline bool cpumask_test_and_set_cpu(int cpu, struct cpumask *m) { bool was = cpumask_test_cpu(cpu, m); cpumask_set_cpu(cpu, m); return was; }
static inline bool cpumask_test_and_clear_cpu(int cpu, struct cpumask *m) { bool was = cpumask_test_cpu(cpu, m); cpumask_clear_cpu(cpu, m); return was; }

#define SD_EACH_WORD(i) for (unsigned int i = 0; i < sd_mask_words; i++)
static inline void cpumask_clear(struct cpumask *m) { SD_EACH_WORD(i) m->bits[i] = 0; }
static inline void cpumask_setall(struct cpumask *m) { *m = sd_possible_mask; }
static inline void cpumask_copy(struct cpumask *d, const struct cpumask *s) { SD_EACH_WORD(i) d->bits[i] = s->bits[i]; }
static inline bool cpumask_and(struct cpumask *d, const struct cpumask *a, const struct cpumask *b)
{
	unsigned long any = 0;
	sd_mask_op();
	SD_EACH_WORD(i)
		any |= d->bits[i] = a->bits[i] & b->bits[i];
	return any;
}
static inline bool cpumask_andnot(struct cpumask *d, const struct cpumask *a, const struct cpumask *b)
{
	unsigned long any = 0;
	sd_mask_op();
	SD_EACH_WORD(i)
		any |= d->bits[i] = a->bits[i] & ~b->bits[i];
	return any;
}
static inline void cpumask_or(struct cpumask *d, const struct cpumask *a, const struct cpumask *b) { SD_EACH_WORD(i) d->bits[i] = a->bits[i] | b->bits[i]; }
static inline void cpumask_xor(struct cpumask *d, const struct cpumask *a, const struct cpumask *b) { SD_EACH_WORD(i) d->bits[i] = a->bits[i] ^ b->bits[i]; }
static inline void cpumask_complement(struct cpumask *d, const struct cpumask *s) { SD_EACH_WORD(i) d->bits[i] = ~s->bits[i] & sd_possible_mask.bits[i]; }
static inline bool cpumask_equal(const struct cpumask *a, const struct cpumask *b) { unsigned long x = 0; SD_EACH_WORD(i) x |= a->bits[i] ^ b->bits[i]; return !x; }
static inline bool cpumask_subset(const struct cpumask *a, const struct cpumask *b) { unsigned long x = 0; SD_EACH_WORD(i) x |= a->bits[i] & ~b->bits[i]; return !x; }
static inline bool cpumask_intersects(const struct cpumask *a, const struct cpumask *b) { unsigned long x = 0; SD_EACH_WORD(i) x |= a->bits[i] & b->bits[i]; return x; }
static inline bool cpumask_empty(const struct cpumask *m) { unsigned long x = 0; SD_EACH_WORD(i) x |= m->bits[i]; return !x; }
static inline bool cpumask_full(const struct cpumask *m) { return cpumask_equal(m, &sd_possible_mask); }
static inline unsigned int cpumask_weight(const struct cpumask *m) { unsigned int w = 0; SD_EACH_WORD(i) w += __builtin_popcountl(m->bits[i]); return w; }
static inline unsigned int cpumask_weight_and(const struct cpumask *a, const struct cpumask *b) { unsigned int w = 0; SD_EACH_WORD(i) w += __builtin_popcountl(a->bits[i] & b->bits[i]); return w; }
static inline unsigned int cpumask_weight_andnot(const struct cpumask *a, const struct cpumask *b) { unsigned int w = 0; SD_EACH_WORD(i) w += __builtin_popcountl(a->bits[i] & ~b->bits[i]); return w; }
static inline unsigned int cpumask_nth(unsigned int n, const struct cpumask *m) { unsigned int c = sd_find(m, 0); while (n-- && c < nr_cpu_ids) c = sd_find(m, c + 1); return c; }

extern struct cpumask *sd_single_mask;
#define cpumask_of(cpu) ((const struct cpumask *)&sd_single_mask[(unsigned int)(cpu) < NR_CPUS ? (unsigned int)(cpu) : NR_CPUS])
#define cpu_online(cpu) cpumask_test_cpu(cpu, cpu_online_mask)
#define cpu_active(cpu) cpumask_test_cpu(cpu, cpu_active_mask)
#define cpu_possible(cpu) cpumask_test_cpu(cpu, cpu_possible_mask)
#define cpu_present(cpu) cpumask_test_cpu(cpu, cpu_possible_mask)
#define num_online_cpus() cpumask_weight(cpu_online_mask)
#define num_possible_cpus() nr_cpu_ids
#define num_active_cpus() cpumask_weight(cpu_active_mask)
#define for_each_cpu(cpu, mask) for ((cpu) = cpumask_first(mask); (cpu) < nr_cpu_ids; (cpu) = sd_find(mask, (unsigned long)(cpu) + 1))
#define for_each_cpu_and(cpu, a, b) for ((cpu) = sd_find_and(a, b, 0); (cpu) < nr_cpu_ids; (cpu) = sd_find_and(a, b, (unsigned long)(cpu) + 1))
#define for_each_cpu_andnot(cpu, a, b) for ((cpu) = sd_find_andnot(a, b, 0); (cpu) < nr_cpu_ids; (cpu) = sd_find_andnot(a, b, (unsigned long)(cpu) + 1))
#define for_each_cpu_or(cpu, a, b) for ((cpu) = sd_find_or(a, b, 0); (cpu) < nr_cpu_ids; (cpu) = sd_find_or(a, b, (unsigned long)(cpu) + 1))
#define for_each_cpu_not(cpu, m) for ((cpu) = sd_find_zero(m, 0); (cpu) < nr_cpu_ids; (cpu) = sd_find_zero(m, (unsigned long)(cpu) + 1))
#define for_each_possible_cpu(cpu) for_each_cpu(cpu, cpu_possible_mask)
#define for_each_online_cpu(cpu) for_each_cpu(cpu, cpu_online_mask)
#define for_each_present_cpu(cpu) for_each_cpu(cpu, cpu_present_mask)

/* The loop that begins at start, goes on at 0 and ends before start. */
struct sd_wrap { unsigned long start; int wrapped; };
static inline unsigned int sd_wrap_next(const struct cpumask *m, struct sd_wrap *w, unsigned long from)
{
	unsigned int cpu = sd_find(m, from);
	if (!w->wrapped && cpu >= nr_cpu_ids) {
		w->wrapped = 1;
		cpu = sd_find(m, 0);
	}
	return w->wrapped && cpu >= w->start ? nr_cpu_ids : cpu;
}
#define for_each_cpu_wrap(cpu, mask, from) \
	for (struct sd_wrap __wrap = { (unsigned int)(from), 0 }, *__once = &__wrap; __once; __once = NULL) \
		for ((cpu) = sd_wrap_next(mask, &__wrap, __wrap.start); (cpu) < nr_cpu_ids; \
		     (cpu) = sd_wrap_next(mask, &__wrap, (unsigned long)(cpu) + 1))

#endif
