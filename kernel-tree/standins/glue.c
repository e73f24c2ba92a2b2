/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the caller and the tree: words in, the kernel's structures, words out. Included after the tree's own text.
 *
 * Names of the tree that are used here where the tree has them:
 * wants: runqueues sd_llc_id sched_smt_present sched_asym_cpucapacity sched_cluster_active update_top_cache_domain
 * wants: select_task_rq_fair select_idle_sibling __update_idle_core
 * wants: sched_domain_span sched_group_span group_balance_mask task_util_est
 * wants: PF_KTHREAD PF_EXITING SCHED_IDLE SCHED_NORMAL WF_SYNC WF_TTWU WF_FORK WF_EXEC
 * wants: SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_BALANCE_WAKE SD_WAKE_AFFINE SD_ASYM_CPUCAPACITY
 * wants: SD_ASYM_CPUCAPACITY_FULL SD_SHARE_CPUCAPACITY SD_CLUSTER SD_SHARE_PKG_RESOURCES SD_SHARE_LLC SD_SERIALIZE
 * wants: SD_LOAD_BALANCE SD_ASYM_PACKING SD_PREFER_SIBLING SD_OVERLAP SD_NUMA sysctl_sched_preferred sysctl_sched_allowed
 */

/* Zeroed memory with nothing of the caller's beside it, and all of it given back: see runtime.c. */
extern void *sd_arena(unsigned long size);
extern void sd_arena_clear(void);
extern char __stop_sdpercpu[];

unsigned long sd_percpu_size;
char *sd_percpu_base;
u64 sd_oob;
unsigned int nr_cpu_ids = 1;
int sd_this_cpu;
struct task_struct *sd_current;
u64 sd_jiffies;
int sd_in_task = 1;
int sd_hz = 250;
u64 sd_clock_ns, sd_clock_read_ns, sd_mask_op_ns, sd_mask_ops;
static u64 sd_probe_ns;
unsigned int sd_mask_words = 1;
struct cpumask sd_possible_mask, sd_online_mask;
struct cpumask *sd_single_mask;
unsigned char sd_features[SD_NR_FEATURES + 1];
struct cpumask *sd_smt_mask, *sd_node_mask;
int *sd_cpu_node;
u64 *sd_cpu_capacity_orig;
static u64 *sd_runnable;
unsigned char *sd_vcpu_preempted;
int sd_nr_nodes = 1;

/* About a second of work; a walk over a thousand CPUs needs a thousandth of it. */
#define SD_FUEL 400000000L
int sd_line;

/*
 * Everything that belongs to one machine, so that it can be given back, and, where a call can change it, saved: see
 * runtime.c, which has the same declaration.
 */
struct sd_block { struct sd_block *next; unsigned long size, saved; u64 data[]; };
struct sd_block *sd_blocks;

static void *sd_block(unsigned long size, int saved)
{
	struct sd_block *block = sd_arena(sizeof(*block) + size + 64);

	block->next = sd_blocks;
	block->size = size + 64;
	block->saved = saved;
	sd_blocks = block;
	return (void *)(((unsigned long)block->data + 63) & ~63UL);
}
#define sd_alloc(size) sd_block(size, 1)
#define sd_alloc_fixed(size) sd_block(size, 0)

void sd_free_all(void)
{
	sd_blocks = NULL;
	sd_arena_clear();
}

/* Words in. */

static const u64 *sd_in, *sd_in_end;
static u64 sd_word(void)
{
	if (sd_in >= sd_in_end)
		sd_bug("request too short", __LINE__);
	return *sd_in++;
}
static void sd_read_mask(struct cpumask *m)
{
	unsigned int i;

	for (i = 0; i < sd_mask_words; i++)
		m->bits[i] = sd_word();
}

/* Words out, with the record of the walk at their end. */

static u64 *sd_out, *sd_out_end;
static u64 sd_lost;
static void sd_put(u64 word)
{
	if (sd_out < sd_out_end)
		*sd_out++ = word;
	else
		sd_lost++;
}

/* What an idle check reads is told by the check itself. */
static int sd_depth;
static u64 sd_reads_before;
void sd_probe_begin(void)
{
	if (!sd_depth++) {
		sd_clock_ns += sd_probe_ns;
		sd_reads_before = sd_reads;
	}
}
void sd_probe_end(char kind, unsigned int cpu, int idle, int file, int line)
{
	if (!--sd_depth) {
		sd_reads = sd_reads_before;
		sd_event(SD_EVENT_PROBE, (u64)line << 16 | (u64)(unsigned char)kind << 8 | (idle != 0), (u64)file << 32 | cpu);
	}
}
static u64 sd_warnings;
void sd_warn(const char *what, int line) { (void)what; sd_warnings++; sd_event(SD_EVENT_WARN, line, 0); }

/* The machine. */

static struct sched_domain **sd_table;
static struct sched_domain_shared **sd_shared;
static struct root_domain *sd_root;
static struct task_struct **sd_tasks;
static unsigned long sd_nr_tasks;
static u64 sd_nr_shared;
static unsigned char *sd_has_llc;

#define SD_OP_IDLE_SIBLING 0
#define SD_OP_TASK_RQ 1
#define SD_OP_UPDATE_IDLE_CORE 2
#define SD_OP_NOTHING 3

