// SPDX-License-Identifier: GPL-2.0-or-later
//! What each gene means: machines, CPUs, tasks and events from bytes.
//!
//! Ranges are chosen so that every exit of the walk is reached often: mostly small machines, mostly busy or mostly idle,
//! affinities that are wide or that name just the CPUs in question, scan budgets at the edge.

use arbitrary::Result;

use crate::cpumask::Cpumask;
use crate::scenario::dna::{Dna, Gene};
use crate::scenario::shape::FULL_CAPACITY;
use crate::scenario::{Case, Core, CpuState, Distances, Event, Links, Llc, Load, Settings, Shape, TaskState};
use crate::spec::SchedFeat;
use crate::units::Cpu;

/// CPU numbers stay below this.
const CPUS_MAX: usize = 256;

pub fn case(dna: &Dna) -> Result<Case> {
    case_on(dna, &machine_of(dna)?)
}

/// What the genes of the machine say.
pub struct Machine {
    shape: Shape,
    there: There,
    settings: Settings,
    busy: u8,
    nr_tasks: usize,
}

pub fn machine_of(dna: &Dna) -> Result<Machine> {
    let mut gene = Gene::new(&dna.machine);
    let settings = settings(&mut gene)?;
    let busy = gene.pick(&[60, 0, 130, 200, 235, 255])?;
    let nr_tasks = 1 + gene.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 11, 13, 15])?;
    let shape = machine(dna, &mut gene)?;
    Ok(Machine { there: There::new(&shape), shape, settings, busy, nr_tasks })
}

/// The case of `dna` on a machine with the same genes.
pub fn case_on(dna: &Dna, machine: &Machine) -> Result<Case> {
    let Machine { shape, there, settings, busy, nr_tasks } = machine;
    let mut shape = shape.clone();
    for (llc, bytes) in shape.llcs.iter_mut().zip(&dna.llcs) {
        let mut gene = Gene::new(bytes);
        llc.has_idle_cores = gene.odds(128)?;
        llc.nr_idle_scan = gene.pick(&[None, None, Some(0), Some(1), Some(2), Some(4), Some(12), None])?;
    }
    let mut cpus = Vec::new();
    for &cpu in &there.present {
        let state = cpu_state(cpu, *busy, &dna.cpu(cpu.index()))?;
        if state != (CpuState { cpu, ..CpuState::default() }) {
            cpus.push(state);
        }
    }
    let tasks = dna.tasks[..*nr_tasks].iter().map(|gene| task(gene, there, *nr_tasks)).collect::<Result<_>>()?;
    let events = dna.events.iter().map(|gene| event(gene, there, *nr_tasks)).collect::<Result<_>>()?;
    Ok(Case { pair: Vec::new(), note: String::new(), settings: settings.clone(), machine: shape, cpus, tasks, events })
}

fn settings(gene: &mut Gene<'_>) -> Result<Settings> {
    let default = Settings::default();
    let mut settings = Settings { hz: gene.pick(&[250, 250, 100, 1000])?, ..default };
    let switched = [
        SchedFeat::SIS_AVG_CPU,
        SchedFeat::SIS_PROP,
        SchedFeat::SIS_UTIL,
        SchedFeat::WA_IDLE,
        SchedFeat::WA_WEIGHT,
        SchedFeat::WA_BIAS,
        SchedFeat::UTIL_EST,
    ];
    // Two bytes: which features leave their default, if any, and which way.
    let (which, way) = (gene.byte()?, gene.byte()?);
    if which >= 128 {
        for (bit, feat) in switched.into_iter().enumerate() {
            if which >> bit & 1 != 0 {
                let set = if way >> bit & 1 != 0 { &mut settings.features.on } else { &mut settings.features.off };
                *set |= feat;
            }
        }
    }
    settings.probe_ns = gene.pick(&[50, 50, 1, 0, 200, 1000])?;
    settings.clock_read_ns = gene.pick(&[0, 0, 0, 20])?;
    settings.mask_op_ns = gene.pick(&[0, 0, 0, 5])?;
    settings.sched_preferred = gene.pick(&[1, 1, 0, 2, 50])?;
    settings.sched_allowed = gene.pick(&[100, 100, 1, 0, 200])?;
    Ok(settings)
}

