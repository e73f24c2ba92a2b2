/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <linux/sched.h>

#define WF_EXEC		0x02
#define WF_FORK		0x04
#define WF_TTWU		0x08
#define WF_SYNC		0x10

struct cfs_rq {
	unsigned int		h_nr_running;
	struct sched_avg	avg;
	struct rb_root_cached	tasks_timeline;
};

struct root_domain {
	int			overload;
};

struct rq {
	unsigned int		nr_running;
	struct cfs_rq		cfs;
	struct task_struct __rcu	*curr;
	struct task_struct	*idle;
	struct root_domain	*rd;
	struct sched_domain __rcu	*sd;
	unsigned long		cpu_capacity;
	unsigned int		ttwu_pending;
	int			cpu;
	u64			clock ____cacheline_aligned;
};

struct sched_group_capacity {
	unsigned long		capacity;
	unsigned long		cpumask[];
};

struct sched_group {
	struct sched_group	*next;
	struct sched_group_capacity *sgc;
	unsigned long		cpumask[];
};

DECLARE_PER_CPU_SHARED_ALIGNED(struct rq, runqueues);
DECLARE_PER_CPU(struct sched_domain __rcu *, sd_llc);

#define cpu_rq(cpu)	(&per_cpu(runqueues, (cpu)))
#define this_rq()	this_cpu_ptr(&runqueues)

#define for_each_domain(cpu, __sd) \
	for (__sd = rcu_dereference(cpu_rq(cpu)->sd); __sd; __sd = __sd->parent)

static inline struct cpumask *sched_group_span(struct sched_group *sg)
{
	return to_cpumask(sg->cpumask);
}

extern int available_idle_cpu(int cpu);
