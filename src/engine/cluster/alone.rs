//! A cluster of one: the machine computes a workload over spaces by itself, on all of its
//! devices, as one task graph and without messages.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::ClusterError;
use super::run::{Control, Sink};
use crate::graph::kernel_seconds::KernelSeconds;
use crate::graph::probe::probe;
use crate::graph::{
    Control as GraphControl, GraphOutcome, GraphRunError, OpenTasks, PolicyChoice, PreparedGraph,
    Repetition, TaskRuns, host_bytes,
};
use crate::machine::Device;
use crate::parallel;
use crate::policy::NamedPolicy;
use crate::runtime::{Runtime, RuntimeError};
use crate::verify::Checked;
use crate::workload::cluster::graph::{WorkloadGraph, WorkloadGraphError};
use crate::workload::cluster::{Check, ClusterWorkload, FillError};
use pdawl_core::cluster::record::{ClusterOutcome, DevicePart, NodeRecord};
use pdawl_core::cluster::space::{Block, Extent};
use pdawl_core::graph::{Components, HostSpaceId, TaskGraph};

/// Bytes of a piece of the result that is written at once.
const PIECE: u64 = 16 << 20;

/// A workload that a machine computes by itself.
pub struct Alone<'a> {
    workload: &'a dyn ClusterWorkload,
    graph: Arc<TaskGraph>,
    extents: Vec<Extent>,
    written: Vec<Vec<Block>>,
    error: Arc<OnceLock<FillError>>,
}

/// How it does so.
#[derive(Clone, Copy, Debug)]
pub struct AloneOptions<'a> {
    /// Which device computes which subtask.
    pub policy: NamedPolicy,
    /// Of the policy's random choices.
    pub seed: u64,
    /// Tasks that a device has at once; `None`: the policy's default.
    pub window: Option<usize>,
    /// The most bytes of each device's own memory; `None`: all.
    pub memory: Option<u64>,
    /// The name of the machine.
    pub name: &'a str,
    /// Whether the run is traced.
    pub traces: bool,
    /// Whether there are numbers, which a simulation may have not.
    pub has_data: bool,
    pub repeats: Repetition,
}

/// What came of the runs.
pub struct AloneRun {
    /// What a cluster's run returns, of the last run.
    pub outcome: ClusterOutcome,
    pub runs: TaskRuns,
}

impl<'a> Alone<'a> {
    /// A workload, of which these spaces are written to files at the end.
    ///
    /// # Errors
    /// Tasks that are no task graph, or too many, and `stop`.
    pub fn new(
        workload: &'a dyn ClusterWorkload,
        outputs: impl IntoIterator<Item = usize>,
        stop: &AtomicBool,
    ) -> Result<Self, WorkloadGraphError> {
        Self::in_order(workload, outputs, None, stop)
    }

