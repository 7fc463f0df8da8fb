//! The tasks of a simulated run, in chains, and the kernels of their subtasks.

use std::sync::Arc;

use crate::codelet::{Codelet, Cost, HostMemoryId, Memory};
use crate::runtime::sim::device_model::KernelDemand;
use crate::workload::cluster::ClusterWorkload;
use pdawl_core::cluster::space::{SpaceBlock, SpaceId, Spaces};
use pdawl_core::cluster::task::chain::{Chain, Chaining};
use pdawl_core::cluster::task::{Computed, SubtaskLaunch, Task};

/// Where tasks come from.
pub(super) enum Source<'a> {
    Given(&'a [Arc<dyn Task>]),
    /// A workload may have millions, so each is made when a node begins its chain.
    Workload {
        workload: &'a dyn ClusterWorkload,
        spaces: Vec<SpaceId>,
    },
}

/// A task, of which more is known if it can be computed.
#[derive(Clone)]
pub(super) enum SimulatedTask {
    Given(Arc<dyn Task>),
    Computed(Arc<dyn Computed>),
}

/// A chain with its tasks.
#[derive(Clone)]
pub(super) struct SimulatedChain {
    pub chain: Arc<Chain>,
    pub tasks: Arc<[SimulatedTask]>,
}

/// A subtask's kernel.
pub(super) struct SubtaskKernel {
    task: Arc<dyn Task>,
    cost: Cost,
    launch: Option<SubtaskLaunch>,
    /// Kernels that a GPU launches for it.
    launches: u64,
}

impl SimulatedTask {
    pub fn task(&self) -> Arc<dyn Task> {
        match self {
            Self::Given(task) => Arc::clone(task),
            Self::Computed(task) => Arc::clone(task) as Arc<dyn Task>,
        }
    }

    /// The kernel of a subtask.
    pub fn kernel(&self, subtask: u64, spaces: &Spaces) -> SubtaskKernel {
        let task = self.task();
        let (launch, launches) = match self {
            Self::Given(_) => (None, 1),
            Self::Computed(task) => {
                let launch = task.launch(subtask);
                let launches = launches(&**task, subtask, &launch, spaces);
                (Some(launch), launches)
            }
        };
        SubtaskKernel {
            cost: task.cost(subtask),
            task,
            launch,
            launches,
        }
    }
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
    /// Its codelet, if it is known.
    pub fn codelet(&self) -> Option<&Codelet> {
        self.launch.as_ref().map(|launch| &*launch.codelet)
    }

    /// What a device needs to know for its time. `efficiency` is the part of its operations a
    /// second that the kernel reaches. What is not known to be computed has singles, and all
    /// cores of a host share it.
    pub fn demand(&self, efficiency: f64) -> KernelDemand<'_> {
        let cost = Cost {
            flops: self.cost.flops / efficiency,
            ..self.cost
        };
        let kernel = match &self.launch {
            Some(launch) => KernelDemand::of(&launch.codelet, &launch.units, cost),
            None => KernelDemand {
                codelet: self.task.name(),
                cost,
                fp64: false,
                units: None,
                launches: 1,
            },
        };
        KernelDemand {
            launches: self.launches,
            ..kernel
        }
    }
}

/// Tasks by number.
pub(super) struct Tasks<'a> {
    source: Source<'a>,
    /// The chain that was made last, and the number of its first task. Most nodes begin the
    /// same chain as the node before.
    made: Option<(u64, SimulatedChain)>,
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
    pub fn chain(&mut self, number: u64) -> Option<SimulatedChain> {
        if let Some((made, chain)) = &self.made
            && *made == number
        {
            return Some(chain.clone());
        }
        if number >= self.count() {
            return None;
        }
        let first = self.get(number);
        let mut chaining = Chaining::new(first.task());
        let mut tasks = vec![first];
        let mut next = number + 1;
        while next < self.count() && !self.depends(next) {
            let task = self.get(next);
            if !chaining.push(&task.task()) {
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

    fn get(&self, number: u64) -> SimulatedTask {
        match &self.source {
            Source::Given(tasks) => SimulatedTask::Given(Arc::clone(&tasks[number as usize])),
            Source::Workload { workload, spaces } => {
                SimulatedTask::Computed(workload.task(number, spaces))
            }
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
