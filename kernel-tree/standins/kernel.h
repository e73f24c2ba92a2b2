/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stand-ins for what the wakeup path uses and does not decide. They are included before the tree's own text; a name that
 * is defined here is never taken from the tree. What a stand-in decides is said beside it, after the word "Decides".
 */
#ifndef SISDIFF_KERNEL_H
#define SISDIFF_KERNEL_H

/* Types. */

typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
typedef s8 __s8;
typedef u8 __u8;
typedef s16 __s16;
typedef u16 __u16;
typedef s32 __s32;
typedef u32 __u32;
typedef s64 __s64;
typedef u64 __u64;
typedef _Bool bool;
typedef unsigned long size_t;
typedef long ssize_t;
typedef unsigned long uintptr_t;
typedef int pid_t;
typedef unsigned int gfp_t;
typedef s64 ktime_t;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef u32 uint32_t;
typedef u64 uint64_t;
typedef s64 int64_t;
typedef u8 uint8_t;

#define true 1
#define false 0
#define NULL ((void *)0)

#define U8_MAX ((u8)~0U)
#define U16_MAX ((u16)~0U)
#define INT_MAX ((int)(~0U >> 1))
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (~0U)
#define LONG_MAX ((long)(~0UL >> 1))
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX (~0UL)
#define LLONG_MAX ((long long)(~0ULL >> 1))
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX (~0ULL)
#define S32_MAX INT_MAX
#define S32_MIN INT_MIN
#define U32_MAX UINT_MAX
#define S64_MAX LLONG_MAX
#define S64_MIN LLONG_MIN
#define U64_MAX ULLONG_MAX

/* Attributes: none of them changes what a function computes. */

#define __acquires(...)
#define __acquires_ret
#define __acquires_shared(...)
#define __aligned(...)
#define __always_inline inline
#define __always_unused __attribute__((unused))
#define __attribute_const__
#define __bitwise
#define __cold
#define __cond_acquires(...)
#define __cond_acquires_shared(...)
#define __counted_by(...)
#define __cpuidle
#define __deprecated
#define __exit
#define __force
#define __guarded_by(...)
#define __hot
#define __init
#define __initconst
#define __initdata
#define __iomem
#define __kernel
#define __latent_entropy
#define __maybe_unused __attribute__((unused))
#define __malloc
#define __must_check
#define __must_hold(...)
#define __must_hold_shared(...)
#define __no_sanitize_or_inline
#define __noreturn
#define __packed __attribute__((packed))
#define __percpu
#define __printf(...)
#define __pt_guarded_by(...)
#define __pure
#define __rcu
#define __read_mostly
#define __releases(...)
#define __releases_shared(...)
#define __ro_after_init
#define __sched
#define __section(...)
#define __user
#define __visible
#define __weak
#define __cacheline_aligned
#define __cacheline_aligned_in_smp
#define ____cacheline_aligned
#define ____cacheline_aligned_in_smp
#define ____cacheline_internodealigned_in_smp
#define asmlinkage
#define noinline
#define noinline_for_stack
#define noinstr
#define notrace
#define randomized_struct_fields_start
#define randomized_struct_fields_end
#define fallthrough do { } while (0)
#define const_debug const
#define __const_debug const

