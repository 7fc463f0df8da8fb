//! Which subtask is where, in sets of successive ones: nobody's, at nodes, or done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use thiserror::Error;

use crate::cluster::NodeId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It waits for others.
    Held,
    Free,
    At(NodeId),
    Done(NodeId),
}

/// What the report that a subtask is done means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Its first result, which counts. Another node that has the subtask as well must
    /// forget it.
    First { cancel: Option<NodeId> },
    /// Another result counts.
    Again,
}

/// A rule that a policy has broken. What it ordered is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BrokenRule {
    #[error("subtask {subtask} was given to {node}, and it was not free")]
    NotFree { subtask: u64, node: NodeId },
    #[error("subtask {subtask} was copied to {node}, and it was not at one other node")]
    NotAtOne { subtask: u64, node: NodeId },
}

/// The places of all subtasks. A subtask is at one node, or at two if it was copied.
#[derive(Clone, Debug)]
pub struct Ledger {
    places: Vec<Place>,
    /// How much work each subtask is.
    weights: Vec<f32>,
    /// The work that each node has and has not done.
    loads: Vec<f64>,
    open_weight: f64,
    free: Runs,
    /// What each node has and has not done, in the order in which it was given.
    queues: Vec<VecDeque<u64>>,
    /// The second node of copied subtasks.
    copies: BTreeMap<u64, NodeId>,
    /// What each node was asked to give back and has not answered.
    revoking: Vec<BTreeSet<u64>>,
    /// What nodes were ordered to forget and have not answered. Until then a node may report
    /// a result that it will forget.
    cancelling: BTreeSet<(NodeId, u64)>,
    open: u64,
}

impl Ledger {
    /// Subtasks of these weights, all of which are nobody's.
    pub fn new(weights: Vec<f32>, nodes: usize) -> Self {
        let count = weights.len() as u64;
        Self {
            places: vec![Place::Free; weights.len()],
            loads: vec![0.0; nodes],
            open_weight: weights.iter().map(|&weight| f64::from(weight)).sum(),
            weights,
            free: Runs::of(0..count),
            queues: vec![VecDeque::new(); nodes],
            copies: BTreeMap::new(),
            revoking: vec![BTreeSet::new(); nodes],
            cancelling: BTreeSet::new(),
            open: count,
        }
    }

    /// Subtasks that are nobody's and may not begin before they are [set free](Self::set_free).
    pub fn hold(&mut self, subtasks: impl IntoIterator<Item = u64>) {
        for subtask in subtasks {
            if self.free.remove(subtask) {
                self.places[subtask as usize] = Place::Held;
            }
        }
    }

    /// A subtask may begin.
    pub fn set_free(&mut self, subtask: u64) {
        let place = &mut self.places[subtask as usize];
        if *place == Place::Held {
            *place = Place::Free;
            self.free.insert(subtask);
        }
    }

    /// The subtasks that are nobody's and may begin.
    pub fn free(&self) -> &Runs {
        &self.free
    }

    /// What a node has and has not done, in the order in which it was given.
    pub fn queue(&self, node: NodeId) -> &VecDeque<u64> {
        &self.queues[node.index()]
    }

    /// How much work a subtask is.
    pub fn weight(&self, subtask: u64) -> f64 {
        f64::from(self.weights[subtask as usize])
    }

    /// The work that a node has and has not done.
    pub fn load(&self, node: NodeId) -> f64 {
        self.loads[node.index()]
    }

    /// The same of subtasks with lesser numbers than one of a chain, which come before it.
    pub fn load_before(&self, node: NodeId, subtask: u64) -> f64 {
        let queue = self.queue(node).iter();
        let before = queue.filter(|other| **other < subtask);
        before.map(|other| self.weight(*other)).sum()
    }

    /// The work that is not done.
    pub fn open_weight(&self) -> f64 {
        self.open_weight
    }

    /// How many subtasks are not done.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Whether two nodes have a subtask.
    pub fn is_copied(&self, subtask: u64) -> bool {
        self.copies.contains_key(&subtask)
    }

    /// What a node was asked to give back and has not answered.
    pub fn revoking(&self, node: NodeId) -> &BTreeSet<u64> {
        &self.revoking[node.index()]
    }

    /// Gives a free subtask to a node.
    ///
    /// # Errors
    /// When the subtask is not free, which is a mistake of the policy.
    pub fn assign(&mut self, subtask: u64, node: NodeId) -> Result<(), BrokenRule> {
        if !self.free.remove(subtask) {
            return Err(BrokenRule::NotFree { subtask, node });
        }
        self.places[subtask as usize] = Place::At(node);
        self.enqueue(subtask, node);
        Ok(())
    }

    /// Gives a subtask that is at one node to a second one.
    ///
    /// # Errors
    /// When the subtask is not at one other node, which is a mistake of the policy.
    pub fn copy(&mut self, subtask: u64, node: NodeId) -> Result<(), BrokenRule> {
        let one = matches!(self.places[subtask as usize], Place::At(other) if other != node);
        if !one || self.is_copied(subtask) {
            return Err(BrokenRule::NotAtOne { subtask, node });
        }
        self.copies.insert(subtask, node);
        self.enqueue(subtask, node);
        Ok(())
    }

