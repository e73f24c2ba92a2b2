// SPDX-License-Identifier: GPL-2.0-or-later
//! The text report of `replay`: what makes it reproducible, then totals, differences, counters, agreement.

use std::fmt::Write;

use crate::compare::{Class, Difference, Distance, Load, Outside};
use crate::counters::{RecentMiss, Value};
use crate::machine::Why;
use crate::replay::outcome::AffinityUse;
use crate::replay::totals::{Column, Comparison, Group, InputUse, Totals, reason};
use crate::replay::{Outcome, Setup};
use crate::report::counters::{cell, change_cell};
use crate::report::layout::{Align, FAINT, HEADING, columns, count, counted, paint, percent, section};
use crate::report::shell::printable;
use crate::report::sis;
use crate::report::{agreement, placements};
use crate::units::seconds;

/// Differences that a report lists; the rest is summed up in a line.
const GROUPS_LISTED: usize = 12;
/// Names that a report lists.
const COMMS_LISTED: usize = 5;

/// The report of one recording; `again` is the command that explains a decision of it, without the decision's number.
pub fn outcome(outcome: &Outcome, again: Option<&str>) -> String {
    let mut out = String::new();
    let title = format!("sisdiff {}: replay of {}", env!("CARGO_PKG_VERSION"), printable(&outcome.recording.file));
    line(&mut out, &paint(HEADING, &title));
    out += &head(outcome);
    out += &body(outcome);
    if let (Some(number), Some(again)) = (first_example(&outcome.totals), again) {
        let again = format!("one of them: {again} --wakeup {number}");
        out += &format!("\n{}\n", paint(FAINT, &again));
    }
    out
}

/// The report of one recording without its head and its hint: what snapshots hold.
pub fn body(outcome: &Outcome) -> String {
    totals(&outcome.totals, &outcome.setup, &[])
}

/// The sum over several recordings.
pub fn sum(outcomes: &[Outcome], sum: &Totals) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let files: Vec<&str> = outcomes.iter().map(|outcome| outcome.recording.file.as_str()).collect();
    let mut out = String::new();
    line(&mut out, &paint(HEADING, &format!("sum of {} recordings", outcomes.len())));
    // The sum of kernels has a fidelity only where each has a model of its own.
    let mut setup = first.setup.clone();
    let exact = |outcome: &Outcome| outcome.setup.recorded.as_ref().is_some_and(|recorded| recorded.exact);
    if let Some(recorded) = &mut setup.recorded {
        recorded.exact = outcomes.iter().all(exact);
        "not every recorded kernel has a model of its own".clone_into(&mut recorded.why);
    }
    out += &totals(sum, &setup, &files);
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn head(outcome: &Outcome) -> String {
    let rows: Vec<Vec<String>> = head_rows(outcome).into_iter().map(Vec::from).collect();
    columns(2, &[Align::Left, Align::Wrap], &rows)
}