/* The compiler. */

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" : : : "memory")
#define typeof __typeof__
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, val) ((x) = (val))
#define ACCESS_ONCE(x) (x)
#define data_race(x) (x)
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define smp_mb__after_spinlock() barrier()
#define smp_mb__after_atomic() barrier()
#define smp_mb__before_atomic() barrier()
#define smp_store_release(p, v) (*(p) = (v))
#define smp_load_acquire(p) (*(p))
#define smp_store_mb(var, value) ((var) = (value))
#define xchg(p, v) ({ __typeof__(p) __xp = (p); __typeof__(*__xp) __xo = *__xp; *__xp = (v); __xo; })
#define cmpxchg(p, o, n) ({ __typeof__(p) __cp = (p); __typeof__(*__cp) __co = *__cp; if (__co == (o)) *__cp = (n); __co; })
#define try_cmpxchg(p, o, n) ({ __typeof__(p) __tp = (p); __typeof__(o) __to = (o); bool __ok = *__tp == *__to; if (__ok) *__tp = (n); else *__to = *__tp; __ok; })
#define cpu_relax() do { } while (0)
#define EXPORT_SYMBOL(x)
#define EXPORT_SYMBOL_GPL(x)
#define BUILD_BUG_ON(x) _Static_assert(!(x), "BUILD_BUG_ON")
#define BUILD_BUG_ON_ZERO(x) 0
#define static_assert(x, ...) _Static_assert(x, "static_assert")
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define container_of_const(ptr, type, member) container_of(ptr, type, member)
/* 1 for an option that is defined to 1. */
#define IS_ENABLED(option) SD_ENABLED(option)
#define IS_BUILTIN(option) SD_ENABLED(option)
#define SD_ENABLED(option) SD_ENABLED_(option)
#define SD_ENABLED_(value) SD_ENABLED__(SD_ARGUMENT_##value)
#define SD_ENABLED__(first) SD_SECOND(first 1, 0)
#define SD_SECOND(ignored, value, ...) value
#define SD_ARGUMENT_1 0,
#define ERR_PTR(x) ((void *)(long)(x))
#define PTR_ERR(x) ((long)(x))
#define IS_ERR(x) ((unsigned long)(x) >= (unsigned long)-4095)
#define IS_ERR_OR_NULL(x) (!(x) || IS_ERR(x))
#define EINVAL 22
#define ENOMEM 12
#define EPERM 1
#define ESRCH 3
#define EBUSY 16

/* Numbers. */

#define min(x, y) ({ __auto_type __mx = (x); __auto_type __my = (y); __mx < __my ? __mx : __my; })
#define max(x, y) ({ __auto_type __mx = (x); __auto_type __my = (y); __mx > __my ? __mx : __my; })
#define min3(x, y, z) min(min(x, y), z)
#define max3(x, y, z) max(max(x, y), z)
#define min_t(type, x, y) ({ type __mx = (x); type __my = (y); __mx < __my ? __mx : __my; })
#define max_t(type, x, y) ({ type __mx = (x); type __my = (y); __mx > __my ? __mx : __my; })
#define umin(x, y) min((x) + 0UL, (y) + 0UL)
#define umax(x, y) max((x) + 0UL, (y) + 0UL)
#define min_not_zero(x, y) ({ __auto_type __nx = (x); __auto_type __ny = (y); __nx == 0 ? __ny : (__ny == 0 ? __nx : min(__nx, __ny)); })
#define clamp(val, lo, hi) ({ __auto_type __cv = (val); __auto_type __cl = (lo); __auto_type __ch = (hi); __cv < __cl ? __cl : (__cv > __ch ? __ch : __cv); })
#define clamp_t(type, val, lo, hi) min_t(type, max_t(type, val, lo), hi)
#define clamp_val(val, lo, hi) clamp_t(__typeof__(val), val, lo, hi)
#define swap(a, b) do { __typeof__(a) __sw = (a); (a) = (b); (b) = __sw; } while (0)
/* An unsigned number counts as a signed one of its width. */
#define abs(x) ({ __auto_type __ax = SD_SIGNED(x); __ax < 0 ? -__ax : __ax; })
#define SD_SIGNED(x) _Generic((x), unsigned int: (int)(x), unsigned long: (long)(x), unsigned long long: (long long)(x), default: (x))
#define roundup(x, y) ((((x) + ((y) - 1)) / (y)) * (y))
#define rounddown(x, y) ((x) - ((x) % (y)))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d) DIV_ROUND_UP((u64)(n), (d))
#define DIV_ROUND_CLOSEST(x, d) (((x) + ((d) / 2)) / (d))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BITS_PER_LONG 64
#define BITS_PER_BYTE 8
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define GENMASK(h, l) ((~0UL << (l)) & (~0UL >> (63 - (h))))
#define BITS_TO_LONGS(n) (((n) + 63) / 64)
#define DECLARE_BITMAP(name, bits) unsigned long name[BITS_TO_LONGS(bits)]
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define MSEC_PER_SEC 1000L
/* Decides: HZ is the state's; record_wakee() decays by it. */
extern int sd_hz;
#define HZ sd_hz
#define TICK_NSEC (NSEC_PER_SEC / HZ)