    /// As [`Self::new`]; policies learn of the tasks in a random order if there is a seed for it.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn in_order(
        workload: &'a dyn ClusterWorkload,
        outputs: impl IntoIterator<Item = usize>,
        shuffled: Option<u64>,
        stop: &AtomicBool,
    ) -> Result<Self, WorkloadGraphError> {
        let wanted: Vec<usize> = wanted(workload).into_iter().chain(outputs).collect();
        let made = WorkloadGraph::new(workload, &wanted, shuffled, stop)?;
        Ok(Self {
            workload,
            graph: Arc::new(made.graph),
            extents: made.extents,
            written: made.written,
            error: made.error,
        })
    }

    /// Its subtasks.
    pub fn subtasks(&self) -> usize {
        self.graph.kernels().len()
    }

    /// Bytes of host memory that it takes on these devices.
    pub fn host_bytes(&self, devices: &[Device]) -> u64 {
        host_bytes(
            &self.graph,
            &Components::single_kernels(&self.graph),
            devices,
        )
    }

    /// Measures each codelet on each device, on data of its own. So code is loaded, and
    /// libraries are tried, before the time begins. Nothing is measured where a lone device
    /// computes in host memory.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn measure(
        &self,
        runtime: &mut dyn Runtime,
        stop: &AtomicBool,
    ) -> Result<KernelSeconds, ClusterError> {
        let devices = runtime.devices();
        if devices.len() == 1 && devices[0].shares_host_memory {
            return Ok(KernelSeconds::default());
        }
        let few = Arc::new(probe(&self.graph).map_err(GraphRunError::from)?);
        Ok(KernelSeconds::measure(runtime, &few, stop)?)
    }

    /// Its subtasks as a task graph.
    pub fn graph(&self) -> &TaskGraph {
        &self.graph
    }

    /// Runs it. A run that `stop` ends early has an outcome, and no result.
    ///
    /// # Errors
    /// What the runtime refuses, the loss of all devices, and a result that the workload
    /// refuses or that cannot be written.
    pub fn run(
        &self,
        runtime: &mut dyn Runtime,
        seconds: &KernelSeconds,
        options: &AloneOptions,
        control: &mut Control,
        stop: &AtomicBool,
    ) -> Result<AloneRun, ClusterError> {
        let mut open = OpenTasks::new(runtime, &self.graph, seconds, options.memory)?;
        let ran = self.on(runtime, &mut open, options, control, stop);
        open.release(runtime);
        ran
    }

    fn on(
        &self,
        runtime: &mut dyn Runtime,
        open: &mut OpenTasks,
        options: &AloneOptions,
        control: &mut Control,
        stop: &AtomicBool,
    ) -> Result<AloneRun, ClusterError> {
        let choice = PolicyChoice {
            policy: options.policy,
            window: options.window,
            seed: options.seed,
        };
        let mut of_graph = GraphControl {
            stop,
            progress: &mut |done, _| (control.progress)(done as u64),
        };
        let (repeats, traces) = (&options.repeats, options.traces);
        let runs = open.repeat(runtime, &choice, repeats, traces, &mut of_graph)?;
        if let Some(error) = self.error.get() {
            return Err(error.clone().into());
        }
        let ran = &runs.last.outcome;
        let mut outcome = ClusterOutcome {
            seconds: ran.seconds,
            tasks: self.workload.tasks(),
            restarts: 0,
            nodes: vec![node(options.name, ran)],
            figure: None,
            requests: None,
            timeline: Vec::new(),
        };
        let is_complete = !ran.interrupted && !stop.load(Ordering::Relaxed);
        if is_complete && options.has_data {
            let mut done = Done {
                of: self,
                runtime,
                prepared: open.prepared(),
            };
            let finished = done.finish(control)?;
            outcome.nodes[0].checked = finished.checked;
            outcome.figure = finished.figure;
        }
        Ok(AloneRun { outcome, runs })
    }
}

/// What the machine did.
fn node(name: &str, ran: &GraphOutcome) -> NodeRecord {
    let mut devices: Vec<DevicePart> = (ran.devices.iter())
        .map(|name| DevicePart {
            name: name.clone(),
            ..DevicePart::default()
        })
        .collect();
    for placement in &ran.placements {
        let device = &mut devices[placement.device];
        device.subtasks += 1;
        device.seconds += placement.ended - placement.dispatched;
    }
    NodeRecord {
        name: name.to_owned(),
        devices,
        subtasks: ran.placements.len() as u64,
        busy_seconds: ran.seconds,
        ..NodeRecord::default()
    }
}

/// The spaces that are needed in host memory at the end.
fn wanted(workload: &dyn ClusterWorkload) -> Vec<usize> {
    let mut wanted = vec![workload.result()];
    if let Check::Whole(spaces, _) = workload.check() {
        wanted.extend(spaces);
    }
    wanted.extend(workload.refusal().map(|refusal| refusal.space));
    wanted.extend(workload.figure().map(|figure| figure.space));
    wanted
}

/// What came of the result.
#[derive(Default)]
struct Finished {
    checked: Option<Checked>,
    figure: Option<f64>,
}

