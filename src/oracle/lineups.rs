// SPDX-License-Identifier: GPL-2.0-or-later
//! Who plays together where nobody says: in fuzz targets, and with the corpus.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::oracle::{FAMILIES, KNOWN};
use crate::spec::{ModelSpec, RELEASES};

/// The releases, whose differences are explained; the families; every patch beside its release; both sides of every known
/// bug. The first of a line-up places the tasks.
pub static LINEUPS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let mut all = vec![RELEASES.iter().map(|info| info.name.to_owned()).collect::<Vec<_>>()];
    all.extend(FAMILIES.iter().map(|names| owned(names)));
    all.extend(KNOWN.iter().map(|bug| owned(&[bug.before, bug.after])));
    for info in RELEASES {
        let patched = info.patches.iter().map(|patch| format!("{}+{}", info.name, patch.name));
        // One that goes on top of another stands in a family.
        let alone = patched.filter(|name| name.parse::<ModelSpec>().is_ok());
        let played: BTreeSet<String> = all.iter().flatten().cloned().collect();
        all.extend(alone.filter(|name| !played.contains(name)).map(|name| vec![info.name.to_owned(), name]));
    }
    all
});

/// The line-up that a byte of an input chooses; 0: all releases.
pub fn lineup(gene: u8) -> &'static [String] {
    &LINEUPS[usize::from(gene) % LINEUPS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Patch;

    #[test]
    fn a_byte_reaches_every_release_and_every_patch() {
        assert!(LINEUPS.len() <= 256, "{}", LINEUPS.len());
        let specs: Vec<ModelSpec> =
            (0..=255).flat_map(lineup).map(|name| name.parse().expect("a name of a model")).collect();
        for info in RELEASES {
            let of_it: Patch = specs.iter().filter(|spec| spec.info() == info).map(ModelSpec::patches).collect();
            let known: Patch = info.patches.iter().map(|patch| patch.bits).collect();
            assert_eq!(of_it, known | info.base, "{}", info.name);
            assert!(specs.contains(&ModelSpec::of(info)), "{}", info.name);
        }
    }
}
