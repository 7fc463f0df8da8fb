//! Tasks: what every node knows of them.
//!
//! * [`chain`] runs tasks as one, whose subtasks wait for what they read only.
//! * [`check()`] refuses tasks whose subtasks write the same elements.
//! * [`Ranked`] orders what a task wrote by rank, for the next one.

pub mod chain;
#[cfg(test)]
pub mod fixtures;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::space::SpaceBlock;
use crate::cluster::space::{Block, Directory, SpaceId, Spaces};
use crate::codelet::{Codelet, Cost, Memory, Value};

/// A task's number. All nodes run the same tasks in the same order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct TaskId(pub u64);

/// A task: subtasks that may run at once and in any order (Unicorn, section III). All nodes
/// get the same answers.
pub trait Task: Send + Sync {
    /// Its name in reports and traces.
    fn name(&self) -> &str;

    /// The number of subtasks.
    fn count(&self) -> u64;

    /// The blocks that a subtask reads, as they were when the task began.
    fn reads(&self, subtask: u64) -> Vec<SpaceBlock>;

    /// Blocks that a subtask may read parts of, beside what it is known to read. Nobody knows
    /// which before it touches them ([`Computed::lacked`]).
    fn touches(&self, _subtask: u64) -> Vec<SpaceBlock> {
        Vec::new()
    }

    /// The blocks that a subtask writes, all of their elements. No element belongs to two
    /// subtasks, unless the task reduces.
    fn writes(&self, subtask: u64) -> Vec<SpaceBlock>;

    /// The operations and the memory traffic of a subtask.
    fn cost(&self, subtask: u64) -> Cost;

    /// For each block that a subtask writes, whether it begins with its contents. By default
    /// those do that it also reads.
    fn changes(&self, subtask: u64) -> Vec<bool> {
        let reads = self.reads(subtask);
        let writes = self.writes(subtask);
        writes.iter().map(|part| reads.contains(part)).collect()
    }

    /// Whether all subtasks write the same blocks, and their results are combined by an
    /// operation that is commutative and associative.
    fn reduces(&self) -> bool {
        false
    }

    /// Why a subtask cannot be computed, such as a kernel that wants other arguments.
    fn fault(&self, _subtask: u64) -> Option<String> {
        None
    }
}

/// A memory argument that a subtask reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadArgument {
    /// Parts of one space.
    pub parts: Vec<SpaceBlock>,
    /// Whether the memory is as long as the space, and the parts have their places there (the
    /// paper's natural view). Otherwise they follow one another without gaps (the compact
    /// view).
    pub keeps_places: bool,
}

impl ReadArgument {
    /// Parts that follow one another without gaps.
    pub fn compact(parts: Vec<SpaceBlock>) -> Self {
        Self {
            parts,
            keeps_places: false,
        }
    }
}

/// What a part that a subtask writes without reading it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Anything: the subtask writes all of its elements.
    Anything,
    Zeros,
    /// What [`Computed::begin`] writes.
    Made,
}

/// How a subtask is computed: a codelet, whose first arguments are memory with the blocks
/// that it reads, then memory for those that it writes. A block that it changes is among the
/// latter only, with its contents. Blocks are stored by rows, with or without gaps; the
/// codelet gets their strides if it asks for them.
#[derive(Clone, Debug)]
pub struct SubtaskLaunch {
    pub codelet: Arc<Codelet>,
    pub units: Range<u64>,
    /// The arguments after the memory.
    pub values: Vec<SubtaskValue>,
}

/// An argument of a subtask's codelet after the memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SubtaskValue {
    Value(Value),
    /// The memory of the argument of this index again.
    Memory(usize),
    /// A `u32`: the numbers of so many bytes from a row of a block to the next one in its
    /// memory, which is the argument of index `memory`.
    Stride {
        memory: usize,
        number: u32,
    },
    /// A `u64`: the numbers of so many bytes before the one in this row and column of a block
    /// in its memory.
    First {
        memory: usize,
        number: u32,
        row: u64,
        column: u64,
    },
}

impl From<Value> for SubtaskValue {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl SubtaskValue {
    /// The value, where these memories have blocks of these widths in elements of these bytes,
    /// by rows without gaps.
    ///
    /// # Panics
    /// When there is no memory of its index.
    pub fn compact(self, memories: &[Memory], blocks: &[(u64, u64)]) -> Value {
        let pitch = |memory: usize| blocks.get(memory).map_or(0, |(width, bytes)| width * bytes);
        match self {
            Self::Value(value) => value,
            Self::Memory(memory) => Value::Memory(memories[memory]),
            Self::Stride { memory, number } => {
                Value::U32((pitch(memory) / u64::from(number)) as u32)
            }
            Self::First {
                memory,
                number,
                row,
                column,
            } => Value::U64(row * pitch(memory) / u64::from(number) + column),
        }
    }