/// What makes a replay reproducible, each with its key; a row without a key goes on with the one before it.
pub(super) fn head_rows(outcome: &Outcome) -> Vec<[String; 2]> {
    let Outcome { recording, setup, totals } = outcome;
    let span = recording.last_ns.saturating_sub(recording.first_ns);
    let mut rows: Vec<[String; 2]> = Vec::new();
    // Kernels, machines, patterns and notes are named by files.
    let mut row = |key: &str, value: String| rows.push([key.to_owned(), printable(&value)]);
    row("sha256", recording.sha256.clone());
    let clock = recording.clock.as_deref().unwrap_or("unknown");
    row(
        "trace",
        format!(
            "{} of {}, {:.3} s from {}, clock {clock}",
            counted(recording.events, "event", "events"),
            counted(recording.cpus, "CPU", "CPUs"),
            span as f64 / 1e9,
            seconds(recording.first_ns),
        ),
    );
    row(
        "kernel",
        recording.kernel.clone().unwrap_or_else(|| "unknown: neither the file nor a topology snapshot says".to_owned()),
    );
    row("topology", format!("{}; {}", setup.topology, setup.topology_source));
    row("baseline", setup.baseline.clone());
    setup.patched.iter().for_each(|spec| row("patched", spec.clone()));
    match &setup.recorded {
        Some(model) => row("recorded", format!("{}: {}", model.spec, model.why)),
        None => row("recorded", "no model: the recorded kernel is not known".to_owned()),
    }
    row("mode", mode(setup));
    row("declared", format!("HZ {} ({}); an idle check costs {} ns", setup.hz, setup.hz_source, setup.scan_cost_ns));
    if !setup.filters.is_empty() {
        row("filters", format!("{}; everything is replayed, the rest is not counted", setup.filters.join(", ")));
    }
    if let Some(using) = &setup.affinity {
        row("affinity", affinity(using));
    }
    for (at, (class, list)) in inputs(&totals.inputs).into_iter().enumerate() {
        let key = if at == 0 { "inputs" } else { "" };
        row(key, format!("{class}: {list}"));
    }
    recording.notes.iter().for_each(|note| row("note", note.clone()));
    rows
}

fn mode(setup: &Setup) -> String {
    let probes = if setup.ignore_probes { "probes ignored; " } else { "" };
    if setup.facts == 0 {
        return format!("{probes}open loop, free running: hidden state starts unknown, each keeps its own");
    }
    let who = match setup.recorded {
        Some(_) => {
            "the model of the recorded kernel follows each, every other implementation takes the first and runs free"
        }
        None => "every implementation takes the first and runs free, as there is no model of the recorded kernel",
    };
    format!("open loop, seeded: {} about hidden state; {who}", counted(setup.facts, "observed fact", "observed facts"))
}

/// The side file: how many tasks each rule was about.
fn affinity(using: &AffinityUse) -> String {
    let tasks = |n| counted(n, "task", "tasks");
    let mut parts: Vec<String> =
        using.groups.iter().map(|one| format!("group {:?} {}", one.group, tasks(one.tasks))).collect();
    parts.extend(using.rules.iter().map(|one| format!("{} {}", one.rule, tasks(one.tasks))));
    format!("stated by {}: {}", printable(&using.file), parts.join("; "))
}

