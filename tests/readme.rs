// SPDX-License-Identifier: GPL-2.0-or-later
//! What the README shows is what the binary prints.

use std::path::Path;
use std::process::Command;

/// `(command, shown lines)` of each block that follows a comment naming its command.
fn shown(readme: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("<!-- sisdiff ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        assert_eq!(lines.next(), Some("```text"), "a block follows the command {command}");
        let block = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
        blocks.push((command.to_owned(), block));
    }
    blocks
}

#[test]
fn readme_shows_real_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let blocks = shown(&readme);
    assert!(blocks.len() >= 2, "the README shows a replay and an explanation");
    for (command, block) in blocks {
        let output = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
            .args(command.split(' '))
            .current_dir(root)
            .output()
            .expect("sisdiff runs");
        let printed = String::from_utf8(output.stdout).expect("output is text");
        let mut printed = printed.lines();
        let mut skips = false;
        for line in block {
            if line == "[...]" {
                skips = true;
            } else if skips {
                assert!(
                    printed.any(|other| other == line),
                    "{command} does not print {line:?} where the README has it"
                );
                skips = false;
            } else {
                assert_eq!(printed.next(), Some(line.as_str()), "in the output of {command}");
            }
        }
    }
}