    /// Where a block begins in its memory, and its stride.
    pub fn place(memory: usize, number: u32) -> [Self; 2] {
        Self::place_at(memory, number, 0, 0)
    }

    /// Where the part of a block from this row and column on begins, and its stride.
    pub fn place_at(memory: usize, number: u32, row: u64, column: u64) -> [Self; 2] {
        [
            Self::First {
                memory,
                number,
                row,
                column,
            },
            Self::Stride { memory, number },
        ]
    }
}

/// Adds the bytes of one result to those of another: the operation of a reduction.
pub type Combine = Arc<dyn Fn(&mut [u8], &[u8]) + Send + Sync>;

/// A task that can be computed.
pub trait Computed: Task {
    /// Whether its codelet takes blocks only without gaps between their rows.
    fn is_compact(&self) -> bool {
        false
    }

    /// The memory that a subtask reads: by default an argument for each part, but for those
    /// that it changes.
    fn read_arguments(&self, subtask: u64) -> Vec<ReadArgument> {
        let mut reads = self.reads(subtask);
        let written = self.writes(subtask);
        let changes = written.iter().zip(self.changes(subtask));
        for (part, _) in changes.filter(|(_, changed)| *changed) {
            if let Some(at) = reads.iter().rposition(|read| read == part) {
                reads.remove(at);
            }
        }
        let one_by_one = reads.into_iter().map(|part| vec![part]);
        one_by_one.map(ReadArgument::compact).collect()
    }

    /// By part that a subtask writes: whether it lies in memory as long as its whole space, at
    /// the place that it has there, as for a kernel whose work-items find their elements by
    /// their numbers in the whole range. Such a part is of one row, or has all columns.
    /// Otherwise the memory has the part alone.
    fn keeps_places(&self, subtask: u64) -> Vec<bool> {
        vec![false; self.writes(subtask).len()]
    }

    /// What a part begins with that a subtask writes without reading it.
    fn begins(&self, _part: &SpaceBlock) -> Beginning {
        Beginning::Anything
    }

    /// Writes what such a part begins with.
    fn begin(&self, _part: &SpaceBlock, _bytes: &mut [u8]) {}

    /// How a subtask is computed.
    fn launch(&self, subtask: u64) -> SubtaskLaunch;

    /// What a subtask that has ended here has touched although it was not there. It reads these
    /// parts from now on at this node, and has no result before it has run with them.
    fn lacked(&self, _subtask: u64) -> Vec<SpaceBlock> {
        Vec::new()
    }

    /// Of how many units, which devices of a node may share, a subtask consists.
    fn units(&self, _subtask: u64) -> u64 {
        1
    }

    /// Some units of a subtask: a task whose only subtask, number 0, computes them alone. It
    /// reads parts of what the subtask reads, and parts of all units write what the subtask
    /// writes. `None` if subtasks cannot be divided.
    fn part(&self, _subtask: u64, _units: Range<u64>) -> Option<Arc<dyn Computed>> {
        None
    }

    /// The codelet's arguments: by default the memory, in the order of [`SubtaskLaunch`],
    /// and then the launch's values.
    fn arguments(&self, _subtask: u64, memories: Vec<Memory>, values: Vec<Value>) -> Vec<Value> {
        let memories = memories.into_iter().map(Value::Memory);
        memories.chain(values).collect()
    }

    /// The operation of a task that reduces.
    fn combine(&self) -> Option<Combine> {
        None
    }
}

/// Adds a number to runs of numbers that ascend.
pub fn extend_runs(runs: &mut Vec<Range<u64>>, number: u64) {
    match runs.last_mut() {
        Some(last) if last.end == number => last.end += 1,
        _ => runs.push(number..number + 1),
    }
}

/// Why a task cannot begin.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TaskError {
    #[error(
        "subtask {subtask} of {task} uses rows {rows:?} and columns {columns:?} of space {space}, \
         which has {height} rows and {width} columns",
        rows = part.block.rows, columns = part.block.columns, space = part.space.0
    )]
    Outside {
        task: String,
        subtask: u64,
        part: SpaceBlock,
        height: u64,
        width: u64,
    },
    #[error(
        "subtask {subtask} of {task} uses a space that another program has made; each program \
         uses its own spaces"
    )]
    NoSpace { task: String, subtask: u64 },
    #[error("subtask {subtask} of {task} cannot be computed: {why}")]
    Fault {
        task: String,
        subtask: u64,
        why: String,
    },
    #[error(
        "subtasks {one} and {other} of {task} both write rows {rows:?} and columns {columns:?} of \
         space {space}; let each write blocks of its own, or reduce",
        rows = block.rows, columns = block.columns, space = space.0
    )]
    WrittenTwice {
        task: String,
        one: u64,
        other: u64,
        space: SpaceId,
        block: Block,
    },
    #[error("subtasks 0 and {subtask} of {task}, which reduces, write unlike blocks")]
    Unlike { task: String, subtask: u64 },
    #[error("interrupted")]
    Stopped,
}

