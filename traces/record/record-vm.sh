#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# record-vm.sh - boot a Debian kernel under QEMU with a chosen CPU topology, run
# a workload in the guest, record the scheduler's wakeup path with trace-cmd,
# and bring trace.dat and a snapshot of the topology back to the host.
#
# usage: record-vm.sh [options] WORKDIR NAME
#
#   WORKDIR  scratch folder (kernel, initramfs, disks); reused between runs
#   NAME     the recording lands in WORKDIR/out/NAME/ (or --out DIR)
#
# options:
#   --smp S,C,T        sockets, cores per socket, threads per core   (1,4,2)
#   --dies D           dies per socket, each with its own L3; the C cores
#                      are then per die                              (1)
#   --offline "L"      CPUs to take offline before recording
#   --numa N           NUMA nodes; 0 = none declared. Sockets are dealt
#                      to nodes in order.                            (0)
#   --workload W       see guest-workloads.sh; NAME:ARG:ARG+NAME:ARG (hackbench:1:4:50)
#   --mode M           record  - trace-cmd record -o trace.dat WORKLOAD
#                      extract - trace-cmd start; WORKLOAD; stop; extract
#                                (no recorder threads in the trace)
#                      fgraph  - like extract, with -p function_graph  (record)
#   --probes L         none, task, scan or full; see guest-probes.sh  (none)
#   --events "L"       further event groups: idle irq ipi
#   --graph-funcs "L"  functions for --mode fgraph
#   --graph-events 0|1 in fgraph mode, record the sched events too    (1)
#   --clock C          local, mono, global, ...                       (mono)
#   --buf KB           ring buffer per CPU                            (8192)
#   --tc-out "ARGS"    further trace-cmd arguments, e.g. "--file-version 6 --compression none"
#   --kallsyms full|short  short: trace.dat gets only the scheduler's symbols (those
#                      of a 7.x kernel take 1.5 MB of it)             (full)
#   --features "L"     words to write to /sys/kernel/debug/sched/features
#   --autogroup 0|1    sched_autogroup_enabled                        (0)
#   --numa-balancing 0|1                                              (1)
#   --mem MB           guest memory                                   (2048)
#   --accel A          tcg, or kvm where nested virtualisation works   (tcg)
#   --cpu MODEL        QEMU CPU model                                 (see below)
#   --qemu-args "ARGS" further QEMU arguments
#   --timeout S        wall-clock limit for one boot of the guest     (300)
#   --boot-timeout S   limit for the guest to reach its init, and from there
#                      to the start of the recording                  (90)
#   --tries N          boots before giving up                         (3)
#   --kernel K         Debian image package; "auto" asks apt for what
#                      linux-image-amd64 depends on; or one or more .deb files,
#                      joined by commas; or a vmlinux ELF file that has BTF, PVH
#                      and virtio-blk built in                        (auto)
#   --suite S          take the package from this Debian suite, e.g. bullseye-security
#                      or trixie-backports (own apt lists in WORKDIR; the host's
#                      stay as they are)                   (the host's suites)
#   --out DIR          where to put the result
#   --keep-disk        keep the raw result disk
#
# Debian bookworm packages needed on the host (install them yourself; this
# script installs nothing):
#   qemu-system-x86 busybox-static cpio xz-utils zstd python3 trace-cmd rt-tests
#   linux-perf stress-ng rt-app util-linux
# The kernel image package is fetched with "apt-get download" into WORKDIR and
# unpacked there; it is not installed.
#
# Under TCG the guest's time is the host's wall-clock while its instructions run
# 10-50 times slower, and all virtual CPUs share the host's cores: durations in
# the trace are not those of hardware.  The placement decisions are those the
# kernel's own code took on the state it saw.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

