//! The subtasks of a node that have not begun.

use std::collections::VecDeque;

/// Subtasks that have not begun, by what is known of their data. Each part is in the order
/// in which subtasks were given, or in that of their numbers.
#[derive(Default)]
pub(super) struct Queue {
    /// Whether those of less numbers come first.
    by_number: bool,
    /// What they read was not asked for yet.
    unasked: VecDeque<u64>,
    /// All that they read is this node's.
    local: VecDeque<u64>,
    /// What they read comes from other nodes, or has come.
    fetched: VecDeque<u64>,
}

/// Adds a subtask at the end, or at its place by number.
fn add(part: &mut VecDeque<u64>, subtask: u64, by_number: bool) {
    let place = match by_number {
        true => part.partition_point(|other| *other < subtask),
        false => part.len(),
    };
    part.insert(place, subtask);
}

impl Queue {
    /// An empty queue. With `by_number`, subtasks of less numbers come first.
    pub fn new(by_number: bool) -> Self {
        Self {
            by_number,
            ..Self::default()
        }
    }

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

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts().into_iter().flatten().copied()
    }

    /// How many need data of other nodes and were asked for.
    pub fn fetched(&self) -> usize {
        self.fetched.len()
    }

    /// Adds subtasks.
    pub fn extend(&mut self, subtasks: impl Iterator<Item = u64>) {
        for subtask in subtasks {
            add(&mut self.unasked, subtask, self.by_number);
        }
    }

    /// Adds a subtask that was begun, to be begun again before the others.
    pub fn again(&mut self, subtask: u64) {
        match self.by_number {
            true => add(&mut self.fetched, subtask, true),
            false => self.fetched.push_front(subtask),
        }
    }

    /// The next one whose data were not asked for.
    pub fn next_unasked(&self) -> Option<u64> {
        self.unasked.front().copied()
    }

    /// The data of the next one were asked for, if it `needs` any.
    pub fn set_asked(&mut self, needs: bool) {
        if let Some(subtask) = self.unasked.pop_front() {
            let part = match needs {
                true => &mut self.fetched,
                false => &mut self.local,
            };
            add(part, subtask, self.by_number);
        }
    }

    /// Those whose data were asked for, in the order in which they should begin: by number, or
    /// those that need data of others, so that others can be fetched, before those that keep
    /// nothing waiting.
    pub fn asked(&self) -> impl Iterator<Item = u64> + '_ {
        let mut fetched = self.fetched.iter().copied().peekable();
        let mut local = self.local.iter().copied().peekable();
        std::iter::from_fn(move || {
            let is_local = match (fetched.peek(), local.peek()) {
                (Some(fetched), Some(local)) => self.by_number && local < fetched,
                (fetched, _) => fetched.is_none(),
            };
            if is_local {
                local.next()
            } else {
                fetched.next()
            }
        })
    }

    /// Those whose data were not asked for, in order.
    pub fn unasked(&self) -> impl Iterator<Item = u64> + '_ {
        self.unasked.iter().copied()
    }

    /// The data of a subtask were asked for before others', if it `needs` any.
    pub fn asked_early(&mut self, subtask: u64, needs: bool) {
        if let Some(place) = self.unasked.iter().position(|&other| other == subtask) {
            self.unasked.remove(place);
            self.unasked.push_front(subtask);
            self.set_asked(needs);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Subtasks 1 and 3 need data of other nodes, 0 and 2 none, and 4 and 5 were not asked.
    fn queue() -> Queue {
        let mut queue = Queue::default();
        queue.extend(0..6);
        for subtask in 0..4 {
            assert_eq!(queue.next_unasked(), Some(subtask));
            queue.set_asked(subtask % 2 == 1);
        }
        queue
    }

    #[test]
    fn what_was_fetched_begins_first_where_it_has_come() {
        let queue = queue();
        let asked: Vec<u64> = queue.asked().collect();
        assert_eq!(asked, [1, 3, 0, 2], "4 and 5 were not asked for");
        assert_eq!((queue.len(), queue.fetched()), (6, 2));
    }

    #[test]
    fn by_number_the_least_comes_first() {
        let mut queue = Queue::new(true);
        queue.extend([5, 2, 9].into_iter());
        assert_eq!(queue.next_unasked(), Some(2));
        queue.set_asked(false);
        queue.set_asked(true);
        assert!(queue.asked().eq([2, 5]));
        queue.again(1);
        queue.extend([0].into_iter());
        assert!(queue.asked().eq([1, 2, 5]));
        assert_eq!(queue.take(), [1, 5, 2, 0, 9]);
    }

    #[test]
    fn what_begins_again_is_the_first() {
        let mut queue = queue();
        assert!(queue.remove(0));
        queue.again(0);
        assert_eq!(queue.asked().next(), Some(0));
        assert_eq!(queue.len(), 6);
    }

    #[test]
    fn each_part_gives_its_subtasks_back() {
        let mut queue = queue();
        for subtask in [1, 2, 4] {
            assert!(queue.remove(subtask), "{subtask}");
            assert!(!queue.remove(subtask), "{subtask} was removed");
        }
        assert_eq!((queue.len(), queue.fetched()), (3, 1));
        assert_eq!(queue.next_unasked(), Some(5));
        assert_eq!(queue.take(), [3, 0, 5]);
        assert_eq!((queue.len(), queue.next_unasked()), (0, None));
    }
}
