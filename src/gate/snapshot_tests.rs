// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;
use arbitrary::{Arbitrary, Unstructured};

/// Texts from arbitrary bytes, as heads and lines may hold them: spaces, quotes, control characters, anything.
fn text(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    const ODD: [&str; 12] = ["", " ", "\"", "\\", "\n", "---", "\u{2028}", "é", "#12", "a: b", "\r", "\u{85}"];
    let mut out = String::new();
    for _ in 0..u.int_in_range(0..=4)? {
        out += ODD[u.choose_index(ODD.len())?];
        out.extend(<&str>::arbitrary(u)?.chars().take(8));
    }
    Ok(out)
}

/// A name of a row or column.
fn name(u: &mut Unstructured<'_>, at: usize) -> arbitrary::Result<String> {
    let long = "x".repeat(u.int_in_range(0..=40)?);
    Ok(format!("{long}{}_{at}", ["a", "IdleCpu", "same.by", "0", "differences"][u.choose_index(5)?]))
}

fn snapshot(bytes: &[u8]) -> arbitrary::Result<Snapshot> {
    let mut u = Unstructured::new(bytes);
    let u = &mut u;
    let mut values: [String; 9] = Default::default();
    for value in &mut values {
        *value = text(u)?;
    }
    let mut snapshot = Snapshot { head: Head::from_values(values), ..Snapshot::default() };
    for at in 0..u.int_in_range(0..=3)? {
        snapshot.made_from.insert(name(u, at)?, text(u)?);
    }
    for at in 0..u.int_in_range(0..=4)? {
        snapshot.digests.insert(name(u, at)?, format!("sha256:{:032x}", u.arbitrary::<u128>()?));
    }
    for part in Part::ALL.into_iter().filter(|_| u.arbitrary().unwrap_or(false)).collect::<Vec<_>>() {
        let columns = u.int_in_range(0..=3)?;
        let mut table = Table { columns: Vec::new(), rows: Vec::new() };
        for at in 0..columns {
            table.columns.push(name(u, at)?);
        }
        for at in 0..u.int_in_range(0..=5)? {
            let mut counts = Vec::new();
            for _ in 0..columns {
                counts.push(if u.arbitrary()? { u.arbitrary()? } else { u.int_in_range(0..=2000)? });
            }
            table.rows.push((name(u, at)?, counts));
        }
        snapshot.tables.insert(part, table);
    }
    if u.arbitrary()? {
        let mut lines = Vec::new();
        for _ in 0..u.int_in_range(0..=4)? {
            lines.push(text(u)?);
        }
        snapshot.differences = Some(lines);
    }
    Ok(snapshot)
}

/// Seeded bytes.
fn bytes(seed: u64) -> Vec<u8> {
    let mut rng = oorandom::Rand64::new(u128::from(seed));
    (0..600).map(|_| rng.rand_u64() as u8).collect()
}

#[test]
fn what_is_printed_is_read_back() {
    let mut parts = 0;
    for seed in 0..3000 {
        let Ok(snapshot) = snapshot(&bytes(seed)) else { continue };
        let text = snapshot.print();
        assert_eq!(Snapshot::parse(&text).as_ref(), Ok(&snapshot), "seed {seed}:\n{text}");
        assert_eq!(Snapshot::parse(&text).expect("just read").print(), text, "one form only");
        parts += snapshot.tables.len();
    }
    assert!(parts > 3000, "{parts} tables");
}

#[test]
fn accepting_takes_away_what_it_was_made_from_and_nothing_else() {
    let mut named = 0;
    for seed in 0..500 {
        let Ok(snapshot) = snapshot(&bytes(seed)) else { continue };
        let accepted = Snapshot::parse(&snapshot.accepted()).expect("a snapshot");
        assert_eq!(accepted, Snapshot { made_from: MadeFrom::new(), ..snapshot.clone() });
        named += snapshot.made_from.len();
    }
    assert!(named > 300, "{named}");
}

