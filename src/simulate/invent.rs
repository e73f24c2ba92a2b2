// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads and machines invented from bytes: for fuzzing, and for tests of what must always hold.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};

use crate::cpumask::Cpumask;
use crate::fair::Model;
use crate::simulate::cost::Cost;
use crate::simulate::engine::{Setup, SimulateError, run_audited};
use crate::simulate::program::{Arrivals, Channel, Dist, How, Op, Start, TaskSpec, Times, Workload};
use crate::spec::Spec;
use crate::topology::{TopologySource, load};
use crate::units::Cpu;

/// Machines by their shorthand.
pub const MACHINES: [&str; 6] = ["1x1x1", "1x4x1", "1x2x2", "2x2x2", "1x2d2x2", "2x8x2"];
/// Implementations.
pub const SPECS: [&str; 8] =
    ["v5.2", "v5.2+soft-affinity+tunables", "v5.10", "v5.11", "v5.11+mel-v2", "v6.1", "v6.12", "v7.3"];

/// An invented simulation.
#[derive(Debug, Clone)]
pub struct Invented {
    /// The machine.
    pub machine: &'static str,
    /// The implementation.
    pub spec: &'static str,
    /// Rules around the wakeup path.
    pub release: (u32, u32),
    /// What things cost.
    pub cost: Cost,
    /// What runs.
    pub workload: Workload,
}

impl Invented {
    /// From bytes; few bytes make a small one.
    ///
    /// # Errors
    /// Where the bytes do not say enough.
    pub fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let (machine, spec) = (*u.choose(&MACHINES)?, *u.choose(&SPECS)?);
        let release = *u.choose(&[(5, 2), (5, 11), (6, 1)])?;
        let mut cost = if u.arbitrary()? { Cost::new() } else { Cost::free() };
        if u.ratio(1, 3)? {
            let names: Vec<&str> = cost.values().into_iter().map(|(name, _)| name).collect();
            let value = u.int_in_range(0..=100_000)?;
            // Every value below a second is allowed.
            let _ = cost.set(u.choose(&names)?, value);
        }
        Ok(Self { machine, spec, release, cost, workload: workload(u)? })
    }
}

fn workload(u: &mut Unstructured<'_>) -> Result<Workload> {
    let mut w = Workload::new("invented", "rounds");
    for _ in 0..u.int_in_range(1..=6)? {
        w.channels.push(Channel { tokens: u.int_in_range(0..=2)?, timed: u.arbitrary()? });
    }
    for _ in 0..u.int_in_range(1..=6)? {
        let program = program(u, w.channels.len())?;
        w.program(program);
    }
    // What others fork: it ends by itself.
    w.program(vec![Op::Run(Dist::Fixed(50_000)), Op::Signal(0, How::default()), Op::Done]);
    let tasks = u.int_in_range(1..=24)?;
    for at in 0..tasks {
        let program = u.int_in_range(0..=w.programs.len() - 2)?;
        w.tasks.push(task(u, at, program)?);
    }
    let last = w.programs.len() - 1;
    w.tasks.push(TaskSpec { start: Start::Forked, ..TaskSpec::new("child", last) });
    for op in w.programs.iter_mut().flatten() {
        if let Op::Fork(spec) = op {
            *spec = tasks;
        }
    }
    w.barriers.push(u.int_in_range(1..=3)?);
    if u.arbitrary()? {
        let channel = u.int_in_range(0..=w.channels.len() - 1)?;
        w.arrivals.push(Arrivals { channel, cpu: Cpu(0), times: Times::Gaps(Dist::Exp(100_000)) });
    }
    Ok(w)
}

fn task(u: &mut Unstructured<'_>, at: usize, program: usize) -> Result<TaskSpec> {
    let mask = |u: &mut Unstructured<'_>| -> Result<Option<Cpumask>> {
        if !u.ratio(1, 3)? {
            return Ok(None);
        }
        Ok(Cpumask::from_words(&[u.arbitrary::<u64>()?]))
    };
    let start = match u.int_in_range(0..=2)? {
        0 => Start::Placed(Cpu(u.int_in_range(0..=31)?)),
        1 => Start::Spread { group: u.int_in_range(0..=9)?, member: u.int_in_range(0..=2)?, members: 3 },
        _ => Start::Launched,
    };
    Ok(TaskSpec {
        nice: u.int_in_range(-20..=19)?,
        policy_idle: u.ratio(1, 8)?,
        allowed: mask(u)?,
        preferred: mask(u)?,
        footprint_kib: u.int_in_range(0..=2048)?,
        start,
        ..TaskSpec::new(["a", "b", "c"][at % 3], program)
    })
}

fn program(u: &mut Unstructured<'_>, channels: usize) -> Result<Vec<Op>> {
    let how = |u: &mut Unstructured<'_>| -> Result<How> {
        Ok(How { sync: u.arbitrary()?, softirq: u.arbitrary()?, data: u.arbitrary()? })
    };
    let channel = |u: &mut Unstructured<'_>| u.int_in_range(0..=channels - 1);
    // Something in each round takes time.
    let mut ops = vec![Op::Loop(0), Op::Mark, Op::Run(Dist::Uniform(1_000, u.int_in_range(1_000..=400_000)?))];
    for _ in 0..u.int_in_range(0..=8)? {
        let op = match u.int_in_range(0..=11)? {
            0 | 1 => Op::Wait(channel(u)?),
            2..=4 => Op::Signal(channel(u)?, how(u)?),
            5 => Op::Sleep(Dist::Exp(u.int_in_range(0..=1_000_000)?)),
            6 => Op::Period(u.int_in_range(1..=5_000_000)?),
            7 => Op::Run(Dist::Exp(u.int_in_range(0..=3_000_000)?)),
            8 => Op::Broadcast(channel(u)?, how(u)?),
            9 => Op::Barrier(0),
            10 => Op::Exec,
            _ => Op::Fork(0),
        };
        ops.push(op);
    }
    ops.extend([Op::Done, Op::End]);
    Ok(ops)
}

/// Plays what `bytes` invent for some simulated milliseconds.
///
/// # Panics
/// Where something does not hold that must: that is what it is for.
pub fn must_hold(bytes: &[u8]) {
    let Ok(invented) = Invented::new(&mut Unstructured::new(bytes)) else { return };
    let loaded = load(&TopologySource::parse(invented.machine)).expect("its shorthand is sound");
    let Ok(Spec::Model(spec)) = invented.spec.parse() else { panic!("{} is a model", invented.spec) };
    let setup = Setup {
        release: invented.release,
        cost: invented.cost,
        warmup_ns: 0,
        measure_ns: 10_000_000,
        ..Setup::new(Arc::new(loaded.topology))
    };
    let mut model = Model::new(spec, &setup.topology);
    match run_audited(&setup, &invented.workload, &mut model, 1, 31) {
        // Programs that never let time pass, and forks without end, are refused.
        Ok(_) | Err(SimulateError::Stuck { .. } | SimulateError::Tasks { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}