SMP=1,4,2 DIES=1 OFFLINE= NUMA=0 WORKLOAD=hackbench:1:4:50 MODE=record PROBES=none EXTRA_EVENTS=
GRAPH_FUNCS="select_task_rq_fair enqueue_task dequeue_task activate_task deactivate_task enqueue_task_fair dequeue_task_fair update_cfs_group"
GRAPH_EVENTS=1 CLOCK=mono BUFKB=8192 TC_OUT= SCHED_FEATURES= KALLSYMS=full AUTOGROUP=0 NUMA_BALANCING=1
MEM=2048 ACCEL=tcg CPU= QEMU_ARGS= TIMEOUT=300 BOOT_TIMEOUT=90 TRIES=3 KERNEL=auto SUITE= OUT= KEEP=0
usage() { sed -n '2,/^set -euo/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit "${1:-2}"; }
while [ $# -gt 0 ]; do
    case $1 in
    --dies) DIES=$2; shift 2 ;;             --offline) OFFLINE=$2; shift 2 ;;
    --smp) SMP=$2; shift 2 ;;               --numa) NUMA=$2; shift 2 ;;
    --workload) WORKLOAD=$2; shift 2 ;;     --mode) MODE=$2; shift 2 ;;
    --probes) PROBES=$2; shift 2 ;;         --events) EXTRA_EVENTS=$2; shift 2 ;;
    --graph-funcs) GRAPH_FUNCS=$2; shift 2 ;; --graph-events) GRAPH_EVENTS=$2; shift 2 ;;
    --clock) CLOCK=$2; shift 2 ;;           --buf) BUFKB=$2; shift 2 ;;
    --tc-out) TC_OUT=$2; shift 2 ;;         --features) SCHED_FEATURES=$2; shift 2 ;;
    --autogroup) AUTOGROUP=$2; shift 2 ;;   --numa-balancing) NUMA_BALANCING=$2; shift 2 ;;
    --mem) MEM=$2; shift 2 ;;               --accel) ACCEL=$2; shift 2 ;;
    --cpu) CPU=$2; shift 2 ;;               --qemu-args) QEMU_ARGS=$2; shift 2 ;;
    --boot-timeout) BOOT_TIMEOUT=$2; shift 2 ;;
    --tries) TRIES=$2; shift 2 ;;
    --timeout) TIMEOUT=$2; shift 2 ;;       --kernel) KERNEL=$2; shift 2 ;;
    --kallsyms) KALLSYMS=$2; shift 2 ;;
    --suite) SUITE=$2; shift 2 ;;           --keep-disk) KEEP=1; shift ;;
    --out) OUT=$2; shift 2 ;;
    -h|--help) usage 0 ;;
    -*) echo "unknown option $1" >&2; usage ;;
    *) break ;;
    esac
