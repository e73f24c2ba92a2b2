/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef _MINI_SCHED_H
#define _MINI_SCHED_H

#define PF_EXITING	0x4
#define PF_KTHREAD	0x8

struct sched_avg {
	u64				last_update_time;
	unsigned long			load_avg;
	unsigned long			util_avg;
	struct nobody_knows		mystery;
};

struct sched_entity {
	struct sched_avg		avg;
};

struct task_struct {
#ifdef CONFIG_THREAD_INFO_IN_TASK
	struct thread_info		thread_info;
#endif
	unsigned int			flags;
	int				on_rq;
#ifdef CONFIG_SMP
	unsigned int			wakee_flips;
	unsigned long			wakee_flip_decay_ts;
	struct task_struct		*last_wakee;
	int				recent_used_cpu;
#endif
	struct sched_entity		se;
	unsigned int			policy;
	int				nr_cpus_allowed;
	const cpumask_t			*cpus_ptr;
	cpumask_t			cpus_mask;
	struct not_needed		somewhere[12];
};

#endif