/* A divisor of 0 stops the kernel; it is a fault here too. */
static inline u64 div_u64(u64 dividend, u32 divisor) { return dividend / divisor; }
static inline s64 div_s64(s64 dividend, s32 divisor) { return dividend / divisor; }
static inline u64 div64_u64(u64 dividend, u64 divisor) { return dividend / divisor; }
static inline s64 div64_s64(s64 dividend, s64 divisor) { return dividend / divisor; }
static inline u64 div64_ul(u64 dividend, unsigned long divisor) { return dividend / divisor; }
static inline s64 div64_long(s64 dividend, long divisor) { return dividend / divisor; }
static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *rem) { *rem = dividend % divisor; return dividend / divisor; }
static inline u64 mul_u32_u32(u32 a, u32 b) { return (u64)a * b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift) { return (u64)(((unsigned __int128)a * mul) >> shift); }
static inline u64 mul_u64_u64_shr(u64 a, u64 mul, unsigned int shift) { return (u64)(((unsigned __int128)a * mul) >> shift); }
#define do_div(n, base) ({ u32 __base = (base); u32 __rem = (n) % __base; (n) /= __base; __rem; })
static inline unsigned long int_sqrt(unsigned long x) { unsigned long r = 0, b; for (b = 1UL << 31; b; b >>= 1) if ((r + b) * (r + b) <= x) r += b; return r; }
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int ffs(int x) { return __builtin_ffs(x); }
static inline unsigned long __ffs(unsigned long x) { return __builtin_ctzl(x); }
static inline unsigned long __fls(unsigned long x) { return 63 - __builtin_clzl(x); }
static inline int ilog2(u64 x) { return fls64(x) - 1; }
static inline unsigned long roundup_pow_of_two(unsigned long n) { return n <= 1 ? 1 : 1UL << fls64(n - 1); }
static inline unsigned long rounddown_pow_of_two(unsigned long n) { return 1UL << (fls64(n) - 1); }
#define is_power_of_2(n) ((n) != 0 && (((n) & ((n) - 1)) == 0))
#define order_base_2(n) ((n) > 1 ? ilog2((n) - 1) + 1 : 0)
static inline unsigned int hweight32(u32 w) { return __builtin_popcount(w); }
static inline unsigned long hweight64(u64 w) { return __builtin_popcountll(w); }
static inline unsigned long hweight_long(unsigned long w) { return __builtin_popcountl(w); }
static inline s64 sign_extend64(u64 value, int index) { u8 shift = 63 - index; return (s64)(value << shift) >> shift; }

/* Memory. */

#define memset(p, c, n) __builtin_memset(p, c, n)
#define memcpy(d, s, n) __builtin_memcpy(d, s, n)
#define memcmp(a, b, n) __builtin_memcmp(a, b, n)
#define strcmp(a, b) __builtin_strcmp(a, b)
#define strlen(a) __builtin_strlen(a)

/* One thread runs: atomics are plain. */

