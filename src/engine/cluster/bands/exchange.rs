//! What travels in a co-run over nodes: what each reads of the others' units after a step,
//! and units that change hands.

use std::ops::Range;

use super::mail::{About, BEGINS, MOVES};
use super::on_session;
use crate::cluster::error::ClusterError;
use crate::cluster::node::{Interruption, Node};
use crate::corun::session::Session;
use crate::corun::{Later, When};
use pdawl_core::cluster::NodeId;

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
