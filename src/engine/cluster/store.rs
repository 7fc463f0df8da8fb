//! The blocks of spaces that a node has, as bytes by rows without gaps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::cluster::NodeId;
use crate::cluster::protocol::RequestId;
use crate::cluster::space::{Block, Part, Rectangles, SpaceId, Spaces};
use crate::workload::cluster::Fill;

use super::copying::Copying;
use super::error::ClusterError;

/// What a node has of all spaces.
pub(super) struct Store {
    me: NodeId,
    copying: Arc<Copying>,
    /// How to make what no node sends.
    makes: BTreeMap<SpaceId, Fill>,
    /// The node's own blocks. Newer ones have greater numbers.
    own: BTreeMap<SpaceId, Rectangles<Vec<u8>>>,
    next: u64,
    /// What others have sent, for the present task, by the numbers of requests.
    fetched: BTreeMap<SpaceId, Rectangles<Received>>,
    requests: BTreeMap<RequestId, Vec<Part>>,
}

/// A part of the answer to a request.
#[derive(Debug)]
struct Received {
    answer: Arc<Vec<u8>>,
    /// Where its bytes begin.
    at: usize,
}

impl Store {
    /// The store of a node.
    pub fn new(me: NodeId, copying: Arc<Copying>) -> Self {
        Self {
            me,
            copying,
            makes: BTreeMap::new(),
            own: BTreeMap::new(),
            next: 0,
            fetched: BTreeMap::new(),
            requests: BTreeMap::new(),
        }
    }

    /// Makes the contents of a space whenever they are asked for.
    pub fn make(&mut self, space: SpaceId, fill: Fill) {
        self.makes.insert(space, fill);
    }

    /// Takes a block's bytes.
    pub fn insert(&mut self, part: Part, data: Vec<u8>) {
        let own = self.own.entry(part.space).or_default();
        own.insert(part.block, self.next, data);
        self.next += 1;
    }

    /// Takes the answer to a request: the bytes of its parts, one part after the other,
    /// from `at` on. False if there are too few.
    pub fn receive(
        &mut self,
        spaces: &Spaces,
        request: RequestId,
        parts: Vec<Part>,
        data: Vec<u8>,
        mut at: usize,
    ) -> bool {
        let bytes: u64 = parts.iter().map(|part| spaces.bytes(part)).sum();
        if at + bytes as usize != data.len() {
            return false;
        }
        let answer = Arc::new(data);
        for part in &parts {
            let fetched = self.fetched.entry(part.space).or_default();
            let received = Received {
                answer: Arc::clone(&answer),
                at,
            };
            fetched.insert(part.block.clone(), request.0, received);
            at += spaces.bytes(part) as usize;
        }
        self.requests.insert(request, parts);
        true
    }

    /// Forgets an answer.
    pub fn release(&mut self, request: RequestId) {
        for part in self.requests.remove(&request).into_iter().flatten() {
            if let Some(fetched) = self.fetched.get_mut(&part.space) {
                fetched.remove(&part.block, request.0);
            }
        }
    }

    /// Forgets all answers, which belong to a task that has ended.
    pub fn release_all(&mut self) {
        self.fetched.clear();
        self.requests.clear();
    }

    /// Forgets the own blocks with elements of a part of which `is_own` is false.
    pub fn forget_within(&mut self, part: &Part, is_own: impl Fn(&Block) -> bool) {
        let Some(own) = self.own.get_mut(&part.space) else {
            return;
        };
        let there = own.overlapping(&part.block);
        let others = there.filter(|(block, ..)| !is_own(block));
        let others: Vec<_> = others.map(|(block, n, _)| (block.clone(), n)).collect();
        for (block, number) in others {
            own.remove(&block, number);
        }
    }

