/* SPDX-License-Identifier: GPL-2.0-or-later */
enum {
#define SD_FLAG(name, how) __##name,
#include <linux/sched/sd_flags.h>
	__SD_FLAG_CNT,
};
#undef SD_FLAG

struct sched_group;

struct sched_domain_shared {
	int		has_idle_cores;
};

struct sched_domain {
	struct sched_domain __rcu	*parent;
	struct sched_domain __rcu	*child;
	struct sched_group		*groups;
	unsigned int			imbalance_pct;
	int				flags;
	int				level;
	struct sched_domain_shared	*shared;
	unsigned int			span_weight;
	unsigned long			span[];
};

static inline struct cpumask *sched_domain_span(struct sched_domain *sd)
{
	return to_cpumask(sd->span);
}
