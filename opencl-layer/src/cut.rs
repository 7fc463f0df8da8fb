//! A launch in blocks of groups along an axis, and the bytes that belong to them.

use std::ops::Range;

use crate::form::Form;
use crate::shape::Shape;

/// Blocks of a launch at most. Shares are as fine as a sixty-fourth, and twelve sets tell
/// each block from every other.
const MOST: usize = 64;

/// Work-items of a group along the first dimension at most, where the program leaves the
/// group's size to the driver. Every device can run so many.
const GROUP: usize = 64;

/// A way to divide a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub axis: usize,
    global: Vec<usize>,
    local: Vec<usize>,
    /// Groups along the axis, and those of a block; the last block may have fewer.
    groups: usize,
    per_block: usize,
}

/// The group's size of a launch's parts: the launch's own, or one that divides its range.
pub fn local_size(shape: &Shape) -> Vec<usize> {
    if let Some(local) = &shape.local {
        return local.clone();
    }
    let mut local = vec![1; shape.global.len()];
    if let (Some(one), Some(size)) = (local.first_mut(), shape.global.first()) {
        *one = 1 << size.trailing_zeros().min(GROUP.trailing_zeros());
    }
    local
}

impl Cut {
    /// The ways to divide a launch: along each axis with several groups, the slowest first.
    pub fn all(shape: &Shape) -> Vec<Self> {
        let local = local_size(shape);
        let dimensions = shape.global.len();
        let whole = |axis: usize| local[axis] > 0 && shape.global[axis].is_multiple_of(local[axis]);
        if local.len() != dimensions || !(0..dimensions).all(whole) {
            return Vec::new();
        }
        let cut = |axis: usize| {
            let groups = shape.global[axis] / local[axis];
            Self {
                axis,
                global: shape.global.clone(),
                local: local.clone(),
                groups,
                per_block: groups.div_ceil(MOST).max(1),
            }
        };
        let cuts = (0..dimensions).rev().map(cut);
        cuts.filter(|cut| cut.groups > 1).collect()
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.groups.div_ceil(self.per_block)
    }

    /// The form of the program for the parts.
    pub fn form(&self) -> Form {
        let dimensions = self.global.len();
        Form::Part {
            axis: self.axis,
            dimensions,
            extent: (dimensions == 3).then(|| self.global[self.axis]),
        }
    }

    /// The work-items of a group.
    pub fn items_of_group(&self) -> usize {
        self.local.iter().product()
    }

    fn groups_before(&self, block: usize) -> usize {
        (block * self.per_block).min(self.groups)
    }

    /// The groups along the axis of some blocks.
    pub fn groups_of(&self, blocks: &Range<usize>) -> usize {
        self.groups_before(blocks.end) - self.groups_before(blocks.start)
    }

    /// The launch of some blocks, for the program's form.
    pub fn part(&self, blocks: &Range<usize>) -> Shape {
        let mut offset = vec![0; self.global.len()];
        let (mut global, mut local) = (self.global.clone(), self.local.clone());
        offset[self.axis] = self.groups_before(blocks.start) * local[self.axis];
        global[self.axis] = self.groups_of(blocks) * local[self.axis];
        if global.len() < 3 {
            offset.push(self.global[self.axis]);
            global.push(1);
            local.push(1);
        }
        Shape {
            offset: Some(offset),
            global,
            local: Some(local),
        }
    }

    /// The part of `bytes` bytes that belongs to some blocks; `None` if a block's part is no
    /// whole number of bytes.
    pub fn slice(&self, bytes: usize, blocks: &Range<usize>) -> Option<Range<usize>> {
        let at = |block: usize| {
            let part = bytes as u128 * self.groups_before(block) as u128;
            usize::try_from(part / self.groups as u128).ok()
        };
        let even = (bytes as u128 * self.per_block as u128).is_multiple_of(self.groups as u128);
        Some(at(blocks.start)?..at(blocks.end)?).filter(|_| even)
    }

