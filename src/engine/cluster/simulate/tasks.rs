//! The tasks of a simulated run, in chains, and the kernels of their subtasks.

use std::sync::Arc;

use crate::codelet::{Codelet, Cost, HostMemoryId, Memory};
use crate::runtime::sim::device_model::KernelDemand;
use crate::workload::cluster::ClusterWorkload;
use pdawl_core::cluster::space::{SpaceBlock, SpaceId, Spaces};
use pdawl_core::cluster::task::chain::{Chain, Chaining};
use pdawl_core::cluster::task::{Computed, SubtaskLaunch, Task};

/// A chain with its tasks.
#[derive(Clone)]
pub(super) struct SimulatedChain {
    pub chain: Arc<Chain>,
    pub tasks: Arc<[Arc<dyn Computed>]>,
}

/// A subtask's kernel.
pub(super) struct SubtaskKernel {
    cost: Cost,
    launch: SubtaskLaunch,
    /// Kernels that a GPU launches for it.
    launches: u64,
}

/// How many kernels a GPU launches for a subtask.
fn launches(task: &dyn Computed, subtask: u64, launch: &SubtaskLaunch, spaces: &Spaces) -> u64 {
    let Some(kernel) = launch.codelet.opencl.as_ref().filter(|of| of.is_series()) else {
        return 1;
    };
    let shape = |part: &SpaceBlock| (part.block.width(), spaces.extent(part.space).element);
    let reads = task.read_arguments(subtask);
    let reads = reads.iter().filter_map(|read| read.parts.first());
    let blocks: Vec<_> = (reads.chain(&task.writes(subtask)).map(shape)).collect();
    let memories: Vec<Memory> = (blocks.iter())
        .map(|_| Memory::Host(HostMemoryId::fresh()))
        .collect();
    let values = launch.values.iter();
    let values = values.map(|value| value.compact(&memories, &blocks));
    let values = values.collect();
    kernel.launches(&launch.units, &task.arguments(subtask, memories, values))
}

impl SubtaskKernel {
    /// The kernel of a subtask.
    pub fn of(task: &dyn Computed, subtask: u64, spaces: &Spaces) -> Self {
        let launch = task.launch(subtask);
        Self {
            cost: task.cost(subtask),
            launches: launches(task, subtask, &launch, spaces),
            launch,
        }
    }

    pub fn codelet(&self) -> &Codelet {
        &self.launch.codelet
    }

    /// What a device needs to know for its time.
    pub fn demand(&self) -> KernelDemand<'_> {
        KernelDemand {
            launches: self.launches,
            ..KernelDemand::of(&self.launch.codelet, &self.launch.units, self.cost)
        }
    }
}

/// Tasks by number. A workload may have millions, so each is made when a node begins its chain.
pub(super) struct Tasks<'a> {
    workload: &'a dyn ClusterWorkload,
    spaces: Vec<SpaceId>,
    /// The chain that was made last, and the number of its first task. Most nodes begin the
    /// same chain as the node before.
    made: Option<(u64, SimulatedChain)>,
}

impl<'a> Tasks<'a> {
    /// The tasks of a workload on its spaces.
    pub fn of(workload: &'a dyn ClusterWorkload, spaces: Vec<SpaceId>) -> Self {
        Self {
            workload,
            spaces,
            made: None,
        }
    }

    /// The number of tasks.
    pub fn count(&self) -> u64 {
        self.workload.tasks()
    }

    /// The chain that begins with a task; none after the last one.
    pub fn chain(&mut self, number: u64) -> Option<SimulatedChain> {
        if let Some((made, chain)) = &self.made
            && *made == number
        {
            return Some(chain.clone());
        }
        if number >= self.count() {
            return None;
        }
        let get = |number| self.workload.task(number, &self.spaces);
        let first = get(number);
        let mut chaining = Chaining::new(Arc::clone(&first) as Arc<dyn Task>);
        let mut tasks = vec![first];
        let mut next = number + 1;
        // The blocks of a task may depend on bytes that are known when those before it have
        // ended.
        while next < self.count() && self.workload.depends(next).is_none() {
            let task = get(next);
            if !chaining.push(&(Arc::clone(&task) as Arc<dyn Task>)) {
                break;
            }
            tasks.push(task);
            next += 1;
        }
        let chain = SimulatedChain {
            chain: Arc::new(chaining.build()),
            tasks: tasks.into(),
        };
        self.made = Some((number, chain.clone()));
        Some(chain)
    }
}
