//! A small set of tasks, on which the seconds of all tasks are measured.

use super::{Order, TaskSet, Tasks};

/// Random tasks of a sample.
const RANDOM: u32 = 32;

impl TaskSet {
    /// A small set with a task of every kind that this one has, whatever its size.
    pub fn sample(&self) -> Self {
        let tasks = match self.tasks.clone() {
            Tasks::Matmul2d(mut of) => {
                of.n = of.n.min(2);
                of.removed = 0.0;
                Tasks::Matmul2d(of)
            }
            // The first update of a tile of C is that of the second tile of the depth.
            Tasks::Matmul3d(mut of) => {
                (of.rows, of.columns) = (of.rows.min(1), of.columns.min(1));
                of.depth = of.depth.min(2);
                Tasks::Matmul3d(of)
            }
            // The first update of a tile below the diagonal is that of row 2.
            Tasks::Cholesky(mut of) => {
                of.rows = of.rows.min(3);
                Tasks::Cholesky(of)
            }
            Tasks::Random(mut of) => {
                of.tasks = of.tasks.min(RANDOM);
                of.given = of.given.min(RANDOM);
                Tasks::Random(of)
            }
        };
        Self {
            tasks,
            order: Order::Natural,
            ..self.clone()
        }
    }
}
