//! How many tasks a graph may have, before it is made.

use std::sync::atomic::{AtomicBool, Ordering};

use super::GraphError;
use crate::machine::host::Memory;

/// Most tasks of a graph.
pub const MOST_TASKS: u64 = 10_000_000;

/// Bytes of memory for a task, at least: its kernel and its data with their names, what is known
/// of the times of both, and the engine's part. With a trace they are 6 to 8 KB.
const TASK_BYTES: u64 = 4096;

/// Checks that a graph of so many tasks can be made.
///
/// # Errors
/// [`GraphError::TooManyTasks`], and [`GraphError::NoMemory`] for what this process can have.
pub fn check_tasks(tasks: u64) -> Result<(), GraphError> {
    if tasks > MOST_TASKS {
        return Err(GraphError::TooManyTasks { tasks });
    }
    let needed = tasks * TASK_BYTES;
    match Memory::read().map(|memory| memory.obtainable(0)) {
        Some(free) if free < needed => Err(GraphError::NoMemory {
            tasks,
            needed,
            free,
        }),
        _ => Ok(()),
    }
}

/// Whether a graph is to be made further: looked at for each task.
///
/// # Errors
/// [`GraphError::Stopped`] when the flag was set.
pub fn go_on(stop: &AtomicBool) -> Result<(), GraphError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(GraphError::Stopped),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_a_number_of_tasks_that_memory_has_room_for() {
        assert_eq!(check_tasks(0), Ok(()));
        assert_eq!(check_tasks(1000), Ok(()));
        for tasks in [MOST_TASKS + 1, 1 << 32, u64::MAX] {
            let refused = check_tasks(tasks);
            assert_eq!(refused, Err(GraphError::TooManyTasks { tasks }));
            let words = refused.unwrap_err().to_string();
            assert!(words.contains("larger tiles"), "{words}");
        }
        assert!(go_on(&AtomicBool::new(false)).is_ok());
        assert_eq!(go_on(&AtomicBool::new(true)), Err(GraphError::Stopped));
    }
}
