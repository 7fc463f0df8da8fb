//! The tasks of a simulated run, in chains.

use std::sync::Arc;

use crate::cluster::space::SpaceId;
use crate::cluster::task::Task;
use crate::cluster::task::chain::{Chain, Chaining};
use crate::workload::cluster::ClusterWorkload;

/// Where tasks come from.
pub(super) enum Source<'a> {
    Given(&'a [Arc<dyn Task>]),
    /// A workload may have millions, so each is made when a node begins its chain.
    Workload {
        workload: &'a dyn ClusterWorkload,
        spaces: Vec<SpaceId>,
    },
}

/// Tasks by number.
pub(super) struct Tasks<'a> {
    source: Source<'a>,
    /// The chain that was made last, and the number of its first task. Most nodes begin the
    /// same chain as the node before.
    made: Option<(u64, Arc<Chain>)>,
}

impl<'a> Tasks<'a> {
    pub fn of(source: Source<'a>) -> Self {
        Self { source, made: None }
    }

    /// The number of tasks.
    pub fn count(&self) -> u64 {
        match &self.source {
            Source::Given(tasks) => tasks.len() as u64,
            Source::Workload { workload, .. } => workload.tasks(),
        }
    }

    /// The chain that begins with a task; none after the last one.
    pub fn chain(&mut self, number: u64) -> Option<Arc<Chain>> {
        if let Some((made, chain)) = &self.made
            && *made == number
        {
            return Some(Arc::clone(chain));
        }
        if number >= self.count() {
            return None;
        }
        let mut chaining = Chaining::new(self.get(number));
        let mut next = number + 1;
        while next < self.count() && !self.depends(next) && chaining.push(&self.get(next)) {
            next += 1;
        }
        let chain = Arc::new(chaining.build());
        self.made = Some((number, Arc::clone(&chain)));
        Some(chain)
    }

    fn get(&self, number: u64) -> Arc<dyn Task> {
        match &self.source {
            Source::Given(tasks) => Arc::clone(&tasks[number as usize]),
            Source::Workload { workload, spaces } => workload.task(number, spaces),
        }
    }

    /// Whether the blocks of a task depend on bytes that are known when those before it have
    /// ended.
    fn depends(&self, number: u64) -> bool {
        match &self.source {
            Source::Given(_) => false,
            Source::Workload { workload, .. } => workload.depends(number).is_some(),
        }
    }
}
