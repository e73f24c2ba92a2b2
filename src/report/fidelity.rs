// SPDX-License-Identifier: GPL-2.0-or-later
//! The text report of `fidelity`.

use crate::fidelity::avail::ScanFigures;
use crate::fidelity::figures::{Derived, FileFidelity, Implementation, InputFigures, Kind};
use crate::replay::totals::Share;
use crate::report::layout::{Align, FAINT, HEADING, columns, count, counted, indented, paint, percent, section};
use crate::report::shell::printable;
use crate::units::seconds;

/// Decisions that a cause lists; JSON has them all.
const LISTED: usize = 8;
/// Races that are listed with their proof.
const RACES_LISTED: usize = 6;

/// The report of one recording; `again` explains a decision of it, without the decision's number.
pub fn file(it: &FileFidelity, again: Option<&str>) -> String {
    let title = format!("sisdiff {}: fidelity of {}", env!("CARGO_PKG_VERSION"), printable(&it.file));
    let mut out = paint(HEADING, &title) + "\n";
    out += &head(it);
    if let Some(why) = &it.no_model {
        out += &indented(2, &format!("no fidelity figure: {why}"));
    }
    for one in &it.implementations {
        out += &implementation(one);
    }
    out += &it.derived.as_ref().map(derived).unwrap_or_default();
    out += &it.scan.as_ref().map(scan).unwrap_or_default();
    let first = it.model().and_then(|model| model.residue.first()).and_then(|cause| cause.decisions.first());
    if let (Some(number), Some(again)) = (first, again) {
        out += &format!("\n{}\n", paint(FAINT, &format!("one of them: {again} --wakeup {number}")));
    }
    out
}

fn head(it: &FileFidelity) -> String {
    let probes = match (it.ignore_probes, it.level.name()) {
        (true, _) => "ignored".to_owned(),
        (false, "none") => "none".to_owned(),
        (false, name) => format!("level {name}"),
    };
    let kernel = it.kernel.as_deref().unwrap_or("not named");
    let mut rows = vec![
        ["recorded kernel", kernel].map(str::to_owned).to_vec(),
        ["machine", &it.topology].map(str::to_owned).to_vec(),
        ["probes", &probes].map(str::to_owned).to_vec(),
    ];
    rows.extend(it.notes.iter().map(|note| vec!["note".to_owned(), printable(note)]));
    columns(2, &[Align::Left, Align::Wrap], &rows)
}

fn implementation(one: &Implementation) -> String {
    let what = if one.recorded { "the model of the recorded kernel" } else { "for comparison, running free" };
    let mut out = section(&format!("{}: {what}", one.spec));
    out += &agreement(one);
    out += &exits(one);
    out += &confusion(one);
    out += &inputs(&one.inputs);
    if one.recorded {
        out += &residue(one);
    }
    out
}

fn row(name: &str, share: Share) -> Option<Vec<String>> {
    (share.of > 0).then(|| vec![name.to_owned(), count(share.same), count(share.of), percent(share.same, share.of)])
}

fn agreement(one: &Implementation) -> String {
    let mut rows = vec![["", "same", "of", "agree"].map(str::to_owned).to_vec()];
    for (name, kind) in one.kinds.named() {
        rows.extend(row(name, kind.share()));
        let parts = kind.agreement.named();
        rows.extend(parts.into_iter().filter_map(|(name, share)| row(&format!("  {name}"), share)));
        if kind.races > 0 {
            rows.extend(row("  without proven races", kind.without_races()));
        }
        rows.extend(row("  that moved", kind.moved));
        rows.extend(row("  trivially: always prev_cpu", kind.always_prev));
        rows.extend(row("  trivially: always the target", kind.always_target));
    }
    let mut out = columns(2, &[Align::Left, Align::Right, Align::Right, Align::Right], &rows);
    if let Some(skill) = one.kinds.wakeups.skill() {
        out += &indented(2, &format!("skill over always prev_cpu: {skill:.3} (1 is perfect, 0 is no better)"));
    }
    let untold: u64 = one.kinds.named().iter().map(|(_, kind)| kind.choice_unknown).sum();
    if untold > 0 {
        out += &indented(2, &format!("the choice is not recorded for {}", counted(untold, "decision", "decisions")));
    }
    out
}

