//! Which node has which block of a space.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Block;
use crate::cluster::NodeId;

/// Who has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub node: NodeId,
    /// Whether the block has its first contents, which every node can compute.
    pub initial: bool,
}

/// Blocks that do not overlap, with who has them: nodes, by default.
#[derive(Clone, Debug)]
pub struct Directory<H = Holder> {
    blocks: Rectangles<H>,
}

impl<H> Default for Directory<H> {
    fn default() -> Self {
        Self {
            blocks: Rectangles::default(),
        }
    }
}

/// The number of all blocks: no two begin at the same element.
const ONLY: u64 = 0;

impl<H: Copy> Directory<H> {
    /// The blocks that have elements of `block`, cut to it, with their holders. Elements
    /// that nobody has are in none.
    pub fn holders<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = (Block, H)> + 'a {
        let pieces = self.blocks.overlapping(block);
        pieces.filter_map(|(piece, _, holder)| Some((piece.common(block)?, *holder)))
    }

    /// Gives a block to a holder, whoever had its elements.
    pub fn set(&mut self, block: &Block, holder: H) {
        let old = self.blocks.overlapping(block);
        let old: Vec<_> = old.map(|(piece, _, h)| (piece.clone(), *h)).collect();
        for (piece, before) in old {
            self.blocks.remove(&piece, ONLY);
            for rest in piece.without(block) {
                self.blocks.insert(rest, ONLY, before);
            }
        }
        self.blocks.insert(block.clone(), ONLY, holder);
    }
}

impl Directory {
    /// Takes a node out. Its blocks with first contents go to `successor`. The result is whether
    /// it had other blocks, whose contents are lost.
    pub fn lost(&mut self, node: NodeId, successor: NodeId) -> bool {
        let mut any = false;
        for holder in self.blocks.values_mut().filter(|h| h.node == node) {
            match holder.initial {
                true => holder.node = successor,
                false => any = true,
            }
        }
        any
    }
}

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

    /// Compares with an array of elements.
    #[test]
    fn every_element_has_its_last_holder() {
        const SIDE: u64 = 12;
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100 {
            let (mut directory, mut array) = (Directory::default(), vec![None; 144]);
            for number in 0..25 {
                let mut range = || {
                    let begin = random.u64(..SIDE);
                    begin..random.u64(begin..=SIDE)
                };
                let block = Block::new(range(), range());
                let holder = Holder {
                    node: NodeId(number % 4),
                    initial: number < 3,
                };
                directory.set(&block, holder);
                for row in block.rows.clone() {
                    for column in block.columns.clone() {
                        array[(row * SIDE + column) as usize] = Some(holder);
                    }
                }
                let asked = Block::new(range(), range());
                let mut found = vec![None; 144];
                for (piece, holder) in directory.holders(&asked) {
                    assert!(asked.contains(&piece));
                    for row in piece.rows {
                        for column in piece.columns.clone() {
                            let before = found[(row * SIDE + column) as usize].replace(holder);
                            assert_eq!(before, None, "two blocks have one element");
                        }
                    }
                }
                for row in asked.rows.clone() {
                    for column in asked.columns.clone() {
                        let index = (row * SIDE + column) as usize;
                        assert_eq!(found[index], array[index]);
                    }
                }
            }
            let lost = array.iter().flatten();
            let lost = lost
                .filter(|holder| holder.node == NodeId(1))
                .any(|holder| !holder.initial);
            assert_eq!(directory.lost(NodeId(1), NodeId(2)), lost);
        }
    }

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
