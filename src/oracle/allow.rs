// SPDX-License-Identifier: GPL-2.0-or-later
//! The allow file: findings that are left aside, each for a reason and with the commit that makes it so.

use serde::Deserialize;

use crate::oracle::Finding;

/// Findings that are left aside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowed(Vec<Entry>);

/// One kind of finding that is left aside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The oracle.
    pub oracle: String,
    /// The implementations concerned, as the finding names them; empty: any.
    #[serde(default)]
    pub implementations: Vec<String>,
    /// The condition, as the finding words it; empty: any.
    #[serde(default)]
    pub condition: String,
    /// Why it is left aside.
    pub reason: String,
    /// The commit that makes it so.
    pub commit: String,
}

/// Why a text is no allow file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowError {
    /// No TOML, or an unknown or missing key.
    #[error("{0}")]
    Toml(String),
    /// An entry that gives no account of itself.
    #[error("entry {number} (oracle {oracle:?}): {what} is empty; every entry says why, and by which commit")]
    Empty {
        /// Its place, from 1.
        number: usize,
        /// Its oracle.
        oracle: String,
        /// What is missing.
        what: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    allow: Vec<Entry>,
}

impl Allowed {
    /// Reads an allow file.
    ///
    /// # Errors
    /// [`AllowError`].
    pub fn parse(text: &str) -> Result<Self, AllowError> {
        let toml = |error: toml::de::Error| AllowError::Toml(error.to_string().trim_end().to_owned());
        let File { allow } = toml::from_str(text).map_err(toml)?;
        for (at, entry) in allow.iter().enumerate() {
            for (what, text) in [("oracle", &entry.oracle), ("reason", &entry.reason), ("commit", &entry.commit)] {
                if text.trim().is_empty() {
                    return Err(AllowError::Empty { number: at + 1, oracle: entry.oracle.clone(), what });
                }
            }
        }
        Ok(Self(allow))
    }

    /// The project's own, `fuzz/allowed.toml`.
    pub fn of_the_project() -> Self {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/allowed.toml"));
        Self::parse(text).expect("a test reads this file")
    }

    /// The entry that allows `finding`.
    pub fn entry(&self, finding: &Finding) -> Option<&Entry> {
        self.0.iter().find(|entry| {
            entry.oracle == finding.oracle
                && (entry.implementations.is_empty() || entry.implementations == finding.implementations)
                && (entry.condition.is_empty() || entry.condition == finding.condition)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[allow]]
        oracle = "affinity"
        implementations = ["v5.2"]
        condition = "CPU outside cpus_ptr"
        reason = "to be looked at"
        commit = "0123456789ab"
    "#;

    fn finding(name: &str) -> Finding {
        Finding {
            oracle: "affinity",
            implementations: vec![name.to_owned()],
            exits: Vec::new(),
            condition: "CPU outside cpus_ptr".to_owned(),
            known: None,
            text: String::new(),
            event: 0,
        }
    }

    #[test]
    fn an_entry_allows_what_it_names() {
        let allowed = Allowed::parse(FILE).expect("an allow file");
        assert!(allowed.entry(&finding("v5.2")).is_some_and(|entry| entry.commit == "0123456789ab"));
        assert_eq!(allowed.entry(&finding("v6.1")), None);
        assert_eq!(Allowed::of_the_project().entry(&finding("v6.1")), None);
    }

    #[test]
    fn an_entry_gives_its_reason_and_commit() {
        for (from, to, expected) in [
            ("to be looked at", " ", "reason is empty"),
            ("commit = \"0123456789ab\"", "", "commit"),
            ("oracle", "oracles", "oracles"),
        ] {
            let error = Allowed::parse(&FILE.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
