//! Steal: every computing unit gets the same number of subtasks at first, and a node that
//! will soon have none takes some from the tail of a random other node's queue (Unicorn,
//! section IV.C).
//!
//! As in the paper, nodes ask before their queues are empty, how many are taken follows
//! from how fast both were, and a subtask that runs may be given to a second node when no
//! other is left. The devices of a node share its queue, which is the second level of the
//! paper's two. Here the coordinator asks for the node, so it asks only nodes whose queues
//! it does not know to be empty.

use std::collections::HashMap;
use std::ops::Range;

use super::paces::Paces;
use super::static_shares::give_equally;
use super::{Finished, Requests, Spread, TaskState};
use crate::cluster::NodeId;

/// The policy.
pub struct Steal {
    paces: Paces,
    random: fastrand::Rng,
    /// For whom a node was asked for subtasks.
    thieves: HashMap<NodeId, NodeId>,
    requests: Requests,
}

impl Steal {
    /// The policy. Victims are chosen at random by `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            paces: Paces::default(),
            random: fastrand::Rng::with_seed(seed),
            thieves: HashMap::new(),
            requests: Requests::default(),
        }
    }

    /// Asks a random node that has waiting subtasks, if a node has nothing but what runs.
    fn steal(&mut self, thief: NodeId, state: &mut TaskState) {
        if !self.paces.is_hungry(thief, state) || self.thieves.values().any(|&t| t == thief) {
            return;
        }
        let waiting = |node| {
            let begun = self.paces.slots(node, state);
            state.ledger().queue(node).len().saturating_sub(begun)
        };
        // Each device of the victim may begin another one before the request arrives.
        let enough = |&other: &NodeId| waiting(other) > state.devices(other).count();
        let others = state.working().filter(|&other| other != thief);
        let able = others.filter(|&other| state.ledger().revoking(other).is_empty());
        let victims: Vec<NodeId> = able.filter(enough).collect();
        let Some(&victim) = self.random.choice(&victims) else {
            self.multi_assign(thief, state);
            return;
        };
        let (mine, theirs) = (self.paces.pace(thief), self.paces.pace(victim));
        let count = (waiting(victim) as f64 * mine / (mine + theirs)).round();
        let tail = state.ledger().queue(victim).iter().rev();
        let tail = tail.filter(|&&subtask| !state.ledger().is_copied(subtask));
        let mut taken: Vec<u64> = tail.copied().take((count as usize).max(1)).collect();
        taken.reverse();
        if !taken.is_empty() {
            state.revoke(victim, &taken);
            self.thieves.insert(victim, thief);
            self.requests.asked += 1;
        }
    }

    /// Gives a node with a free device a subtask that a random slower node runs and that
    /// ends later there.
    fn multi_assign(&mut self, thief: NodeId, state: &mut TaskState) {
        let Some(seconds) = self.paces.free_device(thief, state) else {
            return;
        };
        let others: Vec<NodeId> = state.working().filter(|&other| other != thief).collect();
        let Some(&victim) = self.random.choice(&others) else {
            return;
        };
        let straggles = |&(left, subtask): &(f64, u64)| {
            let here = seconds * state.ledger().weight(subtask) + self.paces.round_trip(state);
            left > here && !state.ledger().is_copied(subtask)
        };
        let found = self.paces.running(victim, state).find(straggles);
        if let Some((_, subtask)) = found {
            state.copy(thief, subtask);
            self.paces.given(thief, state);
        }
    }

    fn give_equally(&mut self, state: &mut TaskState) {
        give_equally(state);
        let nodes: Vec<NodeId> = state.working().collect();
        for node in nodes {
            if !state.ledger().queue(node).is_empty() {
                self.paces.given(node, state);
            }
        }
    }
}

impl Spread for Steal {
    fn name(&self) -> &'static str {
        "steal"
    }

    fn begin(&mut self, state: &mut TaskState) {
        self.paces.begin(state);
        self.thieves.clear();
        self.give_equally(state);
        self.paces.wake(state);
    }

    fn freed(&mut self, _: &[u64], state: &mut TaskState) {
        self.give_equally(state);
        self.paces.wake(state);
    }

    fn done(&mut self, finished: &Finished, state: &mut TaskState) {
        self.paces.done(finished, state);
        self.steal(finished.node, state);
    }

    fn revoked(
        &mut self,
        victim: NodeId,
        subtasks: &[Range<u64>],
        _: &[Range<u64>],
        state: &mut TaskState,
    ) {
        let thief = self.thieves.remove(&victim);
        let thief = thief.filter(|thief| state.working().any(|node| node == *thief));
        let Some(thief) = thief else {
            self.give_equally(state);
            return;
        };
        self.requests.brought += u64::from(!subtasks.is_empty());
        let free: Vec<u64> = state.ledger().free().iter().collect();
        state.assign(thief, free);
        self.paces.given(thief, state);
    }

    fn lost(&mut self, node: NodeId, state: &mut TaskState) {
        self.thieves.remove(&node);
        self.give_equally(state);
    }

    fn device_lost(&mut self, _: NodeId, _: usize, state: &mut TaskState) {
        self.paces.look(state);
    }

    fn woken(&mut self, state: &mut TaskState) {
        self.paces.look(state);
        let nodes: Vec<NodeId> = state.working().collect();
        for node in nodes {
            self.steal(node, state);
        }
        self.paces.wake(state);
    }

    fn requests(&self) -> Requests {
        self.requests
    }
}
