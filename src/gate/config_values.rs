// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of `gate.toml`, each with what was expected where it is something else.

use globset::{Glob, GlobMatcher};
use toml::{Table, Value};

use crate::gate::allow::Share;
use crate::gate::config::ConfigError;
use crate::hint::did_you_mean;
use crate::spec::Spec;

/// Refuses a key that nobody reads.
pub(super) fn keys(table: &Table, place: &str, possible: &[&str]) -> Result<(), ConfigError> {
    match table.keys().find(|key| !possible.contains(&key.as_str())) {
        None => Ok(()),
        Some(found) => Err(ConfigError::Key {
            place: place.to_owned(),
            found: found.clone(),
            hint: did_you_mean(found, possible),
            possible: possible.join(", "),
        }),
    }
}

/// The value of `key`, read by `read`, whose error says what it expects.
pub(super) fn optional<T>(
    table: &Table,
    place: &str,
    key: &str,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Option<T>, ConfigError> {
    let Some(found) = table.get(key) else { return Ok(None) };
    let value = |expected| ConfigError::Value {
        place: place.to_owned(),
        key: key.to_owned(),
        found: found.to_string(),
        expected,
    };
    read(found).map(Some).map_err(value)
}

pub(super) fn string(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(text.clone()),
        _ => Err("expected a text".to_owned()),
    }
}

pub(super) fn strings(value: &Value) -> Result<Vec<String>, String> {
    let expected = || "expected a list of texts".to_owned();
    match value {
        Value::Array(list) => list.iter().map(|one| string(one).map_err(|_| expected())).collect(),
        Value::String(_) => string(value).map(|one| vec![one]),
        _ => Err(expected()),
    }
}

pub(super) fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "expected true or false".to_owned())
}

pub(super) fn number(from: u64, to: u64) -> impl Fn(&Value) -> Result<u64, String> {
    move |value| {
        let number = value.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| (from..=to).contains(n));
        number.ok_or_else(|| format!("expected a number from {from} to {to}"))
    }
}

pub(super) fn share(value: &Value) -> Result<Share, String> {
    let share = value.as_str().and_then(Share::parse);
    share.ok_or_else(|| "expected a share such as \"0.5%\", at most 100, at most four decimals".to_owned())
}

pub(super) fn spec(value: &Value) -> Result<Spec, String> {
    string(value)?.parse().map_err(|error: crate::spec::SpecError| error.to_string())
}

pub(super) fn glob(value: &Value) -> Result<GlobMatcher, String> {
    let glob = Glob::new(&string(value)?).map_err(|error| error.kind().to_string())?;
    Ok(glob.compile_matcher())
}

/// A pattern of paths.
pub(super) fn pattern(text: &str) -> Result<glob::Pattern, String> {
    glob::Pattern::new(text).map_err(|error| format!("is no pattern: {}", error.msg))
}

/// Patterns of paths, which have to be in the form that found paths are compared in.
pub(super) fn globs(table: &Table, place: &str, key: &str) -> Result<Vec<String>, ConfigError> {
    let read = |value: &Value| {
        let patterns = strings(value)?;
        for text in &patterns {
            pattern(text)?;
            if text.split('/').any(|part| part == ".") || text.contains("//") || text.ends_with('/') {
                return Err("expected paths without ./ and //, not ending in /".to_owned());
            }
            // The crate finds folders only by it, and yet says that files fit.
            if text.split('/').next_back() == Some("**") {
                let files = format!("{text}/*.dat");
                return Err(format!("{text:?} means folders only, not the files in them; write {files:?}"));
            }
        }
        Ok(patterns)
    };
    Ok(optional(table, place, key, read)?.unwrap_or_default())
}

/// The table `[key]`.
pub(super) fn subtable<'a>(file: &'a Table, key: &str, expected: &str) -> Result<Option<&'a Table>, ConfigError> {
    match file.get(key) {
        None => Ok(None),
        Some(Value::Table(table)) => Ok(Some(table)),
        Some(other) => Err(ConfigError::Value {
            place: "the file".to_owned(),
            key: key.to_owned(),
            found: other.to_string(),
            expected: expected.to_owned(),
        }),
    }
}

/// The tables `[[key]]`, each with the name that messages give it.
pub(super) fn tables<'a>(file: &'a Table, key: &str) -> Result<Vec<(String, &'a Table)>, ConfigError> {
    let wrong = |found: &Value| ConfigError::Value {
        place: "the file".to_owned(),
        key: key.to_owned(),
        found: found.to_string(),
        expected: format!("expected [[{key}]] tables"),
    };
    let list = match file.get(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(other)),
    };
    let table = |(at, one): (usize, &'a Value)| match one {
        Value::Table(table) => Ok((format!("{key} {}", at + 1), table)),
        other => Err(wrong(other)),
    };
    list.iter().enumerate().map(table).collect()
}