/// Checks that subtasks use blocks of their spaces, and that no two of them write the same
/// element, unless the task reduces: then all write the same blocks.
///
/// # Errors
/// The first block that does not suit, and `stop`.
pub fn check(task: &dyn Task, spaces: &Spaces, stop: &AtomicBool) -> Result<(), TaskError> {
    let name = || task.name().to_owned();
    let first = task.reduces().then(|| task.writes(0));
    // By space: who writes which block.
    let mut writers: HashMap<SpaceId, Directory<u64>> = HashMap::new();
    for subtask in 0..task.count() {
        if stop.load(Ordering::Relaxed) {
            return Err(TaskError::Stopped);
        }
        if let Some(why) = task.fault(subtask) {
            return Err(TaskError::Fault {
                task: name(),
                subtask,
                why,
            });
        }
        let writes = task.writes(subtask);
        let (reads, touches) = (task.reads(subtask), task.touches(subtask));
        for part in reads.iter().chain(&touches).chain(&writes) {
            if !spaces.has(part.space) {
                let task = name();
                return Err(TaskError::NoSpace { task, subtask });
            }
            let extent = spaces.extent(part.space);
            if !extent.whole().contains(&part.block) {
                return Err(TaskError::Outside {
                    task: name(),
                    subtask,
                    part: part.clone(),
                    height: extent.rows,
                    width: extent.columns,
                });
            }
        }
        match &first {
            Some(first) if *first == writes => {}
            Some(_) => {
                let task = name();
                return Err(TaskError::Unlike { task, subtask });
            }
            None => {
                for part in writes {
                    let written = writers.entry(part.space).or_default();
                    let other = written.holders(&part.block).next();
                    if let Some((block, one)) = other {
                        return Err(TaskError::WrittenTwice {
                            task: name(),
                            one,
                            other: subtask,
                            space: part.space,
                            block,
                        });
                    }
                    written.set(&part.block, subtask);
                }
            }
        }
    }
    Ok(())
}

// What a task wrote, in the order of ranks (Unicorn, section IV.B, `redistribute`): each
// writer gives ranks to regions of what it writes, and regions of one rank follow one
// another, by writer. Nothing is moved: a task that reads a range in this order reads the
// regions where they are.

/// Regions of a row of elements, ordered by rank and then by writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Where each region begins in this order, and the end of the last one.
    begins: Vec<u64>,
    /// Where each region begins in what the tasks wrote.
    sources: Vec<u64>,
    writers: usize,
}

impl Ranked {
    /// The regions of writers of which each has written one region a rank, the ranks one
    /// after the other. `starts` has where each writer's first region begins, and `lengths`
    /// the elements of its regions, writer by writer.
    ///
    /// # Panics
    /// When there are not equally many lengths for each writer.
    pub fn new(starts: &[u64], lengths: &[u64]) -> Self {
        let writers = starts.len();
        assert!(
            writers > 0 && lengths.len().is_multiple_of(writers),
            "{} lengths for {writers} writers",
            lengths.len()
        );
        let ranks = lengths.len() / writers;
        let mut at = starts.to_vec();
        let (mut begins, mut sources) = (vec![0], Vec::with_capacity(lengths.len()));
        let mut end = 0;
        for rank in 0..ranks {
            for (writer, at) in at.iter_mut().enumerate() {
                let length = lengths[writer * ranks + rank];
                sources.push(*at);
                *at += length;
                end += length;
                begins.push(end);
            }
        }
        Self {
            begins,
            sources,
            writers,
        }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.sources.len() / self.writers
    }

    /// The place of some ranks in this order.
    ///
    /// # Panics
    /// When there are fewer ranks.
    pub fn place(&self, ranks: Range<usize>) -> Range<u64> {
        self.begins[ranks.start * self.writers]..self.begins[ranks.end * self.writers]
    }

