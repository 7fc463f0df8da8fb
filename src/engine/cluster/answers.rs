//! Blocks that travel to other nodes: what these ask for is sent as soon as host memory has it, and
//! the first node asks for the result.

use std::collections::VecDeque;
use std::io;

use super::ClusterError;
use super::encode::with_room;
use super::node::{Interruption, Node};
use super::subtasks::Subtasks;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::{Message, RequestId};
use pdawl_core::cluster::space::{Block, SpaceBlock, SpaceId, Spaces, pieces};
use pdawl_core::cluster::task::chain::Source;
use pdawl_core::cluster::wire::memory;

/// Bytes of data in a message of an answer. One travels while the next one is copied, and the
/// driver does other things between the two. With its words it is no longer than four pieces of
/// the wire over MPI.
pub(super) const PORTION: u64 = (16 << 20) - 4096;

/// Parts that another node is to get.
pub(super) struct Answer {
    to: NodeId,
    /// What was not sent yet: the parts of each message.
    portions: VecDeque<Vec<Source>>,
    /// The bytes that were sent.
    sent: u64,
    kind: AnswerKind,
}

/// As what they are sent.
enum AnswerKind {
    /// For a request of a task.
    Data(RequestId),
    /// A part of a result, in this attempt.
    Piece(u64),
}

/// The parts of each message with parts of spaces. There is one at least.
fn portions(spaces: &Spaces, sources: Vec<Source>, most: u64) -> VecDeque<Vec<Source>> {
    let mut portions = VecDeque::new();
    let (mut last, mut bytes) = (Vec::new(), 0);
    for Source { part, writer } in sources {
        let (space, extent) = (part.space, spaces.extent(part.space));
        for block in pieces(extent, &part.block, most) {
            let more = extent.bytes(&block);
            if !last.is_empty() && bytes + more > most {
                portions.push_back(std::mem::take(&mut last));
                bytes = 0;
            }
            bytes += more;
            let part = SpaceBlock { space, block };
            last.push(Source { part, writer });
        }
    }
    portions.push_back(last);
    portions
}

impl Node<'_> {
    /// Sends parts of spaces that another node asked for.
    pub(super) fn serve(
        &mut self,
        to: NodeId,
        request: RequestId,
        sources: Vec<Source>,
    ) -> Result<(), ClusterError> {
        self.answers.push(Answer {
            to,
            portions: portions(&self.spaces, sources, PORTION),
            sent: 0,
            kind: AnswerKind::Data(request),
        });
        self.answer()
    }

    /// Sends a part to the node that collects it.
    pub(super) fn send_piece(&mut self, to: NodeId, part: SpaceBlock) -> Result<(), ClusterError> {
        self.answers.push(Answer {
            to,
            portions: VecDeque::from([vec![Source::before(part)]]),
            sent: 0,
            kind: AnswerKind::Piece(self.machine.restarts()),
        });
        self.answer()
    }

    /// Whether an answer was sent in part.
    pub(super) fn is_answering(&self) -> bool {
        self.answers.iter().any(|answer| answer.sent > 0)
    }

    /// Sends a message to each node with what host memory has, and has the rest copied there.
    pub(super) fn answer(&mut self) -> Result<(), ClusterError> {
        let mut unfinished = Vec::new();
        for mut answer in std::mem::take(&mut self.answers) {
            let wanted = answer.portions.iter().flatten();
            match self.subtasks.want(&self.spaces, wanted) {
                Ok(true) if !unfinished.contains(&answer.to) => {
                    self.send_portion(&mut answer)?;
                    if !answer.portions.is_empty() {
                        unfinished.push(answer.to);
                        self.answers.push(answer);
                    }
                }
                Ok(_) => self.answers.push(answer),
                // The other node knows already that this one answers for a lost one, or does not
                // need it any longer.
                Err(_) => self.unserved.push(answer),
            }
        }
        Ok(())
    }

    /// Waits until host memory has parts, which this node has.
    ///
    /// # Errors
    /// When the tasks begin anew, and what a run refuses.
    pub(super) fn until_here(&mut self, parts: Vec<SpaceBlock>) -> Result<(), Interruption> {
        let sources: Vec<Source> = parts.into_iter().map(Source::before).collect();
        while !self.subtasks.want(&self.spaces, sources.iter())? {
            self.turn()?;
            self.check_restart()?;
        }
        Ok(())
    }

    /// Sends the next message of an answer.
    fn send_portion(&mut self, answer: &mut Answer) -> Result<(), ClusterError> {
        let Some(sources) = answer.portions.pop_front() else {
            return Ok(());
        };
        let message = match (&answer.kind, sources.first()) {
            (AnswerKind::Piece(attempt), Some(source)) => Message::Piece {
                attempt: *attempt,
                part: source.part.clone(),
            },
            (AnswerKind::Data(request), _) => Message::Data {
                request: *request,
                at: answer.sent,
            },
            (AnswerKind::Piece(_), None) => return Ok(()),
        };
        let parts = sources.iter().map(|source| &source.part);
        let bytes = parts.map(|part| self.spaces.bytes(part)).sum();
        let (mut message, at) = with_room(&message, bytes)?;
        let Subtasks { graph, store, .. } = &self.subtasks;
        let copied = &mut message[at..];
        store.copy_all(graph, self.runtime, &self.spaces, &sources, copied)?;
        answer.sent += bytes;
        if let AnswerKind::Data(_) = answer.kind {
            self.record.sent_bytes += bytes;
        }
        Ok(self.wire.send(answer.to.index(), message)?)
    }
}

