//! The tasks of a simulated run, one after the other.

use std::sync::Arc;

use crate::cluster::space::SpaceId;
use crate::cluster::task::Task;
use crate::workload::cluster::ClusterWorkload;

/// Where tasks come from.
pub(super) enum Source<'a> {
    Given(&'a [Arc<dyn Task>]),
    /// A workload may have millions, so each is made when a node begins it.
    Workload {
        workload: &'a dyn ClusterWorkload,
        spaces: Vec<SpaceId>,
    },
}

/// Tasks by number.
pub(super) struct Tasks<'a> {
    source: Source<'a>,
    /// The one that was made last. Most nodes begin the same task as the node before.
    made: Option<(u64, Arc<dyn Task>)>,
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

    /// A task; none after the last one.
    pub fn get(&mut self, number: u64) -> Option<Arc<dyn Task>> {
        if let Some((made, task)) = &self.made
            && *made == number
        {
            return Some(Arc::clone(task));
        }
        let task: Arc<dyn Task> = match &self.source {
            _ if number >= self.count() => return None,
            Source::Given(tasks) => Arc::clone(&tasks[number as usize]),
            Source::Workload { workload, spaces } => workload.task(number, spaces),
        };
        self.made = Some((number, Arc::clone(&task)));
        Some(task)
    }
}
