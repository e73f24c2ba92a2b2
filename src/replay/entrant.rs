// SPDX-License-Identifier: GPL-2.0-or-later
//! What is compared in a replay: a model, or a kernel tree that was built before.

use crate::fair::{Implementation, Model};
use crate::replay::error::ReplayError;
use crate::spec::{ModelSpec, SchedFeat};
use crate::topology::{Snapshot, Topology};
#[cfg(feature = "tree")]
use crate::tree::Prepared;

/// An implementation that can be opened on any machine.
#[derive(Debug, Clone)]
pub enum Entrant {
    /// One of the models.
    Model(ModelSpec),
    /// A kernel tree.
    #[cfg(feature = "tree")]
    Tree(Prepared),
}

impl From<ModelSpec> for Entrant {
    fn from(spec: ModelSpec) -> Self {
        Self::Model(spec)
    }
}

impl Entrant {
    /// Its spec.
    pub fn name(&self) -> String {
        match self {
            Self::Model(spec) => spec.to_string(),
            #[cfg(feature = "tree")]
            Self::Tree(tree) => tree.name().to_owned(),
        }
    }

    /// Opened on a machine; its idle checks take `probe_ns` each. `recorded`: it stands for the recorded kernel and has
    /// that machine's features, where they are known.
    ///
    /// # Errors
    /// [`ReplayError::Tree`]: what was built cannot be opened any more.
    pub fn open(
        &self,
        topology: &Topology,
        probe_ns: u64,
        recorded: Option<&Snapshot>,
    ) -> Result<Box<dyn Implementation>, ReplayError> {
        Ok(match self {
            Self::Model(spec) => {
                let spec = recorded.map_or(*spec, |told| spec.with_features(features(told, spec.features())));
                let mut model = Model::new(spec, topology);
                model.hidden.clock.probe_ns = probe_ns;
                Box::new(model)
            }
            #[cfg(feature = "tree")]
            Self::Tree(prepared) => {
                let mut tree = prepared.open(topology).map_err(|error| ReplayError::Tree(error.to_string()))?;
                if let Some(told) = recorded {
                    tree.set_features_by(|name| told.feature(name));
                }
                tree.hidden.clock.probe_ns = probe_ns;
                Box::new(tree)
            }
        })
    }
}

/// The features that the snapshot of the recorded kernel tells, else the model's own.
fn features(told: &Snapshot, own: SchedFeat) -> SchedFeat {
    let mut features = own;
    for (name, feature) in SchedFeat::all().iter_names() {
        if let Some(on) = told.feature(name) {
            features.set(feature, on);
        }
    }
    features
}