    /// Sets of blocks, as ranges: of every two blocks, a set has the first and lacks the
    /// second, and the other way round. Each block is alone, or, if there shall be few sets,
    /// in two of them, and no two blocks in the same two.
    pub fn sets(&self, few: bool) -> Vec<Vec<Range<usize>>> {
        let blocks = self.blocks();
        let pairs = |sets: usize| (0..sets).flat_map(move |a| (a + 1..sets).map(move |b| (a, b)));
        let least = (2..).find(|sets| sets * (sets - 1) / 2 >= blocks);
        let Some(count) = least.filter(|least| few && *least < blocks) else {
            let alone = |block: usize| std::iter::once(block..block + 1).collect();
            return (0..blocks).map(alone).collect();
        };
        let mut sets: Vec<Vec<Range<usize>>> = vec![Vec::new(); count];
        for (block, (a, b)) in (0..blocks).zip(pairs(count)) {
            for set in [a, b] {
                match sets[set].last_mut() {
                    Some(range) if range.end == block => range.end += 1,
                    _ => sets[set].push(block..block + 1),
                }
            }
        }
        sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(global: &[usize], local: Option<&[usize]>) -> Shape {
        Shape {
            offset: None,
            global: global.to_vec(),
            local: local.map(<[usize]>::to_vec),
        }
    }

    #[test]
    fn the_slowest_axis_with_several_groups_is_first() {
        let cuts = Cut::all(&shape(&[64, 8, 4], Some(&[8, 8, 1])));
        let axes: Vec<usize> = cuts.iter().map(|cut| cut.axis).collect();
        assert_eq!(axes, [2, 0]);
        assert!(Cut::all(&shape(&[64], Some(&[64]))).is_empty());
        assert!(Cut::all(&shape(&[10], Some(&[4]))).is_empty());
    }

    #[test]
    fn parts_and_slices_make_the_whole() {
        for groups in [2, 3, 63, 64, 65, 1000, 4096] {
            let cut = &Cut::all(&shape(&[groups * 8], Some(&[8])))[0];
            assert!(cut.blocks() <= MOST);
            let (mut items, mut bytes) = (0, 0);
            for block in 0..cut.blocks() {
                let part = cut.part(&(block..block + 1));
                assert_eq!(part.offset, Some(vec![items, groups * 8]));
                assert_eq!(
                    (&part.global[1..], part.local),
                    (&[1][..], Some(vec![8, 1]))
                );
                items += part.global[0];
                let slice = cut.slice(groups * 12, &(block..block + 1)).unwrap();
                assert_eq!(slice.start, bytes);
                bytes = slice.end;
            }
            assert_eq!((items, bytes), (groups * 8, groups * 12));
        }
        let cut = &Cut::all(&shape(&[3], Some(&[1])))[0];
        assert_eq!(cut.slice(4, &(0..1)), None);
    }

    #[test]
    fn of_every_two_blocks_a_set_has_the_first_and_lacks_the_second() {
        for groups in [2, 3, 5, 7, 63, 64, 100] {
            let cut = &Cut::all(&shape(&[groups], Some(&[1])))[0];
            for few in [false, true] {
                let sets = cut.sets(few);
                let has = |set: &[Range<usize>], block: usize| {
                    set.iter().filter(|range| range.contains(&block)).count() == 1
                };
                for one in 0..cut.blocks() {
                    for two in (0..cut.blocks()).filter(|two| *two != one) {
                        assert!(sets.iter().any(|set| has(set, one) && !has(set, two)));
                    }
                }
                let all: usize = sets.iter().flatten().map(Range::len).sum();
                let doubles = few && sets.len() < cut.blocks();
                assert_eq!(all, cut.blocks() * if doubles { 2 } else { 1 });
            }
        }
        let cut = &Cut::all(&shape(&[64], Some(&[1])))[0];
        assert_eq!((cut.sets(false).len(), cut.sets(true).len()), (64, 12));
    }

    #[test]
    fn a_driver_s_choice_is_made_for_it() {
        assert_eq!(local_size(&shape(&[96, 7], None)), [32, 1]);
        assert_eq!(local_size(&shape(&[1 << 20], None)), [64]);
        assert_eq!(local_size(&shape(&[7], None)), [1]);
    }
}
