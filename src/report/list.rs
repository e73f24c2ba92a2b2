// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff list`: the implementations there are.

use crate::fair::changes::{Change, Step};
use crate::machine::Inputs;
use crate::replay::totals::input_names;
use crate::report::layout::{Align, FAINT, HEADING, columns, paint};
use crate::spec::{Patch, PatchInfo, ReleaseInfo};

/// All releases with what they are, where they come from, what they read, and their patches; and the kernel trees that
/// were built: spec and version of each.
pub fn releases(releases: &[ReleaseInfo], trees: &[(String, String)]) -> String {
    let mut out = format!("{}\n", paint(HEADING, "implementations"));
    let common = releases.iter().fold(Inputs::all(), |common, info| common & info.reads);
    for info in releases {
        let row = |key: &str, value: String| vec![key.to_owned(), value];
        let mut rows = vec![row(info.name, info.meaning.to_owned())];
        rows.push(row("  source", info.source.to_owned()));
        rows.push(row("  reads", reads(info.reads - common)));
        rows.extend(info.patches.iter().map(|patch| {
            let more = info.reads_with(patch.bits) - info.reads;
            let more = if more.is_empty() { String::new() } else { format!("; reads {}", names(more)) };
            row(&format!("  +{}", patch.name), format!("{}{more}", patch.meaning))
        }));
        out += &columns(2, &[Align::Left, Align::Wrap], &rows);
    }
    let rows = [
        ("the rest", names(common)),
        ("tree:PATH", "tree:PATH[@REV][+PATCH…], a kernel tree of yours; see sisdiff tree --help".to_owned()),
        ("switches", "SPEC:FEATURE, SPEC:NO_FEATURE as in /sys/kernel/debug/sched/features".to_owned()),
        ("not here", not_modelled(releases)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(key, value)| vec![key.to_owned(), value]).collect();
    out += &format!("\n{}", columns(2, &[Align::Left, Align::Wrap], &rows));
    if !trees.is_empty() {
        let rows: Vec<Vec<String>> = trees.iter().map(|(spec, what)| vec![what.clone(), spec.clone()]).collect();
        out +=
            &format!("\n{}\n{}", paint(HEADING, "kernel trees built"), columns(2, &[Align::Left, Align::Left], &rows));
    }
    let more = "Patches combine: v5.11+scan-cost+recent-used. More: sisdiff list v5.11";
    out += &format!("\n{}\n", paint(FAINT, more));
    out
}

fn names(inputs: Inputs) -> String {
    input_names(inputs).collect::<Vec<_>>().join(", ")
}

fn reads(beside: Inputs) -> String {
    if beside.is_empty() { "what all read".to_owned() } else { format!("{} and the rest", names(beside)) }
}

/// What no model has, and what single ones leave out.
fn not_modelled(releases: &[ReleaseInfo]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for info in releases {
        for what in info.not_modelled() {
            let everyone = releases.iter().all(|other| other.not_modelled().contains(&what));
            let part = if everyone { what.to_owned() } else { format!("{}: {what}", info.name) };
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    parts.join("; ")
}

/// One release with everything that is known of it.
pub fn release(info: &ReleaseInfo) -> String {
    let mut rows = Vec::new();
    let mut row = |key: &str, value: String| rows.push(vec![key.to_owned(), value]);
    row("meaning", info.meaning.to_owned());
    row("source", info.source.to_owned());
    let features = info
        .features
        .iter_names()
        .map(|(name, feature)| if info.defaults.contains(feature) { name.to_owned() } else { format!("NO_{name}") });
    row("features", features.collect::<Vec<_>>().join(" "));
    row("reads", names(info.reads));
    let not = Inputs::all() - info.reads;
    if !not.is_empty() {
        row("not read", names(not));
    }
    row("not modelled", info.not_modelled().join("; "));
    let mut out = format!("{}\n{}", paint(HEADING, info.name), columns(2, &[Align::Left, Align::Wrap], &rows));
    let patch =
        |one: &PatchInfo| vec![format!("+{}", one.name), format!("{}{}", one.meaning, shorthand(info, one.bits))];
    if !info.patches.is_empty() {
        let rows: Vec<Vec<String>> = info.patches.iter().map(patch).collect();
        out += &format!("\n{}\n{}", paint(HEADING, "patches"), columns(2, &[Align::Left, Align::Wrap], &rows));
    }
    out
}

/// What changed from release to release, oldest step first.
pub fn changes(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "the same release: no changes\n".to_owned();
    }
    let mut out = String::new();
    for step in steps {
        let rows: Vec<Vec<String>> = step.changes.iter().map(change).collect();
        let title = format!("{} to {}", step.from.name, step.to.name);
        out += &format!("{}\n{}\n", paint(HEADING, &title), columns(2, &[Align::Left, Align::Wrap], &rows));
    }
    out.pop();
    out
}

fn change(change: &Change) -> Vec<String> {
    let commit = change.commit.map_or_else(String::new, |commit| format!(" {commit}"));
    vec![change.name.to_owned(), format!("{} ({}{commit})", change.meaning, change.since)]
}

/// ` (= +a+b)` for a name that stands for several patches.
fn shorthand(info: &ReleaseInfo, bits: Patch) -> String {
    if bits.iter().count() < 2 {
        return String::new();
    }
    let single = info.patches.iter().filter(|one| one.bits.iter().count() == 1 && bits.contains(one.bits));
    let names: Vec<String> = single.map(|one| format!("+{}", one.name)).collect();
    format!(" (= {})", names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::RELEASES;

    #[test]
    fn every_release_and_patch_is_listed_within_the_width() {
        let all = anstream::adapter::strip_str(&releases(RELEASES, &[])).to_string();
        for info in RELEASES {
            assert!(all.contains(info.name), "{}", info.name);
            let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(info.source) && flat.contains(info.meaning), "{all}");
            assert!(flat.contains("find_energy_efficient_cpu()") && flat.contains("v7.3: cache-aware"), "{all}");
            let one = anstream::adapter::strip_str(&release(info)).to_string();
            assert!(one.contains("source") && one.contains("features"), "{one}");
            for text in [&all, &one] {
                assert!(info.patches.iter().all(|patch| text.contains(&format!("+{}", patch.name))), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            }
        }
    }

    #[test]
    fn changes_are_told_step_by_step() {
        let (first, last) = (&RELEASES[0], &RELEASES[RELEASES.len() - 1]);
        let text = anstream::adapter::strip_str(&changes(&crate::fair::changes::between(first, last))).to_string();
        assert!(text.contains("v5.11 to v6.1") && text.contains("70fb5ccf2ebb"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(changes(&crate::fair::changes::between(last, last)).contains("no changes"));
    }

    #[test]
    fn a_shorthand_names_its_patches() {
        let info = RELEASES.iter().find(|info| info.name == "v5.11").expect("v5.11");
        let text =
            anstream::adapter::strip_str(&release(info)).to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("(= +no-sis-avg-cpu +scan-cost"), "{text}");
        assert!(text.contains("NO_SIS_AVG_CPU") && text.contains(" SIS_PROP"), "{text}");
    }
}
