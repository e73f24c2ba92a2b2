// SPDX-License-Identifier: GPL-2.0-or-later
//! The gate's reports with names that try to break out of them: each stays what it is for whoever reads it, and says the
//! names so that a person can tell them apart.

use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use sisdiff::gate::{Change, Check, Gate, Oracle, Status, Trouble, Value, Violation};
use sisdiff::replay::Role;
use sisdiff::report::shell::printable;
use sisdiff::report::{gate, gate_ci, gate_json, gate_junit, gate_sarif};
use sisdiff::units::is_unseen;

const PIECES: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    "%",
    "%0A",
    "%25",
    "::",
    "::error::",
    "\n::stop-commands::x\n",
    "##[error]",
    "|",
    "||",
    "`",
    "```",
    "````\n",
    "<",
    "<script>alert(1)</script>",
    "</details>",
    "&",
    "&amp;",
    "]]>",
    "<![CDATA[",
    "\"",
    "'",
    "\\",
    "\\|",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{fffe}",
    "\u{fffd}",
    "\u{0}",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "*",
    "_",
    "~~",
    "[x](y)",
    "![x](y)",
    "@someone",
    "#1",
    "$x$",
    "https://example.org/x",
    "www.example.org",
    "a@example.org",
    "- ",
    "1. ",
    "> ",
    "# ",
    "---",
    "\t",
    "    ",
    " ",
    "é",
    "日本",
    "🙂",
    "/",
    "../",
    ",",
    ":",
    "=",
    "trace.dat",
];

struct Rng(oorandom::Rand64);

impl Rng {
    fn name(&mut self) -> String {
        let pieces = if self.0.rand_range(0..40) == 0 { 2000 } else { self.0.rand_range(1..7) };
        let mut name: String =
            (0..pieces).map(|_| PIECES[self.0.rand_range(0..PIECES.len() as u64) as usize]).collect();
        // Bytes that are no UTF-8, as every name of a file is shown.
        if self.0.rand_range(0..10) == 0 {
            name += &String::from_utf8_lossy(b"\xff\xfe.dat");
        }
        name
    }

    /// A gate in which everything that has a name has a hostile one.
    fn gate(&mut self) -> Gate {
        let checks = (0..self.0.rand_range(1..5)).map(|_| self.check()).collect();
        let mut troubles = vec![Trouble::EmptyGlob { config: self.name(), pattern: self.name() }];
        troubles.push(Trouble::Orphan { snapshot: self.name(), why: self.name(), config: self.name() });
        Gate { config: self.name(), checks, troubles, ..Gate::default() }
    }

    fn check(&mut self) -> Check {
        let status = match self.0.rand_range(0..4) {
            0 => Status::Same,
            1 => Status::New,
            2 => Status::Changed,
            _ => Status::Trouble(Trouble::Other(self.name())),
        };
        let text = |name: &str| Some(Value::Text(name.to_owned()));
        let (old, new) = (self.name(), self.name());
        let change = Change { key: "head.kernel".to_owned(), old: text(&old), new: text(&new), excuse: None };
        let violation = Violation {
            oracle: Oracle::Affinity,
            spec: self.name(),
            role: Role::Patched,
            count: 1,
            example: Some(7),
            is_known: false,
        };
        Check {
            trace: self.name(),
            path: self.name(),
            pair: self.name(),
            specs: [self.name(), self.name()],
            snapshot: self.name(),
            changes: if status == Status::Changed { vec![change] } else { Vec::new() },
            texts: (status != Status::Same).then(|| [format!("a\n{old}\nb\n"), format!("a\n{new}\nb\n")]),
            status,
            old_specs: Some([self.name(), self.name()]),
            violations: vec![violation],
            is_pending: true,
        }
    }
}

fn gates(test: impl Fn(&Gate)) {
    let mut rng = Rng(oorandom::Rand64::new(0x6761_7465));
    for _ in 0..200 {
        test(&rng.gate());
    }
}

/// Says whether values fit a schema of the project.
fn judge(schema: &str) -> impl Fn(&serde_json::Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(schema);
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    let id = compiler.compile(&path.display().to_string(), &mut schemas).expect("a schema");
    move |value| schemas.validate(value, id).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn junit_is_xml_and_names_are_whole() {
    gates(|gate| {
        let xml = gate_junit::junit(gate);
        let document = roxmltree::Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml:?}"));
        let all = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
        let cases: Vec<_> = all("testcase").collect();
        assert_eq!(cases.len(), gate.checks.len() + gate.troubles.len());
        for (case, check) in cases.iter().zip(&gate.checks) {
            assert_eq!(case.attribute("classname"), Some(printable(&check.trace).as_str()));
            assert_eq!(case.attribute("name"), Some(printable(&check.pair).as_str()));
            let is_bad = |name| case.children().any(|child| child.has_tag_name(name));
            let expected =
                (matches!(check.status, Status::New | Status::Changed), matches!(check.status, Status::Trouble(_)));
            assert_eq!((is_bad("failure"), is_bad("error")), expected);
        }
        for node in document.descendants() {
            let said = node.attributes().map(|attribute| attribute.value().to_owned());
            let said = said.chain(node.text().map(str::to_owned));
            assert!(said.into_iter().all(|text| !text.chars().any(|c| is_unseen(c) && c != '\n')), "{xml:?}");
        }
    });
}

