// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations behind `docs/reproduction.md`: what the mails measured, on machines like theirs.

use std::sync::Arc;

use crate::cpumask::Cpumask;
use crate::replay::Entrant;
use crate::simulate::models::{Model, ModelError};
use crate::simulate::trial::{Point, Row, Trial, TrialError, play};
use crate::simulate::{Cost, Setup, Workload};
use crate::spec::Spec;
use crate::topology::{LoadError, Release, Topology, TopologySource, load_for};

/// A load that the mails do not have, between two of theirs: it counts in no sum.
pub const BETWEEN: u64 = 48;
/// Loads of the tbench tables: the mails', and [`BETWEEN`].
pub const CLIENTS: [u64; 11] = [1, 2, 4, 8, 16, 32, BETWEEN, 64, 128, 256, 320];
/// The base of the v2 series, and its patches one by one.
pub const SERIES: [&str; 6] =
    ["v5.11", "v5.11+recent-used", "v5.11+idle-candidate", "v5.11+no-sis-avg-cpu", "v5.11+scan-cost", "v5.11+mel-v2"];
/// Loads of the soft-affinity RFC: instances and groups, instances and users.
pub const HACKBENCH: [(u64, u64); 4] = [(2, 4), (2, 16), (1, 4), (1, 16)];
/// The same of the database.
pub const DB: [(u64, u64); 4] = [(2, 16), (2, 32), (1, 16), (1, 32)];
/// How the RFC's instances keep to their nodes.
pub const MODES: [&str; 4] = ["none", "hard", "soft 100:1", "soft 5:4"];

/// All results.
#[derive(Debug, Clone)]
pub struct Results {
    /// tbench by number of clients, the columns are [`SERIES`].
    pub tbench: Vec<Row>,
    /// hackbench and the database by mode: one column, v5.2 with both patches of the RFC.
    pub soft: Vec<(&'static str, Vec<Row>)>,
    /// The same without any affinity: v5.2 and v5.2 with the RFC's 2/3.
    pub unused: Vec<Row>,
}

/// Why there are none.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The machines of the mails.
    #[error(transparent)]
    Machine(#[from] LoadError),
    /// A workload.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A simulation.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// An implementation.
    #[error("no implementation {0}")]
    Spec(String),
}

/// Runs all of it: some minutes.
///
/// # Errors
/// None that a user can cause.
pub fn mails(repeat: u64, measure_ns: u64) -> Result<Results, SuiteError> {
    let server = setup("2x20x2", Release::new(5, 11), measure_ns)?;
    let mut points = Vec::new();
    for clients in CLIENTS {
        points.push(point("tbench", &clients.to_string(), &[("clients", &clients.to_string())])?);
    }
    let trial = Trial { setup: server, entrants: entrants(&SERIES)?, points, seed: 1, repeat };
    let tbench = play(&trial)?;
    // Tasks of hackbench find their places on two nodes more slowly.
    let dual = setup("2x22x2", Release::new(5, 2), measure_ns)?;
    let dual = Setup { warmup_ns: 2 * dual.warmup_ns, ..dual };
    let mut soft = Vec::new();
    for mode in MODES {
        soft.push((mode, affinity(&dual, mode, &["v5.2+soft-affinity+tunables"], repeat)?));
    }
    let unused = affinity(&dual, MODES[0], &["v5.2", "v5.2+soft-affinity"], repeat)?;
    Ok(Results { tbench, soft, unused })
}

fn setup(machine: &str, release: Release, measure_ns: u64) -> Result<Setup, SuiteError> {
    let loaded = load_for(&TopologySource::parse(machine), Some(release))?;
    Ok(Setup {
        release: (u32::from(release.major), u32::from(release.minor)),
        warmup_ns: 100_000_000,
        measure_ns,
        ..Setup::new(Arc::new(loaded.topology))
    })
}

fn entrants(specs: &[&str]) -> Result<Vec<Entrant>, SuiteError> {
    let entrant = |text: &&str| match text.parse() {
        Ok(Spec::Model(spec)) => Ok(Entrant::Model(spec)),
        _ => Err(SuiteError::Spec((*text).to_owned())),
    };
    specs.iter().map(entrant).collect()
}

fn point(model: &str, label: &str, values: &[(&str, &str)]) -> Result<Point, SuiteError> {
    let model = Model::named(model)?;
    let workload = model.build(&model.values(values)?);
    Ok(Point { label: label.to_owned(), workload, cost: Cost::new(), recorded: None })
}

/// hackbench and the database with each instance kept to a node.
fn affinity(setup: &Setup, mode: &str, specs: &[&str], repeat: u64) -> Result<Vec<Row>, SuiteError> {
    let mut points = Vec::new();
    for (model, load, loads) in [("hackbench", "groups", HACKBENCH), ("db", "users", DB)] {
        for (instances, n) in loads {
            let (instances, n) = (instances.to_string(), n.to_string());
            let label = format!("{model} {instances}*{n}");
            let mut point = point(model, &label, &[("instances", &instances), (load, &n)])?;
            keep(&mut point.workload, &setup.topology, mode);
            points.push(point);
        }
    }
    let soft_affinity = if mode.ends_with("5:4") { (4, 5) } else { (1, 100) };
    let setup = Setup { soft_affinity, ..setup.clone() };
    Ok(play(&Trial { setup, entrants: entrants(specs)?, points, seed: 1, repeat })?)
}

/// Each instance, told by the number that its tasks' names end with, keeps to the node of that number.
fn keep(workload: &mut Workload, topology: &Topology, mode: &str) {
    for task in &mut workload.tasks {
        let number = task.comm.to_string().chars().last().and_then(|digit| digit.to_digit(10)).unwrap_or(0);
        let node: Cpumask = topology.online().iter().filter(|&cpu| topology.node(cpu) == number).collect();
        if node.is_empty() || mode == "none" {
            continue;
        }
        if mode == "hard" {
            task.allowed = Some(node);
        } else {
            task.preferred = Some(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_keep_to_their_nodes() {
        let dual = setup("2x2x2", Release::new(5, 2), 1_000).expect("a machine");
        let mut one = point("db", "", &[("instances", "2"), ("users", "2")]).expect("a point");
        keep(&mut one.workload, &dual.topology, "hard");
        let of = |name: &str| {
            let task = one.workload.tasks.iter().find(|task| task.comm.to_string() == name).expect("a task");
            task.allowed.map(|mask| mask.to_string())
        };
        assert_eq!((of("db0"), of("log1")), (Some("0-1,4-5".to_owned()), Some("2-3,6-7".to_owned())));
    }
}
