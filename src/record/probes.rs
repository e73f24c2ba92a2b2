// SPDX-License-Identifier: GPL-2.0-or-later
//! The kprobes that make a recording's decisions checkable: what select_task_rq_fair() is asked, what it saw, and what it
//! answered. The fields are those of the recordings in `traces/`, see `traces/record/README.md`.

use crate::record::btf::Btf;

/// How much is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No probes.
    None,
    /// The wakee, and the answer.
    Task,
    /// And each answer of available_idle_cpu().
    Scan,
    /// The wakee, the answer, and every run queue.
    Full,
    /// Everything.
    All,
}

/// One kprobe event as kprobe_events takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its event's name, in the group kprobes.
    pub name: String,
    /// The whole definition.
    pub definition: String,
}

/// Addresses of per-CPU symbols, from /proc/kallsyms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Symbols {
    /// `runqueues`.
    pub runqueues: Option<u64>,
    /// `sd_llc`.
    pub sd_llc: Option<u64>,
    /// `sd_llc_shared`.
    pub sd_llc_shared: Option<u64>,
    /// `__per_cpu_offset`.
    pub per_cpu_offset: Option<u64>,
    /// `jiffies`.
    pub jiffies: Option<u64>,
}

impl Symbols {
    /// Those in the text of /proc/kallsyms; addresses of 0 are hidden ones.
    pub fn parse(kallsyms: &str) -> Self {
        let mut symbols = Self::default();
        for line in kallsyms.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let slot = match name {
                "runqueues" => &mut symbols.runqueues,
                "sd_llc" => &mut symbols.sd_llc,
                "sd_llc_shared" => &mut symbols.sd_llc_shared,
                "__per_cpu_offset" => &mut symbols.per_cpu_offset,
                "jiffies" => &mut symbols.jiffies,
                _ => continue,
            };
            *slot = u64::from_str_radix(address, 16).ok();
        }
        symbols
    }
}

