// SPDX-License-Identifier: GPL-2.0-or-later
//! What a recording says of the cut that it is: words behind the recorder's in its version text.

/// How those words begin.
pub const CUT_MARK: &str = "cut by sisdiff";
const CPUS: &str = "--cpus ";

/// The mark with `flags` behind the version text of what was cut.
pub fn marked(of: Option<&str>, flags: &[String]) -> String {
    let before = of.map(|of| format!("{of}; ")).unwrap_or_default();
    let flags = if flags.is_empty() { String::new() } else { format!(" ({})", flags.join(" ")) };
    format!("{before}{CUT_MARK} {}{flags}", env!("CARGO_PKG_VERSION"))
}

/// The flag that a cut by CPUs is marked with.
pub fn cpus_flag(cpus: impl std::fmt::Display) -> String {
    format!("{CPUS}{cpus}")
}

/// What a version text says of a cut; of several the last.
pub fn cut_mark(version: Option<&str>) -> Option<&str> {
    version.and_then(|text| text.rfind(CUT_MARK).map(|at| &text[at..]))
}

/// Whether that cut has some CPUs only.
pub fn is_by_cpus(mark: &str) -> bool {
    mark.contains(CPUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_again() {
        let whole = marked(None, &[]);
        let part = marked(Some(&format!("3.1.6; {whole}")), &[cpus_flag("0-3"), "--sched-only".to_owned()]);
        let found = cut_mark(Some(&part)).expect("a mark");
        assert!(found.ends_with("(--cpus 0-3 --sched-only)") && is_by_cpus(found), "{found}");
        assert!(!is_by_cpus(cut_mark(Some(&whole)).expect("a mark")));
        assert_eq!(cut_mark(Some("3.1.6")), None);
    }
}
