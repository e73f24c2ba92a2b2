/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle checks. Included after the functions themselves: from here on a call of one is recorded.
 *
 * Decides: before each idle check the declared clock advances by probe_ns. A check made inside another is part of it.
 */
void sd_probe_begin(void);
void sd_probe_end(char kind, unsigned int cpu, int idle, int file, int line);
static inline unsigned int sd_cpu_of_rq(void *rq)
{
	unsigned long offset = (char *)rq - sd_percpu_base;
	return offset / sd_percpu_size;
}
/* SD_FILE is defined before each function: the number of its file. */
#define SD_PROBE(kind, cpu, call) ({ \
	unsigned int __pc = (unsigned int)(cpu); \
	sd_probe_begin(); \
	int __pr = !!(call); \
	sd_probe_end(kind, __pc, __pr, SD_FILE, __LINE__); \
	__pr; })

#ifdef SD_HAS_available_idle_cpu
#define available_idle_cpu(c) SD_PROBE('A', c, available_idle_cpu((int)__pc))
#endif
#ifdef SD_HAS_idle_cpu
#define idle_cpu(c) SD_PROBE('I', c, idle_cpu((int)__pc))
#endif
#ifdef SD_HAS_sched_idle_cpu
#define sched_idle_cpu(c) SD_PROBE('S', c, sched_idle_cpu((int)__pc))
#endif
#ifdef SD_HAS_choose_sched_idle_rq
#define choose_sched_idle_rq(r, t) ({ void *__prq = (r); SD_PROBE('S', sd_cpu_of_rq(__prq), choose_sched_idle_rq(__prq, t)); })
#endif
#ifdef SD_HAS_idle_cpu_without
#define idle_cpu_without(c, t) SD_PROBE('W', c, idle_cpu_without((int)__pc, t))
#endif
