// SPDX-License-Identifier: GPL-2.0-or-later
//! What a text that waits to be accepted was made from, beyond what its head says, and whether that is still so. Accepting
//! takes it away: a snapshot says what was decided, not where it was found out.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::gate::config::{Config, Pair};
use crate::gate::snapshot::Snapshot;

/// By name: a digest, or a word where there is nothing to digest.
pub type MadeFrom = BTreeMap<String, String>;

/// What `config` says that decides about the text of a snapshot of `pair`, and that its head does not hold in full.
pub fn settings(config: &Config, pair: &Pair) -> String {
    let replay = &config.replay;
    let lock: Vec<&str> = config.lock.iter().map(|part| part.name()).collect();
    let mut text = format!("lock {}\nlisted {}\n", lock.join(" "), config.listed);
    let recorded = pair.recorded.as_ref().map_or_else(|| "its model".to_owned(), ToString::to_string);
    let hz = replay.hz.map_or_else(|| "the machine's".to_owned(), |hz| hz.to_string());
    let _ = writeln!(text, "recorded {recorded}\nhz {hz}\nscan_cost_ns {}", replay.scan_cost_ns);
    let _ = writeln!(text, "ignore_probes {}\nassume_sync {}", replay.ignore_probes, replay.assume_sync);
    text
}

/// How things are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now<'a> {
    /// The recording's SHA-256, hexadecimal.
    pub sha256: &'a str,
    /// The pair.
    pub pair: &'a Pair,
    /// What a check would write down today.
    pub made_from: &'a MadeFrom,
    /// The configuration's file.
    pub config: &'a str,
}

/// Why `waiting` is not what a check would find now; `None`: it is. In half a sentence, the first reason of several.
pub fn stale(waiting: &Snapshot, now: &Now<'_>) -> Option<String> {
    let head = &waiting.head;
    for (side, was, is) in [
        ("baseline", &head.baseline, now.pair.baseline.to_string()),
        ("patched", &head.patched, now.pair.patched.to_string()),
    ] {
        if *was != is {
            return Some(format!("was made with {side} = {was:?}, and {} has {is:?} now", now.config));
        }
    }
    if head.sha256 != now.sha256 {
        return Some(format!("was made from another recording than {} is now", head.trace));
    }
    if waiting.made_from.is_empty() {
        return Some("does not say what it was made from".to_owned());
    }
    let names = waiting.made_from.keys().chain(now.made_from.keys());
    let differs = |name: &&String| waiting.made_from.get(*name) != now.made_from.get(*name);
    names.filter(differs).min_by_key(|name| rank(name)).map(|name| match name.as_str() {
        "sisdiff" => {
            let of = |from: &MadeFrom| from.get(name).map_or("another version", String::as_str).to_owned();
            format!("was made by sisdiff {}, and this is {}", of(&waiting.made_from), of(now.made_from))
        }
        "settings" => format!("was made with another lock, listed, recorded or [replay] than {} has now", now.config),
        "topology" => "was made with another description of the machine than there is now".to_owned(),
        "affinity" => "was made with another side file of affinities than there is now".to_owned(),
        side => format!("was made from another kernel tree ({side}) than there is now"),
    })
}

/// What a user changes most knowingly first.
fn rank(name: &str) -> usize {
    ["settings", "baseline", "patched", "recorded", "affinity", "topology"]
        .iter()
        .position(|known| *known == name)
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Head;

    const GATE: &str = "traces = [\"a.dat\"]\n[pair.p]\nbaseline = \"v5.11\"\npatched = \"v6.1\"\n";

    fn config(more: &str) -> Config {
        Config::parse(&format!("{more}{GATE}")).expect("a gate")
    }

    #[test]
    fn whatever_decides_about_the_text_is_a_setting() {
        let of = |config: &Config| settings(config, &config.pairs[0]);
        let plain = of(&config(""));
        let replay = |line: &str| Config::parse(&format!("{GATE}[replay]\n{line}\n")).expect("a gate");
        let others = [
            config("lock = [\"sis\"]\n"),
            config("listed = 3\n"),
            Config::parse(&format!("{GATE}recorded = \"v6.12\"\n")).expect("a gate"),
            replay("hz = 300"),
            replay("scan_cost_ns = 51"),
            replay("ignore_probes = true"),
            replay("assume_sync = true"),
        ];
        for other in &others {
            assert_ne!(of(other), plain, "{other:?}");
        }
        let rules = "[tolerance]\nsis = \"5%\"\n[[allow]]\nwhat = \"*\"\nreason = \"so\"\n";
        assert_eq!(
            of(&Config::parse(&format!("{GATE}{rules}")).expect("a gate")),
            plain,
            "rules judge, they change nothing"
        );
    }

    #[test]
    fn what_is_not_as_it_was_is_named() {
        let config = config("");
        let from = |pairs: &[(&str, &str)]| -> MadeFrom {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let made_from = from(&[("settings", "1"), ("sisdiff", "0.1.0"), ("topology", "2")]);
        let head = Head {
            trace: "a.dat".to_owned(),
            sha256: "aa".to_owned(),
            baseline: "v5.11".to_owned(),
            patched: "v6.1".to_owned(),
            ..Head::default()
        };
        let waiting = Snapshot { head, made_from: made_from.clone(), ..Snapshot::default() };
        let why = |waiting: &Snapshot, sha256, now: &MadeFrom| {
            let now = Now { sha256, pair: &config.pairs[0], made_from: now, config: "gate.toml" };
            stale(waiting, &now)
        };
        assert_eq!(why(&waiting, "aa", &made_from), None);
        assert!(why(&waiting, "bb", &made_from).is_some_and(|why| why.contains("another recording than a.dat")));
        let mut other = waiting.clone();
        other.head.patched = "v6.12".to_owned();
        let said = why(&other, "bb", &made_from).expect("stale");
        assert_eq!(said, "was made with patched = \"v6.12\", and gate.toml has \"v6.1\" now");
        let silent = Snapshot { made_from: MadeFrom::new(), ..waiting.clone() };
        assert!(why(&silent, "aa", &made_from).is_some_and(|why| why.contains("does not say")));
        for (name, said) in [
            ("settings", "[replay] than gate.toml has"),
            ("topology", "description of the machine"),
            ("affinity", "side file"),
            ("patched", "kernel tree (patched)"),
            ("sisdiff", "was made by sisdiff 0.1.0, and this is 9"),
        ] {
            let mut now = made_from.clone();
            now.insert(name.to_owned(), "9".to_owned());
            assert!(why(&waiting, "aa", &now).is_some_and(|why| why.contains(said)), "{name}");
        }
    }
}
