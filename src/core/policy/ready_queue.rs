//! The queue of components that are ready, by rank.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::Problem;

/// Ready components: the highest bottom-level rank first, and among equals the
/// first by number.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueue(BinaryHeap<Ranked>);

#[derive(Clone, Copy, Debug)]
struct Ranked {
    rank: f64,
    component: usize,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rank = self.rank.total_cmp(&other.rank);
        by_rank.then(Reverse(self.component).cmp(&Reverse(other.component)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl ReadyQueue {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn push(&mut self, problem: &Problem, component: usize) {
        let rank = problem.tasks[component].rank;
        self.0.push(Ranked { rank, component });
    }

    /// The first component.
    pub fn peek(&self) -> Option<usize> {
        self.0.peek().map(|ranked| ranked.component)
    }

    /// Takes the first component.
    pub fn pop(&mut self) -> Option<usize> {
        self.0.pop().map(|ranked| ranked.component)
    }

    /// Takes the first component that suits.
    pub fn pop_if(&mut self, suits: impl Fn(usize) -> bool) -> Option<usize> {
        let mut skipped = Vec::new();
        let found = std::iter::from_fn(|| self.0.pop()).find(|ranked| {
            let found = suits(ranked.component);
            if !found {
                skipped.push(*ranked);
            }
            found
        });
        self.0.extend(skipped);
        found.map(|ranked| ranked.component)
    }
}
