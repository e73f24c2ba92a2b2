#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Arms kprobe events on the wakeup path.  usage: guest-probes.sh LEVEL
#   task  select_task_rq_fair entry and return, with the wakee's fields
#   scan  "task" and the entry/return of the out-of-line helpers
#         (select_idle_sibling, available_idle_cpu), as far as they exist
#   full  "scan" without the helpers, with the run queue state of every CPU
#         (one event sis_rqN per CPU) at entry
# Member offsets and sizes come from /offsets.env (O_<struct>_<member>,
# S_<struct>_<member>), computed from the kernel's BTF on the host.  A field
# whose member this kernel has not is left out of the event; which member each
# field is goes to /out/probe-fields.txt.
. /offsets.env
LEVEL=$1
K=/sys/kernel/tracing/kprobe_events
FIELDS=/out/probe-fields.txt
add() { if echo "$1" >> $K; then echo "ok:   $1"; else echo "FAIL: $1"; fi; }
SYMS=/tmp/kallsyms
grep -E ' (select_idle_[a-z]*|available_idle_cpu|wake_affine|find_idlest_cpu|runqueues|sd_llc|sd_llc_shared|__per_cpu_offset)$' /proc/kallsyms > $SYMS
have() { grep -qE " $1\$" $SYMS; }
symbol() { # its address as a number
    a=$(awk -v s="$1" '$3 == s {print $1; exit}' $SYMS)
    [ -n "$a" ] && echo $((0x$a))
}
signed() { if [ "$1" -lt 0 ]; then echo "$1"; else echo "+$1"; fi; }
# pick MEMBER...: sets M, O and S to the first that exists and its offset and size
pick() {
    for M in "$@"; do
        eval "O=\${O_$M:-} S=\${S_$M:-}"
        [ -n "$O" ] && return 0
    done
    return 1
}
note() { # EVENT FIELD WHAT; once for each event
    grep -qs "^$1 $2 " $FIELDS || echo "$1 $2 $3" >> $FIELDS
}

# ---- the wakee -----------------------------------------------------------------
P=%di
ARGS=
# t NAME SIGN MEMBER...: a member of the task in $P; SIGN is s, u or x
t() {
    name=$1 sign=$2; shift 2
    if pick "$@"; then
        ARGS="$ARGS $name=+$O($P):$sign$((8 * S))"; note sis_in $name "$M, $S bytes"
    else
        note sis_in $name "-"
    fi
}
t pid s task_struct_pid
# select_task_rq_fair(p, prev_cpu, wake_flags); before 5.12 (p, prev_cpu, sd_flag, wake_flags)
if [ "${N_select_task_rq:-3}" = 4 ]; then
    ARGS="$ARGS prev=%si:s32 sdflag=%dx:x32 flags=%cx:x32"
    note sis_in sdflag "third argument, sd_flag"; note sis_in flags "fourth argument, wake_flags"
else
    ARGS="$ARGS prev=%si:s32 flags=%dx:x32"
    note sis_in sdflag "-"; note sis_in flags "third argument, wake_flags"
fi
t ruc s task_struct_recent_used_cpu
t wakecpu s task_struct_wake_cpu
t oncpu s task_struct_on_cpu
t wflips u task_struct_wakee_flips
t wdecay u task_struct_wakee_flip_decay_ts
ARGS="$ARGS lastwakee=+$O_task_struct_pid(+$O_task_struct_last_wakee($P)):s32"
t util u task_struct_se_avg_util_avg
t uest u task_struct_se_avg_util_est_enqueued task_struct_se_avg_util_est
t load u task_struct_se_avg_load_avg
t lut u task_struct_se_avg_last_update_time
t weight u task_struct_se_load_weight
t ncpus s task_struct_nr_cpus_allowed
ARGS="$ARGS mask0=+0(+$O_task_struct_cpus_ptr($P)):x64 mask1=+8(+$O_task_struct_cpus_ptr($P)):x64"
t policy u task_struct_policy
t pflags x task_struct_flags
t depth s task_struct_se_depth
t nid s task_struct_numa_preferred_nid
t delayed u task_struct_se_sched_delayed
t pllc s task_struct_preferred_llc
add "p:kprobes/sis_in select_task_rq_fair$ARGS"
add "r:kprobes/sis_out select_task_rq_fair ret=\$retval:s32"

