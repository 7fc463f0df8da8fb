//! What a session has measured of the tasks of its last operation.

use std::sync::atomic::AtomicBool;

use crate::engine::graph::kernel_seconds::KernelSeconds;
use crate::runtime::Runtime;
use crate::session::{Error, Session};

/// The tasks of an operation. Equal ones take equally long.
#[derive(PartialEq)]
pub struct Tasks {
    pub workload: &'static str,
    /// Its sizes and those of its parts, in words.
    pub size: String,
}

/// The tasks of the operation that ran last, with their seconds.
pub struct KnownTasks {
    tasks: Tasks,
    seconds: KernelSeconds,
}

impl Session {
    /// The seconds of tasks of every kind: as `measure` finds them, unless the last operation
    /// had the same tasks. The simulator or the devices are then ready for a run.
    pub(super) fn seconds(
        &mut self,
        tasks: &Tasks,
        measure: impl FnOnce(&mut dyn Runtime, &AtomicBool) -> Result<KernelSeconds, Error>,
    ) -> Result<KernelSeconds, Error> {
        let known = self.known_tasks.take();
        if let Some(known) = known.filter(|known| known.tasks == *tasks) {
            self.runtime()?;
            return Ok(known.seconds);
        }
        let stop = self.stop.clone();
        let seconds = measure(self.runtime()?, &stop.0)?;
        self.devices.begin(None)?;
        Ok(seconds)
    }

    /// Keeps the seconds of tasks that have run, for the next operation.
    pub(super) fn keep_seconds(&mut self, tasks: Tasks, seconds: KernelSeconds) {
        self.known_tasks = Some(KnownTasks { tasks, seconds });
    }
}