done
[ $# -eq 2 ] || usage
mkdir -p "$1"; work=$(cd "$1" && pwd); name=$2
out=${OUT:-$work/out/$name}; mkdir -p "$out"; out=$(cd "$out" && pwd)
IFS=, read -r SOCK CORES THREADS <<< "$SMP"
NCPU=$((SOCK * DIES * CORES * THREADS))
for tool in qemu-system-x86_64 busybox cpio python3 trace-cmd hackbench cyclictest perf stress-ng rt-app lscpu taskset chrt setsid; do
    command -v $tool >/dev/null || { echo "missing on the host: $tool" >&2; exit 1; }
done

# ---- kernel: download, unpack, extract the ELF image, read member offsets ---
apt=()
if [ -n "$SUITE" ]; then
    ap=$work/apt/$SUITE; mkdir -p "$ap"/parts "$ap"/lists/partial "$ap"/cache/archives/partial
    # the archive this machine already uses, another suite of it
    uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/#.*//; s/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' | tr ' ' '\n' | sed 's:/*$::' |
        case $SUITE in *-security) grep '/debian-security$' ;; *) grep '/debian$' ;; esac | sed -n 1p) || true
    [ -n "$uri" ] || { echo "no Debian archive in this machine's apt sources for suite $SUITE" >&2; exit 1; }
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$uri" "$SUITE" \
        /usr/share/keyrings/debian-archive-keyring.gpg > "$ap/parts/suite.sources"
    apt=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$ap/parts" -o "Dir::State::Lists=$ap/lists" -o "Dir::Cache=$ap/cache")
    ls "$ap"/lists/*_InRelease >/dev/null 2>&1 || apt-get "${apt[@]}" -q update
fi
depends() { apt-cache "${apt[@]}" depends "$1" | sed -n "s/^[ |]*Depends: *\($2\)\$/\1/p"; }
if [ "$KERNEL" = auto ]; then
    KERNEL=$(depends linux-image-amd64 'linux-image-[0-9].*' | head -n 1)
fi
case $KERNEL in
*.deb)      klabel=$(basename "${KERNEL%%,*}" .deb) ;;
*)          klabel=$(basename "$KERNEL") ;;
esac
kdir=$work/kernel/$klabel; mkdir -p "$kdir/unpacked"
if [ "${KERNEL%.deb}" = "$KERNEL" ] && [ -f "$KERNEL" ]; then
    ksource="own build ($klabel)"
    [ "$kdir/vmlinux" -nt "$KERNEL" ] || cp "$KERNEL" "$kdir/vmlinux"
elif [ ! -e "$kdir/vmlinux" ]; then
    case $KERNEL in
    *.deb)  IFS=, read -ra debs <<< "$KERNEL"; cp "${debs[@]}" "$kdir/" ;;
    *)      # since 7.0 the image package only depends on those with the image and the modules
            ls "$kdir"/*.deb >/dev/null 2>&1 || (cd "$kdir" && apt-get "${apt[@]}" download "$KERNEL" \
                $(depends "$KERNEL" "linux-\(binary\|modules\)-${KERNEL#linux-image-}")) ;;
    esac
    for d in "$kdir"/*.deb; do
        dpkg-deb --fsys-tarfile "$d" | tar -x -C "$kdir/unpacked" --wildcards --exclude='*/doc/*' '*vmlinuz*' '*/virtio*.ko*' 2>/dev/null || true
    done
    python3 "$here/extract-vmlinux.py" "$(find "$kdir/unpacked" -name 'vmlinuz*' | head -n 1)" "$kdir/vmlinux"
fi
[ -n "${ksource:-}" ] || ksource="$klabel ($(cd "$kdir" && echo *.deb))"
# The members which the probes may read, as far as this kernel has them:
# O_<path>=offset and S_<path>=size; N_<name>: number of parameters.
if [ ! -s "$kdir/offsets.env" ] || [ "$here/record-vm.sh" -nt "$kdir/offsets.env" ] || [ "$kdir/vmlinux" -nt "$kdir/offsets.env" ]; then
    python3 "$here/btf-offsets.py" "$kdir/vmlinux" \
        task_struct.{pid,recent_used_cpu,wake_cpu,on_cpu,wakee_flips,wakee_flip_decay_ts,last_wakee} \
        task_struct.{nr_cpus_allowed,cpus_ptr,policy,flags,numa_preferred_nid,preferred_llc} \
        task_struct.se.{depth,load.weight,avg.util_avg,avg.load_avg,avg.last_update_time,avg.util_est.enqueued,avg.util_est,sched_delayed} \
        rq.{nr_running,ttwu_pending,curr,cpu_capacity,avg_idle,wake_avg_idle} \
        rq.cfs.{h_nr_running,h_nr_queued,h_nr_runnable,h_nr_delayed,idle_h_nr_running,h_nr_idle} \
        rq.cfs.avg.{util_avg,util_est.enqueued,util_est,load_avg,runnable_avg} \
        sched_domain.avg_scan_cost sched_domain_shared.{has_idle_cores,nr_idle_scan} 'sched_class.select_task_rq()' |
        awk '$2 == "-" {next}
            sub(/\(\)$/, "", $1) {sub(/.*\./, "", $1); print "N_" $1 "=" $2; next}
            {gsub(/\./, "_", $1); print "O_" $1 "=" $2; print "S_" $1 "=" $3}' > "$kdir/offsets.env"
