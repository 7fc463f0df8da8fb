//! Static: every computing unit gets the same number of subtasks, once (Unicorn, section
//! V, the static scheduler of figure 9).

use std::ops::Range;

use super::{Finished, Spread, TaskState};
use crate::cluster::NodeId;

/// The policy. Only what a lost node had is given again, in the same way.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticShares;

/// Gives all free subtasks to the working nodes, in ranges of a length proportional to
/// their numbers of devices.
pub(super) fn give_equally(state: &mut TaskState) {
    let free: Vec<u64> = state.ledger().free().iter().collect();
    let units = |node| state.devices(node).count();
    let nodes: Vec<_> = state.working().map(|node| (node, units(node))).collect();
    let all: usize = nodes.iter().map(|(_, units)| units).sum();
    let mut before = 0;
    for (node, units) in nodes {
        let begin = free.len() * before / all;
        before += units;
        let end = free.len() * before / all;
        state.assign(node, free[begin..end].iter().copied());
    }
}

impl Spread for StaticShares {
    fn name(&self) -> &'static str {
        "static"
    }

    fn begin(&mut self, state: &mut TaskState) {
        give_equally(state);
    }

    fn freed(&mut self, _: &[u64], state: &mut TaskState) {
        give_equally(state);
    }

    fn done(&mut self, _: &Finished, _: &mut TaskState) {}

    fn revoked(&mut self, _: NodeId, _: &[Range<u64>], _: &[Range<u64>], state: &mut TaskState) {
        give_equally(state);
    }

    fn lost(&mut self, _: NodeId, state: &mut TaskState) {
        give_equally(state);
    }

    fn device_lost(&mut self, _: NodeId, _: usize, _: &mut TaskState) {}

    fn woken(&mut self, _: &mut TaskState) {}
}
