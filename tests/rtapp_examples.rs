// SPDX-License-Identifier: GPL-2.0-or-later
//! rt-app's own example files: each is read, or refused by the name of the key that is not supported.

use std::path::{Path, PathBuf};

use sisdiff::simulate::rtapp::parse;

/// What is refused, and what the message names.
const REFUSED: &[(&str, &str)] = &[
    ("cpufreq_governor_efficiency/calibration.json", "\"policy\" is SCHED_FIFO"),
    ("cpufreq_governor_efficiency/dvfs.json", "\"policy\" is SCHED_FIFO"),
    ("custom-slice.json", "\"dl-runtime\" is not supported"),
    ("merge/global.json", "no \"tasks\""),
    ("merge/resources.json", "no \"tasks\""),
    ("merge/thread0.json", "\"exec\" is not supported"),
    ("merge/thread1.json", "\"exec\" is not supported"),
    ("merge/thread2.json", "\"exec\" is not supported"),
    ("merge/thread3.json", "\"exec\" is not supported"),
    ("tutorial/example10.json", "\"taskgroup\" is not supported"),
    ("tutorial/example11.json", "\"taskgroup\" is not supported"),
    ("tutorial/example6.json", "\"mem\" is not supported"),
];

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

#[test]
fn each_example_is_read_or_refused_by_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rtapp/examples");
    let mut all = Vec::new();
    files(&root, &mut all);
    all.sort();
    assert_eq!(all.len(), 28);
    let mut refused = 0;
    for path in all {
        let name = path.strip_prefix(&root).expect("below it").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        let expected = REFUSED.iter().find(|(file, _)| *file == name).map(|(_, told)| *told);
        match (parse(&name, &text), expected) {
            (Ok(workload), None) => {
                assert_eq!(workload.check(), Ok(()), "{name}");
                assert!(!workload.tasks.is_empty(), "{name}");
            }
            (Err(error), Some(told)) => {
                assert!(error.to_string().contains(told), "{name}: {error}");
                refused += 1;
            }
            (Ok(_), Some(told)) => panic!("{name} is read, though {told}"),
            (Err(error), None) => panic!("{name}: {error}"),
        }
    }
    assert_eq!(refused, REFUSED.len());
}