fi

# ---- initramfs: busybox, the tools with their shared libraries, our scripts --
root=$work/root
if [ ! -e "$root/.tools-done" ]; then
    mkdir -p "$root"/{bin,usr/bin,usr/sbin,usr/lib,modules,rt-app,root,tmp,etc,proc,sys,dev}
    cp "$(command -v busybox)" "$root/bin/busybox"
    bins=(trace-cmd hackbench cyclictest stress-ng rt-app lscpu taskset chrt setsid)
    for b in "${bins[@]}"; do
        cp -L "$(command -v $b)" "$root/usr/bin/$b"
    done
    # "perf" may be a wrapper script around a versioned binary
    perfbin=$(command -v perf)
    if head -c 2 "$perfbin" | grep -q '#!'; then
        perfbin=$(ls /usr/bin/perf_* /usr/lib/linux-tools*/perf 2>/dev/null | tail -n 1 || true)
    fi
    cp -L "$perfbin" "$root/usr/bin/perf"
    for b in "$root"/usr/bin/*; do
        { ldd "$b" 2>/dev/null || true; } | awk '/=> \//{print $3} $1 ~ /^\//{print $1}'
    done | sort -u | while read -r lib; do
        mkdir -p "$root$(dirname "$lib")"; cp -L "$lib" "$root$lib"
    done
    [ -d /usr/lib/x86_64-linux-gnu/trace-cmd ] && mkdir -p "$root/usr/lib/x86_64-linux-gnu" &&
        cp -r /usr/lib/x86_64-linux-gnu/trace-cmd "$root/usr/lib/x86_64-linux-gnu/"
    echo 'root:x:0:0:root:/root:/bin/sh' > "$root/etc/passwd"
    echo 'root:x:0:' > "$root/etc/group"
    echo '127.0.0.1 localhost' > "$root/etc/hosts"
    touch "$root/.tools-done"
fi
# everything that depends on the run goes into a second, small archive (the
# kernel unpacks concatenated archives in order)
if [ ! -e "$work/base.cpio" ] || [ "$root/.tools-done" -nt "$work/base.cpio" ]; then
    (cd "$root" && find . | cpio --quiet -o -H newc) > "$work/base.cpio"
fi
run=$(mktemp -d "$work/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
mkdir -p "$run/ov/modules" "$run/ov/rt-app"
cp "$here"/guest-init.sh "$run/ov/init"
cp "$here"/guest-probes.sh "$here"/guest-workloads.sh "$run/ov/"
cp "$here"/rt-app/*.json "$run/ov/rt-app/" 2>/dev/null || true
cp "$kdir/offsets.env" "$run/ov/offsets.env"
chmod +x "$run"/ov/init "$run"/ov/guest-*.sh
for m in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
    f=$(find "$kdir/unpacked" -name "$m.ko*" | head -n 1)
    case $f in
    *.xz) xz -dc "$f" > "$run/ov/modules/$m.ko" ;;
    ?*)   cp "$f" "$run/ov/modules/" ;;
    esac
done
for v in WORKLOAD MODE PROBES EXTRA_EVENTS GRAPH_FUNCS GRAPH_EVENTS CLOCK BUFKB TC_OUT SCHED_FEATURES KALLSYMS AUTOGROUP NUMA_BALANCING OFFLINE; do
    printf "%s='%s'\n" "$v" "${!v}"
done > "$run/ov/job.env"
(cd "$run/ov" && find . | cpio --quiet -o -H newc) > "$run/overlay.cpio"
cat "$work/base.cpio" "$run/overlay.cpio" > "$run/initrd.cpio"

# ---- boot --------------------------------------------------------------------
# An Intel model makes the guest read cache sharing from CPUID leaf 4;
# l3-cache=on gives one L3 per socket.  TCG does not wait in MWAIT: without
# -monitor, kernels before 5.18 would poll in their idle loop.
tsc=
if [ "$ACCEL" = kvm ]; then
    cpu=${CPU:-host,l3-cache=on}
else
    cpu=${CPU:-max,vendor=GenuineIntel,family=6,model=85,stepping=7,l3-cache=on,-la57,-monitor}
    # The TCG guest's TSC is the host's: tell it the rate, so that it does not
    # calibrate against emulated timers.
    khz=$(dmesg 2>/dev/null | sed -n 's/.*tsc: Detected \([0-9]*\)\.\([0-9]*\) MHz.*/\1\2/p' | tail -n 1 || true)
    [ -n "$khz" ] && tsc="tsc_early_khz=$khz tsc=reliable"
