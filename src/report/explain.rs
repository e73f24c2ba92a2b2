// SPDX-License-Identifier: GPL-2.0-or-later
//! One wakeup: the machine at its moment, what each implementation and the recorded kernel chose, and the walks.

use crate::compare::{Class, Verdict};
use crate::machine::{Inputs, Provenance};
use crate::replay::driver::{Explained, Row};
use crate::replay::totals::input_names;
use crate::replay::{Role, Setup};
use crate::report::layout::{Align, FAINT, HEADING, WIDTH, columns, indented, paint};
use crate::report::picture::{LEGEND, picture};
use crate::report::walks::{Line, first_difference, lines, side_by_side, stacked};
use crate::units::{Cpu, seconds};
use crate::wakeup::WakeKind;

/// From this width on two walks stand side by side.
pub const SIDE_BY_SIDE: usize = 100;

/// What is known of the implementations beside their decisions.
#[derive(Debug, Clone)]
pub struct Names {
    /// Spec and role of each, in the order of the decisions.
    pub columns: Vec<(String, Role)>,
}

impl Names {
    /// The same, where a compared implementation of the recorded release is told apart from that kernel's model.
    pub(super) fn told_apart(&self) -> Self {
        let is_recorded = |spec: &String| self.columns.iter().any(|(own, role)| *role == Role::Recorded && own == spec);
        let name = |(spec, role): &(String, Role)| match role {
            Role::Baseline | Role::Patched if is_recorded(spec) => (format!("{spec}{FREE}"), *role),
            _ => (spec.clone(), *role),
        };
        Self { columns: self.columns.iter().map(name).collect() }
    }
}

/// Behind the name of an implementation of the recorded release that does not follow the probes.
const FREE: &str = " (free)";

/// The explanation in at most `width` columns.
pub fn explain(file: &str, explained: &Explained, names: &Names, setup: &Setup, width: usize) -> String {
    let row = &explained.row;
    let names = &names.told_apart();
    let kind = match row.recorded.wakeup.kind {
        WakeKind::Ttwu => "wakeup",
        WakeKind::Fork => "fork",
        WakeKind::Exec => "exec",
    };
    let title = format!("sisdiff {}: {kind} {} of {file}", env!("CARGO_PKG_VERSION"), row.recorded.number);
    let mut out = format!("{}\n", paint(HEADING, &title));
    out += &question(explained, setup);
    out += &format!("\n{}\n", paint(HEADING, "machine"));
    let marks = marks(row);
    out += &indented(2, &picture(&explained.state, &marks, width.saturating_sub(2)));
    out += &legend(&LEGEND.map(str::to_owned), width);
    out += &legend(&mark_legend(names), width);
    out += &format!("\n{}\n", paint(HEADING, "decisions"));
    out += &decisions(row, names, setup);
    out += &walks(explained, names, width);
    out
}

fn question(explained: &Explained, setup: &Setup) -> String {
    let rows: Vec<Vec<String>> = question_rows(explained, setup).into_iter().map(Vec::from).collect();
    columns(2, &[Align::Left, Align::Wrap], &rows)
}

/// Who woke whom, when and where, each with its key.
pub(super) fn question_rows(explained: &Explained, setup: &Setup) -> [[String; 2]; 4] {
    let recorded = &explained.row.recorded;
    let wakeup = &recorded.wakeup;
    let task = explained.state.tasks.0.get(wakeup.p.index());
    let allowed = task.map(|task| {
        let known = how_known(task.known, Inputs::AFFINITY);
        let mut text = format!("may run on {}{known}", task.cpus_ptr);
        if task.affinity_unequal {
            let known = how_known(task.known, Inputs::SOFT_AFFINITY);
            text += &format!(", prefers {}{known}", task.cpus_preferred);
        }
        text
    });
    let sync = format!("sync {}{}", yes_no(wakeup.sync), how_known(wakeup.known, Inputs::SYNC));
    let context = if wakeup.in_task { "task context" } else { "in an interrupt" };
    let rows = [
        ("at", format!("{} s, {context}, {sync}", seconds(recorded.ts_ns))),
        (
            "wakee",
            format!(
                "{} ({}), last on CPU {}; {}",
                recorded.comm,
                recorded.pid,
                wakeup.prev_cpu,
                allowed.unwrap_or_else(|| "affinity unknown".to_owned())
            ),
        ),
        ("waker", format!("{} ({}) on CPU {}", recorded.waker_comm, recorded.waker_pid, wakeup.this_cpu)),
        ("topology", format!("{}; {}", setup.topology, setup.topology_source)),
    ];
    rows.map(|(key, value)| [key.to_owned(), value])
}