/// Level, properties, message.
type Annotation<'a> = (&'a str, Vec<(&'a str, String)>, String);

/// A workflow command as the runner reads it: level, properties, message.
fn command(line: &str) -> Option<Annotation<'_>> {
    let rest = line.trim_start().strip_prefix("::")?;
    let (head, message) = rest.split_once("::")?;
    let (level, properties) = head.split_once(' ').unwrap_or((head, ""));
    let data = |text: &str| text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    let value = |text: &str| data(&text.replace("%3A", ":").replace("%2C", ","));
    let pair = |pair: &'_ str| {
        let (key, text) = pair.split_once('=').expect("a property");
        (key.len(), value(text))
    };
    let properties = properties.split(',').map(|one| (&one[..pair(one).0], pair(one).1)).collect();
    Some((level, properties, data(message)))
}

#[test]
fn each_annotation_is_one_command_with_its_own_file_and_message() {
    gates(|gate| {
        let text = gate_ci::github(gate);
        let lines: Vec<&str> = text.split('\n').collect();
        let (last, annotations) = lines[..lines.len() - 1].split_last().expect("lines");
        assert!(last.starts_with("sisdiff ") && command(last).is_none() && !last.contains("##["), "{last:?}");
        let named = |check: &Check| usize::from(check.status != Status::Same) + check.violations.len();
        let expected = gate.checks.iter().map(named).sum::<usize>() + gate.troubles.len();
        assert_eq!(annotations.len(), expected, "{text:?}");
        let mut found = Vec::new();
        for line in annotations {
            let (level, properties, message) = command(line).unwrap_or_else(|| panic!("{line:?}"));
            assert!(["error", "warning"].contains(&level), "{line:?}");
            let keys: Vec<&str> = properties.iter().map(|(key, _)| *key).collect();
            assert_eq!(keys, ["file", "line", "title"], "{line:?}");
            assert!(
                properties[1].1.parse::<usize>().is_ok() && properties[2].1.starts_with("sisdiff gate: "),
                "{line:?}"
            );
            assert!(!message.chars().any(|c| is_unseen(c) && c != '\n'), "{message:?}");
            found.push((properties[0].1.clone(), message));
        }
        for check in gate.checks.iter().filter(|check| check.status == Status::Changed) {
            // The path itself, so that the service finds the file.
            let own = |(file, message): &&(String, String)| {
                *file == check.snapshot && message.starts_with(&gate::name(check))
            };
            assert!(found.iter().any(|one| own(&one)), "{found:?}");
        }
    });
}

/// What a browser would show of a summary: cells of the table by row, and everything else in order.
struct Shown {
    rows: Vec<Vec<String>>,
    diffs: Vec<String>,
    html: Vec<String>,
}

fn shown(markdown: &str) -> Shown {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_MATH;
    let mut shown = Shown { rows: Vec::new(), diffs: Vec::new(), html: Vec::new() };
    let (mut is_diff, mut is_cell) = (false, false);
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::TableHead | Tag::TableRow) => shown.rows.push(Vec::new()),
            Event::Start(Tag::TableCell) => {
                is_cell = true;
                shown.rows.last_mut().expect("a row").push(String::new());
            }
            Event::End(TagEnd::TableCell) => is_cell = false,
            Event::Start(Tag::CodeBlock(kind)) => {
                assert_eq!(kind, CodeBlockKind::Fenced("diff".into()), "{markdown:?}");
                shown.diffs.push(String::new());
                is_diff = true;
            }
            Event::End(TagEnd::CodeBlock) => is_diff = false,
            Event::Text(text) if is_diff => *shown.diffs.last_mut().expect("a block") += &text,
            Event::Text(text) if is_cell => {
                *shown.rows.last_mut().and_then(|row| row.last_mut()).expect("a cell") += &text;
            }
            Event::Html(text) | Event::InlineHtml(text) => shown.html.push(text.trim().to_owned()),
            Event::Start(
                tag @ (Tag::Link { .. }
                | Tag::Image { .. }
                | Tag::Emphasis
                | Tag::Strong
                | Tag::Strikethrough
                | Tag::BlockQuote(_)),
            ) => panic!("{tag:?} in {markdown:?}"),
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) | Event::Rule => {
                panic!("{event:?} in {markdown:?}")
            }
            _ => {}
        }
    }
    shown
}

