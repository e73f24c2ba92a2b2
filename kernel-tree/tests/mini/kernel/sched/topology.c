/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sched.h"

DEFINE_PER_CPU(struct sched_domain __rcu *, sd_llc);

static void update_top_cache_domain(int cpu)
{
	struct sched_domain *sd, *llc = NULL;

	for_each_domain(cpu, sd) {
		if (!(sd->flags & SD_SHARE_LLC))
			break;
		llc = sd;
	}
	rcu_assign_pointer(per_cpu(sd_llc, cpu), llc);
}
