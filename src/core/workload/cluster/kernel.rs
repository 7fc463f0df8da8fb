//! A user's kernel: a task a step, a run of its units a subtask.
//!
//! Buffers that are written are divided over the nodes as the units are. Every node makes
//! the others, as each has the files that they are loaded from, so these never travel.

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

use super::{Check, ClusterWorkload, Contents, Fill, Layout, NewSpace};
use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use crate::cluster::task::{Beginning, Computed, SubtaskLaunch, Task};
use crate::codelet::{Cost, Memory, Value};
use crate::graph::spec::Buffer;
use crate::parallel;
use crate::verify::Checked;
use crate::workload::Divisible;
use crate::workload::kernel::{UserKernel, compare};

/// Runs of units for each node, and at most: enough that each node gets a part that suits it, few
/// enough that launches stay long and messages few.
const RUNS_A_NODE: u64 = 8;
const RUNS: u64 = 128;

/// Bytes that a thread makes at once.
const PIECE: usize = 1 << 20;

/// A buffer whose parts cannot be on several nodes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "argument {argument} is written, and it was not found that each part of the range writes a \
     part of it alone"
)]
pub struct NotDivided {
    /// Its position.
    pub argument: usize,
}

/// A user's kernel over nodes.
///
/// Memory of a subtask has buffers of full size, as the kernel computes places from numbers
/// in the whole range. Of what it writes only its own band is filled, and sent.
#[derive(Clone)]
pub struct KernelWorkload {
    user: Arc<UserKernel>,
    steps: u64,
    /// Units where subtasks begin, and the number of units.
    cuts: Arc<[u64]>,
    /// What the written buffers have after all steps, by position.
    reference: Option<Arc<Vec<Vec<u8>>>>,
}

impl KernelWorkload {
    /// So many steps of a kernel that was examined, and divided accordingly, on so many nodes.
    ///
    /// # Errors
    /// A buffer that is written, and is not divided as the units are.
    pub fn new(user: UserKernel, steps: u64, nodes: usize) -> Result<Self, NotDivided> {
        let slices = &user.slices().written;
        let undivided = user
            .buffers()
            .find(|(position, buffer)| buffer.direction.writes() && !slices.contains(position));
        if let Some((argument, _)) = undivided {
            return Err(NotDivided { argument });
        }
        let units = user.units();
        let runs = RUNS_A_NODE.saturating_mul(nodes as u64).clamp(1, RUNS);
        let count = units.min(runs);
        let cut = |run: u64| run * units / count;
        let runs = (0..count).map(|run| cut(run)..cut(run + 1));
        // A last unit of another size is a launch, and so a subtask, of its own.
        let launches = runs.flat_map(|run| user.launches(&run));
        let cuts = launches.map(|units| units.start).chain([units]);
        Ok(Self {
            cuts: cuts.collect(),
            user: Arc::new(user),
            steps,
            reference: None,
        })
    }

    /// The same kernel, whose results are compared with these: the contents of each written
    /// buffer, in the order of their positions.
    pub fn with_reference(self, reference: Vec<Vec<u8>>) -> Self {
        Self {
            reference: Some(Arc::new(reference)),
            ..self
        }
    }

    /// The number of subtasks of a step.
    pub fn runs(&self) -> u64 {
        self.cuts.len() as u64 - 1
    }

    /// The positions of the written buffers, each with its place among the spaces.
    pub fn written(&self) -> Vec<(usize, usize)> {
        let buffers = self.user.buffers().enumerate();
        let written = buffers.filter(|(_, (_, buffer))| buffer.direction.writes());
        written
            .map(|(space, (position, _))| (position, space))
            .collect()
    }

    fn space(&self, position: usize, buffer: &Buffer) -> NewSpace {
        let user = Arc::clone(&self.user);
        let fill: Fill = Arc::new(move |block, bytes| {
            fill(&user, position, block, bytes);
            Ok(())
        });
        let (reads, writes) = (buffer.direction.reads(), buffer.direction.writes());
        NewSpace {
            extent: Extent {
                rows: 1,
                columns: buffer.bytes(),
                element: 1,
            },
            contents: match (reads, writes) {
                (true, true) => Some(Contents::placed(self.layout(buffer), fill)),
                (true, false) => Some(Contents::everywhere(fill)),
                (false, _) => None,
            },
        }
    }

    /// Bands as the subtasks write them.
    fn layout(&self, buffer: &Buffer) -> Layout {
        let begin = |unit: &u64| band(&self.user, buffer, &(0..*unit)).end;
        Layout::Columns(self.cuts.iter().map(begin).collect())
    }

    /// Compares all written buffers with the reference.
    fn compare(&self, results: &[&[u8]]) -> Checked {
        let mut checked = Checked::default();
        let written = (self.user.buffers()).filter(|(_, buffer)| buffer.direction.writes());
        let reference = self.reference.iter().flat_map(|reference| reference.iter());
        for (((_, buffer), ours), right) in written.zip(results).zip(reference) {
            checked.add(&compare::check(buffer.element.base, ours, right));
        }
        checked
    }
}