# ---- helpers ------------------------------------------------------------------
if [ "$LEVEL" = scan ]; then
    if have select_idle_sibling; then
        add "p:kprobes/sis_sib_in select_idle_sibling pid=+$O_task_struct_pid($P):s32 prev=%si:s32 target=%dx:s32"
        add "r:kprobes/sis_sib_out select_idle_sibling ret=\$retval:s32"
    fi
    have available_idle_cpu && {
        add "p:kprobes/sis_avail_in available_idle_cpu cpu=%di:s32"
        add "r:kprobes/sis_avail_out available_idle_cpu ret=\$retval:s32"
    }
    have wake_affine && {
        add "p:kprobes/sis_aff_in wake_affine a0=%di:x64 a1=%si:x64 a2=%dx:s32 a3=%cx:s32 a4=%r8:s32"
        add "r:kprobes/sis_aff_out wake_affine ret=\$retval:s32"
    }
    have select_idle_core && {
        add "p:kprobes/sis_core_in select_idle_core pid=+$O_task_struct_pid($P):s32 core=%si:s32"
        add "r:kprobes/sis_core_out select_idle_core ret=\$retval:s32"
    }
    have find_idlest_cpu && {
        add "r:kprobes/sis_idlest_out find_idlest_cpu ret=\$retval:s32"
    }
fi

# ---- the run queues -----------------------------------------------------------
if [ "$LEVEL" = full ]; then
    # A per-CPU symbol plus __per_cpu_offset[CPU] is the address of that CPU's
    # copy: +SYMBOL+OFFSET(@ADDRESS_OF___per_cpu_offset[CPU]) reads a member.
    # The symbol is an offset from 0, or since 6.15 a (negative) kernel address.
    # Addresses are given as numbers: before 6.2 looking up a name takes long.
    RQ=$(symbol runqueues) SD=$(symbol sd_llc) SDS=$(symbol sd_llc_shared)
    PCO=$(symbol __per_cpu_offset)
    n=$(ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l)
    c=0
    # r NAME SIGN MEMBER...: a member of rq;
    r() {
        name=$1 sign=$2; shift 2
        if pick "$@"; then
            ARGS="$ARGS $name=$(signed $((RQ + O)))$B:$sign$((8 * S))"; note sis_rq $name "$M, $S bytes"
        else
            note sis_rq $name "-"
        fi
    }
    behind() { # POINTER NAME SIGN MEMBER...
        ptr=$1 name=$2 sign=$3; shift 3
        if pick "$@"; then
            ARGS="$ARGS $name=+$O($ptr):$sign$((8 * S))"; note sis_rq $name "$M, $S bytes"
        else
            note sis_rq $name "-"
        fi
    }
    while [ $c -lt "$n" ]; do
        B="(@0x$(printf %x $((PCO + 8 * c))))"
        CURR="$(signed $((RQ + O_rq_curr)))$B"
        ARGS=
        r nr u rq_nr_running
        r h u rq_cfs_h_nr_running rq_cfs_h_nr_queued
        r hrun u rq_cfs_h_nr_runnable
        r hdel u rq_cfs_h_nr_delayed
        r ih u rq_cfs_idle_h_nr_running rq_cfs_h_nr_idle
        r pend u rq_ttwu_pending
        r util u rq_cfs_avg_util_avg
        r uest u rq_cfs_avg_util_est_enqueued rq_cfs_avg_util_est
        r load u rq_cfs_avg_load_avg
        r run u rq_cfs_avg_runnable_avg
        r cap u rq_cpu_capacity
        r avgidle u rq_avg_idle
        r wavgidle u rq_wake_avg_idle
        behind "$CURR" curr s task_struct_pid
        behind "$CURR" cwflips u task_struct_wakee_flips
        ARGS="$ARGS clastw=+$O_task_struct_pid(+$O_task_struct_last_wakee($CURR)):s32"
        [ -n "$SD" ] && behind "$(signed "$SD")$B" scost u sched_domain_avg_scan_cost
        if [ -n "$SDS" ]; then
            behind "$(signed "$SDS")$B" hic s sched_domain_shared_has_idle_cores
            behind "$(signed "$SDS")$B" nis s sched_domain_shared_nr_idle_scan
        fi
        add "p:kprobes/sis_rq$c select_task_rq_fair$ARGS"
        c=$((c + 1))
    done
fi
cat $K | wc -l
