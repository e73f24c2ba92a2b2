// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold of any simulation, and what queueing theory says of simple ones.

use std::sync::Arc;

use arbitrary::Unstructured;

use super::*;
use crate::fair::Model;
use crate::simulate::invent::Invented;
use crate::simulate::program::{Arrivals, Channel, Dist, How, Op, TaskSpec, Times, Workload};
use crate::simulate::{Start, models};
use crate::spec::{ModelSpec, Spec};
use crate::topology::{TopologySource, load};

fn topology(text: &str) -> Arc<Topology> {
    Arc::new(load(&TopologySource::parse(text)).expect("a machine").topology)
}

fn spec(text: &str) -> ModelSpec {
    match text.parse() {
        Ok(Spec::Model(spec)) => spec,
        other => panic!("{text}: {other:?}"),
    }
}

fn play(setup: &Setup, workload: &Workload, name: &str, seed: u64) -> Stats {
    let mut model = Model::new(spec(name), &setup.topology);
    run_audited(setup, workload, &mut model, seed, 97).expect("a simulation")
}

fn invented(seed: u64) -> Option<(Setup, Invented)> {
    let mut random = oorandom::Rand32::new(seed);
    let bytes: Vec<u8> = (0..2048).map(|_| random.rand_u32() as u8).collect();
    let invented = Invented::new(&mut Unstructured::new(&bytes)).ok()?;
    let setup = Setup {
        release: invented.release,
        cost: invented.cost,
        warmup_ns: 0,
        measure_ns: 20_000_000,
        ..Setup::new(topology(invented.machine))
    };
    Some((setup, invented))
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_in_invented_workloads() {
    let (mut wakeups, mut stuck, mut done) = (0, 0, 0);
    for seed in 0..150 {
        let Some((setup, invented)) = invented(seed) else { continue };
        let mut model = Model::new(spec(invented.spec), &setup.topology);
        match run_audited(&setup, &invented.workload, &mut model, seed, 13) {
            Ok(stats) => {
                wakeups += stats.wakeups;
                done += 1;
            }
            Err(SimulateError::Stuck { .. }) => stuck += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(done > 100 && wakeups > 10_000, "{done} simulations, {stuck} stuck, {wakeups} wakeups");
}

#[test]
fn the_same_seed_comes_out_the_same_and_another_does_not() {
    let setup = Setup { measure_ns: 20_000_000, ..Setup::new(topology("2x8x2")) };
    let tbench = models::Model::named("tbench").expect("a model");
    let workload = tbench.build(&tbench.values(&[("clients", "14")]).expect("values"));
    let one = play(&setup, &workload, "v5.11", 7);
    assert_eq!(one, play(&setup, &workload, "v5.11", 7));
    assert_ne!(one, play(&setup, &workload, "v5.11", 8));
}

#[test]
fn one_task_on_an_idle_machine_waits_for_exactly_what_waking_costs() {
    let mut workload = Workload::new("one", "rounds");
    let sleeper = vec![Op::Loop(0), Op::Sleep(Dist::Fixed(5_000_000)), Op::Run(Dist::Fixed(100_000)), Op::End];
    let id = workload.task("one", sleeper);
    workload.tasks[id].start = Start::Placed(Cpu(3));
    let setup = Setup::new(topology("2x4x2"));
    let stats = play(&setup, &workload, "v5.11", 1);
    let cost = setup.cost;
    // Woken where it slept: the target is idle, which one look tells.
    let scan = cost.probe_core_ns;
    let expected = cost.idle3_exit_ns + cost.interrupt_ns + scan + cost.wakeup_local_ns + cost.context_switch_ns;
    assert!(stats.latency.count() > 90);
    assert_eq!(stats.latency.max(), expected);
    assert_eq!(stats.latency.mean(), expected as f64);
    assert_eq!(stats.work_ns, 100_000 * stats.latency.count());
}

#[test]
fn a_wakee_on_another_cpu_waits_for_the_interrupt_and_the_idle_state() {
    // Two tasks that may each use one CPU: nothing is chosen, only costs count.
    let mut workload = Workload::new("two", "rounds");
    let (there, back) = (workload.channel(0), workload.channel(0));
    let how = How::default();
    let waker = workload.task(
        "waker",
        vec![Op::Loop(0), Op::Run(Dist::Fixed(200_000)), Op::Signal(there, how), Op::Wait(back), Op::End],
    );
    let wakee = workload.task(
        "wakee",
        vec![Op::Loop(0), Op::Wait(there), Op::Run(Dist::Fixed(200_000)), Op::Signal(back, how), Op::End],
    );
    for (id, cpu) in [(waker, Cpu(0)), (wakee, Cpu(1))] {
        workload.tasks[id].allowed = Some(crate::cpumask::Cpumask::of(cpu));
        workload.tasks[id].start = Start::Placed(cpu);
    }
    let setup = Setup::new(topology("1x2x1"));
    let stats = play(&setup, &workload, "v5.11", 1);
    let cost = setup.cost;
    let expected = cost.wakeup_remote_ns + cost.ipi_ns + cost.idle2_exit_ns + cost.context_switch_ns;
    assert!(stats.latency.count() > 1000);
    assert_eq!((stats.latency.quantile(0.01), stats.latency.max()), (Some(expected), expected));
}

/// Servers that take from one queue, arrivals from outside, nothing costs anything.
fn queueing(servers: usize, arrival_ns: u64, service_ns: u64) -> Workload {
    let mut workload = Workload::new("queue", "customers");
    workload.channels.push(Channel { tokens: 0, timed: true });
    let ops = vec![Op::Loop(0), Op::Wait(0), Op::MarkToken, Op::Run(Dist::Exp(service_ns)), Op::Done, Op::End];
    let program = workload.program(ops);
    for at in 0..servers {
        let cpu = Cpu(at as u16);
        let allowed = Some(crate::cpumask::Cpumask::of(cpu));
        workload.tasks.push(TaskSpec { allowed, start: Start::Placed(cpu), ..TaskSpec::new("server", program) });
    }
    workload.arrivals.push(Arrivals { channel: 0, cpu: Cpu(0), times: Times::Gaps(Dist::Exp(arrival_ns)) });
    workload
}

/// Mean time in the system of M/M/c, by Erlang's formula, in units of the service time.
fn erlang(servers: u32, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..servers {
        term *= offered / f64::from(k);
        sum += term;
    }
    term *= offered / f64::from(servers) / (1.0 - load);
    let waits = term / (sum + term);
    1.0 + waits / (f64::from(servers) * (1.0 - load))
}

#[test]
fn queues_are_as_long_as_theory_says() {
    assert!((erlang(1, 0.5) - 2.0).abs() < 1e-12);
    for (servers, machine, load) in [(1u32, "1x1x1", 0.5), (1, "1x1x1", 0.8), (4, "1x4x1", 0.7)] {
        let service = 10_000u64;
        let arrival = (service as f64 / (load * f64::from(servers))) as u64;
        let workload = queueing(servers as usize, arrival, service);
        let setup = Setup { cost: Cost::free(), measure_ns: 2_000_000_000, ..Setup::new(topology(machine)) };
        let seeds = 5;
        let means: Vec<f64> = (0..seeds)
            .map(|seed| {
                let mut model = Model::new(spec("v5.11"), &setup.topology);
                let stats = run(&setup, &workload, &mut model, seed).expect("a simulation");
                assert!((stats.utilisation() - load).abs() < 0.01, "{}", stats.utilisation());
                stats.requests.mean() / service as f64
            })
            .collect();
        let mean = means.iter().sum::<f64>() / seeds as f64;
        let expected = erlang(servers, load);
        // Three standard errors of the mean over the seeds, and half a percent for times cut to whole ns.
        let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (seeds - 1) as f64;
        let interval = 3.0 * (variance / seeds as f64).sqrt() + 0.005 * expected;
        assert!(interval < 0.1 * expected, "{interval}");
        assert!(
            (mean - expected).abs() < interval,
            "{servers} servers at {load}: {mean} ± {interval}, expected {expected}"
        );
    }
}

#[test]
fn a_program_that_takes_no_time_is_refused() {
    let mut workload = Workload::new("stuck", "rounds");
    workload.task("stuck", vec![Op::Loop(0), Op::Done, Op::End]);
    let setup = Setup::new(topology("1x2x1"));
    let mut model = Model::new(spec("v5.11"), &setup.topology);
    let error = run(&setup, &workload, &mut model, 1).expect_err("no time passes");
    assert!(error.to_string().contains("stuck"), "{error}");
}

#[test]
fn shares_follow_weights_and_all_cpus_are_used() {
    let mut workload = Workload::new("nice", "rounds");
    for nice in [0, 5] {
        let id = workload.task(
            if nice == 0 { "heavy" } else { "light" },
            vec![Op::Loop(0), Op::Run(Dist::Fixed(1_000_000)), Op::End],
        );
        workload.tasks[id].nice = nice;
    }
    let setup = Setup { measure_ns: 3_000_000_000, ..Setup::new(topology("1x1x1")) };
    let stats = play(&setup, &workload, "v5.11", 1);
    assert!(stats.utilisation() > 0.999);
    let ratio = 1024.0 / 335.0;
    let found = stats.comms.values().map(|by| by.work_ns as f64).fold(0.0, f64::max)
        / stats.comms.values().map(|by| by.work_ns as f64).fold(f64::MAX, f64::min);
    assert!((found / ratio - 1.0).abs() < 0.05, "{found} instead of {ratio}");

    let spin = models::Model::named("spin").expect("a model");
    let workload = spin.build(&spin.values(&[("tasks", "16")]).expect("values"));
    let setup = Setup { warmup_ns: 500_000_000, ..Setup::new(topology("2x8x1")) };
    let stats = play(&setup, &workload, "v5.11", 1);
    assert!(stats.utilisation() > 0.99, "{}", stats.utilisation());
}

#[test]
fn a_side_file_binds_tasks() {
    let rules = crate::affinity::Rules::parse("[[rule]]\ncomm = \"pipe\"\nallowed = \"2-3\"\n").expect("rules");
    let pipe = models::Model::named("pipe").expect("a model");
    let workload = pipe.build(&pipe.values(&[("pairs", "3")]).expect("values"));
    let setup = Setup { rules: Some(Arc::new(rules)), ..Setup::new(topology("2x4x1")) };
    let stats = play(&setup, &workload, "v5.11", 1);
    let busy: Vec<bool> = stats.busy_ns.iter().map(|&ns| ns > 0).collect();
    assert_eq!(busy, [false, false, true, true, false, false, false, false]);
}

#[derive(Default)]
struct Seen {
    last_ns: u64,
    switches: u64,
    wakeups: u64,
    decisions: u64,
    curr: std::collections::BTreeMap<Cpu, crate::units::Pid>,
}

impl Watch for Seen {
    fn event(&mut self, event: &crate::trace::Event) {
        use crate::trace::EventKind;
        assert!(event.ts_ns >= self.last_ns, "time goes back");
        self.last_ns = event.ts_ns;
        match &event.kind {
            EventKind::Switch { prev, next, .. } => {
                let before = self.curr.insert(event.cpu, next.pid).unwrap_or(crate::units::Pid::SWAPPER);
                assert_eq!(before, prev.pid, "cpu{} at {}", event.cpu, event.ts_ns);
                self.switches += u64::from(next.pid != crate::units::Pid::SWAPPER);
                let elsewhere = self.curr.values().filter(|pid| **pid == next.pid).count();
                assert!(next.pid == crate::units::Pid::SWAPPER || elsewhere == 1, "{} runs twice", next.pid);
            }
            EventKind::Waking { .. } => self.wakeups += 1,
            _ => {}
        }
    }

    fn decision(&mut self, decided: &Decided<'_>) {
        assert_eq!(decided.ts_ns, self.last_ns.max(decided.ts_ns));
        self.decisions += 1;
    }
}

#[test]
fn what_is_told_is_what_was_counted() {
    let hackbench = models::Model::named("hackbench").expect("a model");
    let workload = hackbench.build(&hackbench.values(&[("groups", "1"), ("fds", "5")]).expect("values"));
    let setup = Setup { warmup_ns: 0, measure_ns: 20_000_000, ..Setup::new(topology("1x4x2")) };
    let mut seen = Seen::default();
    let mut model = Model::new(spec("v6.1"), &setup.topology);
    let stats = run_watched(&setup, &workload, &mut model, 3, &mut seen).expect("a simulation");
    let mut model = Model::new(spec("v6.1"), &setup.topology);
    assert_eq!(stats, run(&setup, &workload, &mut model, 3).expect("a simulation"), "watching changes nothing");
    assert_eq!((seen.switches, seen.wakeups), (stats.switches, stats.wakeups));
    assert_eq!(seen.decisions, stats.wakeups + stats.forks);
    assert!(stats.wakeups > 100);
}

#[test]
fn groups_are_spread_over_the_nodes_in_turn() {
    let tbench = models::Model::named("tbench").expect("a model");
    let workload = tbench.build(&tbench.values(&[("clients", "4")]).expect("values"));
    let setup = Setup { warmup_ns: 0, measure_ns: 5_000_000, ..Setup::new(topology("2x4x2")) };
    let stats = play(&setup, &workload, "v5.11", 1);
    let busy: Vec<usize> = (0..16).filter(|&cpu| stats.busy_ns[cpu] > 100_000).collect();
    let nodes = busy.iter().filter(|&&cpu| setup.topology.node(Cpu(cpu as u16)) == 0).count();
    assert_eq!((busy.len(), nodes), (8, 4), "{busy:?}");
}
