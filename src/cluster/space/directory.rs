//! Which node has which block of a space.

use std::collections::BTreeMap;

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
    /// By first row, then by first column.
    bands: BTreeMap<u64, BTreeMap<u64, (Block, H)>>,
    /// No block is higher or wider.
    height: u64,
    width: u64,
}

impl<H> Default for Directory<H> {
    fn default() -> Self {
        Self {
            bands: BTreeMap::new(),
            height: 0,
            width: 0,
        }
    }
}

impl<H: Copy> Directory<H> {
    /// The blocks that have elements of `block`, cut to it, with their holders. Elements
    /// that nobody has are in none.
    pub fn holders<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = (Block, H)> + 'a {
        self.overlapping(block)
            .filter_map(|(piece, holder)| Some((piece.common(block)?, *holder)))
    }

    fn overlapping<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = &'a (Block, H)> + 'a {
        let from = |begin: u64, most: u64| begin.saturating_sub(most.saturating_sub(1));
        let rows = from(block.rows.start, self.height)..block.rows.end.max(block.rows.start);
        let begin = from(block.columns.start, self.width);
        let columns = begin..block.columns.end.max(begin);
        let rows = rows.start.min(rows.end)..rows.end;
        self.bands
            .range(rows)
            .flat_map(move |(_, band)| band.range(columns.clone()))
            .map(|(_, entry)| entry)
            .filter(|(piece, _)| piece.common(block).is_some())
    }

    /// Gives a block to a holder, whoever had its elements.
    pub fn set(&mut self, block: &Block, holder: H) {
        if block.is_empty() {
            return;
        }
        let old: Vec<_> = self.overlapping(block).cloned().collect();
        for (piece, before) in old {
            self.remove(&piece);
            for rest in piece.without(block) {
                self.insert(rest, before);
            }
        }
        self.insert(block.clone(), holder);
    }

    fn insert(&mut self, block: Block, holder: H) {
        self.height = self.height.max(block.height());
        self.width = self.width.max(block.width());
        let band = self.bands.entry(block.rows.start).or_default();
        band.insert(block.columns.start, (block, holder));
    }

    fn remove(&mut self, block: &Block) {
        if let Some(band) = self.bands.get_mut(&block.rows.start) {
            band.remove(&block.columns.start);
            if band.is_empty() {
                self.bands.remove(&block.rows.start);
            }
        }
    }
}

impl Directory {
    /// Takes a node out. Its blocks with first contents go to `heir`. The result is whether
    /// it had other blocks, whose contents are lost.
    pub fn lost(&mut self, node: NodeId, heir: NodeId) -> bool {
        let mut any = false;
        for band in self.bands.values_mut() {
            for (_, holder) in band.values_mut().filter(|(_, h)| h.node == node) {
                match holder.initial {
                    true => holder.node = heir,
                    false => any = true,
                }
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
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
}