    /// Notes that a node was asked for subtasks.
    pub fn revoke(&mut self, subtasks: impl IntoIterator<Item = u64>, node: NodeId) {
        self.revoking[node.index()].extend(subtasks);
    }

    /// A node has answered for a subtask that it was asked to give back or to forget, or
    /// gives one back by itself. With `back` it will not compute it. The result is whether
    /// the answer is about more than forgetting.
    pub fn answered(&mut self, subtask: u64, node: NodeId, back: bool) -> bool {
        if back && self.cancelling.remove(&(node, subtask)) {
            return false;
        }
        self.revoking[node.index()].remove(&subtask);
        if back && self.leave(subtask, node) {
            self.unqueue(subtask, node);
        }
        true
    }

    /// Takes a subtask from a node that does not compute it. The result is whether the
    /// node had it.
    fn leave(&mut self, subtask: u64, node: NodeId) -> bool {
        let place = &mut self.places[subtask as usize];
        if self.copies.get(&subtask) == Some(&node) {
            self.copies.remove(&subtask);
            return true;
        }
        if *place != Place::At(node) {
            return false;
        }
        match self.copies.remove(&subtask) {
            Some(other) => *place = Place::At(other),
            None => {
                *place = Place::Free;
                self.free.insert(subtask);
            }
        }
        true
    }

    fn enqueue(&mut self, subtask: u64, node: NodeId) {
        self.queues[node.index()].push_back(subtask);
        self.loads[node.index()] += self.weight(subtask);
    }

    fn unqueue(&mut self, subtask: u64, node: NodeId) {
        let queue = &mut self.queues[node.index()];
        if let Some(place) = queue.iter().position(|&other| other == subtask) {
            queue.remove(place);
            // Sums of unlike weights round; an empty queue weighs nothing.
            self.loads[node.index()] = match queue.is_empty() {
                true => 0.0,
                false => self.loads[node.index()] - self.weight(subtask),
            };
        }
    }

    /// A node has the result of a subtask.
    pub fn done(&mut self, subtask: u64, node: NodeId) -> Completion {
        self.revoking[node.index()].remove(&subtask);
        if self.cancelling.contains(&(node, subtask)) {
            return Completion::Again;
        }
        let Place::At(owner) = self.places[subtask as usize] else {
            return Completion::Again;
        };
        let copy = self.copies.remove(&subtask);
        self.unqueue(subtask, owner);
        if let Some(copy) = copy {
            self.unqueue(subtask, copy);
        }
        self.places[subtask as usize] = Place::Done(node);
        self.open -= 1;
        self.open_weight -= self.weight(subtask);
        let mut having = [Some(owner), copy].into_iter().flatten();
        let cancel = having.find(|&other| other != node);
        self.cancelling.extend(cancel.map(|other| (other, subtask)));
        Completion::First { cancel }
    }

    /// Takes a lost node out, with its results.
    pub fn lost(&mut self, node: NodeId) {
        self.revoking[node.index()].clear();
        self.loads[node.index()] = 0.0;
        for subtask in std::mem::take(&mut self.queues[node.index()]) {
            self.leave(subtask, node);
        }
        for subtask in 0..self.places.len() as u64 {
            if self.places[subtask as usize] == Place::Done(node) {
                self.places[subtask as usize] = Place::Free;
                self.free.insert(subtask);
                self.open += 1;
                self.open_weight += self.weight(subtask);
            }
        }
    }

    /// The node that has the result of a subtask.
    pub fn holder(&self, subtask: u64) -> Option<NodeId> {
        match self.places[subtask as usize] {
            Place::Done(node) => Some(node),
            _ => None,
        }
    }

    /// Whether a node has the result of any subtask.
    pub fn has_results(&self, node: NodeId) -> bool {
        self.places.contains(&Place::Done(node))
    }

    /// Which node has the result of each of some subtasks that are done, by their places among
    /// these.
    pub fn results(&self, subtasks: impl Iterator<Item = u64>) -> Vec<(Range<u64>, NodeId)> {
        let mut results: Vec<(Range<u64>, NodeId)> = Vec::new();
        for (subtask, number) in (0..).zip(subtasks) {
            let Some(node) = self.holder(number) else {
                continue;
            };
            match results.last_mut() {
                Some((run, last)) if run.end == subtask && *last == node => run.end += 1,
                _ => results.push((subtask..subtask + 1, node)),
            }
        }
        results
    }
}

