#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the samples beside this script anew, with lscpu (util-linux 2.38.1) and lstopo (hwloc 2.9.0), from copies of
# /sys: those of ../shared/topologies, those of the project's recordings, and one that is made up here.
set -euo pipefail
cd "$(dirname "$0")"
shared=${1:-../../../shared}/topologies
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

# hwloc's XML of a copy of /sys ($2), versions 1 and 2; without what says nothing of CPUs.
hwloc() {
    for version in 1 2; do
        flags=(); [ $version = 1 ] && flags=(--export-xml-flags v1)
        lstopo-no-graphics --input "$2" "${flags[@]}" --no-io --of xml | gzip -9n >"$1.hwloc$version.xml.gz"
    done
}

lscpus() {
    lscpu -s "$2" -p >"$1.lscpu-p.txt"
    lscpu -s "$2" -e >"$1.lscpu-e.txt"
    lscpu -s "$2" -J -e >"$1.lscpu-e.json"
    # What the CPU can do is of no use here.
    lscpu -s "$2" -J | grep -v -e '"data": "fpu ' | sed 's/"field": "Flags:",/"field": "Flags:"/' >"$1.lscpu.json"
}

for name in intel-8cpu-linux6.2 opteron-bulldozer-64cpu riscv-visionfive2-4cpu xeon-2s-subnuma-80cpu; do
    mkdir "$work/$name"
    tar xf "$shared/$name"/*.tar.* -C "$work/$name"
    root=$(echo "$work/$name"/*)
    lscpus $name "$root"
    hwloc $name "$root"
done

for name in dies12-truth numa16-state-truth numa80-truth; do
    mkdir "$work/$name"
    tar xf ../../traces/$name/topology.tar.gz -C "$work/$name"
    hwloc $name "$work/$name"
done

# big.LITTLE with clusters and capacities, CPU 6 offline, a hole at CPU 3, node 2 without CPUs and no node 1.
root=$work/odd
put() { mkdir -p "$root/$(dirname "$1")"; echo "$2" >"$root/$1"; }
cpu=sys/devices/system/cpu node=sys/devices/system/node
put $cpu/possible 0-2,4-7
put $cpu/present 0-2,4-7
put $cpu/online 0-2,4-5,7
put $cpu/kernel_max 1023
put proc/meminfo 'MemTotal: 1000 kB'
: >"$work/cpuinfo"
for n in 0 1 2 4 5 6 7; do
    printf 'processor\t: %d\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd03\n\n' $n >>"$work/cpuinfo"
    put $cpu/cpu$n/online $([ $n = 6 ] && echo 0 || echo 1)
    [ $n = 6 ] && continue
    if [ $n -lt 4 ]; then list=0-2 map=07 capacity=446; else list=4-5,7 map=b0 capacity=1024; fi
    put $cpu/cpu$n/cpu_capacity $capacity
    for file in core thread_siblings; do
        name=$file; [ $file = core ] && name=core_cpus
        put $cpu/cpu$n/topology/$name $(printf %02x $((1 << n)))
    done
    put $cpu/cpu$n/topology/core_id $n
    put $cpu/cpu$n/topology/cluster_id $((n / 4))
    put $cpu/cpu$n/topology/cluster_cpus $map
    put $cpu/cpu$n/topology/physical_package_id 0
    put $cpu/cpu$n/topology/package_cpus b7
    put $cpu/cpu$n/topology/core_siblings b7
    for index in 0 1 2; do
        dir=$cpu/cpu$n/cache/index$index
        put $dir/level $((index + 1))
        put $dir/type $([ $index = 0 ] && echo Data || echo Unified)
        put $dir/size 64K
        put $dir/shared_cpu_map $([ $index = 2 ] && echo b7 || printf %02x $((1 << n)))
    done
done
cp "$work/cpuinfo" "$root/proc/cpuinfo"
put $node/online 0,2
put $node/possible 0-3
put $node/has_cpu 0
for n in 0 2; do
    put $node/node$n/cpumap $([ $n = 0 ] && echo b7 || echo 00)
    put $node/node$n/distance "$([ $n = 0 ] && echo 10 17 || echo 17 10)"
    put $node/node$n/meminfo "Node $n MemTotal: 1000 kB"
done
tar cJf odd.tar.xz --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" .
lscpus odd "$root"
hwloc odd "$root"

lstopo-no-graphics --input 'node:2 l3:2 core:4 pu:2' --of xml | gzip -9n >synthetic.hwloc2.xml.gz
