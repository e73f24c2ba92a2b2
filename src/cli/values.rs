// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of flags that are no plain numbers.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::cpumask::Cpumask;
use crate::spec::Spec;

/// A time of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceTime {
    /// On the trace's clock, ns.
    Absolute(u64),
    /// After the trace's first event, ns.
    AfterStart(u64),
}

impl TraceTime {
    /// On the trace's clock, ns, where the first event is at `first_ns`.
    pub fn resolve(self, first_ns: u64) -> u64 {
        match self {
            Self::Absolute(ns) => ns,
            Self::AfterStart(ns) => first_ns.saturating_add(ns),
        }
    }
}

impl fmt::Display for TraceTime {
    /// As it can be given again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, ns) = match self {
            Self::Absolute(ns) => ("", ns),
            Self::AfterStart(ns) => ("+", ns),
        };
        let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        write!(f, "{sign}{}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for TraceTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (make, number): (fn(u64) -> Self, &str) = match text.strip_prefix('+') {
            Some(number) => (Self::AfterStart, number),
            None => (Self::Absolute, text),
        };
        let number = number.strip_suffix('s').unwrap_or(number);
        parse_seconds(number).map(make).ok_or_else(|| {
            "expected seconds, not negative, as the trace prints them (7.421337) or +SECONDS after its start".to_owned()
        })
    }
}

/// A part of the recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 1.
    pub part: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    /// Its recordings: all of them sorted by name, then every `of`th from number `part` on. Every recording is in exactly
    /// one part, in the same one in whatever order they are given.
    pub fn pick(self, mut files: Vec<PathBuf>) -> Vec<PathBuf> {
        files.sort();
        files.into_iter().skip(self.part - 1).step_by(self.of).collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// `--shard K/N`.
///
/// # Errors
/// A sentence that names what is expected.
pub fn parse_shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part, of }),
        _ => Err("expected K/N with K from 1 to N, such as 3/16".to_owned()),
    }
}

/// Decimal seconds → ns, exactly; digits beyond the ninth are dropped.
fn parse_seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos: u64 = format!("{fraction:0<9}")[..9].parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// When `replay` exits with 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailOn {
    /// On any difference.
    Any,
    /// On a decision of a patched implementation outside of the affinity, or an index beyond nr_cpu_ids in its code.
    Wrong,
    /// On a share of differing decisions above this, percent.
    Share(f64),
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any" => return Ok(Self::Any),
            "wrong" => return Ok(Self::Wrong),
            _ => {}
        }
        let share = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        share
            .filter(|share| (0.0..=100.0).contains(share))
            .map(Self::Share)
            .ok_or_else(|| "expected any, wrong, or a share from 0% to 100%".to_owned())
    }
}

/// An implementation.
pub fn parse_spec(text: &str) -> Result<Spec, String> {
    text.parse().map_err(|error: crate::spec::SpecError| error.to_string())
}

/// A thread id.
pub fn parse_pid(text: &str) -> Result<i32, String> {
    text.parse().ok().filter(|&pid| pid >= 0).ok_or_else(|| "expected a thread id: a number from 0 on".to_owned())
}

/// A shell pattern for names.
pub fn parse_glob(text: &str) -> Result<globset::Glob, String> {
    globset::Glob::new(text).map_err(|error| error.kind().to_string())
}

/// What an operation was measured to cost: `LABEL=US`.
pub fn parse_measured(text: &str) -> Result<(String, f64), String> {
    let (label, us) = text.rsplit_once('=').ok_or("expected LABEL=US, such as off=16.176")?;
    let us = us.strip_suffix("us").unwrap_or(us).parse().ok().filter(|us: &f64| us.is_finite() && *us >= 0.0);
    us.map(|us| (label.to_owned(), us))
        .ok_or_else(|| "expected microseconds after the =, such as off=16.176".to_owned())
}

/// A cpulist.
pub fn parse_cpus(text: &str) -> Result<Cpumask, String> {
    let cpus: Cpumask = text.parse().map_err(|error: crate::cpumask::CpulistError| error.to_string())?;
    if cpus.is_empty() { Err("no CPU in the list; expected something like 0-3,8".to_owned()) } else { Ok(cpus) }
}

