// SPDX-License-Identifier: GPL-2.0-or-later
//! How often the model of the recorded kernel chose what the kernel chose.
//!
//! usage: fidelity [--plain|--probes] [--sync] [--show N] [--group TEXT] FILE...

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use sisdiff::cpumask::Cpumask;
use sisdiff::fair::{Decision, Implementation, Model, Walk, WalkStep, model_of};
use sisdiff::machine::{Machine, MachineConfig, Notice, RecordedWakeup, State};
use sisdiff::replay::Insight;
use sisdiff::topology::{TopologySource, load_for};
use sisdiff::trace::{Decoder, Event};
use sisdiff::units::Cpu;
use sisdiff::wakeup::WakeKind;
use tracecmd_parse::{Item, Select, TraceFile, TraceReader};

#[derive(Default)]
struct Options {
    plain: bool,
    task: bool,
    probes: bool,
    sync: bool,
    show: usize,
    group: Option<String>,
    ts: bool,
}

struct Held {
    recorded: RecordedWakeup,
    decision: Decision,
    text: String,
}

#[derive(Default, Clone, Copy)]
struct Score {
    same: u64,
    of: u64,
}

impl Score {
    fn add(&mut self, same: bool) {
        self.same += u64::from(same);
        self.of += 1;
    }
    fn percent(self) -> f64 {
        if self.of == 0 { 100.0 } else { 100.0 * self.same as f64 / self.of as f64 }
    }
}

impl std::ops::AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.same += other.same;
        self.of += other.of;
    }
}

struct Fidelity {
    insight: Insight,
    model: Model,
    held: BTreeMap<u64, Held>,
    wake: Score,
    prev: Score,
    fork: Score,
    exec: Score,
    groups: BTreeMap<String, (u64, Vec<String>)>,
    why: BTreeMap<String, u64>,
    never: u64,
    show: usize,
    group: Option<String>,
}

impl Fidelity {
    fn notice(&mut self, state: &State, notice: Notice) {
        match notice {
            Notice::Wakeup(recorded) => self.wakeup(state, recorded),
            Notice::Step(step) => {
                if self.insight.step(&step) {
                    self.model.step(state, &step);
                }
            }
            Notice::NotSelected { why, .. } => *self.why.entry(format!("{why:?}")).or_default() += 1,
            Notice::Chosen { number, class_cpu, final_cpu } => self.chosen(state, number, class_cpu, final_cpu),
            Notice::NeverChosen { number } => {
                self.held.remove(&number);
                self.never += 1;
            }
        }
    }

    fn wakeup(&mut self, state: &State, mut recorded: RecordedWakeup) {
        for step in self.insight.prepare(state, &mut recorded) {
            self.model.step(state, &step);
        }
        self.insight.ask(state, &recorded, &mut self.model);
        let mut text = String::new();
        let mut walk = Walk::default();
        let decision = if self.show > 0 {
            let decision = self.model.select_task_rq(state, &recorded.wakeup, Some(&mut walk));
            text = describe(state, &recorded, &walk);
            decision
        } else {
            self.model.select_task_rq(state, &recorded.wakeup, None)
        };
        self.held.insert(recorded.number, Held { recorded, decision, text });
    }

    fn chosen(&mut self, state: &State, number: u64, class_cpu: Option<Cpu>, final_cpu: Option<Cpu>) {
        self.insight.chosen(number, sisdiff::replay::Choice { class_cpu, final_cpu });
        let Some(held) = self.held.remove(&number) else { return };
        let (ours, kernels) = match (class_cpu, final_cpu) {
            (Some(cpu), _) => (held.decision.class_cpu, cpu),
            (None, Some(cpu)) => (held.decision.final_cpu, cpu),
            (None, None) => return,
        };
        let wakeup = held.recorded.wakeup;
        let same = ours == kernels;
        match wakeup.kind {
            WakeKind::Ttwu => {
                self.wake.add(same);
                self.prev.add(kernels == wakeup.prev_cpu);
            }
            WakeKind::Fork => self.fork.add(same),
            WakeKind::Exec => self.exec.add(same),
        }
        if !same {
            let topology = &state.topology;
            let relation = |cpu: Cpu| match cpu {
                cpu if cpu == wakeup.prev_cpu && cpu == wakeup.this_cpu => "prev=this",
                cpu if cpu == wakeup.prev_cpu => "prev",
                cpu if cpu == wakeup.this_cpu => "this",
                cpu if topology.smt_mask(wakeup.prev_cpu).test(cpu) => "smt of prev",
                cpu if topology.smt_mask(wakeup.this_cpu).test(cpu) => "smt of this",
                cpu if topology.cpus_share_cache(cpu, wakeup.prev_cpu) => "llc of prev",
                cpu if topology.cpus_share_cache(cpu, wakeup.this_cpu) => "llc of this",
                _ => "elsewhere",
            };
            let key =
                format!("{:?} {:?} {} / kernel {}", wakeup.kind, held.decision.exit, relation(ours), relation(kernels));
            let wanted = self.group.as_ref().is_none_or(|group| key.contains(group.as_str()));
            let group = self.groups.entry(key).or_default();
            group.0 += 1;
            if wanted && group.1.len() < self.show {
                group.1.push(format!("{} ours {ours} kernel {kernels}\n{}", held.recorded.number, held.text));
            }
        }
    }
}