    /// Writes a part to `to`, which has its length: what this node has by the directory
    /// from its own blocks, and the rest from what others have sent. An own block may be
    /// older than what another node has.
    ///
    /// # Errors
    /// A block that is not here, and one that cannot be made.
    pub fn copy(&self, spaces: &Spaces, part: &Part, to: &mut [u8]) -> Result<(), ClusterError> {
        if let Some(fill) = self.makes.get(&part.space) {
            return Ok(fill(&part.block, to)?);
        }
        let (space, extent) = (part.space, spaces.extent(part.space));
        let copy = |block: &Block, to: &mut [u8]| self.copy_kept(spaces, space, block, to);
        self.copying
            .block(extent, &part.block, to, copy)
            .map_err(|block| ClusterError::Missing { space, block })
    }

    fn copy_kept(
        &self,
        spaces: &Spaces,
        space: SpaceId,
        wanted: &Block,
        to: &mut [u8],
    ) -> Result<(), Block> {
        let element = spaces.extent(space).element as usize;
        let mut found = 0;
        for (block, holder) in spaces.directory(space).holders(wanted) {
            found += block.elements();
            let target = (wanted, &mut *to);
            match holder.node == self.me {
                true => self.copy_own(element, space, block, target)?,
                false => self.copy_fetched(element, space, block, target)?,
            }
        }
        match found == wanted.elements() {
            true => Ok(()),
            // Nobody has written these elements.
            false => Err(wanted.clone()),
        }
    }

    fn copy_own(
        &self,
        element: usize,
        space: SpaceId,
        block: Block,
        target: (&Block, &mut [u8]),
    ) -> Result<(), Block> {
        let own = self.own.get(&space).into_iter();
        let mut own: Vec<_> = own.flat_map(|own| own.overlapping(&block)).collect();
        own.sort_unstable_by_key(|(_, number, _)| std::cmp::Reverse(*number));
        let own = own.into_iter().map(|(piece, _, data)| (piece, &data[..]));
        copy_from(own, element, &block, target)
    }

    fn copy_fetched(
        &self,
        element: usize,
        space: SpaceId,
        block: Block,
        target: (&Block, &mut [u8]),
    ) -> Result<(), Block> {
        let fetched = self.fetched.get(&space).into_iter();
        let fetched = fetched.flat_map(|fetched| fetched.overlapping(&block));
        let fetched = fetched.map(|(piece, _, of)| (piece, &of.answer[of.at..]));
        copy_from(fetched, element, &block, target)
    }

