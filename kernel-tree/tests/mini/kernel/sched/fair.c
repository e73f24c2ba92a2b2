/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sched.h"

/* PLACE FOR STATICS */

void __update_idle_core(struct rq *rq)
{
	struct sched_domain *sd = per_cpu(sd_llc, rq->cpu);

	if (sd && sd->shared)
		WRITE_ONCE(sd->shared->has_idle_cores, 1);
}

#ifdef CONFIG_NOT_HERE
static int scan(struct task_struct *p, struct sched_domain *sd, int target)
{
	return this_would_not_compile(;
}
#else
static int scan(struct task_struct *p, struct sched_domain *sd, int target)
{
	int cpu;

	for_each_cpu_wrap(cpu, sched_domain_span(sd), target + 1) {
		if (!cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (available_idle_cpu(cpu))
			return cpu;
	}
	return -1;
}
#endif

static int select_idle_sibling(struct task_struct *p, int prev, int target)
{
	struct sched_domain *sd;
	int i;

	/* PLACE FOR CODE */
	if (available_idle_cpu(target))
		return target;

	if (prev != target && available_idle_cpu(prev))
		return prev;

	sd = rcu_dereference(per_cpu(sd_llc, target));
	if (!sd)
		return target;

	if (sched_feat(SIS_SEARCH)) {
		i = scan(p, sd, target);
		if ((unsigned int)i < nr_cpumask_bits)
			return i;
	}

	return target;
}

static int __must_hold(&p->pi_lock)
select_task_rq_fair(struct task_struct *p, int prev_cpu, int wake_flags)
{
	int sync = (wake_flags & WF_SYNC) && !(current->flags & PF_EXITING);
	int new_cpu = prev_cpu;

	if (wake_flags & WF_TTWU) {
		if (sync && this_rq()->nr_running == 1)
			new_cpu = smp_processor_id();
		new_cpu = select_idle_sibling(p, prev_cpu, new_cpu);
		p->recent_used_cpu = new_cpu;
	}

	return new_cpu;
}