/// A field: its name, the sign that it is printed with, and members of which the first is taken that this kernel has.
type Field = (&'static str, char, &'static [&'static str]);

/// Members of the wakee's task_struct.
const TASK: &[Field] = &[
    ("ruc", 's', &["recent_used_cpu"]),
    ("wakecpu", 's', &["wake_cpu"]),
    ("oncpu", 's', &["on_cpu"]),
    ("wflips", 'u', &["wakee_flips"]),
    ("wdecay", 'u', &["wakee_flip_decay_ts"]),
    ("util", 'u', &["se.avg.util_avg"]),
    ("uest", 'u', &["se.avg.util_est.enqueued", "se.avg.util_est"]),
    ("load", 'u', &["se.avg.load_avg"]),
    ("lut", 'u', &["se.avg.last_update_time"]),
    ("weight", 'u', &["se.load.weight"]),
    ("ncpus", 's', &["nr_cpus_allowed"]),
    ("policy", 'u', &["policy"]),
    ("pflags", 'x', &["flags"]),
    ("depth", 's', &["se.depth"]),
    ("nid", 's', &["numa_preferred_nid"]),
    ("delayed", 'u', &["se.sched_delayed"]),
    ("pllc", 's', &["preferred_llc"]),
];

/// Members of a run queue.
const RQ: &[Field] = &[
    ("nr", 'u', &["nr_running"]),
    ("h", 'u', &["cfs.h_nr_running", "cfs.h_nr_queued"]),
    ("hrun", 'u', &["cfs.h_nr_runnable"]),
    ("hdel", 'u', &["cfs.h_nr_delayed"]),
    ("ih", 'u', &["cfs.idle_h_nr_running", "cfs.h_nr_idle"]),
    ("pend", 'u', &["ttwu_pending"]),
    ("util", 'u', &["cfs.avg.util_avg"]),
    ("uest", 'u', &["cfs.avg.util_est.enqueued", "cfs.avg.util_est"]),
    ("load", 'u', &["cfs.avg.load_avg"]),
    ("run", 'u', &["cfs.avg.runnable_avg"]),
    ("cap", 'u', &["cpu_capacity"]),
    ("avgidle", 'u', &["avg_idle"]),
    ("wavgidle", 'u', &["wake_avg_idle"]),
    ("istamp", 'u', &["idle_stamp"]),
    ("hload", 'u', &["cfs.h_load"]),
    ("lhload", 'u', &["cfs.last_h_load_update"]),
];

/// Members of the task that runs on a run queue's CPU.
const CURR: &[Field] = &[
    ("curr", 's', &["pid"]),
    ("cwflips", 'u', &["wakee_flips"]),
    ("cwdecay", 'u', &["wakee_flip_decay_ts"]),
    ("cload", 'u', &["se.avg.load_avg"]),
    ("cflags", 'x', &["flags"]),
    ("cncpus", 's', &["nr_cpus_allowed"]),
    ("cpolicy", 'u', &["policy"]),
];

/// The probes of a level on a kernel with these types and symbols, for CPUs 0 to `nr_cpus` - 1; `llc_firsts` is one CPU of
/// each last-level cache, whose run queue probe has what they share where the others are not probed.
///
/// # Errors
/// What the kernel lacks, in a sentence.
pub fn probes(
    level: Level,
    btf: &Btf,
    symbols: &Symbols,
    nr_cpus: usize,
    llc_firsts: &[usize],
) -> Result<Vec<Probe>, String> {
    if level == Level::None {
        return Ok(Vec::new());
    }
    let mut all = vec![entry(btf, symbols)?, Probe::new("r", "sis_out", "select_task_rq_fair", "ret=$retval:s32")];
    if matches!(level, Level::Scan | Level::All) {
        all.push(Probe::new("p", "sis_avail_in", "available_idle_cpu", "cpu=$arg1:s32"));
        all.push(Probe::new("r", "sis_avail_out", "available_idle_cpu", "ret=$retval:s32"));
    }
    if matches!(level, Level::Full | Level::All) {
        for cpu in 0..nr_cpus {
            all.push(run_queue(btf, symbols, cpu)?);
        }
    }
    if level == Level::Scan {
        for &cpu in llc_firsts {
            all.extend(cache(btf, symbols, cpu));
        }
    }
    Ok(all)
}

impl Probe {
    fn new(kind: &str, name: &str, function: &str, fields: &str) -> Self {
        Self { name: name.to_owned(), definition: format!("{kind}:kprobes/{name} {function} {fields}") }
    }
}

fn entry(btf: &Btf, symbols: &Symbols) -> Result<Probe, String> {
    let of = |member: &str| btf.member(&format!("task_struct.{member}"));
    let missing = |member: &str| format!("the kernel's BTF has no task_struct.{member}");
    let pid = of("pid").ok_or_else(|| missing("pid"))?.offset;
    let mask = of("cpus_ptr").ok_or_else(|| missing("cpus_ptr"))?.offset;
    let mut fields = vec![format!("pid=+{pid}($arg1):s32"), "prev=$arg2:s32".to_owned()];
    // select_task_rq_fair(p, prev_cpu, wake_flags); before 5.12 (p, prev_cpu, sd_flag, wake_flags).
    if btf.parameters("sched_class.select_task_rq") == Some(4) {
        fields.extend(["sdflag=$arg3:x32".to_owned(), "flags=$arg4:x32".to_owned()]);
    } else {
        fields.push("flags=$arg3:x32".to_owned());
    }
    fields.extend(members(btf, "task_struct", TASK, |offset| format!("+{offset}($arg1)")));
    if let Some(last) = of("last_wakee") {
        fields.push(format!("lastwakee=+{pid}(+{}($arg1)):s32", last.offset));
    }
    fields.push(format!("mask0=+0(+{mask}($arg1)):x64 mask1=+8(+{mask}($arg1)):x64"));
    // By its address: before 6.2 looking up a name takes long.
    fields.extend(symbols.jiffies.filter(|&at| at != 0).map(|at| format!("jiffies=@{at:#x}:u64")));
    Ok(Probe::new("p", "sis_in", "select_task_rq_fair", &fields.join(" ")))
}

fn members(btf: &Btf, of: &str, fields: &[Field], at: impl Fn(u64) -> String) -> Vec<String> {
    let field = |&(name, sign, members): &Field| {
        let member = members.iter().find_map(|member| btf.member(&format!("{of}.{member}")))?;
        Some(format!("{name}={}:{sign}{}", at(member.offset), 8 * member.size))
    };
    fields.iter().filter_map(field).collect()
}

/// What the CPUs of a last-level cache share.
const SHARED: &[Field] = &[("hic", 's', &["has_idle_cores"]), ("nis", 's', &["nr_idle_scan"])];

/// The copy of a per-CPU symbol, `offset` bytes into it: a symbol is an offset from 0, or since 6.15 a kernel address,
/// which is negative.
fn own(offsets: u64, cpu: usize, symbol: u64, offset: u64) -> String {
    format!("{:+}(@{:#x})", symbol.wrapping_add(offset) as i64, offsets + 8 * cpu as u64)
}

/// has_idle_cores and nr_idle_scan alone, where the kernel shows the way to them.
fn cache(btf: &Btf, symbols: &Symbols, cpu: usize) -> Option<Probe> {
    let offsets = symbols.per_cpu_offset.filter(|&at| at != 0)?;
    let pointer = own(offsets, cpu, symbols.sd_llc_shared?, 0);
    let fields = members(btf, "sched_domain_shared", SHARED, |offset| format!("+{offset}({pointer})"));
    (!fields.is_empty()).then(|| Probe::new("p", &format!("sis_rq{cpu}"), "select_task_rq_fair", &fields.join(" ")))
}

/// A per-CPU symbol plus `__per_cpu_offset[cpu]` is the address of that CPU's copy.
fn run_queue(btf: &Btf, symbols: &Symbols, cpu: usize) -> Result<Probe, String> {
    let missing = |name: &str| format!("/proc/kallsyms shows no address of {name} (kernel.kptr_restrict hides them)");
    let offsets = symbols.per_cpu_offset.filter(|&at| at != 0).ok_or_else(|| missing("__per_cpu_offset"))?;
    let rq = symbols.runqueues.ok_or_else(|| missing("runqueues"))?;
    let own = |symbol: u64, offset: u64| own(offsets, cpu, symbol, offset);
    let mut fields = members(btf, "rq", RQ, |offset| own(rq, offset));
    let curr = btf.member("rq.curr").ok_or("the kernel's BTF has no rq.curr")?.offset;
    let curr = own(rq, curr);
    fields.extend(members(btf, "task_struct", CURR, |offset| format!("+{offset}({curr})")));
    if let (Some(last), Some(pid)) = (btf.member("task_struct.last_wakee"), btf.member("task_struct.pid")) {
        fields.push(format!("clastw=+{}(+{}({curr})):s32", pid.offset, last.offset));
    }
    let behind = |symbol: Option<u64>, of: &str, list: &[Field]| {
        let pointer = symbol.map(|symbol| own(symbol, 0));
        pointer.map(|pointer| members(btf, of, list, |offset| format!("+{offset}({pointer})"))).unwrap_or_default()
    };
    fields.extend(behind(symbols.sd_llc, "sched_domain", &[("scost", 'u', &["avg_scan_cost"])]));
    fields.extend(behind(symbols.sd_llc_shared, "sched_domain_shared", SHARED));
    Ok(Probe::new("p", &format!("sis_rq{cpu}"), "select_task_rq_fair", &fields.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_come_from_kallsyms() {
        let text = "ffffffff81000000 T _text\n0000000000031bc0 A runqueues\nffffffff82a0b1e0 D __per_cpu_offset\n";
        let symbols = Symbols::parse(text);
        assert_eq!(symbols.runqueues, Some(0x31bc0));
        assert_eq!(symbols.per_cpu_offset, Some(0xffff_ffff_82a0_b1e0));
        assert_eq!(symbols.sd_llc, None);
    }

    #[test]
    fn each_level_has_its_probes() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            eprintln!("skipped: this kernel has no BTF");
            return;
        };
        let btf = Btf::parse(bytes).expect("the kernel's own BTF");
        let symbols = Symbols {
            runqueues: Some(0x31bc0),
            per_cpu_offset: Some(0x8000),
            sd_llc_shared: Some(0x1_7000),
            jiffies: Some(0xffff_ffff_8200_5900),
            ..Symbols::default()
        };
        let names = |level| -> Vec<String> {
            probes(level, &btf, &symbols, 2, &[0]).expect("probes").into_iter().map(|probe| probe.name).collect()
        };
        assert!(names(Level::None).is_empty());
        assert_eq!(names(Level::Task), ["sis_in", "sis_out"]);
        assert_eq!(names(Level::Scan), ["sis_in", "sis_out", "sis_avail_in", "sis_avail_out", "sis_rq0"]);
        assert_eq!(names(Level::Full), ["sis_in", "sis_out", "sis_rq0", "sis_rq1"]);
        assert_eq!(names(Level::All).len(), 6);
        let all = probes(Level::Full, &btf, &symbols, 2, &[0]).expect("probes");
        assert!(all[0].definition.starts_with("p:kprobes/sis_in select_task_rq_fair pid=+"), "{}", all[0].definition);
        for (at, field) in [(0, "jiffies=@0xffffffff82005900:u64"), (2, "cpolicy=+"), (2, "cncpus=+"), (2, "istamp=+")]
        {
            assert!(all[at].definition.contains(field), "{field}: {}", all[at].definition);
        }
        let scan = probes(Level::Scan, &btf, &symbols, 2, &[1]).expect("probes");
        let cache = scan.last().expect("that of the cache");
        assert!(cache.name == "sis_rq1" && cache.definition.contains("(+94208(@0x8008))"), "{}", cache.definition);
        assert!(cache.definition.contains("hic=") && !cache.definition.contains("curr="), "{}", cache.definition);
        // CPU 1's copy: eight bytes further in __per_cpu_offset.
        assert!(all[3].definition.contains("(@0x8008)"), "{}", all[3].definition);
        let hidden = Symbols::default();
        assert!(probes(Level::Full, &btf, &hidden, 2, &[0]).is_err_and(|why| why.contains("kptr_restrict")));
    }
}