fn exits(one: &Implementation) -> String {
    let mut rows = vec![["the model's return", "same", "of", "agree"].map(str::to_owned).to_vec()];
    rows.extend(one.exits.iter().filter_map(|exit| row(&format!("{:?}", exit.exit), exit.agreement)));
    format!("\n{}", columns(2, &[Align::Left, Align::Right, Align::Right, Align::Right], &rows))
}

/// Recorded returns as rows, the model's as columns.
fn confusion(one: &Implementation) -> String {
    let mut recorded: Vec<_> = one.confusion.iter().map(|cell| cell.recorded).collect();
    recorded.dedup();
    let mut exits: Vec<_> = one.confusion.iter().map(|cell| cell.model).collect();
    exits.sort();
    exits.dedup();
    if recorded.is_empty() {
        return String::new();
    }
    let mut rows = vec![vec!["kernel \\ model".to_owned()]];
    rows[0].extend(exits.iter().map(|exit| format!("{exit:?}")));
    for told in recorded {
        let mut row = vec![told.name().to_owned()];
        row.extend(exits.iter().map(|&exit| {
            let cell = one.confusion.iter().find(|cell| cell.recorded == told && cell.model == exit);
            cell.map_or_else(|| ".".to_owned(), |cell| count(cell.count))
        }));
        rows.push(row);
    }
    let align: Vec<Align> =
        rows[0].iter().enumerate().map(|(at, _)| if at == 0 { Align::Left } else { Align::Right }).collect();
    format!("\n{}", columns(2, &align, &rows))
}

fn inputs(inputs: &[InputFigures]) -> String {
    let head = ["input", "traced", "derived", "insens.", "assumed", "unknown", "differ", "explains"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for it in inputs {
        let numbers = [it.traced, it.derived, it.insensitive, it.assumed, it.unknown, it.differ, it.explains];
        let mut row = vec![it.input.clone()];
        row.extend(numbers.map(|n| if n == 0 { ".".to_owned() } else { count(n) }));
        rows.push(row);
    }
    let mut align = vec![Align::Left];
    align.extend([Align::Right; 7]);
    format!("\n{}", columns(2, &align, &rows))
}

fn residue(one: &Implementation) -> String {
    if one.residue.is_empty() {
        return String::new();
    }
    let mut rows = vec![["disagreements by cause", "", "decisions (explain --wakeup)"].map(str::to_owned).to_vec()];
    for cause in &one.residue {
        let mut list: Vec<String> = cause.decisions.iter().take(LISTED).map(ToString::to_string).collect();
        let more = cause.decisions.len().saturating_sub(LISTED);
        if more > 0 {
            list.push(format!("and {} more", count(more as u64)));
        }
        let what = format!("{}; {}", list.join(" "), cause.meaning);
        rows.push(vec![cause.cause.clone(), count(cause.decisions.len() as u64), what]);
    }
    let mut out = format!("\n{}", columns(2, &[Align::Left, Align::Right, Align::Wrap], &rows));
    for race in one.races.iter().take(RACES_LISTED) {
        let [at, from, until] = [race.ts_ns, race.from_ns, race.until_ns].map(seconds);
        out += &indented(
            4,
            &format!("race #{}: {} of CPU {} at {at}, between {from} and {until}", race.decision, race.event, race.cpu),
        );
    }
    out
}

fn derived(derived: &Derived) -> String {
    let mut out = section("derived state, against the probes (which it did not see)");
    let mut rows = vec![["", "same", "of", "agree"].map(str::to_owned).to_vec()];
    rows.extend(row("idle", derived.idle));
    rows.extend(row("nr_running", derived.nr_running));
    rows.extend(row("curr", derived.curr));
    rows.extend(row("nr_idle_scan", derived.nr_idle_scan));
    rows.extend(row("nr_idle_scan within 1", derived.nr_idle_scan_near));
    if rows.len() > 1 {
        out += &columns(2, &[Align::Left, Align::Right, Align::Right, Align::Right], &rows);
    }
    let mut rows = vec![["error of", "tracked for", "samples", "median", "90 %"].map(str::to_owned).to_vec()];
    for row in &derived.pelt {
        let after = row.after_ms.map_or_else(|| "since fork".to_owned(), |ms| format!("{ms} ms on"));
        let numbers = [row.samples, row.median, row.p90].map(count);
        rows.push([row.average.clone(), after].into_iter().chain(numbers).collect());
    }
    if rows.len() > 1 {
        let align = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right];
        out += &format!("\n{}", columns(2, &align, &rows));
    }
    out
}

