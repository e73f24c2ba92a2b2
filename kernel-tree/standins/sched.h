/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stand-ins for what the scheduler asks of the rest of the kernel.
 */
#ifndef SISDIFF_SCHED_H
#define SISDIFF_SCHED_H

/* Decides: static keys are plain switches; those of the topology are the state's, all others start as the tree says. */

struct static_key { int enabled; };
struct static_key_true { struct static_key key; };
struct static_key_false { struct static_key key; };
#define STATIC_KEY_INIT_TRUE { .enabled = 1 }
#define STATIC_KEY_INIT_FALSE { .enabled = 0 }
#define STATIC_KEY_TRUE_INIT { { 1 } }
#define STATIC_KEY_FALSE_INIT { { 0 } }
#define DEFINE_STATIC_KEY_TRUE(name) struct static_key_true name = { { 1 } }
#define DEFINE_STATIC_KEY_FALSE(name) struct static_key_false name = { { 0 } }
#define DEFINE_STATIC_KEY_TRUE_RO(name) DEFINE_STATIC_KEY_TRUE(name)
#define DEFINE_STATIC_KEY_FALSE_RO(name) DEFINE_STATIC_KEY_FALSE(name)
#define DECLARE_STATIC_KEY_TRUE(name) DEFINE_STATIC_KEY_TRUE(name)
#define DECLARE_STATIC_KEY_FALSE(name) DEFINE_STATIC_KEY_FALSE(name)
#define static_branch_likely(k) ((k)->key.enabled)
#define static_branch_unlikely(k) ((k)->key.enabled)
#define static_branch_maybe(config, k) ((k)->key.enabled)
#define static_branch_enable(k) ((k)->key.enabled = 1)
#define static_branch_disable(k) ((k)->key.enabled = 0)
#define static_branch_inc(k) ((k)->key.enabled++)
#define static_branch_dec(k) ((k)->key.enabled--)
#define static_branch_inc_cpuslocked(k) ((k)->key.enabled++)
#define static_branch_dec_cpuslocked(k) ((k)->key.enabled--)
#define static_branch_enable_cpuslocked(k) ((k)->key.enabled = 1)
#define static_branch_disable_cpuslocked(k) ((k)->key.enabled = 0)
#define static_key_enabled(k) ((k)->key.enabled)
#define static_key_count(k) ((k)->key.enabled)

/* Decides: sched_feat() is the switch that the caller set; the tree's features.h gives names and defaults. */
extern unsigned char sd_features[];
#define sched_feat(x) (sd_features[SD_FEAT_##x])

/* schedstat counters count. */
#define schedstat_enabled() 1
#define schedstat_inc(var) ((var)++)
#define __schedstat_inc(var) ((var)++)
#define schedstat_add(var, amt) ((var) += (amt))
#define __schedstat_add(var, amt) ((var) += (amt))
#define schedstat_set(var, val) ((var) = (val))
#define __schedstat_set(var, val) ((var) = (val))
#define schedstat_val(var) (var)
#define schedstat_val_or_zero(var) (var)

/* Decides: SMT masks, nodes, capacities and preempted virtual CPUs are the state's. */

extern struct cpumask *sd_smt_mask, *sd_node_mask;
extern int *sd_cpu_node;
extern u64 *sd_cpu_capacity_orig;
extern unsigned char *sd_vcpu_preempted;
extern int sd_nr_nodes;
static inline unsigned int sd_index(unsigned int cpu)
{
	if (__builtin_expect(cpu >= nr_cpu_ids, 0)) {
		sd_oob++;
		return nr_cpu_ids;
	}
	return cpu;
}
#define cpu_smt_mask(cpu) ((const struct cpumask *)&sd_smt_mask[sd_index(cpu)])
#define topology_sibling_cpumask(cpu) cpu_smt_mask(cpu)
#define cpu_to_node(cpu) (sd_cpu_node[sd_index(cpu)])
#define numa_node_id() cpu_to_node(sd_this_cpu)
#define cpu_to_mem(cpu) cpu_to_node(cpu)
#define cpumask_of_node(node) ((const struct cpumask *)&sd_node_mask[(unsigned int)(node) < (unsigned int)sd_nr_nodes ? (node) : sd_nr_nodes])
#define NUMA_NO_NODE (-1)
#define MAX_NUMNODES 1024
#define nr_node_ids sd_nr_nodes
#define for_each_node(n) for ((n) = 0; (n) < sd_nr_nodes; (n)++)
#define for_each_online_node(n) for_each_node(n)
/* Decides: all other nodes are equally far (node_distance()). */
#define node_distance(a, b) ((a) == (b) ? 10 : 20)
#define LOCAL_DISTANCE 10
#define REMOTE_DISTANCE 20
#define RECLAIM_DISTANCE 30
#define vcpu_is_preempted(cpu) (sd_vcpu_preempted[sd_index(cpu)])
#define arch_scale_cpu_capacity(...) ((unsigned long)sd_cpu_capacity_orig[sd_index(SD_LAST(__VA_ARGS__))])
#define SD_LAST(...) SD_LAST_(__VA_ARGS__, SD_LAST2, SD_LAST1, )(__VA_ARGS__)
#define SD_LAST_(a, b, pick, ...) pick
#define SD_LAST1(a) (a)
#define SD_LAST2(a, b) (b)
/* Decides: there is no thermal or other pressure on capacity. */
#define arch_scale_thermal_pressure(cpu) 0UL
#define arch_scale_hw_pressure(cpu) 0UL
#define cpufreq_get_pressure(cpu) 0UL
#define arch_scale_freq_capacity(cpu) 1024UL
#define arch_scale_freq_invariant() 0
#define arch_scale_max_freq_capacity(...) 1024UL
#define arch_asym_cpu_priority(cpu) (-(cpu))

/* What an idle CPU's idle state is known for. */
struct cpuidle_state { unsigned int exit_latency; s64 exit_latency_ns; };

/* Members of task_struct that are read here or hold pointers only. */
struct thread_info { unsigned long flags; unsigned int cpu; int preempt_count; };
typedef struct { unsigned long seg; } mm_segment_t;
typedef struct { unsigned long bits[16]; } nodemask_t;
typedef struct { unsigned int val; } kuid_t;

/* Decides: load-tracking values are given and already synced; nothing decays during a walk. */
#define sync_entity_load_avg(se) ((void)(se))
#define remove_entity_load_avg(se) ((void)(se))
#define update_rq_clock(rq) ((void)(rq))
#define raw_spin_rq_lock(rq) ((void)(rq))
#define raw_spin_rq_unlock(rq) ((void)(rq))
/* Decides: task_h_load() is the state's; without group scheduling it is se.avg.load_avg. */
#define task_h_load(p) ((unsigned long)(p)->sd_h_load)
/* Decides: effective uclamp values are the state's, and uclamp counts as used. */
#define uclamp_is_used() 1
#define uclamp_eff_value(p, id) ((unsigned long)(p)->sd_uclamp[(id) != 0])
#define uclamp_task_util(p, ...) clamp(task_util_est(p), (unsigned long)(p)->sd_uclamp[0], (unsigned long)(p)->sd_uclamp[1])

/* Decides: energy-aware placement is off. */
#define sched_energy_enabled() 0
#define find_energy_efficient_cpu(...) (-1)

/* The tasks and run queues of the state carry their index. */
#define SD_EXTRA_task_struct u32 sd_id; u64 sd_h_load; u64 sd_uclamp[2];
#define SD_EXTRA_sched_domain u32 sd_domain;
#define SD_EXTRA_rq struct cpuidle_state sd_idle_state;

#endif
