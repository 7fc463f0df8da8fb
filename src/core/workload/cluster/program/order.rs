//! The order of tasks, from what they read and write.

use std::collections::HashMap;

use super::{ProgramError, ProgramTask};
use crate::cluster::space::{Directory, SpaceBlock, SpaceId};
use crate::cluster::task::Computed;

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