fn describe(state: &State, recorded: &RecordedWakeup, walk: &Walk) -> String {
    let w = &recorded.wakeup;
    let mut text = format!(
        "    {:.6} {}-{} wakes {}-{} this {} prev {} sync {} in_task {} mask {}\n    ",
        recorded.ts_ns as f64 / 1e9,
        recorded.waker_comm,
        recorded.waker_pid,
        recorded.comm,
        recorded.pid,
        w.this_cpu,
        w.prev_cpu,
        w.sync,
        w.in_task,
        state.tasks[w.p].cpus_ptr,
    );
    for cpu in state.topology.cpus() {
        let at = cpu.index();
        let idle = state.rq.curr_idle.test(cpu);
        text += &format!(
            "{cpu}:{}{}{} ",
            state.rq.nr_running[at],
            if state.rq.ttwu_pending.test(cpu) { "p" } else { "" },
            if idle { "-" } else { "*" }
        );
    }
    text += "\n    ";
    for step in &walk.steps {
        match step {
            WalkStep::Enter { function } => text += &format!("{function} "),
            WalkStep::Probe { cpu, idle, kind } => {
                text += &format!("{}{cpu}{} ", kind.letter(), if *idle { '+' } else { '-' });
            }
            WalkStep::Check { what, holds } => text += &format!("[{what} {}] ", if *holds { 'y' } else { 'n' }),
            WalkStep::Value { name, value } => text += &format!("{name}={value} "),
            WalkStep::Write { .. } | WalkStep::At { .. } | WalkStep::Mask { .. } => {}
            WalkStep::Return { exit, cpu } => text += &format!("-> {exit:?} {cpu:?} "),
        }
    }
    text
}

struct Run {
    fidelity: Fidelity,
    doubts: String,
}

fn run(path: &Path, plain: bool, options: &Options) -> Result<Run, Box<dyn Error>> {
    let trace = TraceFile::open(path)?;
    let uname = trace.meta().uname.clone().unwrap_or_default();
    let recorded = model_of(&uname).ok_or("no kernel named")?;
    let source = TopologySource::beside(path).ok_or("no topology beside the trace")?;
    let loaded = load_for(&source, None)?;
    let decoder = Decoder::new(trace.formats());
    let costs = &loaded.snapshot.max_idle_balance_cost_ns;
    let config = MachineConfig {
        hz: loaded.snapshot.hz.unwrap_or(250),
        release: trace.meta().kernel_release().unwrap_or("6.1").parse()?,
        has_sis_in: decoder.has_sis_in(),
        ignore_probes: plain,
        ignore_rq_probes: options.task,
        assumed_sync: options.sync,
        emulated: loaded.snapshot.emulated,
        max_idle_balance_cost_ns: costs.iter().map(|cost| cost.unwrap_or(0)).collect(),
        ..MachineConfig::default()
    };
    let topology = Arc::new(loaded.topology);
    let mut machine = Machine::new(topology.clone(), config);
    let model = Model::new(recorded.spec, &topology);
    prime(&trace, &decoder, &mut machine)?;
    let mut fidelity = Fidelity {
        insight: Insight::default(),
        model,
        held: BTreeMap::new(),
        wake: Score::default(),
        prev: Score::default(),
        fork: Score::default(),
        exec: Score::default(),
        groups: BTreeMap::new(),
        why: BTreeMap::new(),
        never: 0,
        show: options.show,
        group: options.group.clone(),
    };
    events(&trace, &decoder, |event| {
        machine.apply(event, &mut |state: &State, notice| fidelity.notice(state, notice));
        true
    })?;
    machine.finish(&mut |state: &State, notice| fidelity.notice(state, notice));
    Ok(Run { fidelity, doubts: format!("{:?}\n    {}", machine.doubts(), machine.audit()) })
}

