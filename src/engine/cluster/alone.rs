//! A cluster of one: the machine computes a workload over spaces by itself, on all of its
//! devices, as one task graph and without messages.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::ClusterError;
use super::run::{Control, Sink};
use crate::graph::probe::probe;
use crate::graph::{GraphOutcome, PreparedGraph, host_bytes};
use crate::machine::Device;
use crate::parallel;
use crate::runtime::{Runtime, RuntimeError};
use crate::verify::Checked;
use crate::workload::cluster::graph::{WorkloadGraph, WorkloadGraphError};
use crate::workload::cluster::{Check, ClusterWorkload, FillError};
use pdawl_core::cluster::record::{ClusterOutcome, DevicePart, NodeRecord};
use pdawl_core::cluster::space::{Block, Extent};
use pdawl_core::graph::{Components, GraphError, HostSpaceId, TaskGraph};

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

/// What came of the result.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    pub checked: Option<Checked>,
    pub figure: Option<f64>,
}

impl<'a> Alone<'a> {
    /// A workload, of which these spaces are written to files at the end. Policies learn of the
    /// tasks in a random order if there is a seed for it.
    ///
    /// # Errors
    /// Tasks that are no task graph, or too many, and `stop`.
    pub fn new(
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

    /// Bytes of host memory that it takes on these devices.
    pub fn host_bytes(&self, devices: &[Device]) -> u64 {
        host_bytes(
            &self.graph,
            &Components::single_kernels(&self.graph),
            devices,
        )
    }

    /// A kernel of each codelet on data of its own, for measuring its seconds. So code is loaded,
    /// and libraries are tried, before the time begins. None where a lone device computes in host
    /// memory.
    ///
    /// # Errors
    /// None that the graph has not.
    pub fn probe(&self, devices: &[Device]) -> Result<Option<Arc<TaskGraph>>, GraphError> {
        match devices {
            [device] if device.shares_host_memory => Ok(None),
            _ => Ok(Some(Arc::new(probe(&self.graph)?))),
        }
    }

    /// Its subtasks as a task graph.
    pub fn graph(&self) -> &Arc<TaskGraph> {
        &self.graph
    }

    /// Compares and writes the result of the graph's last run, if that has a result.
    ///
    /// # Errors
    /// Data that cannot be read, what the runtime refuses, and a result that the workload refuses
    /// or that cannot be written.
    pub fn finish(
        &self,
        prepared: &PreparedGraph,
        runtime: &mut dyn Runtime,
        has_result: bool,
        control: &mut Control,
    ) -> Result<Finished, ClusterError> {
        if let Some(error) = self.error.get() {
            return Err(error.clone().into());
        }
        let mut done = Done {
            of: self,
            runtime,
            prepared,
        };
        match has_result {
            true => done.finish(control),
            false => Ok(Finished::default()),
        }
    }

    /// What a cluster's run returns, of a run on the machine of this name.
    pub fn outcome(&self, name: &str, ran: &GraphOutcome, finished: Finished) -> ClusterOutcome {
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
        let node = NodeRecord {
            name: name.to_owned(),
            devices,
            subtasks: ran.placements.len() as u64,
            busy_seconds: ran.seconds,
            checked: finished.checked,
            ..NodeRecord::default()
        };
        ClusterOutcome {
            seconds: ran.seconds,
            tasks: self.workload.tasks(),
            restarts: 0,
            nodes: vec![node],
            figure: finished.figure,
            requests: None,
            timeline: Vec::new(),
        }
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
