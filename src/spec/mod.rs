// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of implementations, as one would write them in a mail: `v5.11+recent-used:NO_SIS_PROP`.
//!
//! A spec is a release, then `+patch`es, then `:FEATURE` or `:NO_FEATURE` switches (later ones win); or `tree:PATH` with an
//! optional `@REV`, patches and switches, for the wakeup path of a kernel tree. In a path `\` takes the meaning from `@`,
//! `+`, `:` and `\`.

mod features;
mod recorded;
mod release;

pub use features::{Patch, SchedFeat};
pub use recorded::{Recorded, Version, model_of};
pub use release::{PatchInfo, RELEASES, Release, ReleaseInfo};

use std::fmt;
use std::str::FromStr;

use crate::hint::did_you_mean;

/// The name of an implementation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// One of the models in [`crate::fair`].
    Model(ModelSpec),
    /// A kernel tree of the user's.
    Tree(TreeSpec),
}

/// The name of a model: release, patches, switches. Prints in one canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSpec {
    info: &'static ReleaseInfo,
    patches: Patch,
    features: SchedFeat,
}

/// The name of a kernel tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeSpec {
    /// The tree, as written (`~` not expanded).
    pub path: String,
    /// A revision of it; `None`: the work tree.
    pub rev: Option<String>,
    /// Patch files to apply.
    pub patches: Vec<String>,
    /// Feature switches, by kernel name, in order.
    pub features: Vec<(String, bool)>,
}

/// Why a text is no spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No release at the beginning.
    #[error("implementation {spec:?}: no release {found:?}{hint}; there are {possible}")]
    Release {
        /// The whole spec.
        spec: String,
        /// What stands where the release should.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
        /// The names there are.
        possible: String,
    },
    /// A patch that the release does not know.
    #[error("implementation {spec:?}: {release} knows no patch {found:?}{hint}; it knows {possible}")]
    Patch {
        /// The whole spec.
        spec: String,
        /// The release.
        release: String,
        /// The patch.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
        /// The names there are.
        possible: String,
    },
    /// A feature that the release with these patches does not have.
    #[error("implementation {spec:?}: {release} has no feature {found:?}{hint}; it has {possible}, each also as NO_…")]
    Feature {
        /// The whole spec.
        spec: String,
        /// The release and its patches.
        release: String,
        /// The feature.
        found: String,
        /// The nearest name, or nothing.
        hint: String,
        /// The names there are.
        possible: String,
    },
    /// Two patches that exclude each other.
    #[error("implementation {spec:?}: {one} and {other} are two forms of the same change; keep one of them")]
    Conflict {
        /// The whole spec.
        spec: String,
        /// A patch.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A patch that needs another.
    #[error("implementation {spec:?}: {one} applies on top of {needs}; write +{needs}+{one}")]
    Needs {
        /// The whole spec.
        spec: String,
        /// The patch.
        one: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// A tree without a path, or something empty after a mark.
    #[error("implementation {spec:?}: nothing after {mark:?}; expected {expected}")]
    Empty {
        /// The whole spec.
        spec: String,
        /// The mark.
        mark: String,
        /// What should stand there.
        expected: &'static str,
    },
}

impl ModelSpec {
    /// The bare release.
    pub fn of(info: &'static ReleaseInfo) -> Self {
        Self { info, patches: Patch::empty(), features: info.defaults }
    }

    /// The row of the release table.
    pub fn info(&self) -> &'static ReleaseInfo {
        self.info
    }

    /// The release.
    pub fn release(&self) -> Release {
        self.info.release
    }

    /// Every patch that is applied, those that the release's name stands for included.
    pub fn patches(&self) -> Patch {
        self.patches | self.info.base
    }

    /// The scheduler features that are on.
    pub fn features(&self) -> SchedFeat {
        self.features & self.info.features_with(self.patches())
    }

    /// The same with other features on; those that it does not have are ignored.
    #[must_use]
    pub fn with_features(mut self, features: SchedFeat) -> Self {
        self.features = features & self.info.features_with(self.patches());
        self
    }

    /// The same with other patches, which must be known to the release.
    #[must_use]
    pub fn with_patches(mut self, patches: Patch) -> Self {
        self.patches = patches;
        self
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.info.name.to_owned();
        let mut left = self.patches - self.info.base;
        for patch in self.info.patches {
            if left.contains(patch.bits) {
                left -= patch.bits;
                text += &format!("+{}", patch.name);
            }
        }
        let has = self.info.features_with(self.patches());
        let differ = (self.features() ^ self.info.defaults) & has;
        for (name, feature) in differ.iter_names() {
            let no = if self.features().contains(feature) { "" } else { "NO_" };
            text += &format!(":{no}{name}");
        }
        f.pad(&text)
    }
}

