//! Tasks that run as one: a subtask begins as soon as what it reads is final, though other
//! subtasks of the tasks before it still run.
//!
//! Every node can compute what any subtask reads and writes, so all nodes find the same
//! precedences: a subtask waits for those that write what it reads. It does not wait for those
//! that read what it overwrites, as what a task has written stays as it is until the task that
//! overwrites it has ended everywhere.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::Task;
use crate::cluster::space::{Block, Directory, Rectangles, SpaceBlock, SpaceId};
use crate::codelet::Cost;

/// Subtasks of a chain of several tasks, at most: every node keeps what each of them reads.
const MOST_SUBTASKS: u64 = 1 << 18;

/// Parts that a subtask of such a chain reads, at most. One that reads more, such as all rows
/// of a transform, waits for almost all of the task before, so that nothing is gained.
const MOST_SOURCES: usize = 256;

/// A part as it was when a subtask of the chain had written it, or before the chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    pub part: SpaceBlock,
    /// The number of the subtask.
    pub writer: Option<u64>,
}

impl Source {
    /// A part as it was before the chain.
    pub fn before(part: SpaceBlock) -> Self {
        let writer = None;
        Self { part, writer }
    }

    /// What it has in common with a block of its space.
    fn within(&self, block: &Block) -> Option<Self> {
        let block = self.part.block.common(block)?;
        let space = self.part.space;
        Some(Self {
            part: SpaceBlock { space, block },
            writer: self.writer,
        })
    }
}

/// Tasks of which each finds what those before it have written.
///
/// Its subtasks have numbers of their own. In a chain of several tasks they are in the order
/// of how much is to be done after them, one after the other: whatever others wait for longest
/// comes first. A chain of one task leaves it as it is.
pub struct Chain {
    name: String,
    tasks: Vec<Arc<dyn Task>>,
    woven: Option<Woven>,
}

/// Of a chain of several tasks, by the number of a subtask.
struct Woven {
    /// Its task and its number there.
    places: Vec<(usize, u64)>,
    costs: Vec<Cost>,
    /// What it reads: parts without common elements.
    sources: Vec<Vec<Source>>,
    /// Those that read what it writes.
    readers: Vec<Vec<u64>>,
    /// The last task of these.
    last_readers: Vec<Option<usize>>,
    /// By task: the number of each of its subtasks.
    numbers: Vec<Vec<u64>>,
    /// By task: the blocks that it writes.
    written: Vec<OnceLock<HashMap<SpaceId, Rectangles<()>>>>,
}

impl Chain {
    /// A chain of one task.
    pub fn of(task: Arc<dyn Task>) -> Self {
        Self {
            name: task.name().to_owned(),
            tasks: vec![task],
            woven: None,
        }
    }

    /// Its tasks.
    pub fn tasks(&self) -> &[Arc<dyn Task>] {
        &self.tasks
    }

    /// Whether it has several tasks, so that subtasks wait for others, and those with less
    /// numbers should come first.
    pub fn is_woven(&self) -> bool {
        self.woven.is_some()
    }

    /// The index of a subtask's task, and its number there.
    pub fn place(&self, subtask: u64) -> (usize, u64) {
        match &self.woven {
            Some(woven) => woven.places[subtask as usize],
            None => (0, subtask),
        }
    }

    /// The number of a subtask of the task of this index.
    pub fn number(&self, task: usize, subtask: u64) -> u64 {
        match &self.woven {
            Some(woven) => woven.numbers[task][subtask as usize],
            None => subtask,
        }
    }

    /// What a subtask reads, and when it was written.
    pub fn sources(&self, subtask: u64) -> Vec<Source> {
        match &self.woven {
            Some(woven) => woven.sources[subtask as usize].clone(),
            None => (self.reads(subtask).into_iter())
                .map(Source::before)
                .collect(),
        }
    }

    /// The same of a part that it reads.
    pub fn sources_of(&self, subtask: u64, part: &SpaceBlock) -> Vec<Source> {
        match &self.woven {
            Some(woven) => {
                let sources = woven.sources[subtask as usize].iter();
                let sources = sources.filter(|source| source.part.space == part.space);
                sources.filter_map(|s| s.within(&part.block)).collect()
            }
            None => vec![Source::before(part.clone())],
        }
    }

    /// The subtasks that read what a subtask writes.
    pub fn readers(&self, subtask: u64) -> &[u64] {
        let woven = self.woven.as_ref();
        woven.map_or(&[], |woven| &woven.readers[subtask as usize])
    }

