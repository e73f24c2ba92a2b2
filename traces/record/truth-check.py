#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare the kernel's own answers, recorded by the sis_in/sis_out kprobes on
select_task_rq_fair, with the sched_wakeup events that follow.

usage: truth-check.py TRACE.DAT

Each sis_in/sis_out pair is one call.  For the calls made by try_to_wake_up
(WF_TTWU) the next sched_wakeup of that pid should have target_cpu == ret, for
WF_FORK the next sched_wakeup_new.  Wakeups without a call are those whose
task was still on a run queue, was still switching out, or may use one CPU only.
"""
import collections
import re
import subprocess
import sys

LINE = re.compile(r"^\s*.*?-(\d+)\s+\[(\d+)\]\s+(?:\S+\s+)?(\d+\.\d+):\s+(\w+):\s+(.*)$")
KV = re.compile(r"(\w+)=(\S+)")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    p = subprocess.Popen(["trace-cmd", "report", "-i", sys.argv[1], "-R"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, errors="replace")
    # -R: every field by name
    open_calls, decided = {}, {}
    n = collections.Counter()
    by_flags = collections.Counter()
    moved = 0
    for line in p.stdout:
        m = LINE.match(line)
        if not m:
            continue
        who, cpu, _ts, ev, rest = m.groups()
        kv = dict(KV.findall(rest))
        n[ev] += 1
        if ev == "sis_in":
            open_calls[cpu] = (int(kv["pid"]), int(kv["prev"]),
                               (kv.get("sdflag"), int(kv["flags"], 0)))
        elif ev == "sis_out":
            if cpu in open_calls:
                pid, prev, flags = open_calls.pop(cpu)
                ret = int(kv["ret"], 0)
                # an exec's answer is not followed by a wakeup
                if not (flags[0] == "0x2" or flags[0] is None and flags[1] & 2):
                    decided[pid] = (ret, flags)
                by_flags[flags] += 1
                moved += ret != prev
            else:
                n["sis_out without sis_in"] += 1
        elif ev in ("sched_wakeup", "sched_wakeup_new"):
            pid, target = int(kv["pid"]), int(kv["target_cpu"])
            d = decided.pop(pid, None)
            if d is None:
                n[ev + ": no call"] += 1
            elif d[0] == target:
                n[ev + ": target_cpu == ret"] += 1
            else:
                n[ev + ": target_cpu != ret"] += 1
    for k in sorted(n):
        if ":" in k or "without" in k:
            print("%8d  %s" % (n[k], k))
    print("%8d  calls, of which %d returned a CPU other than prev_cpu" % (n["sis_out"], moved))
    for (sd, f), c in sorted(by_flags.items()):
        print("%8d  wake_flags 0x%x" % (c, f) + (", sd_flag " + sd if sd else ""))
    same = n["sched_wakeup: target_cpu == ret"]
    both = same + n["sched_wakeup: target_cpu != ret"]
    if both:
        print("agreement %.4f %% of %d" % (100.0 * same / both, both))


main()