impl fmt::Display for TreeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("tree:{}", escape(&self.path));
        if let Some(rev) = &self.rev {
            text += &format!("@{}", escape(rev));
        }
        for patch in &self.patches {
            text += &format!("+{}", escape(patch));
        }
        for (name, on) in &self.features {
            text += &format!(":{}{name}", if *on { "" } else { "NO_" });
        }
        f.pad(&text)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(spec) => spec.fmt(f),
            Self::Tree(spec) => spec.fmt(f),
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        match spec.strip_prefix("tree:") {
            Some(rest) => tree(spec, rest).map(Self::Tree),
            None => spec.parse().map(Self::Model),
        }
    }
}

impl FromStr for ModelSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let mut parts = split(spec);
        let (_, name) = parts.remove(0);
        let info = RELEASES.iter().find(|info| info.name == name).ok_or_else(|| {
            let names: Vec<&str> = RELEASES.iter().map(|info| info.name).collect();
            SpecError::Release {
                spec: spec.to_owned(),
                hint: did_you_mean(&name, &names),
                possible: names.join(", "),
                found: name,
            }
        })?;
        let mut model = Self::of(info);
        for (_, name) in parts.iter().filter(|(mark, _)| *mark == '+') {
            model.patches |= patch(spec, info, name)?;
        }
        coherent(spec, model.patches)?;
        for (_, name) in parts.iter().filter(|(mark, _)| *mark == ':') {
            let (feature, on) = feature(spec, &model, name)?;
            model.features.set(feature, on);
        }
        Ok(model)
    }
}

fn patch(spec: &str, info: &'static ReleaseInfo, name: &str) -> Result<Patch, SpecError> {
    let names = || info.patches.iter().map(|patch| patch.name).collect::<Vec<_>>();
    info.patches.iter().find(|patch| patch.name == name).map(|patch| patch.bits).ok_or_else(|| SpecError::Patch {
        spec: spec.to_owned(),
        release: info.name.to_owned(),
        found: name.to_owned(),
        hint: did_you_mean(name, &names()),
        possible: if info.patches.is_empty() { "none".to_owned() } else { names().join(", ") },
    })
}

fn coherent(spec: &str, patches: Patch) -> Result<(), SpecError> {
    let spec = || spec.to_owned();
    if patches.contains(Patch::RECENT_USED | Patch::RECENT_USED_V1) {
        return Err(SpecError::Conflict { spec: spec(), one: "recent-used", other: "recent-used-v1" });
    }
    if patches.contains(Patch::TUNABLES) && !patches.contains(Patch::SOFT_AFFINITY) {
        return Err(SpecError::Needs { spec: spec(), one: "tunables", needs: "soft-affinity" });
    }
    Ok(())
}

fn feature(spec: &str, model: &ModelSpec, name: &str) -> Result<(SchedFeat, bool), SpecError> {
    let has = model.info.features_with(model.patches());
    let of = |name: &str| SchedFeat::from_name(name).filter(|&feature| has.contains(feature));
    // No feature's own name begins with NO_.
    let found = match name.strip_prefix("NO_") {
        Some(rest) => of(rest).map(|feature| (feature, false)),
        None => of(name).map(|feature| (feature, true)),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = has.iter_names().map(|(name, _)| name).collect();
        let bare = name.strip_prefix("NO_").unwrap_or(name);
        SpecError::Feature {
            spec: spec.to_owned(),
            release: ModelSpec { features: model.info.defaults, ..*model }.to_string(),
            found: name.to_owned(),
            hint: did_you_mean(bare, &names),
            possible: names.join(", "),
        }
    })
}

