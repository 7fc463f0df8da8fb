//! Central: who was faster than the others with its last portion gets twice as many
//! subtasks next, and who was slower half as many (Unicorn, section V, the dynamic
//! centralised scheduler of figure 9).
//!
//! The paper counts for each computing unit. Here a node's units share its queue, so the
//! node's portion is counted, and begins with one for each unit.

use std::ops::Range;

use super::{Finished, Spread, TaskState};
use crate::cluster::NodeId;
use crate::time::Nanos;

/// Times that differ by less count as equal.
const ALIKE: f64 = 0.1;

#[derive(Clone, Copy, Debug, Default)]
struct Portion {
    size: usize,
    begun: Nanos,
    /// The time of the last portion.
    took: Option<Nanos>,
}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct Central {
    portions: Vec<Portion>,
}

impl Central {
    /// Gives a node that has nothing its portion.
    fn give(&mut self, node: NodeId, state: &mut TaskState) {
        if !state.ledger().queue(node).is_empty() {
            return;
        }
        let portion = &mut self.portions[node.index()];
        portion.begun = state.now();
        let next: Vec<u64> = state.ledger().free().iter().take(portion.size).collect();
        state.assign(node, next);
    }

    fn give_all(&mut self, state: &mut TaskState) {
        let nodes: Vec<NodeId> = state.working().collect();
        for node in nodes {
            self.give(node, state);
        }
    }

    /// The mean time of the other nodes' last portions.
    fn others(&self, node: NodeId) -> Option<f64> {
        let others = self.portions.iter().enumerate();
        let others = others.filter(|(other, _)| *other != node.index());
        let times: Vec<f64> = others.filter_map(|(_, p)| Some(p.took? as f64)).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }
}

impl Spread for Central {
    fn name(&self) -> &'static str {
        "central"
    }

    fn begin(&mut self, state: &mut TaskState) {
        let portion = |node| Portion {
            size: state.devices(NodeId(node)).count().max(1),
            ..Portion::default()
        };
        self.portions = (0..state.nodes().len() as u32).map(portion).collect();
        self.give_all(state);
    }

    fn freed(&mut self, _: &[u64], state: &mut TaskState) {
        self.give_all(state);
    }

    fn done(&mut self, finished: &Finished, state: &mut TaskState) {
        let node = finished.node;
        if !state.ledger().queue(node).is_empty() {
            return;
        }
        let others = self.others(node);
        let portion = &mut self.portions[node.index()];
        let took = state.now().saturating_sub(portion.begun);
        portion.took = Some(took);
        if let Some(others) = others {
            if (took as f64) < others * (1.0 - ALIKE) {
                portion.size *= 2;
            } else if took as f64 > others * (1.0 + ALIKE) {
                portion.size = (portion.size / 2).max(1);
            }
        }
        self.give(node, state);
    }

    fn revoked(&mut self, _: NodeId, _: &[Range<u64>], _: &[Range<u64>], state: &mut TaskState) {
        self.give_all(state);
    }

    fn lost(&mut self, _: NodeId, state: &mut TaskState) {
        self.give_all(state);
    }

    fn device_lost(&mut self, _: NodeId, _: usize, _: &mut TaskState) {}

    fn woken(&mut self, _: &mut TaskState) {}
}
