// SPDX-License-Identifier: GPL-2.0-or-later
//! The C of real kernel trees against the golden vectors, and against our models.
//!
//! Trees are found in the folder named by SISDIFF_TREES: `linux-5.11`, `linux-source-6.1`, …; those of Debian's
//! linux-source packages where they are installed. Without any the tests say so and do nothing.
#![cfg(feature = "tree")]

use std::path::{Path, PathBuf};

use sisdiff::fair::Implementation;
use sisdiff::tree::Tree;
use sisdiff::vectors::{check, read};
use sisdiff_tree::source::Location;
use sisdiff_tree::tree::{Built, Plan, build};

fn trees() -> Option<PathBuf> {
    std::env::var_os("SISDIFF_TREES").map(PathBuf::from)
}

/// Families of vectors: folder, variant, tree.
const FAMILIES: &[(&str, &str, &str)] = &[
    ("a-v5.11-sis-series", "a0", "linux-5.11"),
    ("b-v5.2-soft-affinity", "b0", "linux-5.2"),
    ("c-v6.1", "c0", "linux-source-6.1"),
    ("d-v6.12", "d0", "linux-6.12"),
    ("e-v5.10.262", "e0", "linux-source-5.10"),
    ("f-v6.12.117", "f0", "linux-source-6.12"),
    ("g-v7.3.4", "g0", "linux-source-7.3"),
];

/// The vectors were made with an abs() that takes an unsigned number for what it is; the kernel's takes it for a signed one.
const THEIR_ABS: &str = "#undef abs\n#define abs(x) ({ __typeof__(x) __x = (x); __x < 0 ? -__x : __x; })\n";

fn built(path: &Path, shim: Option<&str>) -> Built {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache");
    let location = Location { path: path.to_owned(), ..Location::default() };
    let plan = Plan { location, cache: Some(cache), shim: shim.map(str::to_owned), ..Plan::default() };
    build(&plan).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_field_of_every_vector() {
    let Some(trees) = trees() else {
        println!("no SISDIFF_TREES here: no tree is held against the vectors");
        return;
    };
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(vectors) = project.ancestors().map(|dir| dir.join("shared/vectors")).find(|dir| dir.is_dir()) else {
        println!("no ../shared/vectors here: no tree is held against them");
        return;
    };
    let mut wrong = 0;
    for (family, variant, tree) in FAMILIES {
        let path = trees.join(tree);
        if !path.exists() {
            println!("{family}: no {} here", path.display());
            continue;
        }
        let started = std::time::Instant::now();
        let built = built(&path, None);
        let building = started.elapsed();
        let with_their_abs = self::built(&path, Some(THEIR_ABS));
        for level in ["l1", "l2", "l3", "seq"] {
            let file = vectors.join(family).join(format!("{level}.jsonl.gz"));
            let items = read(&file).unwrap_or_else(|error| panic!("{error}")).items;
            let started = std::time::Instant::now();
            let mut subject = Tree::new(tree, &built, items[0].topology()).unwrap_or_else(|error| panic!("{error}"));
            let mut other =
                Tree::new(tree, &with_their_abs, items[0].topology()).unwrap_or_else(|error| panic!("{error}"));
            let (mut equal, mut compared, mut by_abs) = (0, 0, 0);
            for item in &items {
                let Some(checked) = check::check_subject(item, variant, &mut subject) else { continue };
                compared += 1;
                equal += usize::from(checked.mismatches.is_empty());
                if let Some(fault) = subject.fault() {
                    panic!("{}: case {}: {fault}", subject.name(), item.id);
                }
                if checked.mismatches.is_empty() {
                    continue;
                }
                let checked = check::check_subject(item, variant, &mut other).expect("the item has answers");
                by_abs += usize::from(checked.mismatches.is_empty());
                for mismatch in checked.mismatches.iter().take(usize::from(compared - equal - by_abs <= 2)) {
                    println!("{mismatch}");
                }
            }
            println!(
                "{family} {level}: {equal} of {compared} equal, {by_abs} more with the vectors' abs(), built in {building:?}, compared in {:?}",
                started.elapsed()
            );
            wrong += compared - equal - by_abs;
        }
    }
    assert_eq!(wrong, 0, "answers differ from the kernel's");
}