/// Jiffies per second.
pub fn parse_hz(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|hz| (24..=10_000).contains(hz))
        .ok_or_else(|| "expected CONFIG_HZ of the recorded kernel: usually 100, 250, 300 or 1000".to_owned())
}

/// The cost of an idle check: nanoseconds, or a file of `funcgraph --fit --format json`, whose first fit counts.
pub fn parse_scan_cost(text: &str) -> Result<u64, String> {
    if !std::path::Path::new(text).is_file() {
        return parse_ns(text).map_err(|error| error + "; or a file that `funcgraph --fit --format json` wrote");
    }
    let read = std::fs::read_to_string(text).map_err(|error| format!("cannot be read ({error})"))?;
    let report: serde_json::Value = serde_json::from_str(&read).map_err(|error| format!("is no JSON: {error}"))?;
    let ns = report["scan_costs"][0]["rows"][0]["cost"]["per_probe_ns"].as_f64();
    let ns = ns.ok_or("has no scan_costs; write it with `funcgraph --fit --format json`")?;
    match ns.round() {
        whole if (0.0..=1e6).contains(&whole) => Ok(whole as u64),
        _ => Err(format!("its fit says {ns:.1} ns for each check, which cannot be: too few calls?")),
    }
}

/// Nanoseconds, with or without the unit.
pub fn parse_ns(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("ns").unwrap_or(text).trim_end();
    number
        .parse()
        .ok()
        .filter(|&ns| ns <= 1_000_000)
        .ok_or_else(|| "expected nanoseconds up to 1000000, such as 50".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recording_is_in_one_shard_whatever_the_order() {
        let files: Vec<PathBuf> = ["c", "a", "b", "e", "d"].map(PathBuf::from).to_vec();
        let shards = ["1/2", "2/2"].map(|text| parse_shard(text).expect("a shard").pick(files.clone()));
        assert_eq!(
            shards,
            [vec!["a", "c", "e"], vec!["b", "d"]].map(|names| names.into_iter().map(PathBuf::from).collect::<Vec<_>>())
        );
        let mut turned = files.clone();
        turned.reverse();
        assert_eq!(parse_shard("2/2").expect("a shard").pick(turned), shards[1]);
        assert!(parse_shard("9/9").expect("a shard").pick(files).is_empty());
        for wrong in ["0/2", "3/2", "1", "a/b", "1/0", "/"] {
            assert!(parse_shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_exact() {
        assert_eq!("7.421337".parse(), Ok(TraceTime::Absolute(7_421_337_000)));
        assert_eq!("+1.5".parse(), Ok(TraceTime::AfterStart(1_500_000_000)));
        assert_eq!("12s".parse(), Ok(TraceTime::Absolute(12_000_000_000)));
        assert_eq!(".0000000019".parse(), Ok(TraceTime::Absolute(1)));
        assert_eq!(TraceTime::AfterStart(5).resolve(7), 12);
        for text in ["7.421337", "+1.5", "12", "+0"] {
            assert_eq!(text.parse::<TraceTime>().map(|time| time.to_string()), Ok(text.to_owned()));
        }
        for bad in ["", "+", ".", "-1", "1.2.3", "1e3", "99999999999999", "½"] {
            assert!(bad.parse::<TraceTime>().is_err(), "{bad}");
        }
    }

    #[test]
    fn thresholds_are_any_wrong_or_a_share() {
        assert_eq!("any".parse(), Ok(FailOn::Any));
        assert_eq!("wrong".parse(), Ok(FailOn::Wrong));
        assert_eq!("2.5%".parse(), Ok(FailOn::Share(2.5)));
        for bad in ["", "2.5", "101%", "-1%", "all", "NaN%"] {
            assert!(bad.parse::<FailOn>().is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(parse_hz("1000"), Ok(1000));
        assert!(parse_hz("0").is_err() && parse_hz("x").is_err());
        assert_eq!(parse_ns("50ns"), Ok(50));
        assert!(parse_ns("-1").is_err() && parse_ns("1us").is_err());
        assert!(parse_cpus("0-3,8").is_ok() && parse_cpus("").is_err() && parse_cpus("3-1").is_err());
    }
}
