// SPDX-License-Identifier: GPL-2.0-or-later
//! Walks as text: one below the other, or two side by side, aligned so that the first different step stands out.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::fair::{ProbeKind, Walk, WalkStep};
use crate::report::layout::{BAD, paint};

/// Idle checks in a row from which on they are drawn together.
const RUN: usize = 5;

/// A line of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The step: what walks are compared by.
    pub text: String,
    /// Where in the source of a kernel tree that is, where it is another place than that of the line before.
    pub place: Option<String>,
}

/// A walk as lines, functions flush and what they do indented.
pub fn lines(walk: &Walk) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut place = None;
    let mut steps = walk.steps.as_slice();
    while let Some((step, rest)) = steps.split_first() {
        let is_part = |step: &&WalkStep| matches!(step, WalkStep::Probe { .. } | WalkStep::At { .. });
        let run = steps.iter().take_while(is_part).count();
        let probes = steps[..run].iter().filter(|step| matches!(step, WalkStep::Probe { .. })).count();
        steps = rest;
        let text = match step {
            WalkStep::At { place: at } => {
                place = Some(at.clone());
                continue;
            }
            WalkStep::Probe { .. } if probes >= RUN => {
                // The place of what follows the last check is not the run's.
                let last = rest[..run - 1].iter().rposition(|step| matches!(step, WalkStep::Probe { .. }));
                let (run, after) = rest.split_at(last.map_or(0, |last| last + 1));
                steps = after;
                probe_run(std::iter::once(step).chain(run))
            }
            step => line(step),
        };
        lines.push(Line { text, place: place.take() });
    }
    lines
}

fn line(step: &WalkStep) -> String {
    let yes_no = |holds: &bool| if *holds { "yes" } else { "no" };
    match step {
        WalkStep::Enter { function } => format!("{function}()"),
        WalkStep::At { place } => format!("  {place}"),
        WalkStep::Probe { kind, cpu, idle } => format!("  {}({cpu}): {}", probe_name(*kind), yes_no(idle)),
        WalkStep::Check { what, holds } => format!("  {what}: {}", yes_no(holds)),
        WalkStep::Value { name, value } => format!("  {name} = {value}"),
        WalkStep::Mask { what, cpus } if cpus.is_empty() => format!("  {what}: no CPU"),
        WalkStep::Mask { what, cpus } => format!("  {what}: {cpus}"),
        WalkStep::Write { what } => format!("  set {what}"),
        WalkStep::Return { exit, cpu: Some(cpu) } => format!("  return {cpu}  ({exit:?})"),
        WalkStep::Return { exit, cpu: None } => format!("  nothing  ({exit:?})"),
    }
}

fn probe_name(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Available => "available_idle_cpu",
        ProbeKind::Idle => "idle_cpu",
        ProbeKind::SchedIdle => "sched_idle_cpu",
        ProbeKind::Without => "idle_cpu_without",
    }
}

/// Many idle checks at once: each CPU with the answer of its last check.
fn probe_run<'a>(steps: impl Iterator<Item = &'a WalkStep>) -> String {
    let mut cpus: Vec<(u32, bool)> = Vec::new();
    for step in steps {
        if let WalkStep::Probe { cpu, idle, .. } = step {
            match cpus.last_mut() {
                Some((last, answer)) if last == cpu => *answer |= idle,
                _ => cpus.push((*cpu, *idle)),
            }
        }
    }
    let list: Vec<String> = cpus.iter().map(|(cpu, idle)| format!("{cpu}{}", if *idle { '+' } else { '-' })).collect();
    format!("  idle (+) or not (-): {}", list.join(" "))
}

impl Line {
    /// The step in parts of at most `width` characters, its place below.
    fn wrapped(&self, width: usize) -> Vec<String> {
        let mut parts = wrap(&self.text, width);
        parts.extend(self.place.iter().flat_map(|place| wrap(&format!("      {place}"), width)));
        parts
    }
}

/// One walk, its lines wrapped at `width`; the line with number `mark` stands out.
pub fn stacked(walk: &[Line], mark: Option<usize>, width: usize) -> String {
    let mut out = String::new();
    for (at, line) in walk.iter().enumerate() {
        let marked = mark == Some(at);
        for (part, text) in line.wrapped(width.saturating_sub(2)).into_iter().enumerate() {
            let sign = if marked && part == 0 { "> " } else { "  " };
            let text = format!("{sign}{text}");
            out += &if marked { paint(BAD, &text) } else { text };
            out.push('\n');
        }
    }
    out
}

/// Number of the first line in which two walks differ, in each; `None` where they are the same.
pub fn first_difference(left: &[Line], right: &[Line]) -> Option<usize> {
    let same = left.iter().zip(right).take_while(|(left, right)| left.text == right.text).count();
    (same < left.len() || same < right.len()).then_some(same)
}

/// Two walks in columns of the same width, `width` together. Lines that differ have a `|` between them, the first of
/// them a `>`.
pub fn side_by_side(left: &[Line], right: &[Line], width: usize) -> String {
    let column = width.saturating_sub(3) / 2;
    let mut out = String::new();
    let mut first = true;
    for Pair { left, right, same } in aligned(left, right) {
        let wrapped = |line: Option<&Line>| line.map(|line| line.wrapped(column)).unwrap_or_default();
        let (left, right) = (wrapped(left), wrapped(right));
        for at in 0..left.len().max(right.len()) {
            let sign = match (same, first && at == 0) {
                (true, _) => ' ',
                (false, true) => '>',
                (false, false) => '|',
            };
            let cell = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
            let text = format!("{:column$} {sign} {}", cell(&left), cell(&right));
            let text = text.trim_end();
            out += &if sign == '>' { paint(BAD, text) } else { text.to_owned() };
            out.push('\n');
        }
        first &= same;
    }
    out
}

