//! Tasks that are repeated: so many times, or until a condition is met.

use std::collections::VecDeque;

use crate::workload::cluster::{Condition, Course, Turn};

/// Steps of a program that are repeated. They run at least once.
pub(super) struct Repeated {
    /// The first step, and the one after the last.
    pub first: usize,
    pub end: usize,
    /// How often, at most.
    pub most: Option<u64>,
    /// What ends it.
    pub until: Option<Condition>,
}

/// The course of a program: its steps in order, some of them repeated.
pub(super) struct ProgramCourse<'a> {
    steps: usize,
    /// Inner ones before those that they are in.
    repeated: &'a [Repeated],
    /// The next step.
    next: usize,
    /// By repetition, how often it has ended since it began.
    rounds: Vec<u64>,
    /// The repetitions that end before the next step and were not considered yet.
    ending: VecDeque<usize>,
    asked: Option<usize>,
}

impl<'a> ProgramCourse<'a> {
    pub fn new(steps: usize, repeated: &'a [Repeated]) -> Self {
        Self {
            steps,
            repeated,
            next: 0,
            rounds: vec![0; repeated.len()],
            ending: VecDeque::new(),
            asked: None,
        }
    }

    /// A repetition ends, or begins again.
    fn go_on(&mut self, which: usize, is_over: bool) {
        if is_over {
            self.rounds[which] = 0;
            return;
        }
        self.next = self.repeated[which].first;
        self.ending.clear();
    }
}

impl Course for ProgramCourse<'_> {
    fn next(&mut self) -> Turn {
        while let Some(which) = self.ending.pop_front() {
            self.rounds[which] += 1;
            let of = &self.repeated[which];
            let is_last = of.most.is_some_and(|most| self.rounds[which] >= most);
            if let Some(until) = of.until.clone().filter(|_| !is_last) {
                self.asked = Some(which);
                return Turn::Decide(until);
            }
            self.go_on(which, is_last);
        }
        if self.next == self.steps {
            return Turn::End;
        }
        let step = self.next;
        self.next += 1;
        let ends = |which: &usize| self.repeated[*which].end == self.next;
        self.ending = (0..self.repeated.len()).filter(ends).collect();
        Turn::Task(step as u64)
    }

    fn decided(&mut self, is_met: bool) {
        if let Some(which) = self.asked.take() {
            self.go_on(which, is_met);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn until() -> Option<Condition> {
        Some(Condition {
            space: 0,
            is_met: Arc::new(|_| false),
        })
    }

    /// The steps of a course, with these decisions.
    fn steps(mut course: ProgramCourse, decisions: &[bool]) -> Vec<u64> {
        let (mut steps, mut decisions) = (Vec::new(), decisions.iter());
        loop {
            match course.next() {
                Turn::Task(number) => steps.push(number),
                Turn::Bands => panic!("a program has tasks"),
                Turn::Decide(_) => course.decided(*decisions.next().expect("a decision")),
                Turn::End => {
                    assert_eq!(decisions.next(), None);
                    return steps;
                }
            }
        }
    }

    /// Step 1 within steps 0 to 2, before step 3; both end at the same step in the second case.
    #[test]
    fn repetitions_are_within_others() {
        let one = |first, end, most, until| Repeated {
            first,
            end,
            most,
            until,
        };
        let both = [one(1, 2, Some(2), None), one(0, 3, None, until())];
        let course = || ProgramCourse::new(4, &both);
        assert_eq!(steps(course(), &[true]), [0, 1, 1, 2, 3]);
        assert_eq!(steps(course(), &[false, true]), [0, 1, 1, 2, 0, 1, 1, 2, 3]);
        let both = [one(1, 3, Some(3), until()), one(0, 3, Some(2), None)];
        let course = ProgramCourse::new(3, &both);
        assert_eq!(
            steps(course, &[true, false, false]),
            [0, 1, 2, 0, 1, 2, 1, 2, 1, 2]
        );
    }
}