/* What was asked last, and the flags of idle cores that it found. */
static struct { u64 op, kind, sync; int prev, target; struct task_struct *p; } sd_asked;
static unsigned char *sd_had_idle_cores;

#define SD_RQ(cpu) (&per_cpu(runqueues, cpu))

static struct task_struct *sd_task(u64 id)
{
	if (id == ~0ULL)
		return NULL;
	if (id > 1UL << 24)
		sd_bug("task index out of range", __LINE__);
	if (id >= sd_nr_tasks) {
		unsigned long i, n = (id + 64) & ~63UL;
		struct task_struct **grown = sd_alloc_fixed(2 * n * sizeof(*grown));

		for (i = 0; i < sd_nr_tasks; i++)
			grown[i] = sd_tasks[i];
		n *= 2;
		sd_tasks = grown;
		sd_nr_tasks = n;
	}
	if (!sd_tasks[id]) {
		sd_tasks[id] = sd_alloc(sizeof(struct task_struct));
		sd_tasks[id]->sd_id = id;
	}
	return sd_tasks[id];
}

/* Flags of a domain: ours to the tree's. */
static int sd_flags(u64 ours)
{
	int flags = 0;

#ifdef SD_HAS_SD_LOAD_BALANCE
	/* Every domain has it, where there is such a flag (to 5.9). */
	flags |= SD_LOAD_BALANCE;
#endif
#define SD_FLAG_BIT(bit, name) if (ours & (1ULL << bit)) flags |= name;
#ifdef SD_HAS_SD_BALANCE_NEWIDLE
	SD_FLAG_BIT(0, SD_BALANCE_NEWIDLE)
#endif
#ifdef SD_HAS_SD_BALANCE_EXEC
	SD_FLAG_BIT(1, SD_BALANCE_EXEC)
#endif
#ifdef SD_HAS_SD_BALANCE_FORK
	SD_FLAG_BIT(2, SD_BALANCE_FORK)
#endif
#ifdef SD_HAS_SD_BALANCE_WAKE
	SD_FLAG_BIT(3, SD_BALANCE_WAKE)
#endif
#ifdef SD_HAS_SD_WAKE_AFFINE
	SD_FLAG_BIT(4, SD_WAKE_AFFINE)
#endif
#ifdef SD_HAS_SD_ASYM_CPUCAPACITY_FULL
	SD_FLAG_BIT(5, SD_ASYM_CPUCAPACITY)
	SD_FLAG_BIT(6, SD_ASYM_CPUCAPACITY_FULL)
#elif defined(SD_HAS_SD_ASYM_CPUCAPACITY)
	/* To 5.13 the one flag was set where each CPU sees the biggest: what later has a flag of its own. */
	SD_FLAG_BIT(6, SD_ASYM_CPUCAPACITY)
#endif
#ifdef SD_HAS_SD_SHARE_CPUCAPACITY
	SD_FLAG_BIT(7, SD_SHARE_CPUCAPACITY)
#endif
#ifdef SD_HAS_SD_CLUSTER
	SD_FLAG_BIT(8, SD_CLUSTER)
#endif
#ifdef SD_HAS_SD_SHARE_LLC
	SD_FLAG_BIT(9, SD_SHARE_LLC)
#elif defined(SD_HAS_SD_SHARE_PKG_RESOURCES)
	SD_FLAG_BIT(9, SD_SHARE_PKG_RESOURCES)
#endif
#ifdef SD_HAS_SD_SERIALIZE
	SD_FLAG_BIT(10, SD_SERIALIZE)
#endif
#ifdef SD_HAS_SD_ASYM_PACKING
	SD_FLAG_BIT(11, SD_ASYM_PACKING)
#endif
#ifdef SD_HAS_SD_PREFER_SIBLING
	SD_FLAG_BIT(12, SD_PREFER_SIBLING)
#endif
#ifdef SD_HAS_SD_OVERLAP
	SD_FLAG_BIT(13, SD_OVERLAP)
#endif
#ifdef SD_HAS_SD_NUMA
	SD_FLAG_BIT(14, SD_NUMA)
#endif
	return flags;
}

static void sd_group_capacity(struct sched_group *sg, const struct cpumask *span)
{
	unsigned long sum = 0, least = ~0UL, most = 0;
	int cpu;

	for_each_cpu(cpu, span) {
		unsigned long capacity = SD_RQ(cpu)->cpu_capacity;

		sum += capacity;
		least = min(least, capacity);
		most = max(most, capacity);
	}
	(void)sum, (void)least, (void)most;
#ifdef SD_FIELD_sched_group_capacity__capacity
	sg->sgc->capacity = sum;
#endif
#ifdef SD_FIELD_sched_group_capacity__min_capacity
	sg->sgc->min_capacity = least;
#endif
#ifdef SD_FIELD_sched_group_capacity__max_capacity
	sg->sgc->max_capacity = most;
#endif
}

static void sd_group_capacities(void)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct sched_domain *sd;

		for (sd = SD_RQ(cpu)->sd; sd; sd = sd->parent) {
			struct sched_group *sg = sd->groups;

			do {
				sd_group_capacity(sg, sched_group_span(sg));
				sg = sg->next;
			} while (sg != sd->groups);
		}
	}
}