/// Lines of two walks that belong together.
pub(super) struct Pair<'a> {
    /// Of the first walk.
    pub left: Option<&'a Line>,
    /// Of the second one.
    pub right: Option<&'a Line>,
    /// Whether they say the same.
    pub same: bool,
}

/// Two walks beside each other, lines that are in both in the same row.
pub(super) fn aligned<'a>(left: &'a [Line], right: &'a [Line]) -> Vec<Pair<'a>> {
    let texts = |lines: &'_ [Line]| lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &texts(left), &texts(right)) {
        let (old, new) = (&left[op.old_range()], &right[op.new_range()]);
        let same = matches!(op, DiffOp::Equal { .. });
        for at in 0..old.len().max(new.len()) {
            pairs.push(Pair { left: old.get(at), right: new.get(at), same });
        }
    }
    pairs
}

/// `line` in parts of at most `width` characters, broken at spaces where there are any, indented as the line is.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut parts = Vec::new();
    let mut part = " ".repeat(indent);
    let mut length = indent;
    for word in line.trim_start().split(' ') {
        let word_length = word.chars().count();
        if length > indent && length + 1 + word_length > width {
            parts.push(std::mem::replace(&mut part, " ".repeat(indent + 2)));
            length = indent + 2;
            part += word;
        } else {
            if length > indent {
                part.push(' ');
                length += 1;
            }
            part += word;
        }
        length += word_length;
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::Exit;
    use crate::units::Cpu;

    fn probe(cpu: u32, idle: bool) -> WalkStep {
        WalkStep::Probe { kind: ProbeKind::Available, cpu, idle }
    }

    fn walk(steps: Vec<WalkStep>) -> Vec<Line> {
        lines(&Walk { steps, ..Walk::default() })
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn steps_read_like_the_kernel() {
        let lines = texts(walk(vec![
            WalkStep::Enter { function: "select_idle_sibling" },
            probe(3, false),
            WalkStep::Check { what: "cpus_share_cache(3, 7)".to_owned(), holds: true },
            WalkStep::Value { name: "nr", value: 4 },
            WalkStep::Return { exit: Exit::IdleCore, cpu: None },
            WalkStep::Return { exit: Exit::Prev, cpu: Some(Cpu(3)) },
        ]));
        assert_eq!(
            lines,
            [
                "select_idle_sibling()",
                "  available_idle_cpu(3): no",
                "  cpus_share_cache(3, 7): yes",
                "  nr = 4",
                "  nothing  (IdleCore)",
                "  return 3  (Prev)"
            ]
        );
    }

    #[test]
    fn long_scans_are_drawn_together() {
        let mut steps: Vec<WalkStep> = (0..6).map(|cpu| probe(cpu, cpu == 5)).collect();
        steps.insert(1, WalkStep::Probe { kind: ProbeKind::SchedIdle, cpu: 0, idle: false });
        assert_eq!(texts(walk(steps)), ["  idle (+) or not (-): 0- 1- 2- 3- 4- 5+"]);
    }

    #[test]
    fn places_are_shown_and_not_compared() {
        let at = |line: u32| WalkStep::At { place: format!("fair.c:{line}  if (idle)") };
        let one = walk(vec![at(1), probe(1, false), at(2), probe(2, true)]);
        let other = walk(vec![at(3), probe(1, false), probe(2, true)]);
        assert_eq!(one[1].place.as_deref(), Some("fair.c:2  if (idle)"));
        assert_eq!(first_difference(&one, &other), None);
        assert!(stacked(&one, None, 60).contains("available_idle_cpu(2): yes\n        fair.c:2  if (idle)"));
        let mut steps: Vec<WalkStep> = (0..6).flat_map(|cpu| [at(cpu), probe(cpu, false)]).collect();
        steps.extend([at(9), WalkStep::Value { name: "nr", value: 1 }]);
        let long = walk(steps);
        assert_eq!(long[0].text, "  idle (+) or not (-): 0- 1- 2- 3- 4- 5-");
        assert_eq!(long[1].place.as_deref(), Some("fair.c:9  if (idle)"));
    }

    #[test]
    fn the_first_difference_stands_out() {
        let left =
            walk(vec![probe(1, false), probe(2, true), WalkStep::Return { exit: Exit::Prev, cpu: Some(Cpu(2)) }]);
        let right =
            walk(vec![probe(1, false), probe(4, true), WalkStep::Return { exit: Exit::Prev, cpu: Some(Cpu(2)) }]);
        assert_eq!(first_difference(&left, &right), Some(1));
        assert_eq!(first_difference(&left, &left), None);
        assert_eq!(first_difference(&left, &left[..2]), Some(2));
        let text = anstream::adapter::strip_str(&side_by_side(&left, &right, 80)).to_string();
        let signs: Vec<char> = text.lines().map(|line| line.chars().nth(39).expect("a sign")).collect();
        assert_eq!(signs, [' ', '>', ' '], "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let text = anstream::adapter::strip_str(&stacked(&right, Some(1), 80)).to_string();
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("> ")), "{text}");
    }

    #[test]
    fn narrow_columns_wrap_words() {
        let parts = wrap("  a condition that is rather long: yes", 20);
        assert_eq!(parts, ["  a condition that", "    is rather long:", "    yes"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
    }
}
