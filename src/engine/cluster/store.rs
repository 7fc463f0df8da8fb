//! The blocks of spaces that a node has, as bytes by rows without gaps.

use std::collections::BTreeMap;

use crate::cluster::protocol::RequestId;
use crate::cluster::space::{Block, Part, SpaceId, Spaces};

/// A block's bytes.
#[derive(Debug)]
struct Piece {
    block: Block,
    data: Vec<u8>,
    /// Where in `data` the block begins.
    at: usize,
}

/// What a node has of all spaces.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// The node's own blocks, the newest last.
    own: BTreeMap<SpaceId, Vec<Piece>>,
    /// What others have sent, for the present task.
    fetched: BTreeMap<RequestId, Received>,
}

/// The answer to a request.
#[derive(Debug)]
struct Received {
    parts: Vec<(Part, usize)>,
    data: Vec<u8>,
}

impl Store {
    /// Takes a block's bytes.
    pub fn insert(&mut self, part: Part, data: Vec<u8>) {
        let pieces = self.own.entry(part.space).or_default();
        let block = part.block;
        pieces.push(Piece { block, data, at: 0 });
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
        let placed = parts.into_iter().map(|part| {
            let begin = at;
            at += spaces.bytes(&part) as usize;
            (part, begin)
        });
        let parts: Vec<_> = placed.collect();
        let is_whole = at == data.len();
        self.fetched.insert(request, Received { parts, data });
        is_whole
    }

    /// Forgets an answer.
    pub fn release(&mut self, request: RequestId) {
        self.fetched.remove(&request);
    }

    /// Forgets all answers, which belong to a task that has ended.
    pub fn release_all(&mut self) {
        self.fetched.clear();
    }

    /// Keeps the blocks of which `is_own` is true, and forgets the others.
    pub fn retain(&mut self, is_own: impl Fn(SpaceId, &Block) -> bool) {
        for (space, pieces) in &mut self.own {
            pieces.retain(|piece| is_own(*space, &piece.block));
        }
    }

    /// Writes a part to `to`, which has its length. The result is a block that is not
    /// here, if there is one.
    pub fn copy(&self, spaces: &Spaces, part: &Part, to: &mut [u8]) -> Result<(), Block> {
        let element = spaces.extent(part.space).element as usize;
        let mut missing = vec![part.block.clone()];
        let own = self.own.get(&part.space).into_iter().flatten().rev();
        let own = own.map(|piece| (&piece.block, &piece.data[..], piece.at));
        let fetched = self.fetched.values().flat_map(|received| {
            let parts = received.parts.iter();
            let parts = parts.filter(|(other, _)| other.space == part.space);
            parts.map(|(other, at)| (&other.block, &received.data[..], *at))
        });
        for (block, data, at) in own.chain(fetched) {
            if missing.is_empty() {
                break;
            }
            if block.common(&part.block).is_none() {
                continue;
            }
            let mut rest = Vec::with_capacity(missing.len());
            for wanted in missing {
                if let Some(common) = wanted.common(block) {
                    copy_common(element, &common, (block, &data[at..]), (&part.block, to));
                }
                rest.extend(wanted.without(block));
            }
            missing = rest;
        }
        missing.into_iter().next().map_or(Ok(()), Err)
    }

    /// Appends parts to a message, one after the other.
    pub fn append(
        &self,
        spaces: &Spaces,
        parts: &[Part],
        message: &mut Vec<u8>,
    ) -> Result<(), (Part, Block)> {
        for part in parts {
            let begin = message.len();
            message.resize(begin + spaces.bytes(part) as usize, 0);
            let copied = self.copy(spaces, part, &mut message[begin..]);
            copied.map_err(|block| (part.clone(), block))?;
        }
        Ok(())
    }
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

    /// Compares with an array to which the same blocks are written.
    #[test]
    fn a_part_has_the_newest_bytes() {
        const SIDE: u64 = 9;
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..200 {
            let mut spaces = Spaces::default();
            let extent = Extent {
                rows: SIDE,
                columns: SIDE,
                element: 2,
            };
            let space = spaces.add(extent, []);
            let mut store = Store::default();
            let mut array = vec![None; (SIDE * SIDE) as usize];
            for number in 0..12u16 {
                let block = random_block(&mut random, SIDE);
                let data: Vec<u8> = (0..block.elements())
                    .flat_map(|at| (number * 100 + at as u16).to_le_bytes())
                    .collect();
                let cells = block
                    .rows
                    .clone()
                    .flat_map(|row| block.columns.clone().map(move |column| row * SIDE + column));
                for (at, cell) in cells.enumerate() {
                    // What was received is older than what is the node's own.
                    if number >= 3 || array[cell as usize].is_none() {
                        array[cell as usize] = Some(number * 100 + at as u16);
                    }
                }
                let part = Part { space, block };
                match number < 3 {
                    true => {
                        let mut bytes = vec![9; 5];
                        bytes.extend(data);
                        let request = RequestId(number.into());
                        assert!(store.receive(&spaces, request, vec![part], bytes, 5));
                    }
                    false => store.insert(part, data),
                }
                let block = random_block(&mut random, SIDE);
                let wanted: Vec<Option<u16>> = block
                    .rows
                    .clone()
                    .flat_map(|row| block.columns.clone().map(move |c| row * SIDE + c))
                    .map(|cell| array[cell as usize])
                    .collect();
                let part = Part { space, block };
                let mut bytes = Vec::new();
                match store.append(&spaces, std::slice::from_ref(&part), &mut bytes) {
                    Ok(()) => {
                        let numbers = bytes
                            .chunks(2)
                            .map(|b| Some(u16::from_le_bytes([b[0], b[1]])));
                        assert_eq!(numbers.collect::<Vec<_>>(), wanted);
                    }
                    Err((_, missing)) => {
                        assert!(part.block.contains(&missing));
                        assert!(wanted.contains(&None), "{missing:?} is not missing");
                    }
                }
            }
        }
    }
}
