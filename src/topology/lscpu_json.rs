// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON of `lscpu -J`, read by hand over serde's visitors, so that a hostile file costs no more than its bytes.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::load::LoadError;
use super::lscpu::{Summary, Table, too_many};
use super::masks::excerpt;

/// Rows, fields and cells that are kept; the table and the summary have limits of their own that name what is too much.
const MAX_KEPT: usize = 10_000;

/// What a file of lscpu's JSON holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Json {
    /// `lscpu -e -J`.
    Table(Table),
    /// `lscpu -J`.
    Summary(Summary),
}

/// Reads `text`.
///
/// # Errors
/// If it is not JSON or not lscpu's.
pub(super) fn read(origin: &str, text: &str) -> Result<Json, LoadError> {
    let wrong = |found: String| LoadError::File {
        file: origin.to_owned(),
        found,
        expected: "what `lscpu -J` or `lscpu -J -e` prints: an object with \"lscpu\" or \"cpus\"",
    };
    // lscpu 2.38 prints a bare - for a number that it does not know.
    let document: Document = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(first) => serde_json::from_str(&without_bare_dashes(text))
            .map_err(|_| wrong(format!("JSON that does not fit ({first})")))?,
    };
    if let Some(rows) = document.cpus {
        return table(origin, &rows.0).map(Json::Table);
    }
    let Some(Fields(fields)) = document.lscpu else {
        return Err(wrong(format!("JSON that begins with {}", excerpt(&text.chars().take(40).collect::<String>()))));
    };
    let mut summary = Summary::default();
    for (field, data) in fields {
        summary.push(origin, &field, &data)?;
    }
    Ok(Json::Summary(summary))
}

fn table(origin: &str, rows: &[Row]) -> Result<Table, LoadError> {
    if rows.len() >= MAX_KEPT {
        return Err(too_many(origin, "rows", MAX_KEPT));
    }
    // Rows of one file have the same keys; a key that only a later row has is a column too.
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.0) {
        if !names.contains(&name.as_str()) {
            names.push(name);
            if names.len() > 64 {
                return Err(too_many(origin, "columns", 64));
            }
        }
    }
    let mut table = Table::new(origin, &names)?;
    for (at, row) in rows.iter().enumerate() {
        let value = |name: &&str| row.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
        let values: Vec<&str> = names.iter().map(value).collect();
        table.push(origin, &names, &values, at + 1)?;
    }
    Ok(table)
}

/// `"maxmhz": -` → `"maxmhz": null`, outside of strings.
fn without_bare_dashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let bare = !inside && c == '-' && chars.peek().is_none_or(|next| !next.is_ascii_digit());
        inside ^= c == '"' && !escaped;
        escaped = inside && c == '\\' && !escaped;
        if bare { out.push_str("null") } else { out.push(c) }
    }
    out
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    lscpu: Option<Fields>,
    #[serde(default)]
    cpus: Option<Rows>,
}

/// A scalar as text; an object or a list is as good as nothing.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number, true, false or null")
            }
            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar(value.to_owned()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(if value { "yes" } else { "no" }.to_owned()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar(String::new()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar(String::new()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar(String::new()))
            }
        }
        from.deserialize_any(V)
    }
}

/// One object of `"cpus"`.
struct Row(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Row;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object for a CPU")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
                let mut cells = Vec::new();
                while let Some((name, Scalar(value))) = map.next_entry::<String, Scalar>()? {
                    if cells.len() == 64 {
                        return Err(A::Error::custom("a CPU with more than 64 columns"));
                    }
                    cells.push((name.to_lowercase(), value));
                }
                Ok(Row(cells))
            }
        }
        from.deserialize_map(V)
    }
}

struct Rows(Vec<Row>);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Rows;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of CPUs")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows, A::Error> {
                let mut rows = Vec::new();
                while rows.len() < MAX_KEPT
                    && let Some(row) = seq.next_element()?
                {
                    rows.push(row);
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Rows(rows))
            }
        }
        from.deserialize_seq(V)
    }
}

/// Fields and data, those under `"children"` behind their parent.
struct Fields(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Vec::new();
        Level(&mut fields).deserialize(from)?;
        Ok(Self(fields))
    }
}

/// A list of fields, added to what is there. serde_json ends recursion at a depth of 128.
struct Level<'a>(&'a mut Vec<(String, String)>);

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects with field and data")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Field(self.0))?.is_some() {}
        Ok(())
    }
}

/// One object with field, data and children.
struct Field<'a>(&'a mut Vec<(String, String)>);

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with field and data")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let own = self.0.len();
        if own == MAX_KEPT {
            return Err(A::Error::custom("more fields than lscpu prints"));
        }
        self.0.push((String::new(), String::new()));
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "field" => self.0[own].0 = map.next_value::<Scalar>()?.0,
                "data" => self.0[own].1 = map.next_value::<Scalar>()?.0,
                "children" => map.next_value_seed(Level(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> (String, Vec<String>) {
        match read("t", text).unwrap_or_else(|error| panic!("{error}")) {
            Json::Table(table) => (table.columns.join(" "), table.rows.iter().map(|row| row.join("|")).collect()),
            Json::Summary(summary) => panic!("{summary:?}"),
        }
    }

    #[test]
    fn values_are_of_any_type() {
        // Until 2.32 all are strings, since 2.33 numbers and booleans; 2.38 prints a bare dash.
        let old =
            r#"{"cpus": [{"cpu": "0", "node": "0", "l1d:l1i:l2:l3": "0:0:0:1", "online": "yes", "maxmhz": null}]}"#;
        let new = r#"{"cpus": [{"cpu": 0, "node": 0, "l1d:l1i:l2:l3": "0:0:0:1", "online": true, "maxmhz": - }]}"#;
        let want = ("cpu node l1d l1i l2 l3 online maxmhz".to_owned(), vec!["0|0|0|0|0|1|yes|".to_owned()]);
        assert_eq!((rows(old), rows(new)), (want.clone(), want));
    }

    #[test]
    fn fields_may_be_nested() {
        let text = r#"{"lscpu": [{"field": "Architecture:", "data": "x86_64", "children": [
            {"field": "CPU op-mode(s):", "data": "32-bit, 64-bit"}]}, {"field": "CPU(s):", "data": "8"},
            {"field": "NUMA:", "data": null, "children": [{"field": "NUMA node0 CPU(s):", "data": "0-7"}]}]}"#;
        let Json::Summary(summary) = read("t", text).expect("a summary") else { panic!("a summary") };
        assert_eq!(summary.get("architecture"), Some("x86_64"));
        assert_eq!(summary.get("numa node0 cpu(s)"), Some("0-7"));
        assert_eq!(summary.get("cpu(s)"), Some("8"));
    }

    #[test]
    fn other_json_is_refused() {
        let deep = "[".repeat(100_000);
        let nested = format!("{{\"lscpu\": {}", "[{\"children\": ".repeat(50_000));
        let wide = format!("{{\"cpus\": [{{{}\"cpu\": 0}}]}}", "\"x\": 0, ".repeat(70));
        for text in ["{}", "{", r#"{"cpus": 3}"#, r#"{"lscpu": {}}"#, r#"{"caches": []}"#, &deep, &nested, &wide] {
            let error = read("box.json", text).expect_err("not lscpu's").to_string();
            assert!(error.contains("box.json") && error.len() < 600, "{error}");
        }
        let many = format!("{{\"cpus\": [{}{{}}]}}", "{},".repeat(MAX_KEPT));
        assert!(read("t", &many).expect_err("too many").to_string().contains("rows"));
    }
}