/// A workload whose graph has run.
struct Done<'a> {
    of: &'a Alone<'a>,
    runtime: &'a mut dyn Runtime,
    prepared: &'a PreparedGraph,
}

impl Done<'_> {
    /// Compares the result, and writes it unless it is wrong.
    fn finish(&mut self, control: &mut Control) -> Result<Finished, ClusterError> {
        if let Some(refusal) = self.of.workload.refusal()
            && let Some(why) = (refusal.of)(self.space(refusal.space)?)
        {
            return Err(ClusterError::Refused(why));
        }
        let checked = match control.verify {
            Some(seed) => Some(self.check(seed)?),
            None => None,
        };
        let figure = match self.of.workload.figure() {
            Some(figure) => Some((figure.of)(self.space(figure.space)?)),
            None => None,
        };
        let is_right = checked.is_none_or(|checked: Checked| checked.wrong == 0);
        for (space, output) in control.outputs.iter_mut().filter(|_| is_right) {
            output.begin()?;
            let is_triangle = *space == self.of.workload.result() && self.of.workload.is_triangle();
            let extent = self.of.extents[*space];
            let bytes = self.space(*space)?;
            match is_triangle {
                true => write_triangle(extent, bytes, &mut **output)?,
                false => (bytes.chunks(PIECE as usize)).try_for_each(|piece| output.next(piece))?,
            }
        }
        Ok(Finished { checked, figure })
    }

    /// All bytes of a space.
    fn space(&mut self, space: usize) -> Result<&[u8], RuntimeError> {
        self.prepared.space_bytes(self.runtime, HostSpaceId(space))
    }

    fn check(&mut self, seed: u64) -> Result<Checked, ClusterError> {
        let workload = self.of.workload;
        match workload.check() {
            Check::Blocks(check) => self.check_blocks(&|block, bytes| check(block, bytes, seed)),
            Check::Whole(spaces, check) => {
                let Some((first, others)) = spaces.split_first() else {
                    return Ok(check(&[], seed));
                };
                let mut copied = Vec::new();
                for space in others {
                    copied.push(self.space(*space)?.to_vec());
                }
                // The first one is the largest, and stays where it is.
                let first = self.space(*first)?;
                let copied = copied.iter().map(Vec::as_slice);
                let whole: Vec<&[u8]> = [first].into_iter().chain(copied).collect();
                Ok(check(&whole, seed))
            }
        }
    }

    /// Compares the blocks of the result as they were written.
    fn check_blocks(
        &mut self,
        check: &(dyn Fn(&Block, &[u8]) -> Checked + Sync),
    ) -> Result<Checked, ClusterError> {
        let result = self.of.workload.result();
        let (extent, blocks) = (self.of.extents[result], &self.of.written[result]);
        let bytes = self
            .prepared
            .space_bytes(self.runtime, HostSpaceId(result))?;
        let compact = |block: &Block| {
            let mut compact = Vec::with_capacity(extent.bytes(block) as usize);
            for row in block.rows.clone() {
                let row = Block::new(row..row + 1, block.columns.clone());
                let at = extent.offset(&row) as usize;
                compact.extend_from_slice(&bytes[at..at + extent.bytes(&row) as usize]);
            }
            compact
        };
        let mut checked = Checked::default();
        let found = parallel::map(blocks.iter().collect(), |block: &Block| {
            check(block, &compact(block))
        });
        found.iter().for_each(|one| checked.add(one));
        Ok(checked)
    }
}

/// Writes a matrix with zeros above its diagonal.
fn write_triangle(extent: Extent, bytes: &[u8], output: &mut dyn Sink) -> io::Result<()> {
    let pitch = (extent.columns * extent.element) as usize;
    let lines = (PIECE as usize / pitch).max(1);
    for (piece, rows) in bytes.chunks(lines * pitch).enumerate() {
        let mut rows = rows.to_vec();
        for (row, line) in (piece * lines..).zip(rows.chunks_exact_mut(pitch)) {
            line[(row + 1) * extent.element as usize..].fill(0);
        }
        output.next(&rows)?;
    }
    Ok(())
}