/*
 * The groups of a domain as a CPU sees it. Decides: groups go from that CPU upward with wrap, each is the child domain of
 * its first CPU, and its capacity, least and most are those of the CPUs in it.
 */
static void sd_build_groups(struct sched_domain *sd, int self)
{
	struct cpumask covered;
	struct sched_group *first = NULL, *last = NULL;
	int i;

	__builtin_memset(&covered, 0, sizeof(covered));
	for_each_cpu_wrap(i, sched_domain_span(sd), self) {
		struct sched_domain *child = NULL, *at;
		struct sched_group *sg;

		if (cpumask_test_cpu(i, &covered))
			continue;
		for (at = SD_RQ(i)->sd; at && at->level < sd->level; at = at->parent)
			child = at;
		sg = sd_alloc(sizeof(*sg) + sizeof(struct cpumask));
		sg->sgc = sd_alloc(sizeof(*sg->sgc) + sizeof(struct cpumask));
		if (child)
			cpumask_copy(sched_group_span(sg), sched_domain_span(child));
		else
			cpumask_set_cpu(i, sched_group_span(sg));
		cpumask_or(&covered, &covered, sched_group_span(sg));
#ifdef SD_FIELD_sched_group__group_weight
		sg->group_weight = cpumask_weight(sched_group_span(sg));
#endif
#ifdef SD_FIELD_sched_group__asym_prefer_cpu
		sg->asym_prefer_cpu = i;
#endif
#ifdef SD_FIELD_sched_group__flags
		sg->flags = child ? child->flags : 0;
#endif
#ifdef SD_HAS_group_balance_mask
		cpumask_copy(group_balance_mask(sg), sched_group_span(sg));
#endif
#ifdef SD_FIELD_sched_group__cores
		{
			int c, cores = 0;

			for_each_cpu(c, sched_group_span(sg))
				cores += cpumask_first(cpu_smt_mask(c)) == (unsigned int)c;
			sg->cores = cores;
		}
#endif
		if (last)
			last->next = sg;
		else
			first = sg;
		last = sg;
	}
	last->next = first;
	sd->groups = first;
}

struct sd_domain { u64 level, flags, imbalance_pct, imb_numa_nr, shared; struct cpumask span; };

/*
 * Decides: domains are the state's, not built by the tree; what the tree caches of them per CPU it caches itself, in its
 * own update_top_cache_domain().
 */
static struct sched_domain *sd_build_domain(const struct sd_domain *from, struct sched_domain *child)
{
	struct sched_domain *sd = sd_alloc(sizeof(*sd) + sizeof(struct cpumask));

	sd->level = from->level;
	sd->flags = sd_flags(from->flags);
	sd->imbalance_pct = from->imbalance_pct;
	cpumask_copy(sched_domain_span(sd), &from->span);
	sd->span_weight = cpumask_weight(&from->span);
	sd->child = child;
#ifdef SD_FIELD_sched_domain__imb_numa_nr
	sd->imb_numa_nr = from->imb_numa_nr;
#endif
#ifdef SD_FIELD_sched_domain__shared
	sd->shared = from->shared == ~0ULL ? NULL : sd_shared[from->shared];
#endif
	if (child)
		child->parent = sd;
	return sd;
}

static void sd_build_cpu(unsigned int cpu, const struct sd_domain *domains, u64 nr_domains)
{
	struct sched_domain *sd = NULL;
	u64 i, length = sd_word();

	for (i = 0; i < length; i++) {
		u64 id = sd_word();

		if (id >= nr_domains)
			sd_bug("no such domain", __LINE__);
		sd = sd_build_domain(&domains[id], sd);
		if (i == 0)
			SD_RQ(cpu)->sd = sd;
	}
}

static void sd_top_caches(unsigned int cpu)
{
	struct sched_domain *sd;
	int id = cpu;

#ifdef SD_HAS_update_top_cache_domain
	update_top_cache_domain(cpu);
#else
#error "update_top_cache_domain() is not in kernel/sched/topology.c"
#endif
	sd_has_llc[cpu] = 0;
	for (sd = SD_RQ(cpu)->sd; sd; sd = sd->parent) {
#ifdef SD_HAS_SD_SHARE_LLC
		if (!(sd->flags & SD_SHARE_LLC))
			break;
#else
		if (!(sd->flags & SD_SHARE_PKG_RESOURCES))
			break;
#endif
		id = cpumask_first(sched_domain_span(sd));
		sd_has_llc[cpu] = 1;
	}
	(void)id;
#ifdef SD_HAS_sd_llc_id
	per_cpu(sd_llc_id, cpu) = id;
#endif
}

