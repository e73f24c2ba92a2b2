// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of `fidelity` as Markdown tables: `docs/fidelity.md` holds what this wrote.

use crate::fidelity::figures::{FileFidelity, Implementation};
use crate::replay::totals::Share;
use crate::report::fidelity::{figures, pools};
use crate::report::layout::{count, percent};

/// The tables of one command: a row for each recording, then each class pooled.
pub fn tables(files: &[FileFidelity]) -> String {
    let mut out = agreement(files);
    out += "\n";
    out += &grounds(files);
    out += "\n";
    out += &residue(files);
    if files.iter().any(|file| file.derived.is_some()) {
        out += "\n";
        out += &derived(files);
    }
    if files.iter().any(|file| file.scan.is_some()) {
        out += "\n";
        out += &scans(files);
    }
    out
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(head.iter().map(|cell| (*cell).to_owned()).collect());
    out += &line(head.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "--:" }.to_owned()).collect());
    rows.into_iter().for_each(|row| out += &line(row));
    out
}

/// The folder of a recording, which tells more than `trace.dat`.
fn name(file: &FileFidelity) -> String {
    let path = std::path::Path::new(&file.file);
    let folder = path.parent().and_then(std::path::Path::file_name).map(|name| name.to_string_lossy().into_owned());
    folder.filter(|_| path.file_name().is_some_and(|name| name == "trace.dat")).unwrap_or_else(|| file.file.clone())
}

fn models(files: &[FileFidelity]) -> impl Iterator<Item = (&FileFidelity, &Implementation)> {
    files.iter().filter_map(|file| Some((file, file.model()?)))
}

fn agreement(files: &[FileFidelity]) -> String {
    let head = [
        "recording",
        "probes",
        "model",
        "wakeups",
        "agree",
        "no proven races",
        "moved",
        "always prev",
        "skill",
        "forks",
        "execs",
    ];
    let probes = |file: &FileFidelity| if file.ignore_probes { "ignored" } else { file.level.name() }.to_owned();
    let rows = models(files)
        .map(|(file, model)| [vec![name(file), probes(file), format!("`{}`", model.spec)], figures(model)].concat());
    let sums = pools(files);
    let sums = sums
        .iter()
        .map(|(level, n, pool)| [vec![format!("**all {n}**"), level.clone(), String::new()], figures(pool)].concat());
    table(&head, rows.chain(sums))
}

fn grounds(files: &[FileFidelity]) -> String {
    let head = [
        "recording",
        "known",
        "insensitive",
        "assumed",
        "unknown",
        "agree: known",
        "insensitive",
        "assumed",
        "unknown",
    ];
    let row = |(file, model): (&FileFidelity, &Implementation)| {
        let shares = model.kinds.wakeups.agreement.named().map(|(_, share)| share);
        let all: u64 = shares.iter().map(|share| share.of).sum();
        let parts = shares.iter().map(|share| percent(share.of, all));
        let agree = shares.iter().map(|share| percent(share.same, share.of));
        [name(file)].into_iter().chain(parts).chain(agree).collect()
    };
    table(&head, models(files).map(row))
}

/// Every disagreement's cause.
fn residue(files: &[FileFidelity]) -> String {
    let mut causes: Vec<&str> =
        models(files).flat_map(|(_, model)| &model.residue).map(|cause| cause.cause.as_str()).collect();
    causes.sort_unstable();
    causes.dedup();
    let head: Vec<&str> = ["recording", "disagree"].into_iter().chain(causes.iter().copied()).collect();
    let row = |(file, model): (&FileFidelity, &Implementation)| {
        let of = |name: &&str| {
            let cause = model.residue.iter().find(|cause| cause.cause == *name);
            cause.map_or_else(|| ".".to_owned(), |cause| count(cause.decisions.len() as u64))
        };
        let all: usize = model.residue.iter().map(|cause| cause.decisions.len()).sum();
        [name(file), count(all as u64)].into_iter().chain(causes.iter().map(of)).collect()
    };
    table(&head, models(files).map(row))
}

fn derived(files: &[FileFidelity]) -> String {
    let head = [
        "recording",
        "idle",
        "nr_running",
        "nr_idle_scan",
        "within 1",
        "task util_avg, median error after 300 ms",
        "samples",
        "since fork",
        "cfs_rq util_avg after 300 ms",
    ];
    let row = |file: &FileFidelity| {
        let derived = file.derived.as_ref()?;
        let of = |share: Share| percent(share.same, share.of);
        let error = |average: &str, after_ms: Option<u64>| {
            let row = derived.pelt.iter().find(|row| row.average == average && row.after_ms == after_ms);
            row.map_or_else(|| ["-".to_owned(), "-".to_owned()], |row| [count(row.median), count(row.samples)])
        };
        let [median, samples] = error("task util_avg", Some(300));
        let [forked, _] = error("task util_avg", None);
        let [rq, _] = error("cfs_rq util_avg", Some(300));
        let shares = [derived.idle, derived.nr_running, derived.nr_idle_scan, derived.nr_idle_scan_near].map(of);
        Some([name(file)].into_iter().chain(shares).chain([median, samples, forked, rq]).collect())
    };
    table(&head, files.iter().filter_map(row))
}

fn scans(files: &[FileFidelity]) -> String {
    let head = ["recording", "calls", "same order", "reproduced", "contradicted", "proven"];
    let row = |file: &FileFidelity| {
        let scan = file.scan.as_ref()?;
        let shares = [scan.same, scan.reproduced(), scan.contradicted].map(|n| percent(n, scan.calls));
        let proven = percent(scan.contradicted_races, scan.contradicted);
        Some([name(file), count(scan.calls)].into_iter().chain(shares).chain([proven]).collect())
    };
    table(&head, files.iter().filter_map(row))
}
