// SPDX-License-Identifier: GPL-2.0-or-later
//! The text of a side file.
//!
//! ```toml
//! [group.db]              # like a cgroup: these tasks and all that they fork
//! comm = "oracle*"
//! cpus = "0-15"           # cpuset.cpus
//!
//! [[rule]]
//! group = "db"
//! preferred = "0-7"       # soft affinity
//!
//! [[rule]]
//! comm = ["srv*", "cli*"] # all conditions of a rule have to hold, of a list one
//! allowed = "0-3"         # hard affinity
//! uclamp_max = 512
//! ```

use globset::Glob;
use toml::{Table, Value};

use super::{AffinityError, GROUPS_MAX, Group, Rule, Rules, UTIL_MAX, Who};
use crate::cpumask::Cpumask;
use crate::hint::did_you_mean;
use crate::units::Pid;

const FILE_KEYS: &[&str] = &["group", "rule"];
const GROUP_KEYS: &[&str] = &["comm", "pid", "cpus"];
const RULE_KEYS: &[&str] = &["comm", "pid", "group", "allowed", "preferred", "uclamp_min", "uclamp_max"];

pub(super) fn parse(text: &str) -> Result<Rules, AffinityError> {
    let file: Table = text.parse().map_err(|error: toml::de::Error| {
        AffinityError::Toml(error.to_string().trim_end().replace('\n', " ").replace("  ", " "))
    })?;
    keys(&file, "the file", FILE_KEYS)?;
    let mut rules = Rules { groups: groups(&file)?, ..Rules::default() };
    let list = match file.get("rule") {
        None => &[][..],
        Some(Value::Array(list)) => list,
        Some(other) => return Err(value("the file", "rule", other, "expected [[rule]] tables")),
    };
    for (at, one) in list.iter().enumerate() {
        let place = format!("rule {}", at + 1);
        let Value::Table(table) = one else { return Err(value(&place, "rule", one, "expected [[rule]] tables")) };
        let rule = rule(table, &place, &rules.groups)?;
        rules.rules.push(rule);
    }
    if rules.rules.is_empty() && rules.groups.iter().all(|group| group.cpus.is_none()) {
        let what = "states nothing; expected [[rule]] tables with comm, pid or group and allowed or preferred";
        return Err(AffinityError::Nothing { place: "the file".to_owned(), what });
    }
    Ok(rules)
}

fn groups(file: &Table) -> Result<Vec<Group>, AffinityError> {
    let table = match file.get("group") {
        None => return Ok(Vec::new()),
        Some(Value::Table(table)) => table,
        Some(other) => return Err(value("the file", "group", other, "expected [group.NAME] tables")),
    };
    if table.len() > GROUPS_MAX {
        let found = format!("{} groups", table.len());
        let expected = format!("expected at most {GROUPS_MAX}");
        return Err(AffinityError::Value { place: "the file".to_owned(), key: "group".to_owned(), found, expected });
    }
    let group = |(name, one): (&String, &Value)| {
        let place = format!("group {name:?}");
        let Value::Table(table) = one else {
            return Err(value("the file", &format!("group.{name}"), one, "expected a [group.NAME] table"));
        };
        keys(table, &place, GROUP_KEYS)?;
        let members = who(table, &place)?;
        if members.comms.is_empty() && members.pids.is_empty() {
            return Err(AffinityError::Nothing { place, what: "has no members; expected comm or pid" });
        }
        Ok(Group { name: name.clone(), members, cpus: mask(table, &place, "cpus")? })
    };
    table.iter().map(group).collect()
}

fn rule(table: &Table, place: &str, groups: &[Group]) -> Result<Rule, AffinityError> {
    keys(table, place, RULE_KEYS)?;
    let group = match table.get("group") {
        None => None,
        Some(Value::String(name)) => Some(groups.iter().position(|group| group.name == *name).ok_or_else(|| {
            let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let expected = format!("no such group{}; there are {there}", did_you_mean(name, &names));
            AffinityError::Value {
                place: place.to_owned(),
                key: "group".to_owned(),
                found: format!("{name:?}"),
                expected,
            }
        })?),
        Some(other) => return Err(value(place, "group", other, "expected the name of a [group.NAME]")),
    };
    let rule = Rule {
        who: who(table, place)?,
        group,
        allowed: mask(table, place, "allowed")?,
        preferred: mask(table, place, "preferred")?,
        uclamp_min: util(table, place, "uclamp_min")?,
        uclamp_max: util(table, place, "uclamp_max")?,
        title: title(table, place),
    };
    check(rule, place)
}

