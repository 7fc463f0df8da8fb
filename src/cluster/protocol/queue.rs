//! The subtasks of a node that have not begun.

use std::collections::VecDeque;

/// Subtasks that have not begun, by what is known of their data. Each part is in the order
/// in which subtasks were given.
#[derive(Default)]
pub(super) struct Queue {
    /// What they read was not asked for yet.
    unasked: VecDeque<u64>,
    /// All that they read is this node's.
    local: VecDeque<u64>,
    /// What they read comes from other nodes, or has come.
    fetched: VecDeque<u64>,
}

impl Queue {
    fn parts(&self) -> [&VecDeque<u64>; 3] {
        [&self.fetched, &self.local, &self.unasked]
    }

    fn parts_mut(&mut self) -> [&mut VecDeque<u64>; 3] {
        [&mut self.fetched, &mut self.local, &mut self.unasked]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// How many need data of other nodes and were asked for.
    pub fn fetched(&self) -> usize {
        self.fetched.len()
    }

    /// Adds subtasks.
    pub fn extend(&mut self, subtasks: impl Iterator<Item = u64>) {
        self.unasked.extend(subtasks);
    }

    /// Adds a subtask that was begun, to be begun again before the others.
    pub fn again(&mut self, subtask: u64) {
        self.fetched.push_front(subtask);
    }

    /// The next one whose data were not asked for.
    pub fn next_unasked(&self) -> Option<u64> {
        self.unasked.front().copied()
    }

    /// The data of the next one were asked for, if it `needs` any.
    pub fn asked(&mut self, needs: bool) {
        if let Some(subtask) = self.unasked.pop_front() {
            match needs {
                true => self.fetched.push_back(subtask),
                false => self.local.push_back(subtask),
            }
        }
    }

    /// The first one that can begin: one that was fetched, so that others can be, before
    /// one that keeps nothing waiting.
    pub fn ready(&self, can_begin: impl Fn(u64) -> bool) -> Option<u64> {
        let asked = self.fetched.iter().chain(&self.local);
        asked.copied().find(|&subtask| can_begin(subtask))
    }

    /// Removes a subtask. The result is whether it was there.
    pub fn remove(&mut self, subtask: u64) -> bool {
        self.parts_mut().into_iter().any(|part| {
            let place = part.iter().position(|&other| other == subtask);
            place.and_then(|place| part.remove(place)).is_some()
        })
    }

    /// Removes all.
    pub fn take(&mut self) -> Vec<u64> {
        let parts = self.parts_mut().into_iter();
        parts.flat_map(|part| part.drain(..)).collect()
    }
}
