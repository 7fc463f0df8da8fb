//! Tasks whose subtasks are computed by a safe function on the host.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::access::{Access, Begin, Bytes, Subscription, WriteOf};
use crate::cluster::space::{Block, Part, SpaceId};
use crate::cluster::task::{Combine, Computed, SubtaskLaunch, Task};
use crate::codelet::function::{FunctionMemory, UnitMemory, codelet};
use crate::codelet::{Cost, Name};

/// Most units of a subtask, unless it is cut otherwise: a few for each core of most machines.
const UNITS: u64 = 64;

type Subscribe = Arc<dyn Fn(u64) -> Subscription + Send + Sync>;
type Run = Arc<dyn Fn(u64, u64, &mut Bytes<'_>) + Send + Sync>;
type CostOf = Arc<dyn Fn(u64) -> Cost + Send + Sync>;

/// A task that computes its subtasks with a function. A function sees views of the blocks
/// that its subtask names, and no other data.
///
/// A subtask consists of *units*, each of which one core computes: unit `u` of `n` has the
/// `u`-th of `n` parts of each block that the subtask writes, some of its rows, or of its
/// columns if it has one row.
#[derive(Clone)]
pub struct ProgramTask {
    name: Name,
    count: u64,
    subscribe: Subscribe,
    run: Run,
    cost: Option<CostOf>,
    combine: Option<Combine>,
}

/// Which unit of which subtask a function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub subtask: u64,
    /// Its number in the subtask.
    pub number: u64,
}

impl ProgramTask {
    /// A task of `count` subtasks, which use spaces as `accesses` says: one access, or a tuple
    /// of up to six. The function gets a view for each.
    pub fn new<A: Access>(
        name: impl Into<Name>,
        count: u64,
        accesses: A,
        function: impl Fn(Unit, A::View<'_>) + Send + Sync + 'static,
    ) -> Self {
        let accesses = Arc::new(accesses);
        let subscribing = Arc::clone(&accesses);
        Self {
            name: name.into(),
            count,
            subscribe: Arc::new(move |subtask| {
                let mut subscription = Subscription::default();
                subscribing.subscribe(subtask, &mut subscription);
                subscription
            }),
            run: Arc::new(move |subtask, number, bytes| {
                function(Unit { subtask, number }, accesses.view(bytes));
            }),
            cost: None,
            combine: None,
        }
    }

    /// The operations and the memory traffic of a subtask. By default it reads and writes
    /// each byte once, and computes nothing.
    pub fn cost(self, cost: impl Fn(u64) -> Cost + Send + Sync + 'static) -> Self {
        Self {
            cost: Some(Arc::new(cost)),
            ..self
        }
    }

    /// All subtasks write the same blocks, of elements of type `T`. Their results are
    /// combined element by element, in any order.
    pub fn reduce<T: Pod>(self, operation: impl Fn(&mut T, T) + Send + Sync + 'static) -> Self {
        let combine = move |sums: &mut [u8], others: &[u8]| {
            let length = size_of::<T>();
            let pairs = sums.chunks_exact_mut(length);
            for (to, other) in pairs.zip(others.chunks_exact(length)) {
                let mut sum: T = bytemuck::pod_read_unaligned(to);
                operation(&mut sum, bytemuck::pod_read_unaligned(other));
                to.copy_from_slice(bytemuck::bytes_of(&sum));
            }
        };
        Self {
            combine: Some(Arc::new(combine)),
            ..self
        }
    }

    /// The task on a workload's spaces, by the ids that they have in a run.
    pub fn on(&self, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(OnSpaces {
            task: self.clone(),
            spaces: spaces.into(),
        })
    }
}

struct OnSpaces {
    task: ProgramTask,
    spaces: Arc<[SpaceId]>,
}

impl OnSpaces {
    fn part(&self, space: usize, block: &Block) -> Part {
        Part {
            // One that does not exist is refused when the task begins.
            space: *self.spaces.get(space).unwrap_or(&SpaceId(u32::MAX)),
            block: block.clone(),
        }
    }
}

impl Task for OnSpaces {
    fn name(&self) -> &str {
        &self.task.name
    }

