// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as a small picture: a line for each LLC, its cores in brackets, a sign for what each CPU does.
//!
//! ```text
//! node 0  LLC 0-3  [0.  1#2w]  [2+  3.p*]
//! ```

use crate::cpumask::Cpumask;
use crate::machine::{Inputs, State};
use crate::units::Cpu;

/// Legend of the signs.
pub const LEGEND: [&str; 6] =
    [". idle", "# busy (#2: two tasks)", "+ queued, not running yet", "~ wakeup pending", "? not known", "x offline"];

/// The picture of `state` in lines of at most `width` columns; `marks` are put behind their CPUs' signs.
pub fn picture(state: &State, marks: &[(Cpu, char)], width: usize) -> String {
    let groups = groups(state);
    let heads: Vec<String> = groups.iter().map(|(head, _)| head.clone()).collect();
    let widest = heads.iter().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (head, span) in &groups {
        let mut line = format!("{head:widest$}");
        for core in cores(state, span) {
            let core = core_text(state, &core, marks);
            if line.len() + 2 + core.len() > width && line.trim_end().len() > widest {
                out += line.trim_end();
                out.push('\n');
                line = " ".repeat(widest);
            }
            line += "  ";
            line += &core;
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// The CPUs that share a last-level cache, in the order of their first CPU, with the line's head.
fn groups(state: &State) -> Vec<(String, Cpumask)> {
    let topology = &state.topology;
    let mut groups: Vec<(Cpu, Cpumask)> = Vec::new();
    for cpu in topology.cpus() {
        let id = topology.sd_llc_id(cpu);
        match groups.iter_mut().find(|(of, _)| *of == id) {
            Some((_, span)) => span.set(cpu),
            None => groups.push((id, Cpumask::of(cpu))),
        }
    }
    let several_nodes = topology.cpus().any(|cpu| topology.node(cpu) != topology.node(Cpu(0)));
    let head = |first: Cpu, span: &Cpumask| {
        let node = if several_nodes { format!("node {}  ", topology.node(first)) } else { String::new() };
        format!("{node}LLC {span}")
    };
    groups.into_iter().map(|(first, span)| (head(span.first().unwrap_or(first), &span), span)).collect()
}

fn cores(state: &State, span: &Cpumask) -> Vec<Cpumask> {
    let mut left = *span;
    let mut cores = Vec::new();
    while let Some(cpu) = left.first() {
        let mut core = *state.topology.smt_mask(cpu) & *span;
        core.set(cpu);
        left = left.and_not(&core);
        cores.push(core);
    }
    cores
}

fn core_text(state: &State, core: &Cpumask, marks: &[(Cpu, char)]) -> String {
    let cpus: Vec<String> = core.iter().map(|cpu| cpu_text(state, cpu, marks)).collect();
    if cpus.len() == 1 { cpus.concat() } else { format!("[{}]", cpus.join("  ")) }
}

fn cpu_text(state: &State, cpu: Cpu, marks: &[(Cpu, char)]) -> String {
    let mut text = format!("{cpu}{}", sign(state, cpu));
    text.extend(marks.iter().filter(|(of, _)| *of == cpu).map(|(_, mark)| mark));
    text
}

fn sign(state: &State, cpu: Cpu) -> String {
    let rq = &state.rq;
    let nr_running = rq.nr_running.get(cpu.index()).copied().unwrap_or(0);
    if !state.topology.online().test(cpu) {
        "x".to_owned()
    } else if rq.known.get(cpu.index()).is_some_and(|known| known.unknown.contains(Inputs::IDLE)) {
        "?".to_owned()
    } else if !rq.curr_idle.test(cpu) {
        if nr_running > 1 { format!("#{nr_running}") } else { "#".to_owned() }
    } else if nr_running > 0 {
        "+".to_owned()
    } else if rq.ttwu_pending.test(cpu) {
        "~".to_owned()
    } else {
        ".".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Domain, Parts, SdFlags, Topology};
    use std::sync::Arc;

    fn state() -> State {
        let mask = |list: &str| list.parse::<Cpumask>().expect("a cpulist");
        let domain = |span: &str| Domain {
            level: 1,
            name: "MC".to_owned(),
            span: mask(span),
            flags: SdFlags::SHARE_LLC,
            imbalance_pct: 117,
            imb_numa_nr: 0,
        };
        let parts = Parts {
            nr_cpu_ids: 8,
            online: mask("0-6"),
            smt: (0..8).map(|cpu| mask(&format!("{},{}", cpu % 4, cpu % 4 + 4))).collect(),
            node: (0..8).map(|cpu| cpu % 4 / 2).collect(),
            capacity_orig: vec![1024; 8],
            smt_present: true,
            domains: vec![domain("0,1,4,5"), domain("2,3,6,7")],
            ..Parts::default()
        };
        State::new(Arc::new(Topology::new(parts).expect("a topology")))
    }

    #[test]
    fn each_llc_is_a_line_and_each_core_a_bracket() {
        let mut state = state();
        state.rq.curr_idle.clear(Cpu(1));
        state.rq.nr_running[1] = 2;
        state.rq.nr_running[2] = 1;
        state.rq.ttwu_pending.set(Cpu(3));
        state.rq.known[6].set_unknown(Inputs::IDLE);
        let text = picture(&state, &[(Cpu(1), 'w'), (Cpu(0), 'p'), (Cpu(0), '*')], 80);
        assert_eq!(text, "node 0  LLC 0-1,4-5  [0.p*  4.]  [1#2w  5.]\nnode 1  LLC 2-3,6-7  [2+  6?]  [3~  7x]\n");
    }

    #[test]
    fn long_lines_break_between_cores() {
        let text = picture(&state(), &[], 32);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.trim_start() == "[1.  5.]"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 32), "{text}");
    }
}
