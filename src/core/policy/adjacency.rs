//! Which tasks read which data, side by side in memory.

use super::Problem;

/// A list of numbers for each number. All lists follow each other in one vector, because
/// policies walk over many short ones.
#[derive(Clone, Debug)]
pub(super) struct Adjacency {
    items: Vec<u32>,
    /// List i is `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
}

impl Adjacency {
    pub fn new<List: IntoIterator<Item = usize>>(lists: impl IntoIterator<Item = List>) -> Self {
        let mut all = Self {
            items: Vec::new(),
            starts: vec![0],
        };
        for list in lists {
            all.items.extend(list.into_iter().map(|item| item as u32));
            all.starts.push(all.items.len());
        }
        all
    }

    /// By task: the data that it reads.
    pub fn inputs(problem: &Problem) -> Self {
        let tasks = problem.tasks.iter();
        Self::new(tasks.map(|task| task.inputs.iter().copied()))
    }

    /// By datum: the tasks that read it, in ascending order.
    pub fn readers(problem: &Problem) -> Self {
        Self::inputs(problem).transposed(problem.data.len())
    }

    /// By item, of which there are `count`: the lists that have it, in ascending order.
    pub fn transposed(&self, count: usize) -> Self {
        let mut starts = vec![0; count + 1];
        for item in &self.items {
            starts[*item as usize + 1] += 1;
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut items = vec![0; self.items.len()];
        for list in 0..self.len() {
            for item in self.of(list) {
                items[next[*item as usize]] = list as u32;
                next[*item as usize] += 1;
            }
        }
        Self { items, starts }
    }

    /// Lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn of(&self, index: usize) -> &[u32] {
        &self.items[self.starts[index]..self.starts[index + 1]]
    }
}
