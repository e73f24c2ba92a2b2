// SPDX-License-Identifier: GPL-2.0-or-later
//! What a terminal gets: 80 columns, colours only where they are wanted, a bar on stderr, silence with --quiet.

use std::process::{Command, Output, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SMALL: &str = "traces/smt8-affinity-truth/trace.dat";

fn sisdiff(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sisdiff"));
    command.args(args).current_dir(ROOT).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A run on a terminal of 80 columns, by util-linux's script; `None` where there is none.
fn on_a_terminal(args: &str, env: &[(&str, &str)]) -> Option<String> {
    let command = format!("stty cols 80 rows 24; '{}' {args}", env!("CARGO_BIN_EXE_sisdiff"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(ROOT).stdin(Stdio::null());
    for decides in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        script.env_remove(decides);
    }
    script.env("TERM", "xterm-256color").envs(env.iter().copied());
    match script.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            println!("no script(1) here: nothing was seen on a terminal");
            None
        }
    }
}

/// Lines that hold something which cannot be broken: a file's name, a command to copy.
fn is_unbreakable(line: &str) -> bool {
    line.starts_with("sisdiff ") || line.starts_with("one of them: ")
}

#[test]
fn reports_fit_eighty_columns_with_aligned_numbers() {
    let many = ["--patched", "v5.11+recent-used", "--patched", "v5.11+mel-v2", "--patched", "v7.3"];
    let recordings = ["smt8-affinity-truth", "numa80-truth", "dies12-truth", "smp4-idle-light", "smt8-scan-truth"];
    for recording in recordings {
        let file = format!("traces/{recording}/trace.dat");
        let report = text(&sisdiff(&["replay", &file]).args(many).output().expect("runs"));
        for line in report.lines().filter(|line| !is_unbreakable(line)) {
            assert!(line.chars().count() <= 80, "{recording}: {line}");
            assert!(line.trim_end() == line, "{recording}: space behind {line:?}");
        }
        // Numbers of a table end in the same column, and have separators.
        let rows: Vec<&str> = report.lines().filter(|line| line.starts_with("  SIS Search  ")).collect();
        assert!(rows.len() >= 3, "{report}");
        let unseparated = |word: &str| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_digit());
        assert!(!rows.iter().any(|row| row.split_whitespace().any(unseparated)), "{rows:?}");
        let ends = |name: &str| {
            let line = report.lines().find(|line| line.trim_start().starts_with(name)).expect("a row");
            line.rfind(|c: char| c.is_ascii_digit() || c == '%').expect("a number")
        };
        assert_eq!(ends("SIS Search Efficiency"), ends("SIS Success Rate"), "{report}");
    }
    let sum = text(&sisdiff(&["replay", SMALL, "traces/dies12-truth/trace.dat"]).output().expect("runs"));
    assert!(sum.lines().filter(|line| !is_unbreakable(line)).all(|line| line.chars().count() <= 80), "{sum}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let Some(coloured) = on_a_terminal(&format!("replay {SMALL}"), &[]) else { return };
    assert!(coloured.contains("\u{1b}[1m"), "{coloured:?}");
    // A build service says what it is: `CI` is set.
    for (env, ci) in
        [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0")].map(|env| [(env, ""), (env, "true")]).concat()
    {
        let plain = on_a_terminal(&format!("replay {SMALL}"), &[env, ("CI", ci)]).expect("as above");
        assert!(!plain.contains("\u{1b}[1m") && plain.contains("SIS Scanned"), "{env:?}, CI {ci:?}: {plain:?}");
    }
    let piped = text(&sisdiff(&["replay", SMALL]).output().expect("runs"));
    assert!(!piped.contains('\u{1b}'));
    let forced = text(&sisdiff(&["replay", SMALL]).env("CLICOLOR_FORCE", "1").output().expect("runs"));
    assert!(forced.contains("\u{1b}[1m"));
}

#[test]
fn quiet_says_nothing() {
    let output = sisdiff(&["replay", SMALL, "--quiet"]).output().expect("runs");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let Some(seen) = on_a_terminal(&format!("replay {SMALL} --quiet"), &[]) else { return };
    assert_eq!(seen, "");
}

/// Bars show up after a second: many recordings take longer than that.
#[test]
fn a_bar_is_on_stderr_of_a_terminal_only() {
    let files = [SMALL, "traces/numa80-truth/trace.dat", "traces/smt8-light-state-truth/trace.dat"].join(" ");
    let long = vec![files; 8].join(" ");
    let started = std::time::Instant::now();
    let Some(seen) = on_a_terminal(&format!("replay {long} --threads 1 2>&1 >/dev/null"), &[]) else { return };
    if started.elapsed().as_millis() < 2_000 {
        println!("this machine is too fast for a bar");
        return;
    }
    assert!(seen.contains("events") && seen.contains("left"), "{seen:?}");
    assert!(seen.ends_with('\u{1b}') || !seen.trim_end().ends_with("left"), "the bar is taken away: {seen:?}");
    let quiet = on_a_terminal(&format!("replay {long} --threads 1 --quiet 2>&1 >/dev/null"), &[]).expect("as above");
    assert_eq!(quiet, "");
    let args: Vec<&str> = long.split(' ').collect();
    let output = sisdiff(&["replay", "--threads", "1"]).args(args).output().expect("runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
