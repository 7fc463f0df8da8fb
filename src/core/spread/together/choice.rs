//! Which free subtask a node gets.

use crate::cluster::NodeId;
use crate::spread::{Runs, TaskState};

/// Free subtasks that are compared for a node, at most, so that choosing takes the same time in
/// large tasks: of a product of 16 x 16 blocks, half of all.
const COMPARED: usize = 128;

/// Blocks that they read, where each reads many.
const BLOCKS: usize = 64 * COMPARED;

/// The part of what a subtask reads that is taken for its border. If a node lacks no more
/// of it, others are not compared.
const BORDER: f64 = 0.1;

/// Free subtasks by the node that has most of what they read.
#[derive(Default)]
pub struct Choice {
    by_data: bool,
    main_holders: Vec<Runs>,
}

impl Choice {
    pub fn new(by_data: bool, state: &TaskState) -> Self {
        let mut choice = Self {
            by_data,
            main_holders: vec![Runs::default(); state.nodes().len()],
        };
        choice.freed(0..state.count(), state);
        choice
    }

    /// These subtasks are free now, or were before.
    pub fn freed(&mut self, subtasks: impl IntoIterator<Item = u64>, state: &TaskState) {
        if !self.by_data {
            return;
        }
        for subtask in subtasks {
            if state.ledger().free().contains(subtask)
                && let Some(main_holder) = state.main_holder(subtask)
            {
                self.main_holders[main_holder.index()].insert(subtask);
            }
        }
    }

    /// Free subtasks of which a node has most.
    pub fn waiting(&self, node: NodeId) -> usize {
        self.main_holders[node.index()].len() as usize
    }

    /// In a chain of tasks: the free subtask that a node would be given next.
    pub fn first(&self, node: NodeId, state: &TaskState) -> Option<u64> {
        let main_holder = self.main_holders[node.index()].first();
        main_holder.or_else(|| state.ledger().free().first())
    }

    /// Takes a free subtask for which a node must fetch least, or not twice as much, of the
    /// first ones for which it has most and the first ones of all that it `may` compute, or
    /// the first for which it must fetch little. In a chain of tasks, the first for which it has
    /// most comes first: others wait for it.
    pub fn take(
        &mut self,
        node: NodeId,
        state: &TaskState,
        may: impl Fn(&Self, u64, NodeId) -> bool,
    ) -> Option<u64> {
        let free = state.ledger().free();
        if !self.by_data {
            return free.first();
        }
        let first = self.main_holders[node.index()].first();
        if let Some(first) = first.filter(|_| state.chain().is_woven()) {
            self.main_holders[node.index()].remove(first);
            return Some(first);
        }
        let blocks = free.first().map_or(1, |first| state.blocks(first));
        let compared = (BLOCKS / blocks.max(1)).clamp(1, COMPARED);
        let main_holder = self.main_holders[node.index()].iter().take(compared);
        let mut best: Option<(u64, u64)> = None;
        for subtask in main_holder.chain(free.iter().take(compared)) {
            let missing = state.missing(subtask, node);
            // Where about as much is lacking, the order of the task decides: a product's blocks
            // would otherwise be computed row by row, and each lacks a column.
            if best.is_some_and(|(least, _)| 2 * missing > least || missing == least) {
                continue;
            }
            let main_holder = state
                .main_holder(subtask)
                .filter(|&main_holder| main_holder != node);
            if main_holder.is_some_and(|main_holder| !may(self, subtask, main_holder)) {
                continue;
            }
            best = Some((missing, subtask));
            if missing as f64 <= BORDER * state.reads(subtask) as f64 {
                break;
            }
        }
        let (_, subtask) = best?;
        if let Some(main_holder) = state.main_holder(subtask) {
            self.main_holders[main_holder.index()].remove(subtask);
        }
        Some(subtask)
    }
}
