//! A small set of tasks, on which the seconds of all tasks are measured.

use crate::workload::task_set::{Order, TaskSet, Tasks};

/// Random tasks of a sample.
const RANDOM: u32 = 32;

/// A small set with a task of every kind that `set` has, whatever its size.
pub fn sample(set: &TaskSet) -> TaskSet {
    let tile = set.tile;
    let tasks = match set.tasks.clone() {
        Tasks::Matmul2d(mut of) => {
            of.n = of.n.min(2);
            of.removed = 0.0;
            Tasks::Matmul2d(of)
        }
        // The first update of a tile of C is that of the second tile of the depth.
        Tasks::Matmul3d(mut of) => {
            (of.rows, of.columns) = (of.rows.at_most(1, tile), of.columns.at_most(1, tile));
            of.depth = of.depth.at_most(2, tile);
            Tasks::Matmul3d(of)
        }
        // The first update of a tile below the diagonal is that of row 2.
        Tasks::Cholesky(mut of) => {
            of.rows = of.rows.at_most(3, tile);
            Tasks::Cholesky(of)
        }
        Tasks::Random(mut of) => {
            of.tasks = of.tasks.min(RANDOM);
            of.given = of.given.min(RANDOM);
            Tasks::Random(of)
        }
    };
    TaskSet {
        tasks,
        order: Order::Natural,
        ..set.clone()
    }
}