/// The kinds of input by how well they were known, each with its share where that is not all.
fn inputs(usage: &[InputUse]) -> Vec<(&'static str, String)> {
    type Count = fn(&InputUse) -> u64;
    let classes: [(&'static str, Count); 5] = [
        ("traced", |usage| usage.traced),
        ("derived", |usage| usage.derived),
        ("stated", |usage| usage.stated),
        ("assumed", |usage| usage.assumed),
        ("unknown", |usage| usage.unknown),
    ];
    let list = |of: Count| {
        let name = |usage: &&InputUse| match of(usage) {
            n if n == usage.sum() => usage.input.clone(),
            n => format!("{} {}", usage.input, percent(n, usage.sum())),
        };
        let names: Vec<String> = usage.iter().filter(|usage| of(usage) > 0).map(|usage| name(&usage)).collect();
        names.join(", ")
    };
    classes.into_iter().map(|(class, of)| (class, list(of))).filter(|(_, list)| !list.is_empty()).collect()
}

fn totals(totals: &Totals, setup: &Setup, files: &[&str]) -> String {
    let mut out = decisions(totals);
    if totals.decisions.sum() == 0 {
        return out + "\nnothing to compare: no call of select_task_rq_fair() in what was counted\n";
    }
    for comparison in &totals.comparisons {
        out += &self::comparison(totals, comparison, setup, files);
    }
    out += &placements::wrong(totals);
    out += &agreement::agreement(totals, setup);
    out
}

fn decisions(totals: &Totals) -> String {
    section("decisions") + &columns(2, &[Align::Left, Align::Right, Align::Right], &decision_rows(totals))
}

/// Decisions, and wakings that led to none.
pub(super) fn decision_rows(totals: &Totals) -> Vec<Vec<String>> {
    let wakings = totals.decisions.wakeups + totals.not_selected_sum();
    let mut rows = vec![vec!["wakings".to_owned(), count(wakings), String::new()]];
    let mut row = |name: &str, n: u64, of: u64| rows.push(vec![name.to_owned(), count(n), percent(n, of)]);
    row("  wakeup decisions", totals.decisions.wakeups, wakings);
    for (&why, &n) in &totals.not_selected {
        row(&format!("  no decision: {}", reason(why)), n, wakings);
    }
    let apart = [
        ("fork decisions", totals.decisions.forks, totals.first.forks),
        ("exec decisions", totals.decisions.execs, totals.first.execs),
    ];
    for (name, n, first) in apart.into_iter().filter(|&(_, n, _)| n > 0) {
        let first = first.map(|number| format!("first #{number}")).unwrap_or_default();
        rows.push(vec![name.to_owned(), count(n), first]);
    }
    let insensitive =
        [("the same, sync or not", totals.sync_insensitive), ("the same, wake_wide() or not", totals.wide_insensitive)];
    for (name, n) in insensitive.into_iter().filter(|&(_, n)| n > 0) {
        rows.push(vec![name.to_owned(), count(n), percent(n, totals.decisions.sum())]);
    }
    rows
}

fn comparison(totals: &Totals, comparison: &Comparison, setup: &Setup, files: &[&str]) -> String {
    let rows = verdict_rows(comparison);
    let mut align = vec![Align::Left];
    align.resize(rows[0].len(), Align::Right);
    let mut out = section(&format!("{} -> {}", setup.baseline, comparison.patched));
    out += &columns(2, &align, &rows);
    out += &groups(comparison, files);
    out += &comms(comparison);
    out += &counters(totals, comparison, setup);
    out
}

/// Verdicts by kind of decision, each with its share; the first row is the head.
pub(super) fn verdict_rows(comparison: &Comparison) -> Vec<Vec<String>> {
    let verdicts = comparison.verdicts.named();
    let shown: Vec<_> =
        verdicts.iter().filter(|(name, tally)| *name == "wakeups" || tally.compared() + tally.unknown > 0).collect();
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(shown.iter().flat_map(|(name, _)| [(*name).to_owned(), String::new()]));
    let mut row = |name: &str, of: &dyn Fn(&crate::replay::totals::Tally) -> u64, share: bool, always: bool| {
        if !always && shown.iter().all(|(_, tally)| of(tally) == 0) {
            return;
        }
        let mut cells = vec![name.to_owned()];
        for (_, tally) in &shown {
            cells.push(count(of(tally)));
            cells.push(if share { percent(of(tally), tally.compared() + tally.unknown) } else { String::new() });
        }
        rows.push(cells);
    };
    row("same CPU", &|tally| tally.same.sum(), true, true);
    row("  by another return", &|tally| tally.same_by_another_return, true, false);
    row("another CPU", &|tally| tally.different.sum(), true, true);
    row("  leaned on assumed inputs", &|tally| tally.different.assumed, true, false);
    row("  wrong: outside of cpus_ptr", &|tally| tally.wrong, true, false);
    row("no verdict: unknown inputs", &|tally| tally.unknown, true, true);
    row("  placeholders gave another CPU", &|tally| tally.unknown_differs, true, false);
    rows
}

fn groups(comparison: &Comparison, files: &[&str]) -> String {
    if comparison.groups.is_empty() {
        let told = comparison.verdicts.named().iter().any(|(_, tally)| tally.compared() > 0);
        let none =
            if told { "no differences" } else { "no verdict on any decision: whether they differ cannot be told" };
        return format!("\n  {none}\n");
    }
    let sorted = largest_first(comparison);
    let mut rows = vec![["count", "by return", "kinds", "first"].map(str::to_owned).to_vec()];
    for group in sorted.iter().take(GROUPS_LISTED) {
        let first = match group.example_file.and_then(|at| files.get(at)) {
            Some(_) => format!("#{} of file {}", group.example, group.example_file.unwrap_or(0) + 1),
            None => format!("#{}", group.example),
        };
        let by = format!("{:?} -> {:?}", group.baseline, group.patched);
        rows.push(vec![count(group.count.sum()), by, kinds(group), first]);
    }
    let mut out = "\n  differences\n".to_owned();
    out += &columns(2, &[Align::Right, Align::Left, Align::Wrap, Align::Left], &rows);
    if sorted
        .iter()
        .any(|group| group.load.contains_key(&Load::CoreToSibling) || group.load.contains_key(&Load::SiblingToCore))
    {
        out += &format!("  {}\n", paint(FAINT, "core: a whole idle core; sibling: an idle thread beside a busy one"));
    }
    if let Some(rest) = sorted.get(GROUPS_LISTED..).filter(|rest| !rest.is_empty()) {
        let n: u64 = rest.iter().map(|group| group.count.sum()).sum();
        let _ = writeln!(out, "  and {} in {} other pairs of returns (all in --format json)", count(n), rest.len());
    }
    out
}

/// The groups of differences, the largest first.
pub(super) fn largest_first(comparison: &Comparison) -> Vec<&Group> {
    let mut sorted: Vec<&Group> = comparison.groups.iter().collect();
    sorted.sort_by_key(|group| (std::cmp::Reverse(group.count.sum()), group.baseline, group.patched));
    sorted
}

/// `other core 12, same core 3; idle->busy 4; WRONG 1`, the count left out where it is all.
pub(super) fn kinds(group: &Group) -> String {
    let all = group.count.sum();
    let item = |name: &str, n: u64| if n == all { name.to_owned() } else { format!("{name} {}", count(n)) };
    let list = |items: Vec<String>| if items.is_empty() { None } else { Some(items.join(", ")) };
    let distances = group.distance.iter().map(|(&distance, &n)| item(distance_name(distance), n)).collect();
    let loads = group.load.iter().filter_map(|(&load, &n)| load_name(load).map(|name| item(name, n))).collect();
    let outside = [("WRONG", group.wrong), ("no longer wrong", group.mended)];
    let outside = outside.into_iter().filter(|&(_, n)| n > 0).map(|(name, n)| item(name, n)).collect();
    let parts: Vec<String> = [list(distances), list(loads), list(outside)].into_iter().flatten().collect();
    parts.join("; ")
}

fn distance_name(distance: Distance) -> &'static str {
    match distance {
        Distance::SameCore => "same core",
        Distance::OtherCore => "other core",
        Distance::OtherLlc => "other LLC",
        Distance::OtherNode => "other node",
    }
}