/// What one rule says has to make sense in itself.
fn check(rule: Rule, place: &str) -> Result<Rule, AffinityError> {
    let nothing = |what| Err(AffinityError::Nothing { place: place.to_owned(), what });
    if rule.who.comms.is_empty() && rule.who.pids.is_empty() && rule.group.is_none() {
        return nothing("names no tasks; expected comm, pid or group");
    }
    if [rule.allowed, rule.preferred].iter().all(Option::is_none)
        && [rule.uclamp_min, rule.uclamp_max].iter().all(Option::is_none)
    {
        return nothing("states nothing; expected allowed, preferred, uclamp_min or uclamp_max");
    }
    if let (Some(allowed), Some(preferred)) = (rule.allowed, rule.preferred)
        && !preferred.intersects(&allowed)
    {
        let why = format!("none of these CPUs is in allowed = \"{allowed}\"");
        return Err(AffinityError::Einval { place: rule.title, key: "preferred", mask: preferred.to_string(), why });
    }
    if let (Some(min), Some(max)) = (rule.uclamp_min, rule.uclamp_max)
        && min > max
    {
        return Err(AffinityError::Value {
            place: rule.title,
            key: "uclamp_min".to_owned(),
            found: min.to_string(),
            expected: format!("-EINVAL: above uclamp_max = {max}"),
        });
    }
    Ok(rule)
}

/// `rule 2 (comm "srv*", pid 7)`.
fn title(table: &Table, place: &str) -> String {
    let conditions = ["comm", "pid", "group"].into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let conditions: Vec<String> = conditions.map(|(key, value)| format!("{key} {value}")).collect();
    format!("{place} ({})", conditions.join(", "))
}

fn keys(table: &Table, place: &str, possible: &[&str]) -> Result<(), AffinityError> {
    match table.keys().find(|key| !possible.contains(&key.as_str())) {
        None => Ok(()),
        Some(found) => Err(AffinityError::Key {
            place: place.to_owned(),
            found: found.clone(),
            hint: did_you_mean(found, possible),
            possible: possible.join(", "),
        }),
    }
}

fn value(place: &str, key: &str, found: &Value, expected: impl Into<String>) -> AffinityError {
    let (place, key, found) = (place.to_owned(), key.to_owned(), found.to_string());
    AffinityError::Value { place, key, found, expected: expected.into() }
}

/// One value, or a list of them.
fn list<'a>(table: &'a Table, key: &str) -> &'a [Value] {
    match table.get(key) {
        None => &[],
        Some(Value::Array(list)) => list,
        Some(one) => std::slice::from_ref(one),
    }
}

fn who(table: &Table, place: &str) -> Result<Who, AffinityError> {
    for key in ["comm", "pid"] {
        if let Some(found @ Value::Array(list)) = table.get(key)
            && list.is_empty()
        {
            return Err(value(place, key, found, "expected at least one"));
        }
    }
    let comm = |one: &Value| {
        let Value::String(pattern) = one else {
            return Err(value(place, "comm", one, "expected a name like \"srv*\""));
        };
        let glob = Glob::new(pattern).map_err(|error| value(place, "comm", one, error.kind().to_string()))?;
        Ok(glob.compile_matcher())
    };
    let pid = |one: &Value| match one {
        Value::Integer(pid) if *pid > 0 => i32::try_from(*pid).map(Pid).map_err(|_| "too big"),
        _ => Err("expected a thread id: a number from 1 on"),
    };
    let pid = |one: &Value| pid(one).map_err(|expected| value(place, "pid", one, expected));
    Ok(Who {
        comms: list(table, "comm").iter().map(comm).collect::<Result<_, _>>()?,
        pids: list(table, "pid").iter().map(pid).collect::<Result<_, _>>()?,
    })
}

fn mask(table: &Table, place: &str, key: &str) -> Result<Option<Cpumask>, AffinityError> {
    let Some(found) = table.get(key) else { return Ok(None) };
    let Value::String(list) = found else { return Err(value(place, key, found, "expected a list like \"0-3,8\"")) };
    let mask: Cpumask =
        list.parse().map_err(|error: crate::cpumask::CpulistError| value(place, key, found, error.to_string()))?;
    if mask.is_empty() {
        return Err(value(place, key, found, "-EINVAL: no CPU in the list; expected something like \"0-3,8\""));
    }
    Ok(Some(mask))
}