#[test]
fn a_summary_has_its_rows_and_blocks_and_nothing_of_the_names_own() {
    gates(|gate| {
        let markdown = gate_ci::markdown(gate);
        assert!(!markdown.chars().any(|c| is_unseen(c) && c != '\n'), "{markdown:?}");
        let shown = shown(&markdown);
        assert_eq!(shown.rows.len(), 1 + gate.checks.len(), "{markdown:?}");
        for (row, check) in shown.rows[1..].iter().zip(&gate.checks) {
            assert_eq!(row.len(), 4, "{row:?}");
            // Spaces at the ends of a cell are not shown.
            assert_eq!([row[0].trim(), row[1].trim()], [printable(&check.trace).trim(), printable(&check.pair).trim()]);
        }
        let changed: Vec<&Check> = gate.checks.iter().filter(|check| check.status == Status::Changed).collect();
        assert_eq!(shown.diffs.len(), changed.len(), "{markdown:?}");
        for (block, check) in shown.diffs.iter().zip(&changed) {
            let [old, new] = check.texts.as_ref().expect("texts");
            assert_eq!(*block, anstream::adapter::strip_str(&gate::diff(old, new)).to_string());
        }
        let known = |text: &String| {
            text == "<!-- -->"
                || text == "</details>"
                || text.starts_with("<details><summary>") && text.matches('<').count() == 3
        };
        assert!(shown.html.iter().all(known), "{:?}\n{markdown:?}", shown.html);
    });
}

#[test]
fn a_summary_is_shorter_than_the_service_takes() {
    let mut rng = Rng(oorandom::Rand64::new(7));
    let mut gate = rng.gate();
    let one = loop {
        let mut check = rng.check();
        if check.status == Status::Changed {
            check.texts = Some(["a\n".repeat(4000), "b\n".repeat(20_000)]);
            break check;
        }
    };
    let short = |name: &str| name.to_owned();
    let specs = [short("v5.11"), short("v6.1")];
    let (trace, path, pair, snapshot) = (short("t"), short("t"), short("p"), short("s"));
    let violations = Vec::new();
    gate.checks = vec![Check { trace, path, pair, snapshot, specs, old_specs: None, violations, ..one }; 3000];
    gate.checks.iter_mut().for_each(|check| check.changes.clear());
    let markdown = gate_ci::markdown(&gate);
    assert!(markdown.len() < 1_000_000, "{}", markdown.len());
    assert!(markdown.contains("\nand 2700 more\n"), "the rows that are left out are counted");
    assert!(markdown.ends_with(" more\n") && shown(&markdown).diffs.len() > 2);
}

#[test]
fn json_and_sarif_are_what_their_schemas_say_with_the_names_as_they_are() {
    let fits = judge("docs/gate.schema.json");
    gates(|gate| {
        let report: serde_json::Value = serde_json::from_str(&gate_json::json(gate)).expect("JSON");
        fits(&report);
        assert_eq!(report["config"], gate.config);
        for (said, check) in report["checks"].as_array().expect("checks").iter().zip(&gate.checks) {
            assert_eq!((&said["trace"], &said["pair"]), (&check.trace.clone().into(), &check.pair.clone().into()));
        }
    });
    let fits = judge("tests/gate/sarif-schema-2.1.0.json");
    let mut rng = Rng(oorandom::Rand64::new(3));
    for _ in 0..40 {
        let gate = rng.gate();
        let log: serde_json::Value =
            serde_json::from_str(&gate_sarif::sarif(&gate_sarif::of_gate(&gate))).expect("JSON");
        fits(&log);
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.len(), gate.checks.len());
        for (result, check) in results.iter().zip(&gate.checks) {
            let location = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            let uri = location.as_str().expect("a reference");
            assert!(uri.bytes().all(|c| c.is_ascii_alphanumeric() || b"/-._~%:".contains(&c)), "{uri}");
            assert_eq!(decoded(uri.strip_prefix("file://").unwrap_or(uri)), check.path);
            let message = result["message"]["text"].as_str().expect("a message");
            assert!(message.starts_with(&gate::name(check)) && !message.chars().any(is_unseen), "{message:?}");
        }
    }
}

/// The path that a reference is of.
fn decoded(uri: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), uri.as_bytes());
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(&tail[..2]).expect("digits");
            out.push(u8::from_str_radix(hex, 16).expect("digits"));
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_text_for_a_terminal_obeys_no_name() {
    gates(|gate| {
        let text = gate::text(gate, "");
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(!plain.chars().any(|c| is_unseen(c) && c != '\n'), "{plain:?}");
    });
}