fn yes_no(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

/// ` (assumed)`, ` (unknown)`, ` (stated)`, ` (derived)`, or nothing for what was traced.
fn how_known(known: Provenance, inputs: Inputs) -> &'static str {
    if known.unknown.intersects(inputs) {
        " (unknown)"
    } else if known.assumed.intersects(inputs) {
        " (assumed)"
    } else if known.stated.intersects(inputs) {
        " (stated)"
    } else if known.derived.intersects(inputs) {
        " (derived)"
    } else {
        ""
    }
}

/// Letters of the implementations in the picture.
pub(super) fn letter(at: usize) -> char {
    (b'a'..=b'o').nth(at).map_or('?', char::from)
}

pub(super) fn marks(row: &Row) -> Vec<(Cpu, char)> {
    let wakeup = &row.recorded.wakeup;
    let mut marks = vec![(wakeup.prev_cpu, 'p'), (wakeup.this_cpu, 'w')];
    marks.extend(row.decisions.iter().enumerate().map(|(at, decision)| (decision.class_cpu, letter(at))));
    marks.extend(row.choice.cpu().map(|cpu| (cpu, '*')));
    marks
}

pub(super) fn mark_legend(names: &Names) -> Vec<String> {
    let mut parts = vec!["p prev_cpu".to_owned(), "w the waking CPU".to_owned()];
    parts.extend(names.columns.iter().enumerate().map(|(at, (spec, _))| format!("{} {spec}", letter(at))));
    parts.push("* the recorded choice".to_owned());
    parts
}

/// Signs and their meaning, in lines of at most `width`.
fn legend(parts: &[String], width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.chars().count() + 4 <= width => {
                *line += "  ";
                *line += part;
            }
            _ => lines.push(part.clone()),
        }
    }
    lines.iter().map(|line| format!("  {}\n", paint(FAINT, line))).collect()
}

/// Room that the column of inputs wants at least.
const LEANED_ON_MIN: usize = 16;

/// Width of all columns but the last, with the indent and the gaps.
fn fixed_width(rows: &[Vec<String>]) -> usize {
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    2 + (0..5).filter_map(widest).map(|width| width + 2).sum::<usize>()
}

/// What each chose; the first row is the head.
pub(super) fn decision_rows(row: &Row, names: &Names, setup: &Setup) -> Vec<Vec<String>> {
    let mut rows = vec![["", "", "CPU", "return", "looked at", "leaned on"].map(str::to_owned).to_vec()];
    let decided = row.decisions.iter().zip(&row.wrong).zip(&names.columns).enumerate();
    for (at, ((decision, &wrong), (spec, role))) in decided {
        let mut cpu = decision.class_cpu.to_string();
        if wrong {
            cpu += &format!(" WRONG, runs on {}", decision.final_cpu);
        }
        let role = match role {
            Role::Recorded if setup.recorded.as_ref().is_some_and(|model| !model.exact) => " (nearest model)",
            Role::Recorded => " (recorded kernel)",
            Role::Baseline | Role::Patched => "",
        };
        rows.push(vec![
            letter(at).to_string(),
            format!("{spec}{role}"),
            cpu,
            format!("{:?}", decision.exit),
            format!("{}", decision.probes),
            leaned_on(decision.leaned_on),
        ]);
    }
    let choice = match (row.choice.class_cpu, row.choice.final_cpu) {
        (Some(class), Some(last)) if class != last => format!("{class}, runs on {last}"),
        (class, last) => class.or(last).map_or_else(|| "not told".to_owned(), |cpu| cpu.to_string()),
    };
    rows.push(vec!["*".to_owned(), "recorded choice".to_owned(), choice]);
    rows
}