    /// Whether the task of this index writes any element of a source, so that nothing reads it
    /// after that task.
    pub fn overwrites(&self, task: usize, source: &Source) -> bool {
        let Some(woven) = &self.woven else {
            return false;
        };
        if source.writer.is_some_and(|of| self.place(of).0 >= task) {
            return false;
        }
        let written = woven.written[task].get_or_init(|| written(&*self.tasks[task]));
        let of_space = written.get(&source.part.space);
        of_space.is_some_and(|of| of.overlapping(&source.part.block).next().is_some())
    }

    /// What the task of this index leaves of a source.
    pub fn left_of(&self, task: usize, source: Source) -> Vec<Source> {
        if !self.overwrites(task, &source) {
            return vec![source];
        }
        let Source { part, writer } = source;
        let space = part.space;
        let written = self.woven.as_ref().and_then(|of| of.written[task].get());
        let written = written.and_then(|written| written.get(&space)).into_iter();
        let mut left = vec![part.block.clone()];
        for (block, ..) in written.flat_map(|written| written.overlapping(&part.block)) {
            left = left.iter().flat_map(|piece| piece.without(block)).collect();
        }
        let left = left.into_iter().map(|block| SpaceBlock { space, block });
        left.map(|part| Source { part, writer }).collect()
    }

    /// The last task with a subtask that reads what a subtask writes.
    pub fn last_reader(&self, subtask: u64) -> Option<usize> {
        let woven = self.woven.as_ref()?;
        woven.last_readers[subtask as usize]
    }

    fn part_of(&self, subtask: u64) -> (&dyn Task, u64) {
        let (task, subtask) = self.place(subtask);
        (&*self.tasks[task], subtask)
    }
}

/// The blocks that a task writes.
fn written(task: &dyn Task) -> HashMap<SpaceId, Rectangles<()>> {
    let mut written: HashMap<SpaceId, Rectangles<()>> = HashMap::new();
    for part in (0..task.count()).flat_map(|subtask| task.writes(subtask)) {
        // No two of them begin at the same element.
        written
            .entry(part.space)
            .or_default()
            .insert(part.block, 0, ());
    }
    written
}

impl Task for Chain {
    fn name(&self) -> &str {
        &self.name
    }

    fn count(&self) -> u64 {
        match &self.woven {
            Some(woven) => woven.places.len() as u64,
            None => self.tasks[0].count(),
        }
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (task, subtask) = self.part_of(subtask);
        task.reads(subtask)
    }

    fn touches(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (task, subtask) = self.part_of(subtask);
        task.touches(subtask)
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (task, subtask) = self.part_of(subtask);
        task.writes(subtask)
    }

    fn cost(&self, subtask: u64) -> Cost {
        match &self.woven {
            Some(woven) => woven.costs[subtask as usize],
            None => self.tasks[0].cost(subtask),
        }
    }

    fn changes(&self, subtask: u64) -> Vec<bool> {
        let (task, subtask) = self.part_of(subtask);
        task.changes(subtask)
    }

    fn reduces(&self) -> bool {
        self.woven.is_none() && self.tasks[0].reduces()
    }

    fn fault(&self, subtask: u64) -> Option<String> {
        let (task, subtask) = self.part_of(subtask);
        task.fault(subtask)
    }
}

/// A chain that is being made. Subtasks are counted through all tasks, one after the other.
pub struct Chaining {
    tasks: Vec<Arc<dyn Task>>,
    /// The number of the first subtask of each task.
    firsts: Vec<u64>,
    count: u64,
    /// By space: who wrote which block last.
    written: HashMap<SpaceId, Directory<u64>>,
    sources: Vec<Vec<Source>>,
}

impl Chaining {
    /// The chain of a task, to which others may be added.
    pub fn new(task: Arc<dyn Task>) -> Self {
        Self {
            firsts: vec![0],
            count: task.count(),
            tasks: vec![task],
            written: HashMap::new(),
            sources: Vec::new(),
        }
    }

    /// Adds the next task. False if it cannot be in this chain: it reduces, there is too much
    /// of it, or nobody knows before what it reads.
    pub fn push(&mut self, task: &Arc<dyn Task>) -> bool {
        let count = self.count + task.count();
        if task.reduces() || self.tasks[0].reduces() || count > MOST_SUBTASKS {
            return false;
        }
        if self.tasks.len() == 1 && !self.weave(&Arc::clone(&self.tasks[0]), 0) {
            return false;
        }
        if !self.weave(task, self.count) {
            return false;
        }
        self.firsts.push(self.count);
        self.count = count;
        self.tasks.push(Arc::clone(task));
        true
    }