fi
accel=$ACCEL; [ "$ACCEL" = tcg ] && accel=tcg,thread=multi,tb-size=512
numa=()
if [ "$NUMA" -gt 0 ]; then
    per=$((MEM / NUMA))
    for ((i = 0; i < NUMA; i++)); do
        numa+=(-object memory-backend-ram,id=m$i,size=${per}M -numa node,nodeid=$i,memdev=m$i)
    done
    for ((s = 0; s < SOCK; s++)); do
        numa+=(-numa cpu,node-id=$((s * NUMA / SOCK)),socket-id=$s)
    done
    for ((i = 0; i < NUMA; i++)); do for ((j = i + 1; j < NUMA; j++)); do
        numa+=(-numa dist,src=$i,dst=$j,val=21)
    done; done
fi
append="console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off nowatchdog nmi_watchdog=0 rcupdate.rcu_cpu_stall_suppress=1 random.trust_cpu=on $tsc"
# Under TCG with one host thread per virtual CPU, a guest now and then hangs
# early in its boot, and patching kernel text (which is how probes and function
# tracing are switched on) now and then crashes it: try again when that happens.
boot() {
    rm -f "$out/console.log"; truncate -s 0 "$run/out.raw"; truncate -s 2G "$run/out.raw"
    rc=0
    # shellcheck disable=SC2086
    timeout -k 10 "$TIMEOUT" qemu-system-x86_64 -machine q35 -accel $accel -cpu "$cpu" \
        -smp "$NCPU,sockets=$SOCK,dies=$DIES,cores=$CORES,threads=$THREADS" -m "$((NUMA > 0 ? MEM / NUMA * NUMA : MEM))" "${numa[@]}" \
        -kernel "$kdir/vmlinux" -initrd "$run/initrd.cpio" -append "$append" \
        -drive file="$run/out.raw",format=raw,if=virtio,cache=unsafe \
        -nic none -display none -monitor none -serial file:"$out/console.log" -no-reboot $QEMU_ARGS \
        < /dev/null > "$out/qemu.log" 2>&1 &
    local pid=$! stage waited
    for stage in ': up:' ': recording'; do
        waited=0
        while kill -0 $pid 2>/dev/null && ! grep -qs "^guest.*$stage" "$out/console.log"; do
            sleep 1
            waited=$((waited + 1))
            if [ $waited -ge "$BOOT_TIMEOUT" ]; then kill $pid 2>/dev/null || true; break; fi
        done
    done
    wait $pid || rc=$?
    grep -q 'DONE ok' "$out/console.log" 2>/dev/null
}
for ((try = 1; ; try++)); do
    start=$(date +%s)
    boot && break
    echo "$name: try $try: the guest did not finish (qemu rc=$rc, $(($(date +%s) - start)) s); its console:" >&2
    grep -m 3 -E 'BUG|RIP|panic' "$out/console.log" >&2 || tail -n 8 "$out/console.log" "$out/qemu.log" >&2 || true
    [ "$try" -lt "$TRIES" ] || exit 1
done
end=$(date +%s)