    fn count(&self) -> u64 {
        self.task.count
    }

    fn reads(&self, subtask: u64) -> Vec<Part> {
        let subscription = (self.task.subscribe)(subtask);
        let mut parts = Vec::new();
        for read in &subscription.reads {
            let blocks = read.blocks.iter().filter(|block| !block.is_empty());
            parts.extend(blocks.map(|block| self.part(read.space, block)));
        }
        let changed = subscription.written();
        let changed = changed.filter(|write| write.begin == Begin::Contents);
        parts.extend(changed.map(|write| self.part(write.space, &write.block)));
        parts
    }

    fn writes(&self, subtask: u64) -> Vec<Part> {
        let subscription = (self.task.subscribe)(subtask);
        let written = subscription.written();
        written
            .map(|write| self.part(write.space, &write.block))
            .collect()
    }

    fn changes(&self, subtask: u64) -> Vec<bool> {
        let subscription = (self.task.subscribe)(subtask);
        let written = subscription.written();
        written
            .map(|write| write.begin == Begin::Contents)
            .collect()
    }

    fn cost(&self, subtask: u64) -> Cost {
        match &self.task.cost {
            Some(cost) => cost(subtask),
            None => Cost {
                flops: 0.0,
                bytes: (self.task.subscribe)(subtask).bytes() as f64,
            },
        }
    }

    fn reduces(&self) -> bool {
        self.task.combine.is_some()
    }
}

impl Computed for OnSpaces {
    fn gathers(&self) -> bool {
        true
    }

    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let subscription = (self.task.subscribe)(subtask);
        let run = Arc::clone(&self.task.run);
        // What does not suit is told where the function would run: the subtask fails.
        let (cuts, fault) = match subscription.cuts() {
            Ok(cuts) => (cuts, None),
            Err(fault) => (subscription.whole(), Some(fault)),
        };
        let (places, reads) = subscription.places();
        let written = subscription.written();
        let of_bytes = written.zip(&cuts).map(|(write, cuts)| write.bytes(cuts));
        let memory = FunctionMemory {
            cuts: of_bytes.collect(),
            reads,
        };
        let units = memory.units().max(1);
        let function = move |memory: UnitMemory| {
            if let Some(fault) = &fault {
                panic!("{fault}");
            }
            let unit = memory.unit;
            run(
                subtask,
                unit,
                &mut subscription.of_unit(&places, &cuts, memory),
            );
        };
        SubtaskLaunch {
            codelet: Arc::new(codelet(self.task.name.clone(), memory, Arc::new(function))),
            units: 0..units,
            values: Vec::new(),
        }
    }

    fn combine(&self) -> Option<Combine> {
        self.task.combine.clone()
    }
}

/// Where the bytes of an access are: the argument, and the place in it.
type Place = (usize, Range<usize>);

impl Subscription {
    /// What is written, but for blocks without elements.
    fn written(&self) -> impl Iterator<Item = &WriteOf> {
        let writes = self.writes.iter();
        writes.filter(|write| !write.block.is_empty())
    }

    fn bytes(&self) -> u64 {
        let reads = self.reads.iter().map(|read| read.elements() * read.element);
        let writes = self.writes.iter();
        reads.sum::<u64>() + writes.map(|w| w.block.elements() * w.element).sum::<u64>()
    }

    /// The place of each read, and the bytes of each argument that is read: reads of one
    /// space that follow one another are one argument.
    fn places(&self) -> (Vec<Place>, Vec<u64>) {
        let (mut places, mut arguments) = (Vec::new(), Vec::<u64>::new());
        let mut last = None;
        for read in &self.reads {
            let bytes = read.elements() * read.element;
            if bytes > 0 && last != Some(read.space) {
                last = Some(read.space);
                arguments.push(0);
            }
            let argument = arguments.len().saturating_sub(1);
            let begin = arguments.last().copied().unwrap_or(0);
            places.push((argument, begin as usize..(begin + bytes) as usize));
            if let Some(end) = arguments.last_mut() {
                *end += bytes;
            }
        }
        (places, arguments)
    }