fn machine(dna: &Dna, gene: &mut Gene<'_>) -> Result<Shape> {
    let size = gene.byte()?;
    let max = [8, 32, 96, CPUS_MAX][usize::from(size >= 152) + usize::from(size >= 206) + usize::from(size >= 222)];
    let smt = gene.pick(&[1, 2, 2, 1, 2, 4, 2, 8])?;
    let nr_llcs = (1 + gene.pick(&[0, 1, 0, 1, 0, 2, 3, 7])?).min(max / smt);
    let nr_cores = 1 + gene.below(max / smt / nr_llcs)?;
    let per_node = gene.pick(&[1, 2, 4, 8])?;
    let cluster = gene.pick(&[0, 0, 0, 0, 2, 4])?;
    let order = gene.below(3)?;
    let skip_after = gene.pick(&[0, 0, 0, 0, 0, 0, 3, 2])?;
    let asym = asymmetry(gene.byte()?, smt);
    let offline = gene.odds(30)?;
    let isolated = gene.odds(50)?;
    let near = gene.byte()?;
    let far = gene.odds(60)?;
    let balance_wake = gene.odds(20)?;

    let mut cores = vec![vec![Cpumask::EMPTY; nr_cores]; nr_llcs];
    let numbers = Numbering { order, skip_after, sizes: [nr_llcs, nr_cores, smt] }.numbers();
    for ([llc, core, _thread], cpu) in numbers {
        cores[llc][core].set(cpu);
    }
    let mut shape = Shape { balance_wake, ..Shape::default() };
    // Few machines have many nodes: those whose nodes are linked have one for each LLC.
    let links = links(near).filter(|_| nr_llcs > 2);
    let per_node = if links.is_some() { 1 } else { per_node };
    match links {
        Some((links, step)) => shape.distances = Distances::linked(links, nr_llcs as u32, step),
        None => (shape.near_nodes, shape.far) = ([0, 0, 2][usize::from(near % 3)], far),
    }
    for (at, cores) in cores.into_iter().enumerate() {
        let capacity = |core: usize| match asym {
            1 if at >= nr_llcs.div_ceil(2) || (nr_llcs == 1 && core >= nr_cores.div_ceil(2)) => 446,
            2 if core % 2 == 1 => 512,
            3 => [FULL_CAPACITY, 762, 446][(at + core) % 3],
            _ => FULL_CAPACITY,
        };
        let cores: Vec<Core> =
            cores.into_iter().enumerate().map(|(core, cpus)| Core { cpus, capacity: capacity(core) }).collect();
        let per_cluster = if cluster == 0 { cores.len() } else { cluster };
        let clusters = cores.chunks(per_cluster).map(<[Core]>::to_vec).collect();
        shape.llcs.push(Llc { node: (at / per_node) as u32, has_idle_cores: false, nr_idle_scan: None, clusters });
    }
    // The first CPU stays: a machine needs one.
    for cpu in shape.present().iter().skip(1) {
        let bits = dna.cpu(cpu.index())[3];
        shape.offline.assign(cpu, offline && bits & 3 == 1);
        shape.isolated.assign(cpu, isolated && bits & 3 == 2);
    }
    Ok(shape)
}

/// Which capacities there are, 0: one for all. Machines have threads or small cores, seldom both.
fn asymmetry(gene: u8, smt: usize) -> u8 {
    match smt {
        1 => [0, 0, 0, 0, 1, 2, 3][usize::from(gene % 7)],
        _ if gene >= BOTH => 1 + gene % 3,
        _ => 0,
    }
}

/// Genes from here on make cores with threads of different capacities.
const BOTH: u8 = 232;

/// How nodes are linked and the distance for each link; `None`: all alike, or in near groups. The third link of the
/// longer steps is beyond RECLAIM_DISTANCE, or the second.
fn links(gene: u8) -> Option<(Links, u32)> {
    let kind = usize::from(gene.checked_sub(LINKED)?);
    Some(([Links::Ring, Links::Line, Links::Mesh, Links::Cube][kind % 4], [6, 10, 15][kind / 4 % 3]))
}

/// Genes from here on link nodes.
const LINKED: u8 = 216;

/// How CPUs are numbered over LLCs, cores and threads.
struct Numbering {
    /// 0: threads of a core next to each other; 1: all first threads, then all second ones; 2: that, and neighbours in
    /// different LLCs.
    order: usize,
    /// A hole after each so many CPUs; 0: none.
    skip_after: usize,
    /// LLCs, cores in each, threads in each.
    sizes: [usize; 3],
}