static void sd_set_machine(void)
{
	unsigned int cpu;
	u64 i, nr_domains, smt_present, asym, cluster = 0;
	struct sd_domain *domains;

	sd_free_all();
	sd_asked.op = SD_OP_NOTHING;
	sd_tasks = NULL;
	sd_nr_tasks = 0;
	nr_cpu_ids = sd_word();
	if (!nr_cpu_ids || nr_cpu_ids > NR_CPUS)
		sd_bug("number of CPUs out of range", __LINE__);
	sd_mask_words = (nr_cpu_ids + 63) / 64;
	smt_present = sd_word();
	asym = sd_word();
	nr_domains = sd_word();
	sd_nr_shared = sd_word();
	sd_nr_nodes = sd_word();
	sd_percpu_size = ((__stop_sdpercpu - __start_sdpercpu) + 63) & ~63UL;
	sd_percpu_base = sd_alloc(sd_percpu_size * (nr_cpu_ids + 1));
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		__builtin_memcpy(sd_percpu_base + cpu * sd_percpu_size, __start_sdpercpu, __stop_sdpercpu - __start_sdpercpu);
	sd_smt_mask = sd_alloc_fixed(sizeof(struct cpumask) * (nr_cpu_ids + 1));
	sd_cpu_node = sd_alloc_fixed(sizeof(int) * (nr_cpu_ids + 1));
	sd_cpu_capacity_orig = sd_alloc(sizeof(u64) * (nr_cpu_ids + 1));
	sd_runnable = sd_alloc(sizeof(u64) * (nr_cpu_ids + 1));
	sd_vcpu_preempted = sd_alloc(nr_cpu_ids + 1);
	sd_has_llc = sd_alloc_fixed(nr_cpu_ids + 1);
	sd_node_mask = sd_alloc_fixed(sizeof(struct cpumask) * (sd_nr_nodes + 1));
	sd_shared = sd_alloc(sizeof(*sd_shared) * (sd_nr_shared + 1));
	sd_had_idle_cores = sd_alloc_fixed(sd_nr_shared + 1);
	sd_root = sd_alloc(sizeof(*sd_root) + 64);
	sd_single_mask = sd_alloc_fixed(sizeof(struct cpumask) * (NR_CPUS + 1));
	__builtin_memset(&sd_possible_mask, 0, sizeof(sd_possible_mask));
	__builtin_memset(&sd_online_mask, 0, sizeof(sd_online_mask));
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		cpumask_set_cpu(cpu, &sd_single_mask[cpu]);
		cpumask_set_cpu(cpu, &sd_possible_mask);
	}
	sd_read_mask(&sd_online_mask);
	for (i = 0; i < sd_nr_shared; i++)
		sd_shared[i] = sd_alloc(sizeof(**sd_shared));
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct rq *rq = SD_RQ(cpu);

		sd_read_mask(&sd_smt_mask[cpu]);
		sd_cpu_node[cpu] = sd_word();
		if ((unsigned int)sd_cpu_node[cpu] >= (unsigned int)sd_nr_nodes)
			sd_bug("node out of range", __LINE__);
		cpumask_set_cpu(cpu, &sd_node_mask[sd_cpu_node[cpu]]);
		rq->cpu = cpu;
		rq->rd = sd_root;
		rq->idle = sd_task(cpu + 1);
		rq->curr = rq->idle;
#ifdef SD_FIELD_rq__online
		rq->online = cpumask_test_cpu(cpu, &sd_online_mask);
#endif
	}
	domains = sd_alloc_fixed(sizeof(*domains) * (nr_domains + 1));
	for (i = 0; i < nr_domains; i++) {
		domains[i].level = sd_word();
		domains[i].flags = sd_word();
		domains[i].imbalance_pct = sd_word();
		domains[i].imb_numa_nr = sd_word();
		domains[i].shared = sd_word();
		if (domains[i].shared != ~0ULL && domains[i].shared >= sd_nr_shared)
			sd_bug("no such shared state", __LINE__);
		sd_read_mask(&domains[i].span);
		cluster |= domains[i].flags & (1ULL << 8);
	}
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		sd_build_cpu(cpu, domains, nr_domains);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		struct sched_domain *sd;

		for (sd = SD_RQ(cpu)->sd; sd; sd = sd->parent)
			sd_build_groups(sd, cpu);
		sd_top_caches(cpu);
	}
	(void)smt_present, (void)asym, (void)cluster;
#ifdef SD_HAS_sched_smt_present
	sched_smt_present.key.enabled = smt_present;
#endif
#ifdef SD_HAS_sched_asym_cpucapacity
	sched_asym_cpucapacity.key.enabled = asym;
#endif
#ifdef SD_HAS_sched_cluster_active
	sched_cluster_active.key.enabled = cluster != 0;
#endif
}

