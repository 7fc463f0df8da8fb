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

/// Tasks by their numbers, in steps of as many, until a condition is met after a step or all
/// have ended.
pub struct UntilMet {
    tasks: InOrder,
    /// Tasks of a step.
    step: u64,
    condition: Condition,
    /// Whether the condition was asked for after the last task.
    has_asked: bool,
    has_ended: bool,
}

impl UntilMet {
    /// So many tasks at most.
    pub fn new(count: u64, step: u64, condition: Condition) -> Self {
        Self {
            tasks: InOrder::new(count),
            step,
            condition,
            has_asked: true,
            has_ended: false,
        }
    }
}

impl Course for UntilMet {
    fn next(&mut self) -> Turn {
        if self.has_ended {
            return Turn::End;
        }
        let ended = self.tasks.next;
        let is_between = ended > 0 && ended < self.tasks.count && ended.is_multiple_of(self.step);
        if is_between && !self.has_asked {
            self.has_asked = true;
            return Turn::Decide(self.condition.clone());
        }
        self.has_asked = false;
        self.tasks.next()
    }

    fn decided(&mut self, is_met: bool) {
        self.has_ended = is_met;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tasks of a course whose condition is met when it is asked for the `met`-th time.
    fn tasks(mut course: impl Course, met: usize) -> Vec<u64> {
        let (mut tasks, mut asked) = (Vec::new(), 0);
        loop {
            match course.next() {
                Turn::Task(number) => tasks.push(number),
                Turn::Decide(_) => {
                    asked += 1;
                    course.decided(asked == met);
                }
                Turn::Bands => {}
                Turn::End => return tasks,
            }
        }
    }

    #[test]
    fn a_condition_is_asked_for_between_steps() {
        let condition = Condition {
            space: 0,
            is_met: Arc::new(|_| false),
        };
        let course = || UntilMet::new(6, 2, condition.clone());
        assert_eq!(tasks(course(), 1), [0, 1]);
        assert_eq!(tasks(course(), 2), [0, 1, 2, 3]);
        assert_eq!(
            tasks(course(), 3),
            [0, 1, 2, 3, 4, 5],
            "it is not asked at the end"
        );
        assert_eq!(tasks(InOrder::new(3), 1), [0, 1, 2]);
    }
}
