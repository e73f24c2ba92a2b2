/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sched.h"

DEFINE_PER_CPU_SHARED_ALIGNED(struct rq, runqueues);
EXPORT_PER_CPU_SYMBOL_GPL(runqueues);

int idle_cpu(int cpu)
{
	struct rq *rq = cpu_rq(cpu);

	return rq->curr == rq->idle && !rq->nr_running && !rq->ttwu_pending;
}

int available_idle_cpu(int cpu)
{
	return idle_cpu(cpu) && !vcpu_is_preempted(cpu);
}
EXPORT_SYMBOL_GPL(available_idle_cpu);

/* Nobody on the wakeup path needs this one, and it could not be built. */
void __init sched_init(void)
{
	boot_the_machine(EVERYTHING);
}