fn scan(scan: &ScanFigures) -> String {
    let mut out = section("order of the scan, against the answers of available_idle_cpu()");
    let part = |n: u64| vec![count(n), percent(n, scan.calls)];
    let mut rows = vec![[vec!["calls".to_owned()], vec![count(scan.calls), String::new()]].concat()];
    let mut add = |name: String, n: u64| rows.push([vec![name], part(n)].concat());
    add("same order, answers and choice".to_owned(), scan.same);
    scan.with.iter().for_each(|(names, &n)| add(format!("with other values of {names}"), n));
    add("reproduced".to_owned(), scan.reproduced());
    add("answers contradict the books".to_owned(), scan.contradicted);
    add("  proven by an event in between".to_owned(), scan.contradicted_races);
    out += &columns(2, &[Align::Left, Align::Right, Align::Right], &rows);
    if !scan.not.is_empty() {
        let list: Vec<String> = scan.not.iter().take(LISTED).map(ToString::to_string).collect();
        out += &indented(2, &format!("not reproduced: {}", list.join(" ")));
    }
    out
}

/// Each class of recordings pooled.
pub fn pooled(files: &[FileFidelity]) -> String {
    let mut out = paint(HEADING, &format!("all of {} recordings", files.len())) + "\n";
    let head = ["probes", "files", "wakeups", "agree", "no races", "moved", "prev", "skill", "forks", "execs"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, files, pool) in pools(files) {
        rows.push([vec![name, count(files)], figures(&pool)].concat());
    }
    let mut align = vec![Align::Left];
    align.extend([Align::Right; 9]);
    out += &columns(2, &align, &rows);
    out
}

/// By level of probes: its name, the number of files, their sum.
pub fn pools(files: &[FileFidelity]) -> Vec<(String, u64, Implementation)> {
    let mut pools: Vec<(String, u64, Implementation)> = Vec::new();
    for file in files {
        let Some(model) = file.model() else { continue };
        let name = if file.ignore_probes { "ignored" } else { file.level.name() };
        let at = pools.iter().position(|pool| pool.0 == name).unwrap_or_else(|| {
            pools.push((name.to_owned(), 0, Implementation::default()));
            pools.len() - 1
        });
        pools[at].1 += 1;
        pools[at].2.kinds += model.kinds;
    }
    pools.sort_by(|a, b| a.0.cmp(&b.0));
    pools
}

/// Wakeups, agreement, without races, moved, always prev, skill, forks, execs.
pub fn figures(one: &Implementation) -> Vec<String> {
    let wakeups = &one.kinds.wakeups;
    let of = |share: Share| percent(share.same, share.of);
    let kind = |kind: &Kind| of(kind.share());
    vec![
        count(wakeups.share().of),
        of(wakeups.share()),
        of(wakeups.without_races()),
        of(wakeups.moved),
        of(wakeups.always_prev),
        wakeups.skill().map_or_else(|| "-".to_owned(), |skill| format!("{skill:.3}")),
        kind(&one.kinds.forks),
        kind(&one.kinds.execs),
    ]
}
