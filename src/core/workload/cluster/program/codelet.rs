//! Tasks of a codelet, which has implementations for several kinds of devices, perhaps those
//! of libraries. Its arguments may tell where blocks lie in memory, so that whole matrices are
//! computed where they are.

use std::sync::Arc;

use super::SpaceTask;
use crate::cluster::space::{Block, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, Task};
use crate::codelet::{Cost, Name};

/// What a subtask uses: blocks of the program's spaces, by the numbers of these.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    pub reads: Vec<(usize, Block)>,
    /// What it changes is among both.
    pub writes: Vec<(usize, Block)>,
    pub cost: Cost,
}

/// A task whose subtasks a codelet computes.
#[derive(Clone)]
pub struct CodeletTask {
    name: Name,
    count: u64,
    uses: Arc<dyn Fn(u64) -> Uses + Send + Sync>,
    launch: Arc<dyn Fn(u64) -> SubtaskLaunch + Send + Sync>,
}

impl CodeletTask {
    /// A task of so many subtasks.
    pub fn new(
        name: impl Into<Name>,
        count: u64,
        uses: impl Fn(u64) -> Uses + Send + Sync + 'static,
        launch: impl Fn(u64) -> SubtaskLaunch + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            count,
            uses: Arc::new(uses),
            launch: Arc::new(launch),
        }
    }
}

impl SpaceTask for CodeletTask {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn on(&self, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(OnSpaces {
            task: self.clone(),
            spaces: spaces.into(),
        })
    }
}

struct OnSpaces {
    task: CodeletTask,
    spaces: Arc<[SpaceId]>,
}

impl OnSpaces {
    fn parts(&self, blocks: Vec<(usize, Block)>) -> Vec<SpaceBlock> {
        let parts = blocks.into_iter().map(|(space, block)| SpaceBlock {
            space: self.spaces[space],
            block,
        });
        parts.collect()
    }
}

impl Task for OnSpaces {
    fn name(&self) -> &str {
        self.task.name.as_str()
    }

    fn count(&self) -> u64 {
        self.task.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.parts((self.task.uses)(subtask).reads)
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.parts((self.task.uses)(subtask).writes)
    }

    fn cost(&self, subtask: u64) -> Cost {
        (self.task.uses)(subtask).cost
    }
}

impl Computed for OnSpaces {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        (self.task.launch)(subtask)
    }
}
