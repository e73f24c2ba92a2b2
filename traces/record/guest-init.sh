#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-or-later
# PID 1 of the recording guest.  Loads virtio, takes the snapshot of the
# topology, arms the probes, records, writes everything as a tar stream onto
# the raw disk, and powers off.  The parameters come from /job.env, written
# into the initramfs by record-vm.sh.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
mkdir -p /proc /sys /dev /tmp /run /out /dev/shm
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o size=90% tmpfs /tmp
mount -t tmpfs -o size=90% tmpfs /out
mount -t devpts devpts /dev/pts 2>/dev/null
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
ip link set lo up 2>/dev/null || ifconfig lo 127.0.0.1 up
T=/sys/kernel/tracing
# what needs what differs between kernels
for pass in 1 2 3; do
    for m in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
        [ -e /modules/$m.ko ] && insmod /modules/$m.ko 2>/dev/null && rm /modules/$m.ko
    done
done
say() { echo "guest[$(cut -d' ' -f1 /proc/uptime)]: $*"; }
finish() {
    say "writing results"
    dmesg > /out/dmesg.txt 2>/dev/null
    sync
    (cd /out && tar cf /dev/vda .)
    sync
    say "DONE $1"
    poweroff -f
}
. /job.env
say "up: $(uname -r), $(nproc) cpus, workload=$WORKLOAD mode=$MODE probes=$PROBES"
sysctl -w kernel.sched_schedstats=1 >/dev/null 2>&1 || echo 1 > /proc/sys/kernel/sched_schedstats
echo 0 > /proc/sys/kernel/nmi_watchdog 2>/dev/null
[ "$AUTOGROUP" = 0 ] && echo 0 > /proc/sys/kernel/sched_autogroup_enabled
[ "$NUMA_BALANCING" = 0 ] && echo 0 > /proc/sys/kernel/numa_balancing
for c in $OFFLINE; do echo 0 > /sys/devices/system/cpu/cpu$c/online; done
FEATURES=/sys/kernel/debug/sched/features
[ -e $FEATURES ] || FEATURES=/sys/kernel/debug/sched_features    # before 5.13
for f in $SCHED_FEATURES; do echo "$f" > $FEATURES; done

# ---- topology and scheduler state snapshot ---------------------------------
mkdir -p /out/snap
if [ "$SNAP" != 0 ]; then
    mkdir -p /out/snap/sys/devices/system
    cp -rP /sys/devices/system/cpu /sys/devices/system/node /out/snap/sys/devices/system/ 2>/dev/null
    # leave out what says nothing about the topology
    (cd /out/snap/sys/devices/system && rm -rf cpu/cpu[0-9]*/power cpu/cpu[0-9]*/hotplug cpu/cpu[0-9]*/microcode \
        cpu/cpu[0-9]*/crash_notes* cpu/cpu[0-9]*/cache/power cpu/cpu[0-9]*/cache/index*/power cpu/vulnerabilities \
        cpu/microcode cpu/power cpu/hotplug cpu/uevent node/node[0-9]*/memory[0-9]* node/node[0-9]*/hugepages \
        node/node[0-9]*/power node/power node/node[0-9]*/memory_failure)
    mkdir -p /out/snap/proc/sys/kernel /out/snap/sys/kernel/debug
    for f in /proc/cpuinfo /proc/version /proc/cmdline /proc/sys/kernel/sched_* /proc/sys/kernel/numa_balancing; do
        [ -f "$f" ] && cat "$f" > "/out/snap$f" 2>/dev/null
    done
    # since 6.7 the domains are listed only while "verbose" is on
    V=/sys/kernel/debug/sched/verbose v=$(cat $V 2>/dev/null)
    [ -d /sys/kernel/debug/sched/domains ] || echo Y > $V 2>/dev/null
    cp -r /sys/kernel/debug/sched /out/snap/sys/kernel/debug/ 2>/dev/null
    [ "$(cat $V 2>/dev/null)" = "$v" ] || echo "$v" > $V
    # before 5.13: sched_features, and the domains under /proc/sys
    for f in /sys/kernel/debug/sched_* /proc/sched_debug; do
        [ -f "$f" ] && cat "$f" > "/out/snap$f" 2>/dev/null
    done
    cp -r /proc/sys/kernel/sched_domain /out/snap/proc/sys/kernel/ 2>/dev/null
    lscpu > /out/snap/lscpu.txt 2>&1
    lscpu -J > /out/snap/lscpu.json 2>/dev/null
    lscpu -e > /out/snap/lscpu-e.txt 2>/dev/null
    grep -E ' (select_task_rq_fair|select_idle_sibling|select_idle_[a-z]*|available_idle_cpu|idle_cpu|wake_affine[a-z_]*|wake_wide|wake_cap|select_task_rq|find_idlest_[a-z]*|cpu_util[a-z_.0-9]*|enqueue_task[a-z_]*|dequeue_task[a-z_]*|activate_task|deactivate_task|update_cfs_group|cpuidle_state_is_polling|ttwu_[a-z_]*|try_to_wake_up|record_wakee|sched_ttwu_pending|asym_fits_[a-z]*|select_idle_core|test_idle_cores|set_task_cpu|runqueues|__per_cpu_offset|sd_llc[a-z_]*)(\..*)?$' /proc/kallsyms > /out/snap/kallsyms-sched.txt
    say "snapshot taken"