impl Numbering {
    fn numbers(&self) -> Vec<([usize; 3], Cpu)> {
        let [llcs, cores, threads] = self.sizes;
        let total = llcs * cores * threads;
        let holes = |n: usize| n.checked_div(self.skip_after).unwrap_or(0);
        let with_holes = total + holes(total) <= CPUS_MAX;
        let place = |n: usize| match self.order {
            0 => [n / threads / cores, n / threads % cores, n % threads],
            1 => [n / cores % llcs, n % cores, n / cores / llcs],
            _ => [n % llcs, n / llcs % cores, n / llcs / cores],
        };
        let number = |n: usize| Cpu((n + if with_holes { holes(n) } else { 0 }) as u16);
        (0..total).map(|n| (place(n), number(n))).collect()
    }
}

fn cpu_state(cpu: Cpu, busy: u8, bytes: &[u8; 4]) -> Result<CpuState> {
    let mut gene = Gene::new(bytes);
    let is_busy = busy > 0 && gene.byte()? >= 255 - busy;
    let form = gene.byte()?;
    let times = gene.byte()?;
    let misc = gene.byte()?;
    let mut state = CpuState { cpu, ..CpuState::default() };
    if is_busy {
        state.load = match form % 16 {
            0..=7 => Load::fair(1),
            8 | 9 => Load::fair(2),
            10 => Load::fair(3),
            11 => Load { fair: 1, idle: 1, ..Load::default() },
            12 => Load { fair: 2, idle: 2, ..Load::default() },
            13 => Load { fair: 2, idle: 1, ..Load::default() },
            14 => Load { rt: 1, ..Load::default() },
            _ => Load { fair: 2, delayed: 1, ..Load::default() },
        };
    }
    state.pending = misc >> 2 & 15 == 1;
    state.preempted = misc >> 2 & 15 == 2;
    state.avg_idle_ns = [1_000_000, 0, 500, 5_000, 50_000, 200_000, 400_000, 999_999][usize::from(times & 7)];
    state.wake_avg_idle_ns = [500_000, 0, 1_000, 60_000][usize::from(times >> 3 & 3)];
    state.avg_scan_cost_ns = [0, 1, 10, 100, 500, 2_000, 20_000, 150][usize::from(times >> 5)];
    state.load_avg = [0, 0, 100, 512, 1024, 2048, 3, 88_761][usize::from(form >> 4 & 7)];
    state.util_avg = [0, 0, 100, 400, 800, 1024, 5, 600][usize::from(form >> 5)];
    state.capacity_left = [1024, 1024, 1024, 900][usize::from(misc >> 6)];
    state.idle_for_ns = if is_busy { 0 } else { [0, 1_000, 100_000, 20_000_000][usize::from(form & 3)] };
    state.exit_latency_us = if is_busy { -1 } else { [-1, 0, 2, 133][usize::from(form >> 2 & 3)] };
    Ok(state)
}

/// What tasks and events can name.
struct There {
    online: Vec<Cpu>,
    present: Vec<Cpu>,
    llcs: Vec<Cpumask>,
    cores: Vec<Cpumask>,
}

impl There {
    fn new(machine: &Shape) -> Self {
        Self {
            online: machine.online().iter().collect(),
            present: machine.present().iter().collect(),
            llcs: machine.llcs.iter().map(Llc::cpus).collect(),
            cores: machine.cores().map(|core| core.cpus).collect(),
        }
    }

    fn cpu(&self, gene: &mut Gene<'_>) -> Result<Cpu> {
        gene.pick(&self.online)
    }

    /// An affinity mask with an online CPU in it; `None`: every CPU. Three bytes.
    fn mask(&self, gene: &mut Gene<'_>) -> Result<Option<Cpumask>> {
        let (kind, which, more) = (gene.byte()?, usize::from(gene.byte()?), gene.byte()?);
        let cpu = self.online[which % self.online.len()];
        let all: Cpumask = self.present.iter().copied().collect();
        let pattern = |bits: u8| self.present.iter().copied().filter(move |cpu| bits >> (cpu.0 % 8) & 1 != 0).collect();
        let mut mask = match kind {
            0..=127 => return Ok(None),
            128..=143 => Cpumask::of(cpu),
            144..=167 => self.llcs[which % self.llcs.len()],
            168..=187 => all.and_not(&Cpumask::of(cpu)),
            188..=199 => self.cores[which % self.cores.len()],
            200..=227 => pattern(more),
            228..=243 => [cpu, self.online[usize::from(more) % self.online.len()]].into_iter().collect(),
            _ => all.and_not(&self.cores[which % self.cores.len()]),
        };
        if !self.online.iter().any(|&cpu| mask.test(cpu)) {
            mask.set(cpu);
        }
        Ok(Some(mask))
    }
}