fn load_name(load: Load) -> Option<&'static str> {
    match load {
        Load::Alike => None,
        Load::IdleToBusy => Some("idle->busy"),
        Load::BusyToIdle => Some("busy->idle"),
        Load::CoreToSibling => Some("core->sibling"),
        Load::SiblingToCore => Some("sibling->core"),
    }
}

/// One difference in words.
pub fn difference(difference: Difference) -> String {
    let outside = match difference.outside {
        Outside::Neither => None,
        Outside::Baseline => Some("no longer outside of cpus_ptr"),
        Outside::Patched => Some("WRONG: outside of cpus_ptr"),
        Outside::Both => Some("WRONG: both outside of cpus_ptr"),
    };
    let parts = [Some(distance_name(difference.distance)), load_name(difference.load), outside];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn comms(comparison: &Comparison) -> String {
    if comparison.comms.is_empty() {
        return String::new();
    }
    let name = |comm: &crate::replay::totals::CommCount| {
        format!("{} {} of {}", comm.comm, count(comm.different), count(comm.compared))
    };
    let mut names: Vec<String> = comparison.comms.iter().take(COMMS_LISTED).map(name).collect();
    if comparison.comms.len() > COMMS_LISTED {
        names.push("…".to_owned());
    }
    columns(2, &[Align::Left, Align::Wrap], &[vec!["by name".to_owned(), names.join(", ")]])
}

fn counters(totals: &Totals, comparison: &Comparison, setup: &Setup) -> String {
    let rows = counter_rows(totals, comparison, setup);
    let Some(head) = rows.first() else { return String::new() };
    let mut align = vec![Align::Left];
    align.resize(head.len(), Align::Right);
    let mut out = format!("\n{}", columns(2, &align, &rows));
    if setup.recent_miss == RecentMiss::Of2021 {
        out += "  Recent Used Miss as in 2021: also where it does not share cache\n";
    }
    if let Some(counted) = &setup.schedstat {
        let note =
            format!("schedstat: {}; from before the recording to after it, nothing filtered", printable(&counted.name));
        out += &columns(2, &[Align::Wrap], &[vec![note]]);
    }
    out
}

/// Counters of both sides; the first row is the head. Empty where a side is missing.
pub(super) fn counter_rows(totals: &Totals, comparison: &Comparison, setup: &Setup) -> Vec<Vec<String>> {
    let patched = totals.patched().find(|column| column.spec == comparison.patched);
    let (Some(baseline), Some(patched)) = (totals.baseline(), patched) else { return Vec::new() };
    let mut rows = vec![["SIS counters, modelled", "baseline", "patched", "change"].map(str::to_owned).to_vec()];
    let machine = setup.schedstat.as_ref().map(|counted| counted.raw.rows());
    rows[0].extend(machine.map(|_| "schedstat".to_owned()));
    let mut row = |name: &str, from: Value, to: Value| {
        let mut cells = vec![name.to_owned(), cell(from), cell(to), change_cell(from, to)];
        if let Some(machine) = &machine {
            let counted = machine.iter().find(|(row, _)| *row == name).and_then(|(_, value)| *value);
            cells.push(counted.map_or_else(|| "-".to_owned(), cell));
        }
        rows.push(cells);
    };
    if setup.schedstat.is_some() {
        let wakings = Value::Count(totals.decisions.wakeups + totals.not_selected_sum());
        row("TTWU Count", wakings, wakings);
        // A task that wakes itself is where it is.
        let current = totals.not_selected.get(&Why::Current).copied().unwrap_or(0);
        row("TTWU Local", Value::Count(baseline.ttwu_local + current), Value::Count(patched.ttwu_local + current));
    }
    let modelled = |column: &Column| sis::rows(&column.sis, setup.recent_miss).into_iter();
    for ((name, from), (_, to)) in modelled(baseline).zip(modelled(patched)) {
        if let (Some(from), Some(to)) = (from, to) {
            row(name, from, to);
        }
    }
    // The counters above are of wakeups: fork and exec take the slow path, whose idle checks are these too.
    let others =
        if totals.decisions.forks + totals.decisions.execs > 0 { "idle checks, forks too" } else { "idle checks" };
    row(others, Value::Count(baseline.probes), Value::Count(patched.probes));
    let unknown = |column: &Column| column.classes.wakeups.get(&Class::Unknown).copied().unwrap_or(0);
    if unknown(baseline) + unknown(patched) > 0 {
        row("wakeups, unknown inputs", Value::Count(unknown(baseline)), Value::Count(unknown(patched)));
    }
    rows
}

/// A wakeup worth an `explain`: a wrong one, else of the largest group.
fn first_example(totals: &Totals) -> Option<u64> {
    let wrong = totals.columns.iter().find_map(|column| column.wrong_example);
    let groups = || totals.comparisons.iter().flat_map(|comparison| &comparison.groups);
    wrong.or_else(|| {
        groups().max_by_key(|group| (group.count.sum(), std::cmp::Reverse(group.example))).map(|g| g.example)
    })
}