#[test]
fn a_damaged_snapshot_is_an_error_or_another_snapshot_but_no_panic() {
    let (mut errors, mut read) = (0, 0);
    for seed in 0..2000 {
        let Ok(snapshot) = snapshot(&bytes(seed)) else { continue };
        let mut text = snapshot.print().into_bytes();
        let mut rng = oorandom::Rand64::new(u128::from(seed) + 7);
        for _ in 0..=rng.rand_range(0..3) {
            let at = rng.rand_range(0..text.len() as u64) as usize;
            match rng.rand_range(0..4) {
                0 => text.truncate(at),
                1 => text[at] = rng.rand_u64() as u8,
                2 => text.insert(at, b"\n \"-#"[rng.rand_range(0..5) as usize]),
                _ => drop(text.remove(at)),
            }
            if text.is_empty() {
                break;
            }
        }
        match Snapshot::parse(&String::from_utf8_lossy(&text)) {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(error.to_string().len() < 300, "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 200 && read > 20, "{errors} errors, {read} read");
}

#[test]
fn a_text_that_ends_anywhere_is_no_snapshot() {
    let whole = example().print();
    // Cut at a line's end between rows it reads as a shorter one: which is why files are replaced as a whole.
    for end in 0..whole.len() {
        if !whole[..end].ends_with('\n') {
            assert!(Snapshot::parse(&whole[..end]).is_err(), "{}", &whole[..end]);
        }
    }
}

fn example() -> Snapshot {
    let text = |text: &str| text.to_owned();
    let mut placements = Table::new(&["wakeups", "forks"]);
    placements.row("decisions", &[1_266_000, 102]);
    placements.row("no_verdict.another_cpu_and_a_long_name", &[2, 0]);
    Snapshot {
        made_from: MadeFrom::new(),
        head: Head {
            trace: text("traces/smt8/trace.dat"),
            sha256: text("f4fb"),
            kernel: text("6.1.0-57-amd64"),
            topology: text("8 CPUs, 4 cores of 2 threads"),
            pair: text("mel-v2"),
            baseline: text("v5.11"),
            patched: text("v5.11+mel-v2"),
            recorded: text("v6.1"),
            replay: text("HZ 250"),
        },
        digests: [(text("placements.patched"), format!("sha256:{}", "0123456789abcdef".repeat(2)))].into(),
        tables: [(Part::Placements, placements)].into(),
        differences: Some(vec![text("#12  CPU 1 -> 2  srvA"), text("#13  CPU 1 -> 2  \"odd\""), text("\" ")]),
    }
}

#[test]
fn the_text_is_for_people() {
    let expected = r#"---
format: sisdiff.gate/1
trace: traces/smt8/trace.dat
sha256: f4fb
kernel: 6.1.0-57-amd64
topology: 8 CPUs, 4 cores of 2 threads
pair: mel-v2
baseline: v5.11
patched: v5.11+mel-v2
recorded: v6.1
replay: HZ 250
---
digests
  placements.patched        sha256:0123456789abcdef0123456789abcdef

placements                       wakeups       forks
  decisions                    1,266,000         102
  no_verdict.another_cpu_and_a_long_name           2           0

differences
  #12  CPU 1 -> 2  srvA
  #13  CPU 1 -> 2  "odd"
  "\" "
"#;
    assert_eq!(example().print(), expected);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let whole = example().print();
    let error = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        Snapshot::parse(&whole.replacen(from, to, 1)).expect_err(to).to_string()
    };
    assert_eq!(Snapshot::parse("---\nsource: tests/replay.rs\n---\n"), Err(SnapshotError::Other));
    assert_eq!(Snapshot::parse(""), Err(SnapshotError::Other));
    let text = error("sisdiff.gate/1", "sisdiff.gate/2");
    assert!(text.contains("format sisdiff.gate/2") && text.contains("reads and writes sisdiff.gate/1"), "{text}");
    assert!(error("sha256: ", "sha: ").contains("line 4: expected sha256:"));
    assert!(error("102", "1o2").contains("line 17: \"1o2\" is no count"));
    assert!(error("         102", "").contains("line 17: \"decisions\" has 1 counts; expected 2"));
    assert!(error("placements  ", "places  ").contains("line 16: no section \"places\"; expected digests, placements"));
    assert!(error("sha256:0123", "sha256:").contains("line 14"));
    assert!(error("\ndifferences\n", "\n<<<<<<< HEAD\n").contains("line 20: no section \"<<<<<<<\""));
}

#[test]
fn it_knows_who_broke_what() {
    let mut snapshot = example();
    let known = |snapshot: &Snapshot| {
        let roles = [Role::Baseline, Role::Patched, Role::Recorded];
        [Oracle::Affinity, Oracle::RunQueue].map(|oracle| roles.map(|role| snapshot.knows(oracle, role)))
    };
    assert_eq!(known(&snapshot), [[false; 3]; 2]);
    snapshot.tables.get_mut(&Part::Placements).expect("there").row("outside_cpus_ptr.patched", &[0, 1]);
    let mut sis = Table::new(&["baseline", "patched"]);
    sis.row("run_queues_beyond_end", &[3, 0]);
    snapshot.tables.insert(Part::Sis, sis);
    assert_eq!(known(&snapshot), [[false, true, false], [true, false, false]]);
}
