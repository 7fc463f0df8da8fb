//! Outputs whose length nobody knows before they are there: the elements that all subtasks
//! yield, one after the other.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::access::{Access, Gather, Space};
use super::{Program, ProgramError, ProgramTask, ViewMut};
use crate::cluster::space::Block;
use crate::cluster::task::Ranked;

/// Parts of a subtask's items, each of which one core computes.
const UNITS: u64 = 16;

/// Elements for which there is room, at most: far more than any memory has.
const MOST: u64 = 1 << 56;

/// What a task has collected. It is where it was yielded: nothing is moved.
pub struct Collected<T> {
    /// The room for all that may be yielded, in the order of the items.
    pub values: Space<T>,
    /// How many elements each part has yielded.
    pub counts: Space<u64>,
    /// Where the room of each part begins.
    pub(super) begins: Arc<[u64]>,
}

impl<T> Clone for Collected<T> {
    fn clone(&self) -> Self {
        Self {
            begins: Arc::clone(&self.begins),
            ..*self
        }
    }
}

/// Takes the elements that a part of the items yields.
pub struct Yielded<'a, T> {
    to: &'a mut [T],
    count: usize,
}

impl<T> Yielded<'_, T> {
    /// Adds an element.
    ///
    /// # Panics
    /// When there are more than the task allows for the items; the run ends then.
    pub fn push(&mut self, element: T) {
        let most = self.to.len();
        let Some(to) = self.to.get_mut(self.count) else {
            panic!(
                "a part of the items yields more than the {most} elements that `most` of \
                 Program::collect allows"
            );
        };
        *to = element;
        self.count += 1;
    }
}

impl<T> Extend<T> for Yielded<'_, T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push(element));
    }
}

/// Where the parts of some items begin, and the end.
fn cuts(items: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let (begin, count) = (items.start, items.end.saturating_sub(items.start));
    (0..=UNITS)
        .map(move |part| begin + (u128::from(count) * u128::from(part) / u128::from(UNITS)) as u64)
}

impl Program {
    /// Adds a task whose subtasks yield elements, nobody knows how many: at most `most` for each
    /// item. The items of subtasks ascend, such as the rows that each reads. The function gets
    /// some of them, and yields what belongs to these; the elements of all items follow one
    /// another in their order.
    ///
    /// [`Self::set_collected`] makes them the result, and [`Collected::read`] reads them in a
    /// task of [`Self::add_task_by`], which knows how many there are. There is memory for the
    /// most that may be yielded.
    pub fn collect<A: Access, T: Pod>(
        &mut self,
        name: &'static str,
        count: u64,
        items: impl Fn(u64) -> Range<u64>,
        most: u64,
        accesses: A,
        function: impl Fn(Range<u64>, A::View<'_>, &mut Yielded<T>) + Send + Sync + 'static,
    ) -> Collected<T> {
        let items: Arc<[Range<u64>]> = (0..count).map(items).collect();
        let ascend = items.windows(2).all(|two| two[0].end <= two[1].start);
        let end = items.last().map_or(0, |last| last.end);
        let is_sound = count > 0 && ascend && items.iter().all(|items| items.start <= items.end);
        let room = end
            .checked_mul(most)
            .filter(|room| is_sound && *room < MOST);
        if room.is_none() {
            self.refuse(ProgramError::Items { task: name });
        }
        let most = room.map_or(0, |_| most);
        let room = room.unwrap_or(0);
        // A space has an element, which is not written if there is nothing to collect.
        let values = self.space::<T>(1, room.max(1));
        let counts = self.space::<u64>(1, (count * UNITS).max(1));
        let parts = items
            .iter()
            .flat_map(|items| cuts(items).take(UNITS as usize));
        let begins: Arc<[u64]> = parts.map(|item| item * most).collect();
        let collected = Collected {
            values,
            counts,
            begins: Arc::clone(&begins),
        };
        self.collected
            .insert(values.number(), (counts.number(), begins));
        let of = |items: &Arc<[Range<u64>]>| {
            let items = Arc::clone(items);
            move |subtask: u64| items[subtask as usize].clone()
        };
        let (own, written, cut) = (of(&items), of(&items), of(&items));
        let written = move |subtask| {
            let items = written(subtask);
            Block::new(0..1, items.start * most..items.end * most)
        };
        let cut = move |subtask| cuts(&cut(subtask)).map(|item| item * most).collect();
        let part = |subtask: u64| subtask * UNITS..(subtask + 1) * UNITS;
        let accesses = (
            accesses,
            (values.write(written).full()).cut(cut),
            (counts
                .write(move |subtask| Block::new(0..1, part(subtask)))
                .full())
            .cut(move |subtask| (part(subtask).start..=part(subtask).end).collect()),
        );
        type Views<'a, A, T> = (<A as Access>::View<'a>, ViewMut<'a, T>, ViewMut<'a, u64>);
        let task = ProgramTask::new(
            name,
            count,
            accesses,
            move |unit, (views, mut values, mut counts): Views<A, T>| {
                let items: Vec<u64> = cuts(&own(unit.subtask)).collect();
                let number = unit.number as usize;
                let mut yielded = Yielded {
                    to: values.slice(),
                    count: 0,
                };
                function(items[number]..items[number + 1], views, &mut yielded);
                counts.slice()[0] = yielded.count as u64;
            },
        );
        self.add_task(task);
        collected
    }

    /// Makes what a task has collected the result: as many elements as there are.
    pub fn set_collected<T>(&mut self, collected: &Collected<T>) {
        self.set_result(collected.values);
    }
}

/// The blocks of what was collected, by the numbers of elements.
pub(super) fn blocks(begins: &[u64], counts: &[u64]) -> Vec<Block> {
    let parts = begins.iter().zip(counts);
    let blocks = parts.map(|(begin, count)| Block::new(0..1, *begin..begin + count));
    blocks.filter(|block| !block.is_empty()).collect()
}

impl<T: Pod> Collected<T> {
    /// Each subtask reads some of the elements, by their places among all of them. `counts` has
    /// the elements of [`Self::counts`], which sum to the number of all.
    pub fn read(
        &self,
        counts: &[u64],
        places: impl Fn(u64) -> Range<u64> + Send + Sync + 'static,
    ) -> Gather<T> {
        let count = counts.len().min(self.begins.len());
        let ranked = (count > 0).then(|| Ranked::new(&self.begins[..count], &counts[..count]));
        self.values.gather(move |subtask| {
            let sources = ranked
                .iter()
                .flat_map(|ranked| ranked.sources(places(subtask)));
            sources.map(|source| Block::new(0..1, source)).collect()
        })
    }
}
