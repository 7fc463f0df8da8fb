//! The tasks that read each datum.

use super::Problem;

/// By datum: the tasks that read it, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    tasks: Vec<u32>,
    /// Datum i's tasks are `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
}

impl Readers {
    pub fn new(problem: &Problem) -> Self {
        let mut starts = vec![0; problem.data.len() + 1];
        for datum in problem.tasks.iter().flat_map(|task| &task.inputs) {
            starts[datum + 1] += 1;
        }
        for datum in 0..problem.data.len() {
            starts[datum + 1] += starts[datum];
        }
        let mut next = starts.clone();
        let mut tasks = vec![0; starts[problem.data.len()]];
        for (task, inputs) in problem.tasks.iter().map(|task| &task.inputs).enumerate() {
            for datum in inputs {
                tasks[next[*datum]] = task as u32;
                next[*datum] += 1;
            }
        }
        Self { tasks, starts }
    }

    pub fn of(&self, datum: usize) -> &[u32] {
        &self.tasks[self.starts[datum]..self.starts[datum + 1]]
    }
}
