//! The order of tasks, from what they read and write, and tasks that are repeated.

use std::collections::{HashMap, VecDeque};

use super::{ProgramError, ProgramTask};
use crate::cluster::space::{Directory, SpaceBlock, SpaceId};
use crate::cluster::task::Computed;
use crate::workload::cluster::{Condition, Course, Turn};

/// The tasks in an order in which each comes after those that write what it reads, and
/// otherwise as they were given.
///
/// # Errors
/// Two tasks that write the same elements, and tasks that wait for each other.
pub(super) fn ordered(tasks: &[ProgramTask], spaces: usize) -> Result<Vec<usize>, ProgramError> {
    let ids: Vec<SpaceId> = (0..spaces as u32).map(SpaceId).collect();
    let on: Vec<_> = tasks.iter().map(|task| task.on(&ids)).collect();
    let mut writers: HashMap<SpaceId, Directory<usize>> = HashMap::new();
    for (number, task) in on.iter().enumerate() {
        for part in writes(&**task) {
            let written = writers.entry(part.space).or_default();
            let other = (written.holders(&part.block)).find(|(_, one)| *one != number);
            if let Some((block, one)) = other {
                return Err(ProgramError::TwoWriters {
                    one: tasks[one].name.to_string(),
                    other: tasks[number].name.to_string(),
                    space: part.space.0,
                    block,
                });
            }
            written.set(&part.block, number);
        }
    }
    let waits_for: Vec<Vec<usize>> = (on.iter().enumerate())
        .map(|(number, task)| {
            let mut before = Vec::new();
            for part in reads(&**task) {
                if let Some(written) = writers.get(&part.space) {
                    let found = written.holders(&part.block).map(|(_, writer)| writer);
                    before.extend(found.filter(|writer| *writer != number));
                }
            }
            before.sort_unstable();
            before.dedup();
            before
        })
        .collect();
    let mut order = Vec::with_capacity(tasks.len());
    let mut is_done = vec![false; tasks.len()];
    while order.len() < tasks.len() {
        let can_run = |number: &usize| {
            !is_done[*number] && waits_for[*number].iter().all(|before| is_done[*before])
        };
        let Some(next) = (0..tasks.len()).find(can_run) else {
            return Err(ProgramError::Cycle {
                tasks: cycle(&waits_for, &is_done)
                    .into_iter()
                    .map(|number| tasks[number].name.to_string())
                    .collect(),
            });
        };
        is_done[next] = true;
        order.push(next);
    }
    Ok(order)
}

/// What a task writes. All subtasks of one that reduces write the same.
fn writes(task: &dyn Computed) -> Vec<SpaceBlock> {
    let unlike = if task.reduces() { 1 } else { u64::MAX };
    let subtasks = 0..task.count().min(unlike);
    subtasks.flat_map(|subtask| task.writes(subtask)).collect()
}

/// All that a task reads, or may touch.
fn reads(task: &dyn Computed) -> Vec<SpaceBlock> {
    let read = |subtask| task.reads(subtask).into_iter().chain(task.touches(subtask));
    (0..task.count()).flat_map(read).collect()
}

/// Tasks of which each waits for the next one, and the last one for the first.
fn cycle(waits_for: &[Vec<usize>], is_done: &[bool]) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let mut at = is_done.iter().position(|done| !done);
    while let Some(number) = at {
        if let Some(first) = path.iter().position(|seen| *seen == number) {
            path.drain(..first);
            break;
        }
        path.push(number);
        // Whoever cannot run waits for another one that cannot.
        at = waits_for[number]
            .iter()
            .copied()
            .find(|before| !is_done[*before]);
    }
    path
}

/// Whether two tasks, one after the other, must stay in this order: one reads or writes what
/// the other writes.
pub(super) fn depends(later: &dyn Computed, earlier: &dyn Computed) -> bool {
    let meet = |some: &[SpaceBlock], written: &[SpaceBlock]| {
        let mut directories: HashMap<SpaceId, Directory<()>> = HashMap::new();
        for part in written {
            let of_space = directories.entry(part.space).or_default();
            of_space.set(&part.block, ());
        }
        some.iter().any(|part| {
            let of_space = directories.get(&part.space);
            of_space.is_some_and(|written| written.holders(&part.block).next().is_some())
        })
    };
    let (before, after) = (writes(earlier), writes(later));
    meet(&reads(later), &before) || meet(&after, &before) || meet(&reads(earlier), &after)
}

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
