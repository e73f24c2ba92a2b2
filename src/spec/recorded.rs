// SPDX-License-Identifier: GPL-2.0-or-later
//! From the name of a recorded kernel to its model.

use crate::spec::{ModelSpec, RELEASES, ReleaseInfo};

/// The model that stands for a recorded kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The model.
    pub spec: ModelSpec,
    /// Whether it is a model of that very kernel. Else its agreement with the recorded choices is no measure of fidelity.
    pub exact: bool,
    /// How the kernel maps to it, in a sentence.
    pub why: String,
}

/// A kernel's version: major, minor, patch level.
pub type Version = [u32; 3];

/// The model for the kernel named by `uname`: `uname -r`, `uname -a` or /proc/version. `None`: no version in it.
///
/// In order: the release itself; the newest model of the same series that is not newer, else the oldest of the series;
/// the newest model that is older; the oldest there is.
pub fn model_of(uname: &str) -> Option<Recorded> {
    let (version, package) = version_of(uname)?;
    let text = version.map(|part| part.to_string()).join(".");
    let kernel = if package { format!("{} (Debian's {text})", release_of(uname)) } else { text };
    let of = |info: &'static ReleaseInfo, exact, why| Recorded { spec: ModelSpec::of(info), exact, why };
    if let Some(info) = RELEASES.iter().find(|info| info.version == version) {
        if package || !hides_version(release_of(uname)) {
            return Some(of(info, true, format!("kernel {kernel} has a model of its own, {}", info.name)));
        }
        let release = release_of(uname);
        return Some(of(info, false, format!("kernel {release} is near {}, but may hold later changes", info.name)));
    }
    let (info, how) = nearest(version);
    let source = info.version.map(|part| part.to_string()).join(".");
    Some(of(info, false, format!("kernel {kernel} has no model of its own; {} is {how}, {source}", info.name)))
}

fn nearest(version: Version) -> (&'static ReleaseInfo, &'static str) {
    let same = |info: &&ReleaseInfo| info.version[..2] == version[..2];
    let older = |info: &&ReleaseInfo| info.version < version;
    let newest = |infos: &mut dyn Iterator<Item = &'static ReleaseInfo>| infos.max_by_key(|info| info.version);
    if let Some(info) = newest(&mut RELEASES.iter().filter(same).filter(older)) {
        return (info, "the nearest older one of its series");
    }
    if let Some(info) = RELEASES.iter().filter(same).min_by_key(|info| info.version) {
        return (info, "of its series, but newer");
    }
    if let Some(info) = newest(&mut RELEASES.iter().filter(older)) {
        return (info, "the nearest older one");
    }
    (&RELEASES[0], "the oldest there is, and newer")
}

/// The version, and whether it comes from the distribution's package rather than from the release name: Debian's 6.1.0-57
/// is 6.1.192.
fn version_of(uname: &str) -> Option<(Version, bool)> {
    let release = release_of(uname);
    if let Some(info) = RELEASES.iter().find(|info| info.debian.is_some_and(|abi| release.starts_with(abi))) {
        return Some((info.version, true));
    }
    // `(gcc-12 (Debian 12.2.0-14) 12.2.0, …) #1 SMP PREEMPT_DYNAMIC Debian 6.1.153-1 (2025-09-20)`: the last one is the
    // kernel's, the one before it the compiler's.
    let package = uname.rsplit_once("Debian ").and_then(|(_, rest)| parse(rest));
    if let Some(version) = package.filter(|_| release.contains("-amd64") || release.contains("-arm64")) {
        return Some((version, true));
    }
    parse(release).map(|version| (version, false))
}

/// A release candidate, or a distribution's build number that says nothing of the stable patches in it
/// (`5.11.0-49-generic`).
fn hides_version(release: &str) -> bool {
    let suffix = release.split_once(".0-").map_or("", |(_, suffix)| suffix);
    suffix.starts_with("rc") || suffix.starts_with(|c: char| c.is_ascii_digit())
}

/// The word of `uname` that looks like a release.
fn release_of(uname: &str) -> &str {
    uname.split_whitespace().find(|word| parse(word).is_some()).unwrap_or("")
}

/// `6.1.0-57-amd64` → 6.1.0; `5.11` → 5.11.0.
fn parse(text: &str) -> Option<Version> {
    let mut version = [0; 3];
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let parts: Vec<&str> = text[..end].split('.').collect();
    if parts.len() < 2 {
        return None;
    }
    for (to, part) in version.iter_mut().zip(&parts) {
        *to = part.parse().ok()?;
    }
    Some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(uname: &str) -> (String, bool) {
        let recorded = model_of(uname).expect(uname);
        assert!(recorded.why.contains(recorded.spec.info().name), "{}", recorded.why);
        (recorded.spec.to_string(), recorded.exact)
    }

    #[test]
    fn recorded_kernels_map_to_models() {
        for (uname, spec, exact) in [
            ("6.1.0-57-amd64", "v6.1", true),
            ("Linux (none) 6.1.0-57-amd64 x86_64", "v6.1", true),
            ("Linux h 6.1.0-99-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-01-01) x86_64", "v6.1", true),
            (
                "Linux version 6.12.117+deb13-amd64 (a@b) (gcc-14 (Debian 14.2.0-19) 14.2.0, GNU ld (GNU Binutils for \
                 Debian) 2.44) #1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-20)",
                "v6.12.117",
                true,
            ),
            ("6.1.0-12-amd64", "v6.1", false),
            ("6.5.3", "v6.1", false),
            ("5.10.0-46-amd64", "v5.10", true),
            ("5.10.0-20-amd64", "v5.10", false),
            ("6.12.117+deb13-amd64", "v6.12.117", true),
            ("6.12.118+deb13-amd64", "v6.12.117", false),
            ("6.12.50+deb13-amd64", "v6.12", false),
            ("6.12.0", "v6.12", true),
            ("6.18.3-arch1-1", "v6.12.117", false),
            ("7.3.4+deb13-amd64", "v7.3", true),
            ("8.0.1", "v7.3", false),
            ("4.19.0-27-amd64", "v5.2", false),
            ("5.11.0", "v5.11", true),
            ("Linux h 5.11.0-mine+ #3 SMP x86_64", "v5.11", true),
            ("5.11.0-rc7", "v5.11", false),
            ("5.11.0-49-generic", "v5.11", false),
            ("5.15.0-91-generic", "v5.11", false),
        ] {
            assert_eq!(model(uname), (spec.to_owned(), exact), "{uname}");
        }
        assert_eq!(model_of("Linux host"), None);
        assert_eq!(model_of(""), None);
    }
}