fn tree(spec: &str, rest: &str) -> Result<TreeSpec, SpecError> {
    let mut parts = split_at(rest, &['@', '+', ':']);
    let (_, path) = parts.remove(0);
    let mut tree = TreeSpec { path, rev: None, patches: Vec::new(), features: Vec::new() };
    let empty = |mark: &str, expected| SpecError::Empty { spec: spec.to_owned(), mark: mark.to_owned(), expected };
    if tree.path.is_empty() {
        return Err(empty("tree:", "the path of a kernel tree"));
    }
    for (mark, text) in parts {
        match mark {
            _ if text.is_empty() => {
                return Err(empty(&mark.to_string(), "a revision (@), a patch file (+) or a feature (:)"));
            }
            '@' => tree.rev = Some(text),
            '+' => tree.patches.push(text),
            _ => tree.features.push(match text.strip_prefix("NO_") {
                Some(name) => (name.to_owned(), false),
                None => (text, true),
            }),
        }
    }
    Ok(tree)
}

/// The parts of a spec, each with the mark before it.
fn split(spec: &str) -> Vec<(char, String)> {
    split_at(spec, &['+', ':'])
}

fn split_at(text: &str, marks: &[char]) -> Vec<(char, String)> {
    let mut parts = vec![(' ', String::new())];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let last = parts.last_mut().map(|(_, text)| text);
        match (c, last) {
            ('\\', Some(last)) => last.push(chars.next().unwrap_or('\\')),
            (c, _) if marks.contains(&c) => parts.push((c, String::new())),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    parts
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '@' | '+' | ':' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        spec.parse::<Spec>().expect_err(spec).to_string()
    }

    #[test]
    fn specs_print_in_one_form() {
        for (spec, canonical) in [
            ("v5.11", "v5.11"),
            ("v5.11:SIS_PROP", "v5.11"),
            ("v5.11:NO_SIS_PROP", "v5.11:NO_SIS_PROP"),
            ("v5.11+recent-used+no-sis-avg-cpu", "v5.11+no-sis-avg-cpu+recent-used"),
            ("v5.11+scan-cost+idle-candidate+recent-used+no-sis-avg-cpu", "v5.11+mel-v2"),
            ("v5.11:NO_WA_IDLE+mel-v2+fix-cpus-ptr", "v5.11+mel-v2+fix-cpus-ptr:NO_WA_IDLE"),
            ("v5.11:SIS_AVG_CPU:NO_SIS_AVG_CPU", "v5.11"),
            ("v5.2+tunables+soft-affinity", "v5.2+soft-affinity+tunables"),
            ("v6.12.117:NO_SIS_UTIL", "v6.12.117:NO_SIS_UTIL"),
            ("v6.12+slow-allowed", "v6.12+slow-allowed"),
            ("tree:~/linux@v6.1+a.patch:NO_SIS_UTIL", "tree:~/linux@v6.1+a.patch:NO_SIS_UTIL"),
            (r"tree:/odd\@\+\:path\\x", r"tree:/odd\@\+\:path\\x"),
        ] {
            let parsed: Spec = spec.parse().expect(spec);
            assert_eq!(parsed.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(parsed), "{canonical}");
        }
    }

    #[test]
    fn patches_and_features_take_effect() {
        let spec: ModelSpec = "v5.11+mel-v2:NO_SIS_PROP".parse().expect("a spec");
        assert!(spec.patches().contains(Patch::RECENT_USED | Patch::IDLE_CANDIDATE | Patch::SCAN_COST));
        assert!(!spec.features().contains(SchedFeat::SIS_PROP));
        assert!(spec.features().contains(SchedFeat::WA_IDLE));
    }

    #[test]
    fn errors_name_what_is_there_and_what_is_near() {
        let text = error("v5.12");
        assert!(text.contains("\"v5.12\"") && text.contains("did you mean") && !text.contains("tree:"), "{text}");
        assert!(error("v5.2+tunables").contains("write +soft-affinity+tunables"));
        assert!(error("v7.3:SIS_PROP").contains("v7.3 has no feature"));
        assert!(error("v7.3+mel-v2").contains("it knows none"));
        let text = error("v5.11+recent-use");
        assert!(text.contains("did you mean \"recent-used\"") && text.contains("idle-candidate"), "{text}");
        let text = error("v5.11:NO_SIS_UTI");
        assert!(text.contains("\"NO_SIS_UTI\"") && text.contains("SIS_PROP"), "{text}");
        assert!(error("v5.11+no-sis-avg-cpu:SIS_AVG_CPU").contains("no feature \"SIS_AVG_CPU\""));
        assert!(error("v5.11+recent-used+recent-used-v1").contains("keep one"));
        assert!(error("v5.11+").contains("no patch \"\""));
        assert!(error("").contains("no release \"\""));
        assert!(error("tree:").contains("nothing after"));
        assert!(error("tree:x@").contains("nothing after"));
    }
}
