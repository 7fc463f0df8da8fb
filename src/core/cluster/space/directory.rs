//! Which node has which block of a space.

use super::{Block, Rectangles};
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