    /// Where the elements at some places of this order were written: ranges one after the
    /// other, none of which is empty.
    pub fn sources(&self, places: Range<u64>) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        let first = self.begins.partition_point(|begin| *begin <= places.start);
        for region in first.saturating_sub(1)..self.sources.len() {
            let (begin, end) = (self.begins[region], self.begins[region + 1]);
            if begin >= places.end {
                break;
            }
            let common = begin.max(places.start)..end.min(places.end);
            if common.is_empty() {
                continue;
            }
            let shift = |place: u64| place - begin + self.sources[region];
            let source = shift(common.start)..shift(common.end);
            match found.last_mut() {
                Some(last) if last.end == source.start => last.end = source.end,
                _ => found.push(source),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::Extent;
    use crate::codelet::Cost;

    /// A task whose subtasks write these blocks of space 0.
    struct Writes(Vec<Block>, bool);

    impl Task for Writes {
        fn name(&self) -> &str {
            "writes"
        }

        fn count(&self) -> u64 {
            self.0.len() as u64
        }

        fn reads(&self, _subtask: u64) -> Vec<SpaceBlock> {
            Vec::new()
        }

        fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
            vec![SpaceBlock {
                space: SpaceId(0),
                block: self.0[subtask as usize].clone(),
            }]
        }

        fn cost(&self, _subtask: u64) -> Cost {
            Cost::default()
        }

        fn reduces(&self) -> bool {
            self.1
        }
    }

    fn checked(blocks: &[Block], reduces: bool) -> Option<String> {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: 6,
            columns: 8,
            element: 4,
        };
        spaces.add(extent, []);
        let go_on = AtomicBool::new(false);
        let error = check(&Writes(blocks.to_vec(), reduces), &spaces, &go_on).err();
        error.map(|error| error.to_string())
    }

    #[test]
    fn blocks_are_of_their_space_and_written_once() {
        let block = |rows, columns| Block::new(rows, columns);
        assert_eq!(
            checked(&[block(0..3, 0..8), block(3..6, 0..8)], false),
            None
        );
        let twice = checked(
            &[block(0..3, 0..8), block(4..6, 0..8), block(2..4, 5..6)],
            false,
        );
        let twice = twice.expect("row 2 is written twice");
        assert!(
            twice.contains("subtasks 0 and 2 of writes both write rows 2..3"),
            "{twice}"
        );
        let outside = checked(&[block(0..3, 0..9)], false).expect("there is no column 8");
        assert!(outside.contains("6 rows and 8 columns"), "{outside}");
    }

    #[test]
    fn a_task_that_reduces_writes_one_block() {
        let whole = Block::new(0..6, 0..8);
        assert_eq!(checked(&[whole.clone(), whole.clone()], true), None);
        let unlike = checked(&[whole, Block::new(0..5, 0..8)], true);
        assert!(unlike.is_some_and(|unlike| unlike.contains("subtasks 0 and 1")));
    }

    /// Compares with a list of all elements that is sorted by rank and writer.
    #[test]
    fn regions_follow_one_another_by_rank_and_writer() {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..300 {
            let (writers, ranks) = (random.usize(1..6), random.usize(1..6));
            let lengths: Vec<u64> = (0..writers * ranks).map(|_| random.u64(..4)).collect();
            let (mut starts, mut at, mut all) = (Vec::new(), 0, Vec::new());
            for of_writer in lengths.chunks(ranks) {
                at += random.u64(..3);
                starts.push(at);
                for (rank, length) in of_writer.iter().enumerate() {
                    all.extend((at..at + length).map(|element| (rank, element)));
                    at += length;
                }
            }
            // Sorting is stable, and writers come one after the other.
            all.sort_by_key(|(rank, _)| *rank);
            let ranked = Ranked::new(&starts, &lengths);
            assert_eq!(ranked.ranks(), ranks);
            let first = random.usize(..=ranks);
            let some = first..random.usize(first..=ranks);
            let place = ranked.place(some.clone());
            let of_ranks = all.iter().filter(|(rank, _)| some.contains(rank));
            let right: Vec<u64> = of_ranks.map(|(_, element)| *element).collect();
            let found = ranked.sources(place.clone());
            assert_eq!(found.iter().cloned().flatten().collect::<Vec<_>>(), right);
            let begin = random.u64(..=all.len() as u64);
            let places = begin..random.u64(begin..=all.len() as u64);
            let found = ranked.sources(places.clone());
            assert!(found.windows(2).all(|two| two[0].end != two[1].start));
            let right = &all[places.start as usize..places.end as usize];
            let right: Vec<u64> = right.iter().map(|(_, element)| *element).collect();
            assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), right);
        }
    }
}
