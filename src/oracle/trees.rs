// SPDX-License-Identifier: GPL-2.0-or-later
//! Models and kernel trees on trial together.

use crate::oracle::judge::{Maker, Models, Side, Trouble};
use crate::scenario::{Case, World};
use crate::tree::Prepared;

/// The models of [`crate::fair`], and trees that were built before.
#[derive(Debug, Clone, Default)]
pub struct WithTrees {
    /// The trees, each found by its name.
    pub trees: Vec<Prepared>,
}

impl Maker for WithTrees {
    fn make(&self, name: &str, case: &Case, world: &World) -> Result<Side, Trouble> {
        let Some(prepared) = self.trees.iter().find(|tree| tree.name() == name) else {
            return Models.make(name, case, world);
        };
        let trouble = |error: sisdiff_tree::error::TreeError| Trouble::Implementation {
            name: name.to_owned(),
            why: error.to_string(),
        };
        let settings = &case.settings;
        let mut tree = prepared.open(&world.state().topology).map_err(trouble)?;
        for (switches, on) in [(settings.features.on, true), (settings.features.off, false)] {
            for (feature, _) in switches.iter_names() {
                tree.set_feature(feature, on);
            }
        }
        tree.hidden.clock.probe_ns = settings.probe_ns;
        tree.hidden.clock.clock_read_ns = settings.clock_read_ns;
        tree.hidden.clock.mask_op_ns = settings.mask_op_ns;
        tree.hidden.sysctl_sched_preferred = settings.sched_preferred;
        tree.hidden.sysctl_sched_allowed = settings.sched_allowed;
        Ok(Side { name: name.to_owned(), base: None, spec: None, implementation: Box::new(tree) })
    }
}