fn task(bytes: &[u8; 16], there: &There, nr_tasks: usize) -> Result<TaskState> {
    let mut gene = Gene::new(bytes);
    let kind = gene.byte()?;
    let cpu = there.cpu(&mut gene)?;
    let queued = gene.odds(110)?;
    let mut task = TaskState { cpu, queued, cpus_ptr: there.mask(&mut gene)?, ..TaskState::default() };
    task.kthread = kind >= 224;
    if kind >= 232 {
        // A per-CPU kthread, running where it belongs: the waker of the stacking rule.
        task.cpus_ptr = Some(Cpumask::of(cpu));
    }
    task.policy_idle = (32..60).contains(&kind);
    task.exiting = (60..66).contains(&kind);
    if task.cpus_ptr.is_some_and(|mask| !mask.test(cpu)) && kind & 3 != 1 {
        let first = task.cpus_ptr.and_then(|mask| there.online.iter().copied().find(|&cpu| mask.test(cpu)));
        task.cpu = first.unwrap_or(cpu);
        // The rest is asleep where it may no longer run: its affinity changed meanwhile.
    }
    task.queued &= task.cpus_ptr.is_none_or(|mask| mask.test(task.cpu));
    let preferred = gene.byte()?;
    if preferred >= 160 {
        let llc = there.llcs[usize::from(preferred) % there.llcs.len()];
        let core = there.cores[usize::from(preferred) % there.cores.len()];
        task.cpus_preferred = Some(if preferred >= 208 { llc } else { core });
    }
    let recent = gene.byte()?;
    task.recent_used_cpu = (recent >= 64).then(|| there.present[usize::from(recent) % there.present.len()]);
    task.wakee_flips = gene.pick(&[0, 0, 1, 2, 3, 5, 9, 17, 40, 300])?;
    let last = gene.byte()?;
    task.last_wakee = (last >= 128).then(|| usize::from(last) % nr_tasks);
    task.flips_decayed_ago = [0, 0, 10, 300, 2_000][usize::from(last) % 5];
    task.load_avg = gene.pick(&[0, 1024, 512, 100, 10, 88_761, 3, 1_586, 335])?;
    task.util_avg = gene.pick(&[0, 10, 100, 250, 400, 450, 700, 1024])?;
    task.util_est = gene.pick(&[0, 10, 100, 350, 446, 600, 900, 1024])?;
    let (clamp, nid) = (gene.byte()?, gene.byte()?);
    if clamp >= 192 {
        task.uclamp_min = u64::from(clamp & 7) * 128;
        task.uclamp_max = (u64::from(clamp >> 3 & 7) * 146).max(task.uclamp_min);
    }
    task.numa_preferred_nid = if nid >= 128 { i32::from(nid % 4) } else { -1 };
    task.runnable_avg = [0, 50, 500, 1024][usize::from(nid >> 2 & 3)];
    Ok(task)
}

fn event(bytes: &[u8; 8], there: &There, nr_tasks: usize) -> Result<Event> {
    let mut gene = Gene::new(bytes);
    let op = gene.byte()?;
    let p = gene.below(nr_tasks)?;
    let cpu = there.cpu(&mut gene)?;
    let (flags, amount) = (gene.byte()?, gene.byte()?);
    Ok(match op {
        0..=151 => {
            Event::Wake { p, from: cpu, sync: flags & 3 == 1, irq: flags >> 2 & 3 == 1, remote: flags >> 4 & 3 == 1 }
        }
        152..=159 => Event::Fork { p, from: cpu },
        160..=163 => Event::Exec(cpu),
        164..=179 => Event::Sleep(p),
        180..=203 => Event::Idle(cpu),
        204..=219 => Event::Load(cpu, cpu_state(cpu, 255, &[255, amount, 0, 0])?.load),
        220..=227 => Event::Move(p, cpu),
        228..=233 => {
            let mask = there.mask(&mut gene)?;
            Event::Affine(p, mask.unwrap_or_else(|| there.present.iter().copied().collect()))
        }
        234..=239 => Event::Switch(cpu),
        240..=247 => Event::Tick([1, 4, 1, 10, 300][usize::from(amount) % 5]),
        248..=251 => Event::Balance(usize::from(flags) % there.llcs.len(), u32::from(amount % 16)),
        252..=253 => Event::Preempt(cpu, amount & 1 == 0),
        _ => {
            // Mostly one of the last four, so that one that went comes back.
            let present = &there.present;
            let of = if flags < 192 { present.len().min(4) } else { present.len() };
            Event::Hotplug(present[present.len() - 1 - usize::from(flags) % of], amount & 3 == 3)
        }
    })
}
