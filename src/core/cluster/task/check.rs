//! Checks of a task before it begins.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

use super::Task;
use crate::cluster::space::{Block, Directory, SpaceBlock, SpaceId, Spaces};

/// Why a task cannot begin.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TaskError {
    #[error(
        "subtask {subtask} of {task} uses rows {rows:?} and columns {columns:?} of space {space}, \
         which has {height} rows and {width} columns",
        rows = part.block.rows, columns = part.block.columns, space = part.space.0
    )]
    Outside {
        task: String,
        subtask: u64,
        part: SpaceBlock,
        height: u64,
        width: u64,
    },
    #[error(
        "subtask {subtask} of {task} uses a space that another program has made; each program \
         uses its own spaces"
    )]
    NoSpace { task: String, subtask: u64 },
    #[error("subtask {subtask} of {task} cannot be computed: {why}")]
    Fault {
        task: String,
        subtask: u64,
        why: String,
    },
    #[error(
        "subtasks {one} and {other} of {task} both write rows {rows:?} and columns {columns:?} of \
         space {space}; let each write blocks of its own, or reduce",
        rows = block.rows, columns = block.columns, space = space.0
    )]
    WrittenTwice {
        task: String,
        one: u64,
        other: u64,
        space: SpaceId,
        block: Block,
    },
    #[error("subtasks 0 and {subtask} of {task}, which reduces, write unlike blocks")]
    Unlike { task: String, subtask: u64 },
    #[error("interrupted")]
    Stopped,
}

/// Checks that subtasks use blocks of their spaces, and that no two of them write the same
/// element, unless the task reduces: then all write the same blocks.
///
/// # Errors
/// The first block that does not suit, and `stop`.
pub fn check(task: &dyn Task, spaces: &Spaces, stop: &AtomicBool) -> Result<(), TaskError> {
    let name = || task.name().to_owned();
    let first = task.reduces().then(|| task.writes(0));
    // By space: who writes which block.
    let mut writers: HashMap<SpaceId, Directory<u64>> = HashMap::new();
    for subtask in 0..task.count() {
        if stop.load(Ordering::Relaxed) {
            return Err(TaskError::Stopped);
        }
        if let Some(why) = task.fault(subtask) {
            return Err(TaskError::Fault {
                task: name(),
                subtask,
                why,
            });
        }
        let writes = task.writes(subtask);
        let (reads, touches) = (task.reads(subtask), task.touches(subtask));
        for part in reads.iter().chain(&touches).chain(&writes) {
            if !spaces.has(part.space) {
                let task = name();
                return Err(TaskError::NoSpace { task, subtask });
            }
            let extent = spaces.extent(part.space);
            if !extent.whole().contains(&part.block) {
                return Err(TaskError::Outside {
                    task: name(),
                    subtask,
                    part: part.clone(),
                    height: extent.rows,
                    width: extent.columns,
                });
            }
        }
        match &first {
            Some(first) if *first == writes => {}
            Some(_) => {
                let task = name();
                return Err(TaskError::Unlike { task, subtask });
            }
            None => {
                for part in writes {
                    let written = writers.entry(part.space).or_default();
                    let other = written.holders(&part.block).next();
                    if let Some((block, one)) = other {
                        return Err(TaskError::WrittenTwice {
                            task: name(),
                            one,
                            other: subtask,
                            space: part.space,
                            block,
                        });
                    }
                    written.set(&part.block, subtask);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::Extent;
    use crate::codelet::Cost;

    /// A task whose subtasks write these blocks of space 0.
    struct Writes(Vec<Block>, bool);

    impl Task for Writes {
        fn name(&self) -> &str {
            "writes"
        }

        fn count(&self) -> u64 {
            self.0.len() as u64
        }

        fn reads(&self, _subtask: u64) -> Vec<SpaceBlock> {
            Vec::new()
        }

        fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
            vec![SpaceBlock {
                space: SpaceId(0),
                block: self.0[subtask as usize].clone(),
            }]
        }

        fn cost(&self, _subtask: u64) -> Cost {
            Cost::default()
        }

        fn reduces(&self) -> bool {
            self.1
        }
    }

    fn checked(blocks: &[Block], reduces: bool) -> Option<String> {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: 6,
            columns: 8,
            element: 4,
        };
        spaces.add(extent, []);
        let go_on = AtomicBool::new(false);
        let error = check(&Writes(blocks.to_vec(), reduces), &spaces, &go_on).err();
        error.map(|error| error.to_string())
    }

    #[test]
    fn blocks_are_of_their_space_and_written_once() {
        let block = |rows, columns| Block::new(rows, columns);
        assert_eq!(
            checked(&[block(0..3, 0..8), block(3..6, 0..8)], false),
            None
        );
        let twice = checked(
            &[block(0..3, 0..8), block(4..6, 0..8), block(2..4, 5..6)],
            false,
        );
        let twice = twice.expect("row 2 is written twice");
        assert!(
            twice.contains("subtasks 0 and 2 of writes both write rows 2..3"),
            "{twice}"
        );
        let outside = checked(&[block(0..3, 0..9)], false).expect("there is no column 8");
        assert!(outside.contains("6 rows and 8 columns"), "{outside}");
    }

    #[test]
    fn a_task_that_reduces_writes_one_block() {
        let whole = Block::new(0..6, 0..8);
        assert_eq!(checked(&[whole.clone(), whole.clone()], true), None);
        let unlike = checked(&[whole, Block::new(0..5, 0..8)], true);
        assert!(unlike.is_some_and(|unlike| unlike.contains("subtasks 0 and 1")));
    }
}