    /// Appends parts to a message, one after the other.
    pub fn append(
        &self,
        spaces: &Spaces,
        parts: &[Part],
        message: &mut Vec<u8>,
    ) -> Result<(), ClusterError> {
        let bytes: u64 = parts.iter().map(|part| spaces.bytes(part)).sum();
        // The system zeroes this memory when it is first written to.
        let mut whole = vec![0; message.len() + bytes as usize];
        let (words, mut rest) = whole.split_at_mut(message.len());
        words.copy_from_slice(message);
        for part in parts {
            let (to, behind) = rest.split_at_mut(spaces.bytes(part) as usize);
            self.copy(spaces, part, to)?;
            rest = behind;
        }
        *message = whole;
        Ok(())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut shown = f.debug_struct("Store");
        shown.field("me", &self.me).field("own", &self.own);
        shown
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// Copies a block from pieces, of which the first counts that has an element. The result is
/// a block that none has, if there is one.
fn copy_from<'a>(
    pieces: impl Iterator<Item = (&'a Block, &'a [u8])>,
    element: usize,
    block: &Block,
    (to, bytes): (&Block, &mut [u8]),
) -> Result<(), Block> {
    let mut missing = vec![block.clone()];
    for (piece, data) in pieces {
        if missing.is_empty() {
            break;
        }
        let mut rest = Vec::with_capacity(missing.len());
        for wanted in missing {
            if let Some(common) = wanted.common(piece) {
                copy_common(element, &common, (piece, data), (to, bytes));
            }
            rest.extend(wanted.without(piece));
        }
        missing = rest;
    }
    missing.into_iter().next().map_or(Ok(()), Err)
}

/// Copies the elements that two blocks have in common from the bytes of one to those of
/// the other.
fn copy_common(
    element: usize,
    common: &Block,
    (from, source): (&Block, &[u8]),
    (to, target): (&Block, &mut [u8]),
) {
    let place = |block: &Block, row: u64| {
        let row = (row - block.rows.start) * block.width();
        (row + common.columns.start - block.columns.start) as usize * element
    };
    let width = common.width() as usize * element;
    let is_whole = from.columns == common.columns && to.columns == common.columns;
    let (step, length) = match is_whole {
        true => (common.height().max(1), width * common.height() as usize),
        false => (1, width),
    };
    for row in common.rows.clone().step_by(step as usize) {
        let (read, write) = (place(from, row), place(to, row));
        target[write..write + length].copy_from_slice(&source[read..read + length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::Extent;

    fn random_block(random: &mut fastrand::Rng, side: u64) -> Block {
        let mut range = || {
            let begin = random.u64(..side);
            begin..random.u64(begin..side) + 1
        };
        Block::new(range(), range())
    }

    /// Two nodes write blocks in turns. Whoever has a part of a block sends it to the
    /// other one, and the block then has the numbers of an array.
    #[test]
    fn a_part_has_the_newest_numbers() {
        const SIDE: u64 = 9;
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..100 {
            let mut spaces = Spaces::default();
            let extent = Extent {
                rows: SIDE,
                columns: SIDE,
                element: 2,
            };
            let nodes = [NodeId(0), NodeId(1)];
            let space = spaces.add(extent, [(extent.whole(), nodes[0])]);
            let copying = Arc::new(Copying::start());
            let mut stores = nodes.map(|node| Store::new(node, Arc::clone(&copying)));
            let whole = extent.whole();
            let part = |block: &Block| Part {
                space,
                block: block.clone(),
            };
            stores[0].insert(part(&whole), vec![0; 2 * whole.elements() as usize]);
            let mut array = vec![0u16; whole.elements() as usize];
            for number in 1..12u16 {
                let block = random_block(&mut random, SIDE);
                let which = random.usize(..2);
                let cells = block.rows.clone().flat_map(|row| {
                    let columns = block.columns.clone();
                    columns.map(move |column| (row * SIDE + column) as usize)
                });
                let mut data = Vec::new();
                for (at, cell) in cells.enumerate() {
                    array[cell] = number * 100 + at as u16;
                    data.extend(array[cell].to_le_bytes());
                }
                spaces.written(&part(&block), nodes[which]);
                stores[which].insert(part(&block), data);
                for (store, node) in stores.iter_mut().zip(nodes) {
                    store.forget_within(&part(&block), |other| {
                        let mut holders = spaces.directory(space).holders(other);
                        holders.any(|(_, holder)| holder.node == node)
                    });
                }

                let block = random_block(&mut random, SIDE);
                let to = random.usize(..2);
                let other = 1 - to;
                let holders = spaces.directory(space).holders(&block);
                let foreign = holders.filter(|(_, holder)| holder.node == nodes[other]);
                let foreign: Vec<Part> = foreign.map(|(block, _)| part(&block)).collect();
                let mut message = vec![9; 5];
                stores[other]
                    .append(&spaces, &foreign, &mut message)
                    .expect("the other node has them");
                let needed = message.len() > 5;
                let mut bytes = Vec::new();
                let early = stores[to].append(&spaces, &[part(&block)], &mut bytes);
                assert_eq!(early.is_err(), needed);
                let request = RequestId(number.into());
                assert!(stores[to].receive(&spaces, request, foreign, message, 5));
                let mut bytes = Vec::new();
                stores[to]
                    .append(&spaces, &[part(&block)], &mut bytes)
                    .expect("everything is there");
                let found = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
                let cells = block.rows.clone().flat_map(|row| {
                    let columns = block.columns.clone();
                    columns.map(move |column| (row * SIDE + column) as usize)
                });
                let right: Vec<u16> = cells.map(|cell| array[cell]).collect();
                assert_eq!(found.collect::<Vec<_>>(), right);
                stores[to].release(request);
            }
        }
    }
}
