# Workloads that the guest can run while recording; sourced by guest-init.sh.
# SPDX-License-Identifier: GPL-2.0-or-later
# WORKLOAD is "NAME" or "NAME:ARG:ARG..."; several may be joined with "+" to
# run at once.  The recording ends when the last one ends.

session_pids() { # SESSION; from /proc/PID/stat: pid (comm) state ppid pgrp session
    for f in /proc/[0-9]*/stat; do
        { read -r l < $f; } 2>/dev/null || continue
        set -- "$1" ${l##*) }
        [ "$5" = "$1" ] && { l=${f#/proc/}; echo "${l%/stat}"; }
    done
}

one_workload() { # NAME ARG...
    name=$1; shift
    case $name in
    idle)       # background noise only: seconds
        sleep "${1:-3}" ;;
    sleepers)   # periodic, each on a CPU of its own (cyclictest pins them, so their
                # wakeups skip select_task_rq_fair): count, interval us, seconds
        cyclictest --policy=other -q -t "${1:-6}" -i "${2:-2000}" -d "${4:-370}" -D "${3:-3}" ;;
    sleeploop)  # forks: count, rounds, each round sleeps 5-20 ms in a child process
        i=0
        while [ $i -lt "${1:-3}" ]; do
            ( r=0; while [ $r -lt "${2:-40}" ]; do usleep $((5000 + (i * 7 + r * 13) % 15 * 1000)); r=$((r + 1)); done ) &
            i=$((i + 1))
        done; wait ;;
    hackbench)  # pipes, processes: groups, fds per side, loops
        hackbench -p -g "${1:-1}" -f "${2:-4}" -l "${3:-50}" ;;
    hackbench-sock) # unix sockets, threads: groups, fds, loops
        hackbench -T -g "${1:-1}" -f "${2:-4}" -l "${3:-50}" ;;
    perf-pipe)  # two tasks ping-pong over pipes: loops
        perf bench sched pipe -l "${1:-1000}" ;;
    perf-pipe-threads)
        perf bench sched pipe -T -l "${1:-1000}" ;;
    perf-pipe-pinned) # loops, cpu: both tasks on one CPU
        taskset -c "${2:-1}" perf bench sched pipe -l "${1:-1000}" ;;
    perf-msg)   # socketpair messaging: groups, loops
        perf bench sched messaging -g "${1:-1}" -l "${2:-20}" ;;
    perf-msg-pipe-threads)
        perf bench sched messaging -p -t -g "${1:-1}" -l "${2:-20}" ;;
    perf-epoll) # epoll waiters woken by writers: threads, seconds
        perf bench epoll wait -t "${1:-4}" -r "${2:-3}" ;;
    perf-futex-wake) # waiters woken by one task: threads
        perf bench futex wake -t "${1:-8}" -w "${2:-1}" -s ;;
    reqresp)    # request/response over TCP and datagrams: pairs, ops per pair
        stress-ng --sock "${1:-3}" --sock-ops "${2:-600}" --sock-type stream --timeout 60 ;;
    udp)        # UDP request/ack: pairs, ops per pair
        stress-ng --udp "${1:-2}" --udp-ops "${2:-500}" --timeout 60 ;;
    switch)     # context switch ping-pong (pipe|sem-sysv|mq): pairs, ops
        stress-ng --switch "${1:-2}" --switch-ops "${2:-2000}" --switch-method "${3:-pipe}" --timeout 60 ;;
    cpuload)    # partly busy tasks: count, load percent, seconds
        stress-ng --cpu "${1:-2}" --cpu-load "${2:-40}" --cpu-load-slice "${4:-20}" --cpu-method int64 --timeout "${3:-3}" ;;
    spin)       # fully busy tasks: count, seconds
        i=0
        while [ $i -lt "${1:-1}" ]; do timeout "${2:-3}" sh -c 'while :; do :; done' & i=$((i + 1)); done
        wait ;;
    rtapp)      # rt-app configuration by name, from /rt-app; seconds, if not as written there
        # (rt-app may hang at its end when its threads started too slowly)
        f=/rt-app/$1.json
        if [ -n "$2" ]; then
            sed "s/\"duration\": *[0-9]*/\"duration\": $2/" $f > "/tmp/$1-$2.json"
            f=/tmp/$1-$2.json
        fi
        timeout $((${2:-3} + 12)) rt-app $f ;;
    build)      # short-lived processes, like a make job: parallel jobs, rounds
        i=0
        while [ $i -lt "${1:-4}" ]; do
            ( r=0; while [ $r -lt "${2:-30}" ]; do
                  cat /proc/kallsyms 2>/dev/null | head -n 300 | sort -k3 | gzip -1 | wc -c >/dev/null
                  r=$((r + 1))
              done ) &
            i=$((i + 1))
        done; wait ;;
    pin)        # CPU list, then any workload: the same, confined to those CPUs
        l=$1; shift
        taskset -c "$l" sh -c '. /guest-workloads.sh; one_workload "$@"' x "$@" ;;
    repin)      # two CPU lists, then any workload: all its tasks are confined to the
                # first list, then to the second, and so on, about every 150 ms
        l1=$1 l2=$2; shift 2
        setsid taskset -c "$l1" sh -c '. /guest-workloads.sh; one_workload "$@"' x "$@" &
        sid=$!
        while kill -0 $sid 2>/dev/null; do
            usleep 150000
            for p in $(session_pids $sid); do taskset -a -p -c "$l2" "$p"; done >/dev/null 2>&1
            l=$l1 l1=$l2 l2=$l
        done
        wait ;;
    idleclass)  # any workload, under SCHED_IDLE
        chrt -i 0 sh -c '. /guest-workloads.sh; one_workload "$@"' x "$@" ;;
    fifo)       # any workload, under SCHED_FIFO priority 10
        chrt -f 10 sh -c '. /guest-workloads.sh; one_workload "$@"' x "$@" ;;
    nice)       # nice value, then any workload
        l=$1; shift
        nice -n "$l" sh -c '. /guest-workloads.sh; one_workload "$@"' x "$@" ;;
    own)        # any workload, in a group of its own (setsid: its own autogroup)
        setsid sh -c '. /guest-workloads.sh; one_workload "$@"' x "$@" ;;
    *) echo "unknown workload $name"; return 1 ;;
    esac
}

run_workload() {
    # words joined by + run at once; the arguments of each are joined by :
    for w in $(echo "$WORKLOAD" | tr '+' ' '); do
        one_workload $(echo "$w" | tr ':' ' ') &
    done
    wait
    sleep 0.2
}