    /// Finds what the subtasks of a task read, and notes what they write. False if one reads
    /// too many parts, or what is not known before it touches them.
    fn weave(&mut self, task: &Arc<dyn Task>, first: u64) -> bool {
        if (0..task.count()).any(|subtask| !task.touches(subtask).is_empty()) {
            return false;
        }
        let subtasks = 0..task.count();
        let sources = subtasks.map(|subtask| self.read(&task.reads(subtask)));
        let Some(sources) = sources.collect::<Option<Vec<_>>>() else {
            return false;
        };
        self.sources.extend(sources);
        for subtask in 0..task.count() {
            for part in task.writes(subtask) {
                let written = self.written.entry(part.space).or_default();
                written.set(&part.block, first + subtask);
            }
        }
        true
    }

    /// When parts were written, each of their elements once; none if that are too many.
    fn read(&self, parts: &[SpaceBlock]) -> Option<Vec<Source>> {
        let mut sources = Vec::new();
        let mut seen: HashMap<SpaceId, Rectangles<()>> = HashMap::new();
        for SpaceBlock { space, block } in parts {
            let seen = seen.entry(*space).or_default();
            let mut rest = vec![block.clone()];
            for (known, ..) in seen.overlapping(block) {
                rest = rest.iter().flat_map(|piece| piece.without(known)).collect();
            }
            for piece in &rest {
                let mut before = vec![piece.clone()];
                let written = self.written.get(space).into_iter();
                for (block, writer) in written.flat_map(|written| written.holders(piece)) {
                    before = before.iter().flat_map(|of| of.without(&block)).collect();
                    let (space, writer) = (*space, Some(writer));
                    sources.push(Source {
                        part: SpaceBlock { space, block },
                        writer,
                    });
                }
                let space = *space;
                let before = before.into_iter().map(|block| SpaceBlock { space, block });
                sources.extend(before.map(Source::before));
                if sources.len() > MOST_SOURCES {
                    return None;
                }
            }
            for piece in rest {
                // No two pieces begin at the same element.
                seen.insert(piece, 0, ());
            }
        }
        Some(sources)
    }

    /// The chain.
    pub fn build(mut self) -> Chain {
        if self.tasks.len() == 1 {
            return Chain::of(self.tasks.remove(0));
        }
        let tasks = self.tasks.iter();
        let costs: Vec<Cost> = tasks
            .flat_map(|task| (0..task.count()).map(|subtask| task.cost(subtask)))
            .collect();
        let order = self.order(&costs);
        let mut numbers = vec![0; order.len()];
        for (number, counted) in (0..).zip(&order) {
            numbers[*counted] = number;
        }
        let mut readers: Vec<Vec<u64>> = vec![Vec::new(); order.len()];
        let mut places = Vec::with_capacity(order.len());
        let mut sources = Vec::with_capacity(order.len());
        for (number, &counted) in (0..).zip(&order) {
            let task = self
                .firsts
                .partition_point(|first| *first <= counted as u64)
                - 1;
            places.push((task, counted as u64 - self.firsts[task]));
            let mut read = std::mem::take(&mut self.sources[counted]);
            for source in &mut read {
                source.writer = source.writer.map(|writer| numbers[writer as usize]);
            }
            let mut writers: Vec<u64> = read.iter().filter_map(|source| source.writer).collect();
            writers.sort_unstable();
            writers.dedup();
            (writers.into_iter()).for_each(|writer| readers[writer as usize].push(number));
            sources.push(read);
        }
        let last = |readers: &Vec<u64>| {
            let tasks = readers.iter().map(|reader| places[*reader as usize].0);
            tasks.max()
        };
        let last_readers = readers.iter().map(last).collect();
        let ends = self.firsts.iter().skip(1).copied().chain([self.count]);
        let ranges = self.firsts.iter().zip(ends);
        let of_task = |(&first, end)| numbers[first as usize..end as usize].to_vec();
        let mut name = String::new();
        for task in &self.tasks {
            if !name.split(" + ").any(|other| other == task.name()) {
                let and = if name.is_empty() { "" } else { " + " };
                name = name + and + task.name();
            }
        }
        Chain {
            name,
            woven: Some(Woven {
                places,
                costs: order.iter().map(|counted| costs[*counted]).collect(),
                sources,
                readers,
                last_readers,
                numbers: ranges.map(of_task).collect(),
                written: self.tasks.iter().map(|_| OnceLock::new()).collect(),
            }),
            tasks: self.tasks,
        }
    }