/* Members that not every tree has. */
#ifdef SD_FIELD_cfs_rq__h_nr_running
#define SD_H_NR_RUNNING_1 rq->cfs.h_nr_running = word;
#else
#define SD_H_NR_RUNNING_1
#endif
#ifdef SD_FIELD_cfs_rq__h_nr_queued
#define SD_H_NR_RUNNING_2 rq->cfs.h_nr_queued = word;
#else
#define SD_H_NR_RUNNING_2
#endif
#ifdef SD_FIELD_cfs_rq__nr_running
#define SD_H_NR_RUNNING_3 rq->cfs.nr_running = word;
#else
#define SD_H_NR_RUNNING_3
#endif
#ifdef SD_FIELD_cfs_rq__nr_queued
#define SD_H_NR_RUNNING_4 rq->cfs.nr_queued = word;
#else
#define SD_H_NR_RUNNING_4
#endif
#define SD_H_NR_RUNNING SD_H_NR_RUNNING_1 SD_H_NR_RUNNING_2 SD_H_NR_RUNNING_3 SD_H_NR_RUNNING_4
#if defined(SD_FIELD_cfs_rq__h_nr_runnable)
#define SD_H_NR_RUNNABLE rq->cfs.h_nr_runnable = word;
#else
#define SD_H_NR_RUNNABLE
#endif
#if defined(SD_FIELD_cfs_rq__idle_h_nr_running)
#define SD_IDLE_H_NR_RUNNING rq->cfs.idle_h_nr_running = word;
#elif defined(SD_FIELD_cfs_rq__h_nr_idle)
#define SD_IDLE_H_NR_RUNNING rq->cfs.h_nr_idle = word;
#else
#define SD_IDLE_H_NR_RUNNING
#endif
#if defined(SD_FIELD_rq__donor)
#define SD_DONOR rq->donor = rq->curr;
#else
#define SD_DONOR
#endif
#if defined(SD_FIELD_rq__avg_idle)
#define SD_AVG_IDLE rq->avg_idle = word;
#else
#define SD_AVG_IDLE
#endif
#if defined(SD_FIELD_sched_avg__runnable_load_avg)
#define SD_RUNNABLE_LOAD_AVG rq->cfs.avg.runnable_load_avg = word;
#else
#define SD_RUNNABLE_LOAD_AVG
#endif
#if defined(SD_FIELD_sched_avg__runnable_avg)
#define SD_RUNNABLE_AVG rq->cfs.avg.runnable_avg = word;
#else
#define SD_RUNNABLE_AVG
#endif
#if defined(SD_FIELD_util_est__enqueued)
#define SD_UTIL_EST rq->cfs.avg.util_est.enqueued = word;
#elif defined(SD_FIELD_sched_avg__util_est)
#define SD_UTIL_EST rq->cfs.avg.util_est = word;
#else
#define SD_UTIL_EST
#endif
#ifdef SD_FIELD_rq__cpu_capacity_orig
#define SD_CAPACITY_ORIG_1 rq->cpu_capacity_orig = word;
#else
#define SD_CAPACITY_ORIG_1
#endif
#ifdef SD_FIELD_rq__cpu_capacity_inverted
#define SD_CAPACITY_ORIG SD_CAPACITY_ORIG_1 rq->cpu_capacity_inverted = 0;
#else
#define SD_CAPACITY_ORIG SD_CAPACITY_ORIG_1
#endif
#if defined(SD_FIELD_rq__idle_stamp)
#define SD_IDLE_STAMP rq->idle_stamp = word;
#else
#define SD_IDLE_STAMP
#endif
#if defined(SD_FIELD_rq__wake_stamp)
#define SD_WAKE_STAMP rq->wake_stamp = word;
#else
#define SD_WAKE_STAMP
#endif
#if defined(SD_FIELD_rq__wake_avg_idle)
#define SD_WAKE_AVG_IDLE rq->wake_avg_idle = word;
#else
#define SD_WAKE_AVG_IDLE
#endif

/* 6.12 tells queued tasks that are delayed, the state those that are not. */
static void sd_set_delayed(struct rq *rq, u64 cpu)
{
#ifdef SD_FIELD_cfs_rq__h_nr_delayed
	rq->cfs.h_nr_delayed = rq->nr_running >= sd_runnable[cpu] ? rq->nr_running - sd_runnable[cpu] : 0;
#endif
	(void)rq, (void)cpu;
}

static void sd_set_pending(struct rq *rq, u64 flags)
{
#ifdef SD_FIELD_rq__ttwu_pending
	rq->ttwu_pending = flags & 1;
#elif defined(SD_FIELD_rq__wake_list)
	static struct llist_node waiting;

	rq->wake_list.first = flags & 1 ? &waiting : NULL;
#endif
	(void)rq, (void)flags;
}

static void sd_set_idle_state(struct rq *rq, u64 latency_us)
{
#ifdef SD_FIELD_rq__idle_state
	rq->idle_state = latency_us == ~0ULL ? NULL : &rq->sd_idle_state;
#endif
	rq->sd_idle_state.exit_latency = latency_us;
	rq->sd_idle_state.exit_latency_ns = (s64)latency_us * 1000;
}

static void sd_set_scan_cost(struct rq *rq, u64 cpu, u64 cost)
{
#ifdef SD_FIELD_sched_domain__avg_scan_cost
	if (sd_has_llc[cpu] && per_cpu(sd_llc, cpu))
		per_cpu(sd_llc, cpu)->avg_scan_cost = cost;
#endif
	(void)rq, (void)cpu, (void)cost;
}

/*
 * One column of the run queues' facts, or of the hidden state that the tree keeps of a CPU: CPUs that changed, each with
 * its value. The numbers of columns are the caller's (SD_COLUMN_*). Whether capacities changed.
 */
