//! A policy that breaks the rules of a ledger.

use std::ops::Range;

use crate::cluster::NodeId;
use crate::spread::{Finished, Spread, TaskState};

/// Another policy, which also gives a subtask that is not free so many times.
pub struct Mistaken {
    policy: Box<dyn Spread>,
    mistakes: u32,
}

impl Mistaken {
    pub fn new(policy: Box<dyn Spread>, mistakes: u32) -> Self {
        Self { policy, mistakes }
    }
}

impl Spread for Mistaken {
    fn name(&self) -> &'static str {
        "mistaken"
    }

    fn wants_data(&self) -> bool {
        self.policy.wants_data()
    }

    fn begin(&mut self, state: &mut TaskState) {
        self.policy.begin(state);
    }

    fn window(&self) -> usize {
        self.policy.window()
    }

    fn freed(&mut self, subtasks: &[u64], state: &mut TaskState) {
        self.policy.freed(subtasks, state);
    }

    fn done(&mut self, finished: &Finished, state: &mut TaskState) {
        self.policy.done(finished, state);
        if self.mistakes > 0 {
            self.mistakes -= 1;
            state.assign(NodeId::FIRST, [finished.subtask]);
        }
    }

    fn revoked(
        &mut self,
        node: NodeId,
        subtasks: &[Range<u64>],
        kept: &[Range<u64>],
        state: &mut TaskState,
    ) {
        self.policy.revoked(node, subtasks, kept, state);
    }

    fn lost(&mut self, node: NodeId, state: &mut TaskState) {
        self.policy.lost(node, state);
    }

    fn device_lost(&mut self, node: NodeId, device: usize, state: &mut TaskState) {
        self.policy.device_lost(node, device, state);
    }

    fn woken(&mut self, state: &mut TaskState) {
        self.policy.woken(state);
    }
}