fi

# ---- probes ----------------------------------------------------------------
EV="-e sched:sched_switch -e sched:sched_wakeup -e sched:sched_waking -e sched:sched_wakeup_new -e sched:sched_migrate_task -e sched:sched_process_fork -e sched:sched_process_exec -e sched:sched_process_exit"
case " $EXTRA_EVENTS " in
  *" idle "*) EV="$EV -e power:cpu_idle" ;;
esac
case " $EXTRA_EVENTS " in
  *" irq "*) EV="$EV -e irq:irq_handler_entry -e irq:irq_handler_exit -e irq:softirq_entry -e irq:softirq_exit -e irq:softirq_raise -e irq_vectors:reschedule_entry -e irq_vectors:local_timer_entry" ;;
esac
case " $EXTRA_EVENTS " in
  *" ipi "*) EV="$EV -e irq_vectors:reschedule_entry -e irq_vectors:call_function_single_entry" ;;
esac
if [ "$PROBES" != none ]; then
    /guest-probes.sh "$PROBES" > /out/probes.log 2>&1
    cp $T/kprobe_events /out/kprobe_events.txt
    grep -q . $T/kprobe_events && EV="$EV -e kprobes"
fi
GR=""
if [ "$MODE" = fgraph ]; then
    GR="-p function_graph"
    for f in $GRAPH_FUNCS; do
        if grep -qE "^$f( |\$)" $T/available_filter_functions; then GR="$GR -l $f"; else echo "not traceable: $f" >> /out/fgraph.log; fi
    done
    [ "$GRAPH_EVENTS" = 1 ] || EV=""
    for f in funcgraph-abstime; do echo 1 > $T/options/$f 2>/dev/null; done
fi

if [ "$KALLSYMS" = short ]; then
    grep -E ' [tT] (__)?(select_task_rq|select_idle|available_idle|idle_cpu|wake_|find_idlest|try_to_wake|ttwu_|enqueue_task|dequeue_task|activate_|deactivate_|set_task_cpu|schedule|pick_next|update_cfs|_text|_stext|_etext)' /proc/kallsyms > /tmp/kallsyms-short
    mount --bind /tmp/kallsyms-short /proc/kallsyms
fi

# ---- record ----------------------------------------------------------------
cat /proc/schedstat > /out/schedstat-before.txt
cat /proc/stat > /out/stat-before.txt
. /guest-workloads.sh
say "recording"
t0=$(cut -d' ' -f1 /proc/uptime)
# "trace-cmd record" ends by clearing the function filter while the graph tracer
# is still on; under emulation tracing every function brings the guest to a
# halt, so fgraph takes the start/stop/extract way too.
if [ "$MODE" = extract ] || [ "$MODE" = fgraph ]; then
    CMD="trace-cmd start -C $CLOCK -b $BUFKB $GR $EV ; WORKLOAD ; trace-cmd stop ; trace-cmd extract $TC_OUT -o trace.dat"
    trace-cmd start -C $CLOCK -b $BUFKB $GR $EV > /out/record.log 2>&1
    cat $T/kprobe_profile > /out/kprobe_profile-start.txt 2>/dev/null
    run_workload > /out/workload.log 2>&1
    cat $T/kprobe_profile > /out/kprobe_profile.txt 2>/dev/null
    trace-cmd stop >> /out/record.log 2>&1
    cat /proc/schedstat > /out/schedstat-after.txt
    trace-cmd extract $TC_OUT -o /out/trace.dat >> /out/record.log 2>&1
else
    cat > /run-workload.sh <<'EOS'
#!/bin/busybox sh
. /job.env
. /guest-workloads.sh
K=/sys/kernel/tracing/kprobe_profile
cat $K > /out/kprobe_profile-start.txt 2>/dev/null
run_workload > /out/workload.log 2>&1
cat $K > /out/kprobe_profile.txt 2>/dev/null
EOS
    chmod +x /run-workload.sh
    CMD="trace-cmd record $TC_OUT -C $CLOCK -b $BUFKB $GR $EV -o trace.dat WORKLOAD"
    trace-cmd record $TC_OUT -C $CLOCK -b $BUFKB $GR $EV -o /out/trace.dat /run-workload.sh > /out/record.log 2>&1
    cat /proc/schedstat > /out/schedstat-after.txt
fi
t1=$(cut -d' ' -f1 /proc/uptime)
cat /proc/stat > /out/stat-after.txt
echo "$CMD" > /out/command.txt
echo "guest seconds: $t0 -> $t1" >> /out/command.txt
for c in $T/per_cpu/cpu*/stats; do echo "$c $(tr '\n' ' ' < $c)"; done > /out/ring-buffer-stats.txt
finish ok
