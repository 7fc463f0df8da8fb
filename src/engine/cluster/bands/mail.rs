//! Messages of a co-run over nodes, and where those that have arrived wait.

use std::collections::HashMap;
use std::ops::Range;

use crate::balance::bands::Pace;
use crate::cluster::encode::with_room;
use crate::cluster::error::ClusterError;
use crate::cluster::node::Node;
use crate::corun::session::Session;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::wire::memory;

/// What a message about bands is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct About {
    pub attempt: u64,
    pub round: u32,
    /// A step of the round, [`BEGINS`], [`MOVES`] or [`ENDS`].
    pub step: u32,
}

/// Units that change hands before a round.
pub(super) const MOVES: u32 = u32::MAX;
/// All have begun.
pub(super) const BEGINS: u32 = u32::MAX - 2;
/// What is added up after the last step.
pub(super) const ENDS: u32 = u32::MAX - 1;

/// A message with sums, and then the bytes of parts.
pub(super) struct Arrived {
    message: Vec<u8>,
    /// Where the sums begin, and where they end.
    begin: usize,
    end: usize,
}

impl Arrived {
    pub fn sums(&self) -> &[u8] {
        &self.message[self.begin..self.end]
    }

    pub fn parts(&self) -> &[u8] {
        &self.message[self.end..]
    }

    /// It was read.
    pub fn keep(self) {
        memory::keep(self.message);
    }
}

/// Messages about bands that nodes have sent.
#[derive(Default)]
pub(in crate::cluster) struct BandMail {
    pub(super) data: HashMap<(About, NodeId), Arrived>,
    pub(super) paces: HashMap<(u64, u32, NodeId), Pace>,
    pub(super) divisions: HashMap<(u64, u32), Vec<Range<u64>>>,
    /// The steps that were done, for nodes without units.
    pub(super) ended: HashMap<u64, (u32, Vec<Range<u64>>)>,
}

impl BandMail {
    /// Forgets what earlier attempts were sent.
    pub fn begin(&mut self, attempt: u64) {
        self.data.retain(|(about, _), _| about.attempt >= attempt);
        self.paces.retain(|(of, ..), _| *of >= attempt);
        self.divisions.retain(|(of, _), _| *of >= attempt);
        self.ended.retain(|of, _| *of >= attempt);
    }

    /// Takes a message about bands, with its data from `at` on; gives others back.
    pub fn take(
        &mut self,
        from: NodeId,
        message: Message,
        bytes: Vec<u8>,
        at: usize,
    ) -> Option<Message> {
        match message {
            Message::Band {
                attempt,
                round,
                step,
                sums,
            } => {
                let about = About {
                    attempt,
                    round,
                    step,
                };
                let arrived = Arrived {
                    begin: at,
                    end: at.saturating_add(sums as usize),
                    message: bytes,
                };
                self.data.insert((about, from), arrived);
            }
            Message::Pace {
                attempt,
                round,
                pace,
            } => {
                self.paces.insert((attempt, round, from), pace);
            }
            Message::Division {
                attempt,
                round,
                units,
            } => {
                self.divisions.insert((attempt, round), units);
            }
            Message::BandsEnded {
                attempt,
                steps,
                units,
            } => {
                self.ended.insert(attempt, (steps, units));
            }
            message => return Some(message),
        }
        None
    }
}

impl Node<'_> {
    pub(super) fn send_band(
        &mut self,
        session: &Option<Session>,
        about: About,
        to: usize,
        sums: &[u8],
        parts: &[Range<u64>],
    ) -> Result<(), ClusterError> {
        let About {
            attempt,
            round,
            step,
        } = about;
        let band = Message::Band {
            attempt,
            round,
            step,
            sums: sums.len() as u64,
        };
        let length: u64 = parts.iter().map(|part| part.end - part.start).sum();
        let (mut message, at) = with_room(&band, sums.len() as u64 + length)?;
        let (begin, mut rest) = message.split_at_mut(at + sums.len());
        begin[at..].copy_from_slice(sums);
        if let Some(session) = session {
            let copying = self.subtasks.store.copying();
            session.present(self.runtime, parts, |bytes| {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
                copying.copy(bytes, own);
                rest = behind;
            })?;
        }
        self.record.sent_bytes += (message.len() - at) as u64;
        Ok(self.wire.send(to, message)?)
    }

    /// Takes in what a node has sent, which is here. Returns what its units sum.
    pub(super) fn take_band(
        &mut self,
        session: &Option<Session>,
        about: About,
        from: usize,
        parts: &[Range<u64>],
    ) -> Result<Vec<u8>, ClusterError> {
        let arrived = self.arrived(about, from, parts)?;
        let mut rest = arrived.parts();
        if let Some(session) = session {
            let copying = self.subtasks.store.copying();
            session.present(self.runtime, parts, |to| {
                let (own, behind) = rest.split_at(to.len());
                copying.copy(own, to);
                rest = behind;
            })?;
        }
        let sums = arrived.sums().to_vec();
        arrived.keep();
        Ok(sums)
    }

    /// A message that has arrived.
    ///
    /// # Errors
    /// A message that has not these parts.
    pub(super) fn arrived(
        &mut self,
        about: About,
        from: usize,
        parts: &[Range<u64>],
    ) -> Result<Arrived, ClusterError> {
        let from = NodeId(from as u32);
        let length: u64 = parts.iter().map(|part| part.end - part.start).sum();
        let arrived = self.bands.data.remove(&(about, from));
        let arrived = arrived.filter(|arrived| {
            let all = arrived.message.len();
            arrived.end <= all && (all - arrived.end) as u64 == length
        });
        let Some(arrived) = arrived else {
            return Err(ClusterError::NoMessage {
                from: from.to_string(),
            });
        };
        self.record.received_bytes += (arrived.message.len() - arrived.begin) as u64;
        Ok(arrived)
    }
}