/// The bytes of a written buffer that units write.
fn band(user: &UserKernel, buffer: &Buffer, units: &Range<u64>) -> Range<u64> {
    // Every buffer that is divided has slices.
    user.slice(buffer, units).unwrap_or(0..buffer.bytes())
}

/// Writes a part of what a buffer begins with, on all cores.
fn fill(user: &UserKernel, position: usize, block: &Block, bytes: &mut [u8]) {
    parallel::pieces(bytes, PIECE, |piece, bytes| {
        let begin = block.columns.start + (piece * PIECE) as u64;
        user.fill_from(position, begin, bytes);
    });
}

impl ClusterWorkload for KernelWorkload {
    fn name(&self) -> &'static str {
        "kernel"
    }

    /// A space for each buffer.
    fn spaces(&self) -> Vec<NewSpace> {
        let buffers = self.user.buffers();
        buffers
            .map(|(position, buffer)| self.space(position, buffer))
            .collect()
    }

    fn tasks(&self) -> u64 {
        self.steps
    }

    fn task(&self, _number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(Step {
            user: Arc::clone(&self.user),
            cuts: Arc::clone(&self.cuts),
            spaces: spaces.to_vec(),
        })
    }

    /// The first written buffer.
    fn result(&self) -> usize {
        self.written().first().map_or(0, |(_, space)| *space)
    }

    fn check(&self) -> Check<'_> {
        let written = self.written().into_iter();
        Check::Whole(
            written.map(|(_, space)| space).collect(),
            Box::new(|results, _| self.compare(results)),
        )
    }
}

struct Step {
    user: Arc<UserKernel>,
    cuts: Arc<[u64]>,
    /// By buffer.
    spaces: Vec<SpaceId>,
}

impl Step {
    fn units(&self, subtask: u64) -> Range<u64> {
        self.cuts[subtask as usize]..self.cuts[subtask as usize + 1]
    }

    fn buffers(&self) -> impl Iterator<Item = (SpaceId, usize, &Buffer)> {
        let buffers = self.spaces.iter().zip(self.user.buffers());
        buffers.map(|(space, (position, buffer))| (*space, position, buffer))
    }

    /// What a subtask uses of a buffer: its band of one that is written, or all of it.
    fn part(&self, space: SpaceId, buffer: &Buffer, subtask: u64) -> SpaceBlock {
        let bytes = match buffer.direction.writes() {
            true => band(&self.user, buffer, &self.units(subtask)),
            false => 0..buffer.bytes(),
        };
        SpaceBlock {
            space,
            block: Block::new(0..1, bytes),
        }
    }

    fn parts(&self, subtask: u64, uses: impl Fn(&Buffer) -> bool) -> Vec<SpaceBlock> {
        let buffers = self.buffers().filter(|(_, _, buffer)| uses(buffer));
        buffers
            .map(|(space, _, buffer)| self.part(space, buffer, subtask))
            .collect()
    }
}

impl Task for Step {
    fn name(&self) -> &str {
        &self.user.kernel().name
    }

    fn count(&self) -> u64 {
        self.cuts.len() as u64 - 1
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.parts(subtask, |buffer| buffer.direction.reads())
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.parts(subtask, |buffer| buffer.direction.writes())
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.user.cost(&self.units(subtask))
    }
}

impl Computed for Step {
    fn keeps_places(&self, subtask: u64) -> Vec<bool> {
        vec![true; self.writes(subtask).len()]
    }

    /// A kernel may leave elements of an output as they are, so it begins a step as on one
    /// machine: with zeros, or with what the user gives.
    fn begins(&self, _part: &SpaceBlock) -> Beginning {
        Beginning::Made
    }

    fn begin(&self, part: &SpaceBlock, bytes: &mut [u8]) {
        let mut buffers = self.buffers();
        let position =
            buffers.find_map(|(space, position, _)| (space == part.space).then_some(position));
        if let Some(position) = position {
            fill(&self.user, position, &part.block, bytes);
        }
    }

    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        SubtaskLaunch {
            codelet: self.user.codelet(),
            units: self.units(subtask),
            values: Vec::new(),
        }
    }

    /// Each buffer's memory at its position: the memories come by what is only read, and
    /// then by what is written.
    fn arguments(&self, _: u64, memories: Vec<Memory>, _values: Vec<Value>) -> Vec<Value> {
        let only_read = self
            .buffers()
            .filter(|(_, _, buffer)| !buffer.direction.writes());
        let (read, written) = memories.split_at(only_read.count().min(memories.len()));
        let (mut read, mut written) = (read.iter(), written.iter());
        let of_buffers =
            self.buffers()
                .filter_map(|(_, _, buffer)| match buffer.direction.writes() {
                    true => written.next(),
                    false => read.next(),
                });
        let memories: Vec<Memory> = of_buffers.copied().collect();
        self.user.args(&memories)
    }
}