fn decisions(row: &Row, names: &Names, setup: &Setup) -> String {
    let mut rows = decision_rows(row, names, setup);
    let align = [Align::Left, Align::Left, Align::Left, Align::Left, Align::Right, Align::Wrap];
    let mut out = if fixed_width(&rows) + LEANED_ON_MIN <= WIDTH {
        columns(2, &align, &rows)
    } else {
        // Long names and wrong placements leave no room for the last column: it follows in lines of its own.
        let leaned: Vec<String> = rows[1..].iter().filter_map(|row| row.get(5).cloned()).collect();
        rows.iter_mut().for_each(|row| row.truncate(5));
        let lines = leaned.iter().enumerate().map(|(at, text)| vec![format!("{} leaned on", letter(at)), text.clone()]);
        columns(2, &align[..5], &rows) + &columns(2, &[Align::Left, Align::Wrap], &lines.collect::<Vec<_>>())
    };
    decision_notes(row, names, setup).iter().for_each(|note| out += &indented(2, note));
    out
}

/// What the table of decisions does not say.
pub(super) fn decision_notes(row: &Row, names: &Names, setup: &Setup) -> Vec<String> {
    let mut notes = Vec::new();
    if setup.facts > 0 && names.columns.iter().any(|(spec, _)| spec.ends_with(FREE)) {
        notes.push("(free): keeps hidden state of its own; (recorded kernel): follows the probes".to_owned());
    }
    let patched = names.columns.iter().filter(|(_, role)| *role == Role::Patched);
    for ((spec, _), verdict) in patched.zip(&row.verdicts) {
        notes.push(format!("{spec}: {}", verdict_text(verdict)));
    }
    if row.insensitive.contains(Inputs::SYNC) {
        notes.push("sync or not, every implementation decides the same".to_owned());
    }
    if row.insensitive.contains(Inputs::WAKEE_FLIPS) {
        notes.push("wake_wide() or not, every implementation decides the same".to_owned());
    }
    notes
}

fn leaned_on(leaned_on: Provenance) -> String {
    let list = |inputs: Inputs| input_names(inputs).collect::<Vec<_>>().join(", ");
    match Class::of(leaned_on) {
        Class::Known => "known inputs".to_owned(),
        Class::Assumed => format!("assumed: {}", list(leaned_on.assumed)),
        Class::Unknown if leaned_on.assumed.is_empty() => format!("unknown: {}", list(leaned_on.unknown)),
        Class::Unknown => format!("unknown: {}; assumed: {}", list(leaned_on.unknown), list(leaned_on.assumed)),
    }
}

pub(super) fn verdict_text(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Agree { same_exit: true, .. } => "agrees with the baseline".to_owned(),
        Verdict::Agree { same_exit: false, .. } => "agrees with the baseline, by another return".to_owned(),
        Verdict::Diverge { difference, .. } => {
            format!("differs from the baseline: {}", crate::report::text::difference(*difference))
        }
        Verdict::Unknown { inputs, .. } => {
            let list: Vec<String> = input_names(*inputs).collect();
            format!("no verdict: {} unknown", list.join(", "))
        }
    }
}

fn walks(explained: &Explained, names: &Names, width: usize) -> String {
    let mut out = String::new();
    let texts: Vec<Vec<Line>> = explained.walks.iter().map(lines).collect();
    let of = |role: Role| names.columns.iter().zip(&texts).filter(move |((_, of), _)| *of == role);
    let baseline = of(Role::Baseline).next();
    let mut baseline_shown = false;
    if let Some(((base, _), left)) = baseline {
        for ((spec, _), right) in of(Role::Patched) {
            let difference = first_difference(left, right);
            if difference.is_none() {
                continue;
            }
            baseline_shown = true;
            if width >= SIDE_BY_SIDE {
                let column = width.saturating_sub(3) / 2;
                let title = format!("{base:column$}   {spec}");
                out += &format!("\n{}\n{}", paint(HEADING, title.trim_end()), side_by_side(left, right, width));
            } else {
                out += &format!("\n{}\n{}", paint(HEADING, base), stacked(left, difference, width));
                out += &format!("\n{}\n{}", paint(HEADING, spec), stacked(right, difference, width));
            }
        }
        if !baseline_shown {
            let same: Vec<&str> = of(Role::Patched).map(|((spec, _), _)| spec.as_str()).collect();
            let title = if same.is_empty() { base.clone() } else { format!("{base}; the same: {}", same.join(", ")) };
            out += &format!("\n{}\n{}", paint(HEADING, &title), stacked(left, None, width));
        }
    }
    for ((spec, _), text) in of(Role::Recorded) {
        let title = format!("{spec} (model of the recorded kernel)");
        out += &format!("\n{}\n{}", paint(HEADING, &title), stacked(text, None, width));
    }
    out
}