// The result at the first node: it asks the others for their blocks, a piece of the space
// after the other, so that no node has more of them in flight than two pieces.

/// Bytes of a piece: enough that a network or a disk is not slowed down by their number.
const PIECE: u64 = 16 << 20;

impl Node<'_> {
    /// Gives all bytes of a block of a space to `take`, by rows.
    ///
    /// # Errors
    /// What `take` refuses, and elements that no task has written.
    pub(super) fn gather(
        &mut self,
        space: SpaceId,
        block: &Block,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Interruption> {
        let extent = self.spaces.extent(space);
        let pieces = pieces(extent, block, PIECE);
        let mut bytes = Vec::new();
        let mut asked = match pieces.first() {
            Some(first) => self.collect(space, first)?,
            None => Vec::new(),
        };
        for (number, block) in pieces.iter().enumerate() {
            let waiting = match pieces.get(number + 1) {
                Some(next) => std::mem::replace(&mut asked, self.collect(space, next)?),
                None => std::mem::take(&mut asked),
            };
            let is_here = |node: &Self| waiting.iter().all(|part| node.pieces.contains_key(part));
            self.until_sent(is_here)?;
            bytes.resize(extent.bytes(block) as usize, 0);
            let part = SpaceBlock {
                space,
                block: block.clone(),
            };
            self.put_together(&part, waiting, &mut bytes)?;
            take(&bytes).map_err(ClusterError::from)?;
        }
        Ok(())
    }

    /// All bytes of a space.
    pub(super) fn whole(&mut self, space: SpaceId) -> Result<Vec<u8>, Interruption> {
        let mut all = Vec::new();
        let whole = self.spaces.extent(space).whole();
        self.gather(space, &whole, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(all)
    }

    /// Asks the other nodes for what they have of a block, and tells the parts.
    fn collect(&mut self, space: SpaceId, block: &Block) -> Result<Vec<SpaceBlock>, ClusterError> {
        let me = self.me();
        let directory = self.spaces.directory(space);
        let foreign = (directory.holders(block)).filter(|(_, holder)| holder.node != me);
        let foreign: Vec<(Block, NodeId)> = foreign
            .map(|(block, holder)| (block, holder.node))
            .collect();
        let mut parts = Vec::new();
        for (block, node) in foreign {
            let part = SpaceBlock { space, block };
            let message = Message::Collect {
                attempt: self.machine.restarts(),
                part: part.clone(),
            };
            self.send(node, message)?;
            parts.push(part);
        }
        Ok(parts)
    }

    /// Writes a part of which this node has some, and has got the others.
    ///
    /// # Errors
    /// When the tasks begin anew, what a run refuses, and elements that no task has written.
    pub(super) fn put_together(
        &mut self,
        part: &SpaceBlock,
        got: Vec<SpaceBlock>,
        to: &mut [u8],
    ) -> Result<(), Interruption> {
        let (me, space) = (self.me(), part.space);
        let holders = self.spaces.directory(space).holders(&part.block);
        let own = holders.filter(|(_, holder)| holder.node == me);
        let own = own.map(|(block, _)| SpaceBlock { space, block }).collect();
        self.until_here(own)?;
        let count = got.len() as u64;
        // Requests of tasks are numbered from the other end.
        let request = |number| RequestId(u64::MAX - number);
        let Subtasks { graph, store, .. } = &mut self.subtasks;
        for (number, part) in (0..).zip(got) {
            if let Some((bytes, at)) = self.pieces.remove(&part) {
                let asked = (request(number), &[Source::before(part)][..]);
                store.receive(graph, self.runtime, &self.spaces, asked, (0, &bytes[at..]))?;
                memory::keep(bytes);
            }
        }
        let source = Source::before(part.clone());
        let copied = store.copy(graph, self.runtime, &self.spaces, &source, to);
        (0..count).for_each(|number| store.release(graph, request(number)));
        self.subtasks.changed = true;
        Ok(copied?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdawl_core::cluster::space::{Block, Extent};

    #[test]
    fn portions_have_all_bytes_in_order() {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: 9,
            columns: 10,
            element: 4,
        };
        let space = spaces.add(extent, []);
        let blocks = [
            Block::new(0..9, 0..10),
            Block::new(3..3, 0..5),
            Block::new(2..3, 4..5),
            Block::new(4..9, 1..3),
        ];
        let source = |block: Block| Source {
            part: SpaceBlock { space, block },
            writer: Some(7),
        };
        let elements = |sources: &[Source]| {
            let blocks = sources.iter().map(|source| source.part.block.clone());
            let cells = blocks.flat_map(|block| {
                let rows = block.rows.clone();
                rows.flat_map(move |row| block.columns.clone().map(move |column| (row, column)))
            });
            cells.collect::<Vec<_>>()
        };
        let all = blocks.map(source);
        for most in [1, 4, 7, 8, 40, 41, 100, 360, 10_000] {
            let portions = portions(&spaces, all.to_vec(), most);
            let sizes = portions
                .iter()
                .map(|portion| 4 * elements(portion).len() as u64);
            assert!(sizes.clone().all(|size| size <= most.max(4)), "{most}");
            let found: Vec<_> = portions.iter().flat_map(|one| elements(one)).collect();
            assert_eq!(found, elements(&all), "{most}");
            // No message is so short that the next one would have fitted in.
            let least = portions.len() as u64 * most / 2;
            assert!(
                most < 80 || least <= 4 * found.len() as u64 + most,
                "{most}"
            );
        }
        assert_eq!(
            portions(&spaces, vec![source(Block::new(3..3, 0..5))], 9).len(),
            1
        );
    }
}