static int sd_set_column(void)
{
	u64 column = sd_word(), count = sd_word();
	const u64 *in = sd_in;
	int recompute = 0;

	if (count > (u64)(sd_in_end - in) / 2)
		sd_bug("request too short", __LINE__);
	sd_in = in + 2 * count;
#define SD_CASE(name, ...) case SD_COLUMN_##name: \
		for (; in < sd_in; in += 2) { \
			u64 cpu = in[0], word = in[1]; \
			struct rq *rq; \
			if (cpu >= nr_cpu_ids) \
				sd_bug("CPU out of range", __LINE__); \
			rq = SD_RQ(cpu); \
			__VA_ARGS__ \
			(void)word, (void)rq; \
		} \
		break;
	switch (column) {
	SD_CASE(nr_running, rq->nr_running = word; sd_set_delayed(rq, cpu);)
	SD_CASE(h_nr_running, SD_H_NR_RUNNING)
	SD_CASE(h_nr_runnable, SD_H_NR_RUNNABLE sd_runnable[cpu] = word; sd_set_delayed(rq, cpu);)
	SD_CASE(idle_h_nr_running, SD_IDLE_H_NR_RUNNING)
	SD_CASE(flags, sd_set_pending(rq, word); sd_vcpu_preempted[cpu] = (word >> 1) & 1;)
	SD_CASE(curr, rq->curr = sd_task(word); SD_DONOR)
	SD_CASE(avg_idle, SD_AVG_IDLE)
	SD_CASE(load_avg, rq->cfs.avg.load_avg = word;)
	SD_CASE(runnable_load_avg, SD_RUNNABLE_LOAD_AVG)
	SD_CASE(runnable_avg, SD_RUNNABLE_AVG)
	SD_CASE(util_avg, rq->cfs.avg.util_avg = word;)
	SD_CASE(util_est, SD_UTIL_EST)
	SD_CASE(cpu_capacity, recompute |= rq->cpu_capacity != word; rq->cpu_capacity = word;)
	SD_CASE(cpu_capacity_orig, recompute |= sd_cpu_capacity_orig[cpu] != word; sd_cpu_capacity_orig[cpu] = word; SD_CAPACITY_ORIG)
	SD_CASE(idle_stamp, SD_IDLE_STAMP)
	SD_CASE(exit_latency, sd_set_idle_state(rq, word);)
	SD_CASE(avg_scan_cost, sd_set_scan_cost(rq, cpu, word);)
	SD_CASE(wake_stamp, SD_WAKE_STAMP)
	SD_CASE(wake_avg_idle, SD_WAKE_AVG_IDLE)
	default:
		sd_bug("no such column", __LINE__);
	}
	return recompute;
}

#ifdef SD_FIELD_task_struct__cpus_mask
#define SD_CPUS(p) (&(p)->cpus_mask)
#else
#define SD_CPUS(p) (&(p)->cpus_allowed)
#endif

/* A task's facts, and the hidden state that the tree keeps of it. */
static void sd_set_task(void)
{
	struct task_struct *p = sd_task(sd_word());
	u64 flags, cpu, word;

	sd_read_mask(SD_CPUS(p));
#ifdef SD_FIELD_task_struct__cpus_ptr
	p->cpus_ptr = &p->cpus_mask;
#endif
#ifdef SD_FIELD_task_struct__user_cpus_ptr
	p->user_cpus_ptr = NULL;
#endif
#ifdef SD_FIELD_task_struct__cpus_preferred
	sd_read_mask(&p->cpus_preferred);
#else
	for (word = 0; word < sd_mask_words; word++)
		sd_word();
#endif
	p->nr_cpus_allowed = sd_word();
	flags = sd_word();
	p->flags = (flags & 1 ? PF_KTHREAD : 0) | (flags & 2 ? PF_EXITING : 0);
	p->on_rq = (flags >> 2) & 1;
#ifdef SD_FIELD_task_struct__affinity_unequal
	p->affinity_unequal = (flags >> 4) & 1;
#endif
#ifdef SD_FIELD_task_struct__policy
	p->policy = flags & 8 ? SCHED_IDLE : SCHED_NORMAL;
#endif
#ifdef SD_FIELD_task_struct__prio
	p->prio = 120;
#endif
#ifdef SD_FIELD_task_struct__static_prio
	p->static_prio = 120;
#endif
#ifdef SD_FIELD_task_struct__normal_prio
	p->normal_prio = 120;
#endif
	cpu = sd_word();
#ifdef SD_FIELD_task_struct__thread_info
	p->thread_info.cpu = cpu;
#endif
#ifdef SD_FIELD_task_struct__cpu
	p->cpu = cpu;
#endif
#ifdef SD_FIELD_task_struct__wake_cpu
	p->wake_cpu = cpu;
#endif
	word = sd_word();
#ifdef SD_FIELD_task_struct__numa_preferred_nid
	p->numa_preferred_nid = (int)word;
#endif
	p->se.avg.last_update_time = sd_word();
	p->se.avg.load_avg = sd_word();
	p->sd_h_load = sd_word();
	p->se.avg.util_avg = sd_word();
	word = sd_word();
#ifdef SD_FIELD_util_est__ewma
	p->se.avg.util_est.ewma = word;
#endif
	word = sd_word();
#ifdef SD_FIELD_util_est__enqueued
	p->se.avg.util_est.enqueued = word;
#elif defined(SD_FIELD_sched_avg__util_est)
	p->se.avg.util_est = word;
#endif
	word = sd_word();
#ifdef SD_FIELD_sched_avg__runnable_avg
	p->se.avg.runnable_avg = word;
#endif
	p->sd_uclamp[0] = sd_word();
	p->sd_uclamp[1] = sd_word();
	p->recent_used_cpu = (int)sd_word();
	p->wakee_flips = sd_word();
	p->wakee_flip_decay_ts = sd_word();
	p->last_wakee = sd_task(sd_word());
}

