//! Messages of a co-run over nodes, and where those that have arrived wait.

use std::collections::HashMap;
use std::ops::Range;

use super::on_session;
use crate::balance::bands::Pace;
use crate::cluster::ClusterError;
use crate::cluster::encode::with_room;
use crate::cluster::node::{Interruption, Node};
use crate::corun::session::Session;
use crate::corun::{Later, When};
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
const MOVES: u32 = u32::MAX;
/// All have begun.
const BEGINS: u32 = u32::MAX - 2;
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

// What travels in a co-run over nodes: what each reads of the others' units after a step,
// and units that change hands.

/// The units of a round, and what travels in each of its steps.
pub(super) struct Round {
    pub number: u32,
    pub units: Vec<Range<u64>>,
    /// By node: the parts that it is sent, and that it sends.
    out: Vec<Vec<Range<u64>>>,
    back: Vec<Vec<Range<u64>>>,
}

impl Round {
    pub fn new(number: u32, units: Vec<Range<u64>>, session: &Session, me: NodeId) -> Self {
        let own = &units[me.index()];
        let others = || {
            units
                .iter()
                .enumerate()
                .filter(|(node, _)| *node != me.index())
        };
        let all = || (0..units.len()).map(|_| Vec::new()).collect::<Vec<_>>();
        let (mut out, mut back) = (all(), all());
        for (node, other) in others().filter(|(_, units)| !units.is_empty()) {
            out[node] = session.parts(own, other, false);
            back[node] = session.parts(other, own, false);
        }
        Self {
            number,
            units,
            out,
            back,
        }
    }
}

impl Node<'_> {
    /// Waits until all nodes have begun with their units.
    pub(super) fn begin_together(&mut self, round: &Round) -> Result<(), Interruption> {
        let about = About {
            attempt: self.machine.restarts(),
            round: round.number,
            step: BEGINS,
        };
        let me = self.me().index();
        let with_units = |node: &usize| *node != me && !round.units[*node].is_empty();
        let others: Vec<usize> = (0..round.units.len()).filter(with_units).collect();
        for to in &others {
            self.send_band(&None, about, *to, &[], &[])?;
        }
        for from in others {
            let key = (about, NodeId(from as u32));
            self.until(|node| node.bands.data.contains_key(&key))?;
            self.bands.data.remove(&key);
        }
        Ok(())
    }

    /// Sends what others read of the present version, and takes in what this node reads, if a
    /// step follows (`travel`). What all units sum is sent in any case.
    pub(super) fn exchange(
        &mut self,
        session: &mut Option<Session>,
        round: &Round,
        about: About,
        (when, travel): (When, bool),
    ) -> Result<(), Interruption> {
        let me = self.me().index();
        let own = on_session!(self, session, sums, when).map_err(ClusterError::from)?;
        let with_units = |node: &usize| *node != me && !round.units[*node].is_empty();
        let others: Vec<usize> = (0..round.units.len()).filter(with_units).collect();
        for to in &others {
            let parts = if travel { &round.out[*to][..] } else { &[] };
            if own.is_some() || !parts.is_empty() {
                self.send_band(
                    session,
                    about,
                    *to,
                    own.as_deref().unwrap_or_default(),
                    parts,
                )?;
            }
        }
        let sends = |from: &&usize| own.is_some() || travel && !round.back[**from].is_empty();
        let senders: Vec<usize> = others.iter().filter(sends).copied().collect();
        let has = |node: &Self, from: &usize| {
            let key = (about, NodeId(*from as u32));
            node.bands.data.contains_key(&key)
        };
        self.until_sent(|node| senders.iter().all(|from| has(node, from)))?;
        let mut sums = Vec::new();
        for from in senders {
            let parts = if travel { &round.back[from][..] } else { &[] };
            let own = self.take_band(session, about, from, parts)?;
            sums.push((round.units[from].clone(), own));
        }
        if own.is_some() {
            on_session!(self, session, add_up, when, &sums).map_err(ClusterError::from)?;
        }
        Ok(())
    }

    /// Sends each node what it needs to begin with the units that it gets, and takes in what
    /// this one needs. `round` has the units as they were.
    pub(super) fn move_units(
        &mut self,
        session: &mut Option<Session>,
        round: &Round,
        next: &[Range<u64>],
    ) -> Result<Later, Interruption> {
        if !on_session!(self, session, gather).map_err(ClusterError::from)? {
            return Err(self.spoiled(session));
        }
        let me = self.me().index();
        let about = About {
            attempt: self.machine.restarts(),
            round: round.number,
            step: MOVES,
        };
        let Some(of) = session.as_ref() else {
            return Err(Interruption::Restart);
        };
        let parts = |from: usize, to: usize| of.parts(&round.units[from], &next[to], true);
        let others = || (0..next.len()).filter(|node| *node != me && !next[*node].is_empty());
        let out: Vec<_> = others().map(|to| (to, parts(me, to))).collect();
        let back: Vec<_> = others().map(|from| (from, parts(from, me))).collect();
        let mut later = Later {
            parts: Vec::new(),
            sums: of.total(),
        };
        for part in parts(me, me) {
            let place = part.start;
            of.present(self.runtime, std::slice::from_ref(&part), |bytes| {
                later.parts.push((place, bytes.to_vec()));
            })
            .map_err(ClusterError::from)?;
        }
        for (to, parts) in out.into_iter().filter(|(_, parts)| !parts.is_empty()) {
            self.send_band(session, about, to, &[], &parts)?;
        }
        for (from, parts) in back.into_iter().filter(|(_, parts)| !parts.is_empty()) {
            let key = (about, NodeId(from as u32));
            self.until_sent(|node| node.bands.data.contains_key(&key))?;
            let arrived = self.arrived(about, from, &parts)?;
            let mut rest = arrived.parts();
            for part in parts {
                let (own, behind) = rest.split_at((part.end - part.start) as usize);
                later.parts.push((part.start, own.to_vec()));
                rest = behind;
            }
            arrived.keep();
        }
        Ok(later)
    }
}