fn util(table: &Table, place: &str, key: &str) -> Result<Option<u64>, AffinityError> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::Integer(util)) if (0..=UTIL_MAX as i64).contains(util) => Ok(Some(*util as u64)),
        Some(other) => Err(value(place, key, other, format!("expected a utilisation from 0 to {UTIL_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Comm;

    const FILE: &str = r#"
[group.db]
comm = "oracle*"
pid = 7
cpus = "0-15"

[[rule]]
group = "db"
preferred = "0-7"

[[rule]]
comm = ["srv*", "cli?"]
pid = [12, 13]
allowed = "0-3"
uclamp_min = 100
uclamp_max = 512
"#;

    fn error(text: &str) -> String {
        Rules::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_file_is_read() {
        let rules = Rules::parse(FILE).expect("a side file");
        let comm = |name: &str| Comm::new(name.as_bytes());
        assert_eq!(rules.groups_of(Pid(1), &comm("oracle_1")), 1);
        assert_eq!(rules.groups_of(Pid(7), &comm("sh")), 1, "either condition makes a member");
        assert_eq!(rules.groups_of(Pid(8), &comm("sh")), 0);
        let of =
            |pid, name: &str, groups| rules.of(Pid(pid), &comm(name), groups).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(of(1, "anything", 1), [0]);
        assert_eq!(of(12, "srvA", 0), [1]);
        assert!(of(14, "srvA", 0).is_empty() && of(12, "client", 0).is_empty(), "both conditions have to hold");
        assert_eq!(rules.cpuset(1).weight(), 16);
        assert_eq!(rules.rules[1].title, "rule 2 (comm [\"srv*\", \"cli?\"], pid [12, 13])");
        assert_eq!((rules.rules[1].uclamp_min, rules.rules[1].uclamp_max), (Some(100), Some(512)));
        assert!(rules.check(&Cpumask::first_n(8)).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let rule = |text: &str| format!("[[rule]]\ncomm = \"a\"\n{text}\n");
        let text = error(&rule("alowed = \"0\""));
        assert!(text.contains("rule 1: no key \"alowed\" (did you mean \"allowed\"?)"), "{text}");
        assert!(error("[groups.db]\ncomm = \"a\"").contains("did you mean \"group\""));
        assert!(error("[group.db]\ncom = \"a\"").contains("group \"db\": no key \"com\" (did you mean \"comm\"?)"));
        assert!(error(&rule("allowed = \"0-\"")).contains("rule 1: allowed"));
        assert!(error(&rule("allowed = 3")).contains("expected a list like"));
        assert!(error(&rule("allowed = \"\"")).contains("-EINVAL"));
        let text = error(&rule("allowed = \"0-3\"\npreferred = \"4-7\""));
        assert!(text.contains("preferred = \"4-7\": -EINVAL") && text.contains("allowed = \"0-3\""), "{text}");
        assert!(error(&rule("uclamp_min = 1025")).contains("0 to 1024"));
        assert!(error(&rule("uclamp_min = 600\nuclamp_max = 500")).contains("-EINVAL"));
        assert!(error("[[rule]]\nallowed = \"0\"").contains("names no tasks"));
        assert!(error("[[rule]]\ncomm = \"a\"").contains("states nothing"));
        assert!(error("").contains("states nothing"));
        assert!(
            error("[[rule]]\ngroup = \"bd\"\nallowed = \"0\"\n[group.db]\npid = 1").contains("did you mean \"db\"")
        );
        assert!(error("[[rule]]\npid = 0\nallowed = \"0\"").contains("thread id"));
        assert!(error("[[rule]]\ncomm = []\nallowed = \"0\"").contains("at least one"));
        assert!(error("[[rule]]\ncomm = \"[\"\nallowed = \"0\"").contains("rule 1: comm"));
        assert!(error("rule = 1").contains("[[rule]]"));
        assert!(error("[group.db]\ncpus = \"0\"").contains("no members"));
        assert!(error("[[rule").contains("no TOML"));
    }

    #[test]
    fn a_mask_that_the_machine_does_not_have_is_refused() {
        let rules = Rules::parse("[[rule]]\ncomm = \"a\"\nallowed = \"8-9\"").expect("a side file");
        let text = rules.check(&Cpumask::first_n(8)).expect_err("eight CPUs").to_string();
        assert!(text.contains("allowed = \"8-9\": -EINVAL") && text.contains("0-7"), "{text}");
        assert!(rules.check(&Cpumask::first_n(9)).is_ok());
    }
}