/// A set of numbers. Its memory grows with the number of runs.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The end of each run, by its begin.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl Runs {
    /// All numbers of a range.
    pub fn of(range: Range<u64>) -> Self {
        let mut runs = Self::default();
        if range.start < range.end {
            runs.count = range.end - range.start;
            runs.runs.insert(range.start, range.end);
        }
        runs
    }

    /// How many numbers it has.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().flat_map(|(&begin, &end)| begin..end)
    }

    /// The least number.
    pub fn first(&self) -> Option<u64> {
        self.runs.first_key_value().map(|(&begin, _)| begin)
    }

    fn run_of(&self, number: u64) -> Option<Range<u64>> {
        let (&begin, &end) = self.runs.range(..=number).next_back()?;
        (number < end).then_some(begin..end)
    }

    pub fn contains(&self, number: u64) -> bool {
        self.run_of(number).is_some()
    }

    /// Adds a number. The result is whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        if self.contains(number) {
            return false;
        }
        let before = self.runs.range(..number).next_back();
        let before = before.filter(|(_, end)| **end == number);
        let begin = before.map_or(number, |(&begin, _)| begin);
        let end = self.runs.remove(&(number + 1)).unwrap_or(number + 1);
        self.runs.insert(begin, end);
        self.count += 1;
        true
    }

    /// Takes a number out. The result is whether it was there.
    pub fn remove(&mut self, number: u64) -> bool {
        let Some(run) = self.run_of(number) else {
            return false;
        };
        self.runs.remove(&run.start);
        if run.start < number {
            self.runs.insert(run.start, number);
        }
        if number + 1 < run.end {
            self.runs.insert(number + 1, run.end);
        }
        self.count -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    #[test]
    fn the_first_result_of_a_copied_subtask_counts() {
        let mut ledger = Ledger::new(vec![1.0; 3], 2);
        ledger.assign(1, A).unwrap();
        ledger.copy(1, B).unwrap();
        assert_eq!(ledger.done(1, B), Completion::First { cancel: Some(A) });
        assert_eq!(ledger.done(1, A), Completion::Again);
        assert!(ledger.queue(A).is_empty() && ledger.queue(B).is_empty());
        assert_eq!((ledger.open(), ledger.results(0..3)), (2, vec![(1..2, B)]));
    }

    /// The second result was on its way when the first one's node was lost.
    #[test]
    fn a_result_that_will_be_forgotten_does_not_count() {
        let mut ledger = Ledger::new(vec![1.0], 2);
        ledger.assign(0, A).unwrap();
        ledger.copy(0, B).unwrap();
        assert_eq!(ledger.done(0, A), Completion::First { cancel: Some(B) });
        ledger.lost(A);
        ledger.assign(0, B).unwrap();
        assert_eq!(ledger.done(0, B), Completion::Again);
        assert!(!ledger.answered(0, B, true));
        assert_eq!(ledger.queue(B).len(), 1, "it computes it once more");
        assert_eq!(ledger.done(0, B), Completion::First { cancel: None });
    }

    #[test]
    fn what_a_lost_node_had_is_nobodys() {
        let mut ledger = Ledger::new(vec![1.0; 4], 2);
        for subtask in 0..3 {
            ledger.assign(subtask, A).unwrap();
        }
        ledger.copy(1, B).unwrap();
        assert_eq!(ledger.done(0, A), Completion::First { cancel: None });
        ledger.lost(A);
        let free: Vec<_> = ledger.free().iter().collect();
        assert_eq!(free, [0, 2, 3], "the other node still has the copied one");
        assert_eq!((ledger.open(), ledger.queue(B).len()), (4, 1));
    }

    #[test]
    fn what_is_given_back_is_free_unless_it_was_copied() {
        let mut ledger = Ledger::new(vec![1.0; 2], 2);
        ledger.assign(0, A).unwrap();
        ledger.assign(1, A).unwrap();
        ledger.copy(1, B).unwrap();
        ledger.revoke([0, 1], A);
        ledger.answered(0, A, true);
        ledger.answered(1, A, true);
        assert!(ledger.revoking(A).is_empty() && ledger.queue(A).is_empty());
        assert_eq!(ledger.free().iter().collect::<Vec<_>>(), [0]);
        assert_eq!(ledger.done(1, B), Completion::First { cancel: None });
    }

    #[test]
    fn what_a_policy_may_not_order_is_not_done() {
        let mut ledger = Ledger::new(vec![1.0; 2], 2);
        ledger.assign(0, A).unwrap();
        let (subtask, node) = (0, B);
        let not_free = BrokenRule::NotFree { subtask, node };
        assert_eq!(ledger.assign(0, B), Err(not_free));
        ledger.copy(0, B).unwrap();
        for (subtask, node) in [(0, A), (0, B), (1, A)] {
            let broken = BrokenRule::NotAtOne { subtask, node };
            assert_eq!(ledger.copy(subtask, node), Err(broken));
        }
        assert_eq!((ledger.queue(A).len(), ledger.queue(B).len()), (1, 1));
    }

    #[test]
    fn it_agrees_with_a_set() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut runs, mut set) = (Runs::of(3..9), (3..9).collect::<BTreeSet<u64>>());
        for _ in 0..2000 {
            let number = random.u64(..20);
            match random.bool() {
                true => assert_eq!(runs.insert(number), set.insert(number)),
                false => assert_eq!(runs.remove(number), set.remove(&number)),
            }
            assert!(runs.iter().eq(set.iter().copied()));
            assert_eq!(runs.len(), set.len() as u64);
            assert_eq!(runs.first(), set.first().copied());
        }
    }
}