typedef struct { int counter; } atomic_t;
typedef struct { long counter; } atomic_long_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { atomic_t refs; } refcount_t;
#define ATOMIC_INIT(i) { (i) }
#define ATOMIC_LONG_INIT(i) { (i) }
#define ATOMIC64_INIT(i) { (i) }
#define atomic_read(v) ((v)->counter)
#define atomic_set(v, i) ((v)->counter = (i))
#define atomic_inc(v) ((v)->counter++)
#define atomic_dec(v) ((v)->counter--)
#define atomic_add(i, v) ((v)->counter += (i))
#define atomic_sub(i, v) ((v)->counter -= (i))
#define atomic_inc_return(v) (++(v)->counter)
#define atomic_dec_return(v) (--(v)->counter)
#define atomic_add_return(i, v) ((v)->counter += (i))
#define atomic_fetch_add(i, v) ({ __auto_type __fv = (v); __auto_type __fo = __fv->counter; __fv->counter += (i); __fo; })
#define atomic_fetch_inc(v) ((v)->counter++)
#define atomic_cmpxchg(v, o, n) cmpxchg(&(v)->counter, o, n)
#define atomic_xchg(v, n) xchg(&(v)->counter, n)
#define atomic_long_read(v) ((v)->counter)
#define atomic_long_set(v, i) ((v)->counter = (i))
#define atomic_long_inc(v) ((v)->counter++)
#define atomic_long_add(i, v) ((v)->counter += (i))
#define atomic_long_sub(i, v) ((v)->counter -= (i))
#define atomic64_read(v) ((v)->counter)
#define atomic64_set(v, i) ((v)->counter = (i))
#define atomic64_inc(v) ((v)->counter++)
#define atomic64_add(i, v) ((v)->counter += (i))
#define refcount_read(r) atomic_read(&(r)->refs)

/* Locks are never contended: one thread runs. */

typedef struct { int held; } raw_spinlock_t;
typedef struct { int held; } spinlock_t;
typedef struct { unsigned int sequence; } seqcount_t;
struct mutex { int held; };
struct lockdep_map { int unused; };
struct lock_class_key { int unused; };
struct completion { int done; };
struct wait_queue_head { int unused; };
typedef struct wait_queue_head wait_queue_head_t;
#define raw_spin_lock(l) ((void)(l))
#define raw_spin_unlock(l) ((void)(l))
#define raw_spin_lock_irqsave(l, f) ((void)(l), (void)(f))
#define raw_spin_unlock_irqrestore(l, f) ((void)(l), (void)(f))
#define raw_spin_trylock(l) 1
#define spin_lock(l) ((void)(l))
#define spin_unlock(l) ((void)(l))
#define local_irq_save(f) ((void)((f) = 0))
#define local_irq_restore(f) ((void)(f))
#define local_irq_disable() do { } while (0)
#define local_irq_enable() do { } while (0)
#define preempt_disable() do { } while (0)
#define preempt_enable() do { } while (0)
#define preempt_disable_notrace() do { } while (0)
#define preempt_enable_notrace() do { } while (0)
#define lockdep_assert_held(l) ((void)(l))
#define lockdep_assert_held_write(l) ((void)(l))
#define lockdep_assert_irqs_disabled() do { } while (0)
#define lockdep_assert_rq_held(rq) ((void)(rq))

#define lockdep_assert(c) do { } while (0)
#define lockdep_assert_once(c) do { } while (0)
#define lockdep_is_held(l) 1
#define lockdep_assert_in_rcu_read_lock_sched() do { } while (0)
#define might_sleep() do { } while (0)
#define guard(name) sd_guard_##name
#define sd_guard_rcu() do { } while (0)
#define sd_guard_preempt() do { } while (0)
#define sd_guard_irqsave() do { } while (0)
#define scoped_guard(...) if (1)