static void sd_put_task(const struct task_struct *p)
{
	sd_put((u64)(s64)p->recent_used_cpu);
	sd_put(p->wakee_flips);
	sd_put(p->wakee_flip_decay_ts);
	sd_put(p->last_wakee ? p->last_wakee->sd_id : ~0ULL);
}

static void sd_put_shared(void)
{
	u64 i;

	for (i = 0; i < sd_nr_shared; i++) {
		u64 scan = 0;

#ifdef SD_FIELD_sched_domain_shared__nr_idle_scan
		scan = (unsigned int)sd_shared[i]->nr_idle_scan;
#endif
		sd_put(sd_shared[i]->has_idle_cores != 0);
		sd_put(scan);
	}
}

static void sd_put_cpu(int cpu)
{
	u64 cost = ~0ULL, stamp = 0, avg = 0;

#ifdef SD_FIELD_sched_domain__avg_scan_cost
	if (per_cpu(sd_llc, cpu))
		cost = per_cpu(sd_llc, cpu)->avg_scan_cost;
#endif
#ifdef SD_FIELD_rq__wake_stamp
	stamp = SD_RQ(cpu)->wake_stamp;
#endif
#ifdef SD_FIELD_rq__wake_avg_idle
	avg = SD_RQ(cpu)->wake_avg_idle;
#endif
	sd_put(cost);
	sd_put(stamp);
	sd_put(avg);
}

/* The counters of the schedstat patches, where the tree has them: since the last call, on every CPU. */
static void sd_put_counters(void)
{
	u64 i, sum[6] = { 0, 0, 0, 0, 0, 0 };
	int have = 0;

	for (i = 0; i < nr_cpu_ids; i++) {
		struct rq *rq = SD_RQ(i);

		(void)rq;
#define SD_TAKE(at, counter) sum[at] += rq->counter; rq->counter = 0; have |= 1 << at;
#ifdef SD_FIELD_rq__sis_search
		SD_TAKE(0, sis_search)
#endif
#ifdef SD_FIELD_rq__sis_scanned
		SD_TAKE(1, sis_scanned)
#endif
#ifdef SD_FIELD_rq__sis_domain_search
		SD_TAKE(2, sis_domain_search)
#endif
#ifdef SD_FIELD_rq__sis_failed
		SD_TAKE(3, sis_failed)
#endif
#ifdef SD_FIELD_rq__sis_recent_hit
		SD_TAKE(4, sis_recent_hit)
#endif
#ifdef SD_FIELD_rq__sis_recent_miss
		SD_TAKE(5, sis_recent_miss)
#endif
		if (!have)
			break;
	}
	sd_put(have);
	for (i = 0; i < 6; i++)
		sd_put(sum[i]);
}

static long sd_task_rq(struct task_struct *p, int prev, u64 kind, u64 sync)
{
#if SD_SELECT_TASK_RQ_ARGS == 4
	static const int flag[] = { SD_BALANCE_WAKE, SD_BALANCE_FORK, SD_BALANCE_EXEC };

	return select_task_rq_fair(p, prev, flag[kind % 3], sync ? WF_SYNC : 0);
#else
	static const int flag[] = { WF_TTWU, WF_FORK, WF_EXEC };

	return select_task_rq_fair(p, prev, flag[kind % 3] | (sync ? WF_SYNC : 0));
#endif
}

/* The walk itself. */
static long sd_walk(void)
{
	sd_oob = sd_mask_ops = sd_reads = sd_turns = sd_warnings = 0;
	sd_nr_events = 0;
	sd_depth = 0;
	if (sd_asked.op == SD_OP_UPDATE_IDLE_CORE)
		__update_idle_core(SD_RQ(sd_this_cpu));
	else if (sd_asked.op == SD_OP_IDLE_SIBLING)
		return select_idle_sibling(sd_asked.p, sd_asked.prev, sd_asked.target);
	else if (sd_asked.op == SD_OP_TASK_RQ)
		return sd_task_rq(sd_asked.p, sd_asked.prev, sd_asked.kind, sd_asked.sync);
	return 0;
}

/* The last walk again and again, with nothing told and nothing answered: what it takes alone. */
static void sd_again(void)
{
	u64 i, n = sd_word();

	sd_recording = 0;
	sd_events = sd_out;
	sd_max_events = (sd_out_end - sd_out) / 2;
	while (n--) {
		for (i = 0; i < sd_nr_shared; i++)
			sd_shared[i]->has_idle_cores = sd_had_idle_cores[i];
		sd_fuel = SD_FUEL;
		sd_walk();
	}
}