    /// The subtasks by what is to be done from their begin on, one after the other, the most
    /// first.
    fn order(&self, costs: &[Cost]) -> Vec<usize> {
        let mut after = vec![0.0_f64; self.count as usize];
        for (task, &first) in self.tasks.iter().zip(&self.firsts).rev() {
            for subtask in 0..task.count() {
                let counted = (first + subtask) as usize;
                let Cost { flops, bytes } = costs[counted];
                let all = after[counted] + flops.max(bytes).max(1.0);
                after[counted] = all;
                let writers = self.sources[counted].iter();
                for writer in writers.filter_map(|source| source.writer) {
                    let before = &mut after[writer as usize];
                    *before = before.max(all);
                }
            }
        }
        let mut order: Vec<usize> = (0..after.len()).collect();
        // Of equal ones, those of the earlier task come first.
        order.sort_by(|a, b| after[*b].total_cmp(&after[*a]));
        order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cluster::task::fixtures::ListedTask;

    const SIDE: u64 = 5;

    /// A task that reads and writes random blocks of a space.
    fn random(random: &mut fastrand::Rng) -> ListedTask {
        let count = random.u64(1..=SIDE);
        let part = |rows, columns| SpaceBlock {
            space: SpaceId(0),
            block: Block::new(rows, columns),
        };
        let mut range = || {
            let begin = random.u64(..SIDE);
            begin..random.u64(begin..=SIDE)
        };
        let cost = |subtask| Cost {
            flops: subtask as f64,
            bytes: 0.0,
        };
        ListedTask {
            name: "random",
            costs: (0..count).map(cost).collect(),
            reads: (0..count)
                .map(|_| vec![part(range(), range()), part(range(), range())])
                .collect(),
            writes: (0..count)
                .map(|row| vec![part(row..row + 1, range())])
                .collect(),
        }
    }

    fn elements(part: &SpaceBlock) -> impl Iterator<Item = (u64, u64)> + '_ {
        let rows = part.block.rows.clone();
        rows.flat_map(|row| part.block.columns.clone().map(move |column| (row, column)))
    }

    /// Each element that a subtask reads is in one source, of its last writer before the task.
    #[test]
    fn sources_are_what_was_written_last() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let tasks: Vec<Arc<ListedTask>> = (0..rng.usize(2..6))
                .map(|_| Arc::new(random(&mut rng)))
                .collect();
            let mut chaining = Chaining::new(Arc::clone(&tasks[0]) as Arc<dyn Task>);
            for task in &tasks[1..] {
                assert!(chaining.push(&(Arc::clone(task) as Arc<dyn Task>)));
            }
            let chain = chaining.build();
            let mut last: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for (index, task) in tasks.iter().enumerate() {
                for subtask in 0..task.count() {
                    let number = chain.number(index, subtask);
                    assert_eq!(chain.place(number), (index, subtask));
                    let read: BTreeMap<_, _> = (task.reads(subtask).iter())
                        .flat_map(elements)
                        .map(|element| (element, last.get(&element).copied()))
                        .collect();
                    let mut found = BTreeMap::new();
                    for source in chain.sources(number) {
                        for element in elements(&source.part) {
                            let before = found.insert(element, source.writer);
                            assert_eq!(before, None, "two sources have one element");
                        }
                        if let Some(writer) = source.writer {
                            assert!(writer < number, "it waits for what has a greater number");
                            assert!(chain.readers(writer).contains(&number));
                            assert!(chain.last_reader(writer) >= Some(index));
                        }
                        let is_overwritten = |task: usize| chain.overwrites(task, &source);
                        assert!(!(0..index).any(is_overwritten), "it is gone too soon");
                        let left = chain.left_of(index, source.clone());
                        let left: Vec<_> = left.iter().flat_map(|of| elements(&of.part)).collect();
                        let writes = (0..task.count()).flat_map(|subtask| task.writes(subtask));
                        let writes: Vec<_> = writes
                            .flat_map(|part| elements(&part).collect::<Vec<_>>())
                            .collect();
                        let mut of_source = elements(&source.part);
                        assert!(of_source.all(|of| left.contains(&of) != writes.contains(&of)));
                    }
                    assert_eq!(found, read);
                    let part = &task.reads(subtask)[1];
                    let of_part = chain.sources_of(number, part);
                    let count: u64 = of_part.iter().map(|of| of.part.block.elements()).sum();
                    assert_eq!(count, part.block.elements());
                }
                for subtask in 0..task.count() {
                    let writes = task.writes(subtask);
                    let written = writes.iter().flat_map(elements);
                    last.extend(written.map(|element| (element, chain.number(index, subtask))));
                }
            }
        }
    }
}