    /// The lines at which the units of each written block begin, and the end.
    fn cuts(&self) -> Result<Vec<Vec<u64>>, String> {
        let given = || self.written().filter_map(|write| write.cuts.as_ref());
        let lines = |write: &WriteOf| write.lines().end - write.lines().start;
        let units = match given().next() {
            Some(cuts) => cuts.len().saturating_sub(1) as u64,
            None => self.written().map(lines).min().unwrap_or(1).min(UNITS),
        };
        self.written().map(|write| write.cut(units)).collect()
    }

    /// A single unit.
    fn whole(&self) -> Vec<Vec<u64>> {
        let whole = self.written().map(WriteOf::lines);
        whole.map(|lines| vec![lines.start, lines.end]).collect()
    }

    /// The bytes of a unit, in the order of the accesses.
    fn of_unit<'a>(
        &self,
        places: &[Place],
        cuts: &[Vec<u64>],
        memory: UnitMemory<'a>,
    ) -> Bytes<'a> {
        let unit = memory.unit as usize;
        let reads = self.reads.iter().zip(places);
        let reads = reads.map(|(read, (argument, place))| {
            let bytes = memory.reads.get(*argument).copied().unwrap_or_default();
            (read.blocks.clone(), &bytes[place.clone()])
        });
        let reads: Vec<_> = reads.collect();
        let mut written = memory.writes.into_iter().zip(cuts);
        let mut writes = Vec::with_capacity(self.writes.len());
        for write in &self.writes {
            let own = match write.block.is_empty() {
                true => None,
                false => written.next(),
            };
            writes.push(match own {
                None => (write.block.clone(), &mut [][..]),
                Some((bytes, cuts)) => {
                    if write.begin == Begin::Zeros {
                        bytes.fill(0);
                    }
                    (write.part(cuts[unit]..cuts[unit + 1]), bytes)
                }
            });
        }
        Bytes {
            reads: reads.into_iter(),
            writes: writes.into_iter(),
        }
    }
}

impl WriteOf {
    fn has_rows(&self) -> bool {
        self.block.height() > 1
    }

    /// The rows of the block, or its columns if it has one row.
    fn lines(&self) -> Range<u64> {
        match self.has_rows() {
            true => self.block.rows.clone(),
            false => self.block.columns.clone(),
        }
    }

    /// Some lines of the block.
    fn part(&self, lines: Range<u64>) -> Block {
        match self.has_rows() {
            true => Block::new(lines, self.block.columns.clone()),
            false => Block::new(self.block.rows.clone(), lines),
        }
    }

    /// The lines where so many units begin, and the end.
    fn cut(&self, units: u64) -> Result<Vec<u64>, String> {
        let lines = self.lines();
        let Some(cuts) = &self.cuts else {
            let cut = |unit| lines.start + (lines.end - lines.start) * unit / units;
            return Ok((0..=units).map(cut).collect());
        };
        let is_whole = cuts.is_sorted()
            && cuts.first() == Some(&lines.start)
            && cuts.last() == Some(&lines.end);
        match is_whole && cuts.len() as u64 == units + 1 {
            true => Ok(cuts.clone()),
            false => Err(format!(
                "lines {lines:?} of space {} are cut at {cuts:?}; cuts ascend from the first line \
                 to the end, and are as many for all blocks of a subtask",
                self.space
            )),
        }
    }

    /// The bytes of the block at which lines begin.
    fn bytes(&self, cuts: &[u64]) -> Vec<u64> {
        let line = match self.has_rows() {
            true => self.block.width() * self.element,
            false => self.element,
        };
        let begin = self.lines().start;
        cuts.iter().map(|cut| (cut - begin) * line).collect()
    }
}