/* One call of the wakeup path with what changed before it. The record is written to its place at the answer's end. */
static void sd_call(void)
{
	const u64 *in = sd_in;
	u64 n, task, waker;
	int recompute = 0;
	long cpu;

	if ((u64)(sd_in_end - in) < SD_HEAD_WORDS + 2 * sd_nr_shared)
		sd_bug("request too short", __LINE__);
	sd_asked.op = in[0];
	task = in[1];
	waker = in[2];
	sd_this_cpu = in[3];
	sd_asked.prev = in[4];
	sd_asked.target = in[5];
	sd_asked.kind = in[6];
	sd_asked.sync = in[7];
	sd_recording = in[8];
	sd_in_task = in[9];
	sd_clock_ns = in[10];
	sd_probe_ns = in[11];
	sd_clock_read_ns = in[12];
	sd_mask_op_ns = in[13];
	sd_jiffies = in[14];
	sd_hz = in[15];
#ifdef SD_HAS_sysctl_sched_preferred
	sysctl_sched_preferred = in[16];
#endif
#ifdef SD_HAS_sysctl_sched_allowed
	sysctl_sched_allowed = in[17];
#endif
	in += SD_HEAD_WORDS;
	for (n = 0; n < sd_nr_shared; n++, in += 2) {
		sd_shared[n]->has_idle_cores = sd_had_idle_cores[n] = in[0] != 0;
#ifdef SD_FIELD_sched_domain_shared__nr_idle_scan
		sd_shared[n]->nr_idle_scan = in[1];
#endif
	}
	sd_in = in;
	for (n = sd_word(); n; n--)
		recompute |= sd_set_column();
	if (recompute) {
		sd_group_capacities();
#ifdef SD_FIELD_root_domain__max_cpu_capacity
		sd_root->max_cpu_capacity = 0;
		for (n = 0; n < nr_cpu_ids; n++)
			sd_root->max_cpu_capacity = max(sd_root->max_cpu_capacity, (unsigned long)sd_cpu_capacity_orig[n]);
#endif
	}
	for (n = sd_word(); n; n--)
		sd_set_task();
	sd_asked.p = sd_task(task);
	sd_current = sd_task(waker);
	if ((unsigned int)sd_this_cpu >= nr_cpu_ids)
		sd_bug("this_cpu out of range", __LINE__);
	n = SD_ANSWER_WORDS + 2 * sd_nr_shared;
	if ((u64)(sd_out_end - sd_out) < n)
		sd_bug("no room for an answer", __LINE__);
	sd_events = sd_out + n;
	sd_max_events = (sd_out_end - sd_events) / 2;
	cpu = sd_walk();
	n = sd_nr_events < sd_max_events ? sd_nr_events : sd_max_events;
	sd_put((u64)cpu);
	sd_put(sd_clock_ns);
	sd_put(sd_mask_ops);
	sd_put(sd_oob);
	sd_put(sd_warnings);
	sd_put(sd_reads);
	sd_put(sd_turns);
	sd_put_counters();
	sd_put_task(sd_asked.p);
	sd_put_task(sd_current);
	sd_put_cpu(sd_this_cpu);
	sd_put(sd_nr_events);
	sd_put(n);
	sd_put_shared();
	sd_out += 2 * n;
}

/* Which statements were reached since this was last asked: their numbers, each with how often. */
static void sd_put_hits(void)
{
	u64 i;

	for (i = 0; i < SD_NR_STATEMENTS; i++)
		if (sd_hits[i]) {
			sd_put(i);
			sd_put(sd_hits[i]);
			sd_hits[i] = 0;
		}
}

static void sd_set_features(void)
{
	u64 i;

	for (i = 0; i < SD_NR_FEATURES; i++)
		sd_features[i] = sd_word();
}

#define SD_REQUEST_MACHINE 1
#define SD_REQUEST_CALL 2
#define SD_REQUEST_FEATURES 3
#define SD_REQUEST_HITS 4
#define SD_REQUEST_SAVE 5
#define SD_REQUEST_RESTORE 6
#define SD_REQUEST_RESET 7
#define SD_REQUEST_AGAIN 8
extern void sd_save(void), sd_restore(void), sd_reset(void);

/* One request; the number of words of the answer, or what is missing as a negative number. */
long sd_handle(const u64 *in, unsigned long in_words, u64 *out, unsigned long out_words)
{
	sd_in = in;
	sd_in_end = in + in_words;
	sd_out = out;
	sd_out_end = out + out_words;
	sd_lost = 0;
	sd_fuel = SD_FUEL;
	sd_line = 0;
	switch (sd_word()) {
	case SD_REQUEST_MACHINE:
		sd_set_machine();
		break;
	case SD_REQUEST_CALL:
		sd_call();
		break;
	case SD_REQUEST_FEATURES:
		sd_set_features();
		break;
	case SD_REQUEST_HITS:
		sd_put_hits();
		break;
	case SD_REQUEST_SAVE:
		sd_save();
		return 0;
	case SD_REQUEST_RESTORE:
		/* Where the answer goes is put back too: say nothing after it. */
		sd_restore();
		return 0;
	case SD_REQUEST_RESET:
		sd_reset();
		return 0;
	case SD_REQUEST_AGAIN:
		sd_again();
		break;
	default:
		sd_bug("no such request", __LINE__);
	}
	return sd_lost ? -(long)sd_lost : sd_out - out;
}
