// SPDX-License-Identifier: GPL-2.0-or-later
//! Results of simulations as JSON: schema `sisdiff.simulate/1`, described in `docs/simulate.schema.json`.

use serde_json::{Map, Value, json};

use crate::fair::Exit;
use crate::report::simulate::{Head, QUANTILES};
use crate::report::sis;
use crate::simulate::extract::Figures;
use crate::simulate::trial::{Cell, Row};
use crate::simulate::{Histogram, Stats};

/// Name and version of the schema. The number grows when a field changes its meaning or goes away; new fields do not
/// change it.
pub const SCHEMA: &str = "sisdiff.simulate/1";

/// The whole report as JSON text, indented, with a newline at its end.
///
/// # Errors
/// None that a report can cause; serde's.
pub fn json(head: &Head, rows: &[Row]) -> Result<String, serde_json::Error> {
    let setup: Map<String, Value> = head.lines.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    let row = |row: &Row| {
        let cells: Vec<Value> = row.cells.iter().zip(&row.names).map(|(one, name)| cell(head, name, one)).collect();
        let mut load =
            json!({ "label": row.label, "workload": row.workload, "unit": row.unit, "implementations": cells });
        if let Some(recorded) = &row.recorded {
            load["recorded"] = figures(recorded);
        }
        load
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    let report = json!({
        "schema": SCHEMA,
        "sisdiff": env!("CARGO_PKG_VERSION"),
        "title": head.title,
        "setup": setup,
        "loads": rows,
    });
    serde_json::to_string_pretty(&report).map(|text| text + "\n")
}

fn histogram(of: &Histogram) -> Value {
    let mut map = Map::new();
    map.insert("count".to_owned(), json!(of.count()));
    map.insert("mean_ns".to_owned(), json!(of.mean()));
    map.insert("max_ns".to_owned(), json!(of.max()));
    for (title, share) in QUANTILES {
        map.insert(format!("p{title}_ns"), json!(of.quantile(share)));
    }
    Value::Object(map)
}

fn cell(head: &Head, name: &str, cell: &Cell) -> Value {
    let stats = &cell.stats;
    let exits: Map<String, Value> = Exit::ALL
        .iter()
        .zip(stats.exits)
        .filter(|(_, n)| *n > 0)
        .map(|(exit, n)| (format!("{exit:?}"), json!(n)))
        .collect();
    let comms: Vec<Value> = stats
        .comms
        .iter()
        .map(|(comm, by)| {
            json!({
                "comm": comm.to_string(),
                "latency": histogram(&by.latency),
                "done": by.done,
                "work_ns": by.work_ns,
                "woken_elsewhere": by.migrations,
            })
        })
        .collect();
    json!({
        "name": name,
        "throughput": cell.throughput,
        "hmean": cell.hmean(),
        "interval": cell.interval(),
        "latency": histogram(&stats.latency),
        "requests": histogram(&stats.requests),
        "measured_ns": stats.measured_ns,
        "cpus": stats.cpus,
        "wakeups": stats.wakeups,
        "woken_to": by_distance(stats.woken_to),
        "pulled": by_distance(stats.pulled),
        "wrong": stats.wrong,
        "forks": stats.forks,
        "execs": stats.execs,
        "switches": stats.switches,
        "preempted": stats.preempted,
        "utilisation": stats.utilisation(),
        "wasted_ns": stats.wasted_ns,
        "work_ns": stats.work_ns,
        "scan_ns": stats.scan_ns,
        "cache_ns": stats.cache_ns,
        "busy_ns": stats.busy_ns,
        "sis": sis::raw(&stats.sis, head.recent_miss),
        "exits": exits,
        "comms": comms,
        "series": series(stats),
    })
}

fn figures(recorded: &Figures) -> Value {
    json!({
        "wall_ns": recorded.wall_ns,
        "busy_ns": recorded.busy_ns,
        "migrations": recorded.migrations,
        "latency": histogram(&recorded.latency),
    })
}

fn by_distance([same, core, llc, node, remote]: [u64; 5]) -> Value {
    json!({ "same": same, "core": core, "llc": llc, "node": node, "remote": remote })
}

fn series(stats: &Stats) -> Value {
    let of = |of: fn(&crate::simulate::stats::Bin) -> u64| -> Vec<u64> { stats.series.iter().map(of).collect() };
    json!({
        "search": of(|bin| bin.search),
        "domain_search": of(|bin| bin.domain_search),
        "scanned": of(|bin| bin.scanned),
        "done": of(|bin| bin.done),
        "busy_ns": of(|bin| bin.busy_ns),
    })
}
