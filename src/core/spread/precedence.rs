//! Which subtasks of a chain of tasks may begin.

use std::sync::Arc;

use crate::cluster::task::Task;
use crate::cluster::task::chain::Chain;

/// What is done of a chain, and what waits for it.
pub struct Precedence {
    chain: Arc<Chain>,
    /// By subtask of a chain of several tasks: those that write what it reads and are not done.
    waits: Vec<u32>,
    /// By task: how many of its subtasks are not done.
    left: Vec<u64>,
    /// How many tasks have ended, and those before them.
    ended: usize,
    /// How many tasks may have begun and not ended.
    window: usize,
}

impl Precedence {
    /// Of a chain of which nothing is done. At most `window` of its tasks are to be begun and
    /// not ended: what they overwrite is kept until they have.
    pub fn new(chain: Arc<Chain>, window: usize) -> Self {
        let mut waits = Vec::new();
        if chain.is_woven() {
            waits = vec![0; chain.count() as usize];
            let readers = (0..chain.count()).flat_map(|subtask| chain.readers(subtask));
            readers.for_each(|reader| waits[*reader as usize] += 1);
        }
        let mut precedence = Self {
            left: chain.tasks().iter().map(|task| task.count()).collect(),
            chain,
            waits,
            ended: 0,
            window: window.max(1),
        };
        precedence.end();
        precedence
    }

    /// How many tasks have ended, and those before them.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// Whether a subtask may begin.
    pub fn may_begin(&self, subtask: u64) -> bool {
        let (task, _) = self.chain.place(subtask);
        let waits = self.waits.get(subtask as usize);
        waits.is_none_or(|waits| *waits == 0) && task < self.ended + self.window
    }

    fn end(&mut self) {
        while self.left.get(self.ended) == Some(&0) {
            self.ended += 1;
        }
    }

    /// A subtask is done. Those that may begin now, and could not before.
    pub fn done(&mut self, subtask: u64) -> Vec<u64> {
        let (task, _) = self.chain.place(subtask);
        self.left[task] -= 1;
        if !self.chain.is_woven() {
            self.end();
            return Vec::new();
        }
        let before = self.ended + self.window;
        self.end();
        let mut may = Vec::new();
        for &reader in self.chain.readers(subtask) {
            self.waits[reader as usize] -= 1;
            if self.chain.place(reader).0 < before && self.may_begin(reader) {
                may.push(reader);
            }
        }
        let last = self.chain.tasks().len().min(self.ended + self.window);
        for task in before..last {
            let subtasks = 0..self.chain.tasks()[task].count();
            let numbers = subtasks.map(|subtask| self.chain.number(task, subtask));
            may.extend(numbers.filter(|number| self.may_begin(*number)));
        }
        may.sort_unstable();
        may
    }

    /// What was done by a lost node is to be done again. The chain is of one task, of which so
    /// much is not done now.
    pub fn undone(&mut self, open: u64) {
        if let [left] = &mut self.left[..] {
            *left = open;
            self.ended = 0;
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::{Block, SpaceBlock, SpaceId};
    use crate::cluster::task::chain::Chaining;
    use crate::cluster::task::listed::ListedTask;

    const COUNT: u64 = 4;

    /// Each subtask changes its element of a row, and reads the one before it.
    fn step() -> Arc<dyn Task> {
        let columns = |columns| SpaceBlock {
            space: SpaceId(0),
            block: Block::new(0..1, columns),
        };
        let task = ListedTask::light(COUNT)
            .reading(|subtask| columns(subtask.saturating_sub(1)..subtask + 1))
            .writing(|subtask| columns(subtask..subtask + 1));
        Arc::new(task)
    }

    fn chain(tasks: usize) -> Arc<Chain> {
        let mut chaining = Chaining::new(step());
        for _ in 1..tasks {
            assert!(chaining.push(&step()));
        }
        Arc::new(chaining.build())
    }

    /// Subtasks by task and number there.
    fn places(chain: &Chain, numbers: &[u64]) -> Vec<(usize, u64)> {
        let mut places: Vec<_> = numbers.iter().map(|number| chain.place(*number)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn a_subtask_waits_for_what_it_reads_only() {
        let chain = chain(3);
        let mut precedence = Precedence::new(Arc::clone(&chain), 3);
        let all: Vec<u64> = (0..chain.count()).collect();
        let first: Vec<u64> = all
            .iter()
            .copied()
            .filter(|s| precedence.may_begin(*s))
            .collect();
        assert_eq!(places(&chain, &first), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        let mut done = |task, subtask| {
            let may = precedence.done(chain.number(task, subtask));
            places(&chain, &may)
        };
        assert_eq!(done(0, 0), [(1, 0)]);
        assert_eq!(done(0, 2), []);
        assert_eq!(done(0, 1), [(1, 1), (1, 2)]);
        assert_eq!(done(1, 0), [(2, 0)]);
        assert_eq!(done(1, 1), [(2, 1)]);
        assert_eq!(done(0, 3), [(1, 3)]);
        assert_eq!(precedence.ended(), 1);
    }

    #[test]
    fn a_window_of_one_task_is_a_barrier() {
        let chain = chain(2);
        let mut precedence = Precedence::new(Arc::clone(&chain), 1);
        for subtask in 0..COUNT - 1 {
            assert!(precedence.done(chain.number(0, subtask)).is_empty());
        }
        let may = precedence.done(chain.number(0, COUNT - 1));
        assert_eq!(places(&chain, &may), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    }

    /// Whoever is awaited longest has the least number.
    #[test]
    fn numbers_follow_what_is_to_be_done_after() {
        let chain = chain(3);
        let tasks: Vec<usize> = (0..chain.count()).map(|s| chain.place(s).0).collect();
        assert!(tasks.is_sorted(), "{tasks:?}");
    }
}
