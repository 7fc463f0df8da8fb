//! The order in which a workload's tasks run. It may depend on what they compute: then the
//! first node decides, and tells the others.

use std::sync::Arc;

/// What all nodes do next.
pub enum Turn {
    /// Run the task of this number.
    Task(u64),
    /// Compute all steps of [`bands`](super::ClusterWorkload::bands).
    Bands,
    /// Find out whether a condition is met, and tell it to [`Course::decided`].
    Decide(Condition),
    /// Nothing: the workload has ended.
    End,
}

/// A condition on data.
#[derive(Clone)]
pub struct Condition {
    /// The space whose bytes tell. Tasks have written all of it, so that it is lost only
    /// together with what they did.
    pub space: usize,
    pub is_met: IsMet,
}

/// Whether a condition is met, by the bytes of a space.
pub type IsMet = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The order of tasks, from the first one on.
pub trait Course {
    /// What comes next.
    fn next(&mut self) -> Turn;

    /// Whether the condition is met that was asked for last.
    fn decided(&mut self, is_met: bool);
}

/// All tasks by their numbers.
pub struct InOrder {
    next: u64,
    count: u64,
}

impl InOrder {
    /// So many tasks.
    pub fn new(count: u64) -> Self {
        Self { next: 0, count }
    }
}

impl Course for InOrder {
    fn next(&mut self) -> Turn {
        if self.next == self.count {
            return Turn::End;
        }
        self.next += 1;
        Turn::Task(self.next - 1)
    }

    fn decided(&mut self, _is_met: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_in_the_order_of_their_numbers() {
        let mut course = InOrder::new(3);
        for expected in 0..3 {
            assert!(matches!(course.next(), Turn::Task(number) if number == expected));
        }
        assert!(matches!(course.next(), Turn::End));
    }
}