fn prime(trace: &TraceFile, decoder: &Decoder, machine: &mut Machine) -> Result<(), Box<dyn Error>> {
    let mut left = Cpumask::first_n(trace.meta().cpus as usize);
    events(trace, decoder, |event| {
        if left.test(event.cpu) {
            left.clear(event.cpu);
            machine.prime(event);
        }
        !left.is_empty()
    })
}

fn events(trace: &TraceFile, decoder: &Decoder, mut take: impl FnMut(&Event) -> bool) -> Result<(), Box<dyn Error>> {
    let mut cursor = trace.cursor(&Select::top())?;
    while let Some(item) = cursor.next()? {
        let event = match item {
            Item::Event(raw) => decoder.decode(&raw),
            Item::Lost { cpu, ts_ns, count } => match Decoder::lost(cpu, ts_ns, count) {
                Some(event) => event,
                None => continue,
            },
            _ => continue,
        };
        if !take(&event) {
            break;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let mut files = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--plain" => options.plain = true,
            "--probes" => options.probes = true,
            "--task" => options.task = true,
            "--sync" => options.sync = true,
            "--why" => options.ts = true,
            "--show" => options.show = args.next().ok_or("--show N")?.parse()?,
            "--group" => options.group = args.next(),
            _ => files.push(arg),
        }
    }
    if !options.plain && !options.probes {
        (options.plain, options.probes) = (true, true);
    }
    let modes: Vec<bool> = [(options.probes, false), (options.plain, true)]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, plain)| plain)
        .collect();
    let mut pooled: BTreeMap<(bool, &str), [Score; 4]> = BTreeMap::new();
    println!(
        "{:42} {:>6} {:>8} {:>7} {:>8} {:>6} {:>6} {:>6}",
        "file", "mode", "wakeups", "agree%", "differ", "prev%", "fork%", "exec%"
    );
    for file in &files {
        let name = Path::new(file).parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
        for &plain in &modes {
            let run = match run(Path::new(file), plain, &options) {
                Ok(run) => run,
                Err(error) => {
                    println!("{file}: {error}");
                    continue;
                }
            };
            let f = &run.fidelity;
            println!(
                "{:42} {:>6} {:>8} {:>7.2} {:>8} {:>6.1} {:>6.1} {:>6.1}",
                name.as_deref().unwrap_or(file),
                if plain { "plain" } else { "probes" },
                f.wake.of,
                f.wake.percent(),
                f.wake.of - f.wake.same,
                f.prev.percent(),
                f.fork.percent(),
                f.exec.percent()
            );
            let class = if file.contains("-state-") {
                "full"
            } else if file.contains("-truth") {
                "task"
            } else {
                "none"
            };
            let sum = pooled.entry((plain, class)).or_default();
            sum[0] += f.wake;
            sum[1] += f.prev;
            sum[2] += f.fork;
            sum[3] += f.exec;
            let mut groups: Vec<_> = f.groups.iter().collect();
            groups.sort_by_key(|(key, (count, _))| (std::cmp::Reverse(*count), (*key).clone()));
            let wanted = |key: &str| options.group.as_ref().is_none_or(|group| key.contains(group.as_str()));
            if options.ts || options.show > 0 {
                println!("    {:?} never {} {}", f.why, f.never, run.doubts);
                for (key, (count, texts)) in groups.into_iter().filter(|(key, _)| wanted(key)).take(14) {
                    println!("    {count:>6}  {key}");
                    for text in texts {
                        println!("      #{text}");
                    }
                }
            }
        }
    }
    for ((plain, class), [wake, prev, fork, exec]) in pooled {
        println!(
            "{:42} {:>6} {:>8} {:>7.2} {:>8} {:>6.1} {:>6.1} {:>6.1}",
            format!("pooled {class}"),
            if plain { "plain" } else { "probes" },
            wake.of,
            wake.percent(),
            wake.of - wake.same,
            prev.percent(),
            fork.percent(),
            exec.percent()
        );
    }
    Ok(())
}