struct rcu_head { void *unused; };
#define callback_head rcu_head
#define rcu_read_lock() do { } while (0)
#define rcu_read_unlock() do { } while (0)
#define rcu_read_lock_held() 1
#define rcu_read_lock_sched_held() 1
#define rcu_read_lock_any_held() 1
#define rcu_dereference(p) (p)
#define rcu_dereference_all(p) (p)
#define rcu_dereference_raw(p) (p)
#define rcu_dereference_sched(p) (p)
#define rcu_dereference_check(p, c) (p)
#define rcu_dereference_all_check(p, c) (p)
#define rcu_dereference_protected(p, c) (p)
#define rcu_dereference_check_sched_domain(p) (p)
#define rcu_dereference_sched_domain(p) (p)
#define rcu_access_pointer(p) (p)
#define rcu_assign_pointer(p, v) ((p) = (v))
#define RCU_INIT_POINTER(p, v) ((p) = (v))
#define RCU_LOCKDEP_WARN(c, s) do { } while (0)

/* A warning is counted and the walk goes on; BUG() is a fault. */

void sd_warn(const char *what, int line);
void sd_bug(const char *what, int line) __attribute__((noreturn));
#define WARN_ON(c) ({ int __w = !!(c); if (__w) sd_warn(#c, __LINE__); __w; })
#define WARN_ON_ONCE(c) WARN_ON(c)
#define WARN(c, ...) WARN_ON(c)
#define WARN_ONCE(c, ...) WARN_ON(c)
#define SCHED_WARN_ON(c) WARN_ON(c)
#define VM_WARN_ON(c) WARN_ON(c)
#define BUG_ON(c) do { if (c) sd_bug(#c, __LINE__); } while (0)
#define BUG() sd_bug("BUG()", __LINE__)
#define panic(...) sd_bug("panic()", __LINE__)
#define printk(...) do { } while (0)
#define pr_err(...) do { } while (0)
#define pr_warn(...) do { } while (0)
#define pr_info(...) do { } while (0)
#define pr_debug(...) do { } while (0)
#define printk_deferred(...) do { } while (0)
#define trace_printk(...) do { } while (0)

/* Lists: heads only, all of them empty unless a patch fills one. */

struct list_head { struct list_head *next, *prev; };
struct hlist_head { struct hlist_node *first; };
struct hlist_node { struct hlist_node *next, **pprev; };
struct llist_node { struct llist_node *next; };
struct llist_head { struct llist_node *first; };
struct rb_node { unsigned long __rb_parent_color; struct rb_node *rb_right, *rb_left; };
struct rb_root { struct rb_node *rb_node; };
struct rb_root_cached { struct rb_root rb_root; struct rb_node *rb_leftmost; };
#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
#define llist_empty(head) ((head)->first == NULL)
static inline void INIT_LIST_HEAD(struct list_head *list) { list->next = list->prev = list; }
static inline int list_empty(const struct list_head *head) { return head->next == head || !head->next; }

/*
 * Per-CPU data: a template in a section of its own, one copy of it for each CPU and one copy more, all zero, for an index
 * at or above nr_cpu_ids. Decides: a per-CPU access at or above nr_cpu_ids is counted and reads zeroes, not stray memory.
 */

