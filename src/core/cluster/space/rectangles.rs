//! Blocks with values, found by what they have in common with another block.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Block;

/// Blocks with values. They may overlap. Blocks that begin at the same element are told
/// apart by a number.
///
/// Blocks are in classes of about the same size: in each, heights and widths differ by less
/// than two times. A search looks in each class for the blocks that begin at most one height
/// and one width before the wanted elements, so a few wide blocks do not make the search
/// among many narrow ones longer.
#[derive(Clone, Debug)]
pub struct Rectangles<T> {
    classes: BTreeMap<Class, Bands<T>>,
}

/// The numbers of bits of a height and of a width.
type Class = (u32, u32);

/// By first row, then by first column and number.
type Bands<T> = BTreeMap<u64, BTreeMap<(u64, u64), (Block, T)>>;

impl<T> Default for Rectangles<T> {
    fn default() -> Self {
        Self {
            classes: BTreeMap::new(),
        }
    }
}

fn bits(length: u64) -> u32 {
    u64::BITS - length.leading_zeros()
}

fn class(block: &Block) -> Class {
    (bits(block.height()), bits(block.width()))
}

/// Where lines of so many bits may begin that have an element from `begin` to before `end`.
fn begins(begin: u64, end: u64, bits: u32) -> RangeInclusive<u64> {
    let longest = u64::MAX >> (u64::BITS - bits);
    begin.saturating_sub(longest - 1)..=end - 1
}

impl<T> Rectangles<T> {
    /// Adds a block. It takes the place of an equal one of the same number. An empty one is
    /// not found again, so it is not kept.
    pub fn insert(&mut self, block: Block, number: u64, value: T) {
        if block.is_empty() {
            return;
        }
        let bands = self.classes.entry(class(&block)).or_default();
        let band = bands.entry(block.rows.start).or_default();
        band.insert((block.columns.start, number), (block, value));
    }

    /// Takes out a block of this number, if there is one.
    pub fn remove(&mut self, block: &Block, number: u64) {
        let class = class(block);
        let Some(bands) = self.classes.get_mut(&class) else {
            return;
        };
        let Some(band) = bands.get_mut(&block.rows.start) else {
            return;
        };
        band.remove(&(block.columns.start, number));
        if band.is_empty() {
            bands.remove(&block.rows.start);
        }
        if bands.is_empty() {
            self.classes.remove(&class);
        }
    }

    /// The blocks that have elements of `block`, with their numbers and values, in an order
    /// that depends on nothing but what is in here.
    pub fn overlapping<'a>(
        &'a self,
        block: &'a Block,
    ) -> impl Iterator<Item = (&'a Block, u64, &'a T)> + 'a {
        let classes = (!block.is_empty()).then_some(&self.classes);
        let of_class = move |(&(height, width), bands): (&Class, &'a Bands<T>)| {
            let columns = begins(block.columns.start, block.columns.end, width);
            let columns = (*columns.start(), 0)..=(*columns.end(), u64::MAX);
            bands
                .range(begins(block.rows.start, block.rows.end, height))
                .flat_map(move |(_, band)| band.range(columns.clone()))
        };
        classes
            .into_iter()
            .flatten()
            .flat_map(of_class)
            .filter(|(_, (other, _))| other.common(block).is_some())
            .map(|((_, number), (other, value))| (other, *number, value))
    }

    /// All values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let bands = self.classes.values_mut().flat_map(BTreeMap::values_mut);
        bands.flat_map(BTreeMap::values_mut).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIDE: u64 = 300;

    /// A range that is narrow, as most are, or as wide as all.
    fn range() -> impl Strategy<Value = std::ops::Range<u64>> {
        let narrow = (0..SIDE, 0..6_u64).prop_map(|(begin, length)| begin..begin + length);
        let wide = (0..SIDE, 0..=SIDE).prop_map(|(begin, length)| begin..begin + length);
        prop_oneof![4 => narrow, 1 => wide]
    }

    fn block() -> impl Strategy<Value = Block> {
        let any = (range(), range()).prop_map(|(rows, columns)| Block::new(rows, columns));
        // Of spaces of one row.
        let of_row = range().prop_map(|columns| Block::new(0..1, columns));
        prop_oneof![any, of_row]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Block, u64),
        /// One of the blocks that are there.
        Remove(prop::sample::Index),
        Find(Block),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (block(), 0..3_u64).prop_map(|(block, number)| Step::Insert(block, number)),
            1 => any::<prop::sample::Index>().prop_map(Step::Remove),
            2 => block().prop_map(Step::Find),
        ]
    }

    proptest! {
        /// The same blocks are found as by a search through all.
        #[test]
        fn what_is_found_is_what_a_linear_search_finds(
            steps in prop::collection::vec(step(), 1..120)
        ) {
            let mut index = Rectangles::default();
            let mut all: Vec<(Block, u64, usize)> = Vec::new();
            for (value, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(block, number) => {
                        all.retain(|(other, n, _)| (other, *n) != (&block, number));
                        // Blocks of one class that begin at one place need unlike numbers.
                        let begin = |b: &Block| (b.rows.start, b.columns.start, class(b));
                        if all.iter().any(|(b, n, _)| (begin(b), *n) == (begin(&block), number)) {
                            continue;
                        }
                        if !block.is_empty() {
                            all.push((block.clone(), number, value));
                        }
                        index.insert(block, number, value);
                    }
                    Step::Remove(which) if !all.is_empty() => {
                        let (block, number, _) = all.swap_remove(which.index(all.len()));
                        index.remove(&block, number);
                    }
                    Step::Remove(_) => {}
                    Step::Find(wanted) => {
                        let found = index.overlapping(&wanted);
                        let mut found: Vec<_> = found.map(|(b, n, v)| (*v, n, b.clone())).collect();
                        let there = all.iter().filter(|(b, _, _)| b.common(&wanted).is_some());
                        let mut there: Vec<_> = there.map(|(b, n, v)| (*v, *n, b.clone())).collect();
                        found.sort_by_key(|(value, ..)| *value);
                        there.sort_by_key(|(value, ..)| *value);
                        prop_assert_eq!(found, there);
                    }
                }
            }
        }
    }

    /// The greatest numbers of columns have room.
    #[test]
    fn blocks_may_reach_to_the_end_of_all_numbers() {
        let mut index = Rectangles::default();
        let whole = Block::new(0..1, 0..u64::MAX);
        let last = Block::new(0..1, u64::MAX - 1..u64::MAX);
        index.insert(whole.clone(), 0, 'w');
        index.insert(last.clone(), 0, 'l');
        let found = |block: &Block| {
            let found = index.overlapping(block);
            found.map(|(_, _, value)| *value).collect::<String>()
        };
        assert_eq!(found(&last), "lw");
        assert_eq!(found(&Block::new(0..1, 0..1)), "w");
    }
}