# ---- results -----------------------------------------------------------------
mkdir -p "$out/guest"
tar xf "$run/out.raw" -C "$out/guest" 2>/dev/null || true
[ "$KEEP" = 1 ] && cp --sparse=always "$run/out.raw" "$out/out.raw"
[ -s "$out/guest/trace.dat" ] || { echo "$name: no trace.dat came back" >&2; exit 1; }
mv "$out/guest/trace.dat" "$out/trace.dat"
tar czf "$out/topology.tar.gz" -C "$out/guest/snap" .
for f in schedstat-before schedstat-after stat-before stat-after ring-buffer-stats; do echo "$f.txt"; done |
    tar czf "$out/state.tar.gz" -C "$out/guest" -T -
trace-cmd report -i "$out/trace.dat" -N 2>"$out/report.err" | awk '
    $1 ~ /^(cpus|CPU|version)/ {next}
    {for (i = 3; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) {e = $(i + 1); sub(/:$/, "", e); n[e]++; break}}
    END {for (e in n) print n[e], e}' | sort -rn > "$out/counts.txt"
{
    echo "name:      $name"
    echo "kernel:    $(cat "$out/guest/snap/proc/version" 2>/dev/null)"
    echo "package:   $ksource${SUITE:+, suite $SUITE}"
    echo "machine:   QEMU $(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9.]*\).*/\1/p'), accel=$ACCEL, cpu=$cpu, on $(nproc) host cores"
    echo "topology:  $NCPU CPUs = $SOCK socket(s) x $DIES die(s) x $CORES core(s) x $THREADS thread(s), NUMA nodes: $NUMA, ${MEM} MB; offline: ${OFFLINE:-none}"
    echo "cmdline:   $append"
    echo "workload:  $WORKLOAD   (guest-workloads.sh)"
    echo "mode:      $MODE, probes=$PROBES, clock=$CLOCK, buffer=${BUFKB}KB per CPU, extra events: ${EXTRA_EVENTS:-none}"
    echo "settings:  autogroup=$AUTOGROUP numa_balancing=$NUMA_BALANCING features changed: ${SCHED_FEATURES:-none}; kallsyms in trace.dat: $KALLSYMS"
    echo "command:   $(head -n 1 "$out/guest/command.txt")"
    sed -n 2p "$out/guest/command.txt"
    echo "wall:      $((end - start)) s on the host"
    if [ -s "$out/guest/kprobe_events.txt" ]; then
        echo; echo "kprobe events:"; cat "$out/guest/kprobe_events.txt"
        grep FAIL "$out/guest/probes.log" || true
        echo; echo "event, field and the member it holds (- = this kernel has no such member, no such field):"
        cat "$out/guest/probe-fields.txt"
        echo; echo "kprobe hits and misses (kprobe_profile) from the start of the workload to its end; before it:"
        awk 'NR == FNR {h[$1] = $2; m[$1] = $3; next} {printf "  %-12s %8d %8d; %8d %8d\n", $1, $2 - h[$1], $3 - m[$1], h[$1], m[$1]}' \
            "$out/guest/kprobe_profile-start.txt" "$out/guest/kprobe_profile.txt"
    fi
    if [ "$MODE" = fgraph ]; then
        echo; echo "functions asked for: $GRAPH_FUNCS"; cat "$out/guest/fgraph.log" 2>/dev/null || true
    fi
    echo; echo "trace.dat: $(stat -c %s "$out/trace.dat") bytes; events by type (trace-cmd report):"
    cat "$out/counts.txt"
    echo; echo "lost events: $(trace-cmd report -i "$out/trace.dat" 2>/dev/null | grep -c 'EVENTS DROPPED' || true) dropped-event marks"
    echo; echo "workload output:"; head -n 30 "$out/guest/workload.log" 2>/dev/null
} > "$out/notes.txt"
echo "$name: ok, $((end - start)) s, $(stat -c %s "$out/trace.dat") bytes, $(awk '{s += $1} END {print s}' "$out/counts.txt") events"