#define NR_CPUS 1024
#define __percpu_section __attribute__((section("sdpercpu")))
#define DEFINE_PER_CPU(type, name) __percpu_section __attribute__((used)) __typeof__(type) name
#define DEFINE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DEFINE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DEFINE_PER_CPU_READ_MOSTLY(type, name) DEFINE_PER_CPU(type, name)
#define DECLARE_PER_CPU(type, name) DEFINE_PER_CPU(type, name)
#define DECLARE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DECLARE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DECLARE_PER_CPU_READ_MOSTLY(type, name) DEFINE_PER_CPU(type, name)
extern unsigned long sd_percpu_size;
extern char *sd_percpu_base;
extern u64 sd_oob;
extern unsigned int nr_cpu_ids;
extern int sd_this_cpu;
extern char __start_sdpercpu[];
static inline unsigned long sd_percpu_offset(unsigned long cpu)
{
	if (__builtin_expect(cpu >= nr_cpu_ids, 0)) {
		sd_oob++;
		cpu = nr_cpu_ids;
	}
	return (unsigned long)(sd_percpu_base + cpu * sd_percpu_size) - (unsigned long)__start_sdpercpu;
}
#define per_cpu_ptr(p, cpu) ((__typeof__(&*(p)))((unsigned long)(p) + sd_percpu_offset((unsigned int)(cpu))))
#define raw_cpu_ptr(p) per_cpu_ptr(p, sd_this_cpu)
#define this_cpu_ptr(p) per_cpu_ptr(p, sd_this_cpu)
#define per_cpu(var, cpu) (*per_cpu_ptr(&(var), cpu))
#define this_cpu_read(var) per_cpu(var, sd_this_cpu)
#define raw_cpu_read(var) per_cpu(var, sd_this_cpu)
#define __this_cpu_read(var) per_cpu(var, sd_this_cpu)
#define this_cpu_write(var, val) (per_cpu(var, sd_this_cpu) = (val))
#define __this_cpu_write(var, val) (per_cpu(var, sd_this_cpu) = (val))
#define this_cpu_inc(var) (per_cpu(var, sd_this_cpu)++)
#define __this_cpu_inc(var) (per_cpu(var, sd_this_cpu)++)
#define this_cpu_dec(var) (per_cpu(var, sd_this_cpu)--)
#define this_cpu_add(var, val) (per_cpu(var, sd_this_cpu) += (val))
#define get_cpu_var(var) per_cpu(var, sd_this_cpu)
#define put_cpu_var(var) do { } while (0)
#define get_cpu_ptr(p) this_cpu_ptr(p)
#define put_cpu_ptr(p) do { } while (0)
#define get_cpu() sd_this_cpu
#define put_cpu() do { } while (0)
/* Decides: smp_processor_id() is the wakeup's this_cpu, current its waker, jiffies the state's. */
#define smp_processor_id() sd_this_cpu
#define raw_smp_processor_id() sd_this_cpu
#define __smp_processor_id() sd_this_cpu
struct task_struct;
extern struct task_struct *sd_current;
#define current sd_current
extern u64 sd_jiffies;
#define jiffies ((unsigned long)sd_jiffies)
#define jiffies_64 sd_jiffies
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define msecs_to_jiffies(m) ((unsigned long)(m) * HZ / MSEC_PER_SEC)
#define usecs_to_jiffies(m) ((unsigned long)(m) * HZ / USEC_PER_SEC)
#define jiffies_to_msecs(j) ((unsigned int)((j) * MSEC_PER_SEC / HZ))
/* Decides: in_task() is the wakeup's; an interrupt is a softirq or a hardirq alike. */
extern int sd_in_task;
#define in_task() sd_in_task
#define in_interrupt() (!sd_in_task)
#define in_hardirq() 0
#define in_irq() 0
#define in_serving_softirq() (!sd_in_task)
#define irqs_disabled() 1

/*
 * The declared clock. Decides: cpu_clock() and its kin advance it by clock_read_ns and return it; cpumask_and() and
 * cpumask_andnot() advance it by mask_op_ns; an idle check (see probe.h) by probe_ns; nothing else does.
 */

extern u64 sd_clock_ns, sd_clock_read_ns, sd_mask_op_ns, sd_mask_ops;
static inline u64 sd_read_clock(void) { sd_clock_ns += sd_clock_read_ns; return sd_clock_ns; }
#define cpu_clock(cpu) ((void)(cpu), sd_read_clock())
#define local_clock() sd_read_clock()
#define sched_clock() sd_read_clock()
#define sched_clock_cpu(cpu) ((void)(cpu), sd_read_clock())
#define local_clock_noinstr() sd_read_clock()
#define ktime_get() ((ktime_t)sd_read_clock())
#define ktime_get_ns() sd_read_clock()
#define ktime_get_mono_fast_ns() sd_read_clock()
static inline void sd_mask_op(void) { sd_mask_ops++; sd_clock_ns += sd_mask_op_ns; }

#endif
