//! A co-run over nodes: each has a run of neighbouring units, which its devices share as on
//! one machine ([`Session`]). After each step, nodes send each other what they read of the
//! others' units, and what all of them add up. From time to time they compare their paces,
//! and divide the units anew where that pays. A loss makes all begin anew: the first step is
//! known, and later ones need what the lost device had.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use super::encode::encode;
use super::error::ClusterError;
use super::node::{Interruption, Node};
use super::subtasks::Subtasks;
use crate::balance::bands::{Pace, divided, is_compared, redivided};
use crate::balance::{Balancer, Dawl, Setup};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::protocol::{DeviceIndex, Event, Message};
use crate::cluster::space::{Block, Part, SpaceId};
use crate::engine::corun::session::{Session, Stepped};
use crate::engine::corun::{CorunError, Later, Options, Tracing, When};
use crate::runtime::{DeviceId, RuntimeError};
use crate::time::Nanos;
use crate::workload::Divisible;
use crate::workload::cluster::Bands;

/// What a message about bands is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct About {
    attempt: u64,
    round: u32,
    /// A step of the round, [`MOVES`] or [`ENDS`].
    step: u32,
}

/// Units that change hands before a round.
const MOVES: u32 = u32::MAX;
/// All have begun.
const BEGINS: u32 = u32::MAX - 2;
/// What is added up after the last step.
const ENDS: u32 = u32::MAX - 1;

/// Messages about bands that nodes have sent.
#[derive(Default)]
pub(super) struct BandMail {
    /// With the bytes of the message, and where the data begin and the sums end.
    data: HashMap<(About, NodeId), (Vec<u8>, usize, usize)>,
    paces: HashMap<(u64, u32, NodeId), Pace>,
    divisions: HashMap<(u64, u32), Vec<Range<u64>>>,
    /// The steps that were done, for nodes without units.
    ended: HashMap<u64, (u32, Vec<Range<u64>>)>,
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
                let end = at + sums as usize;
                self.data.insert((about, from), (bytes, at, end));
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

/// The units of a round, and what travels in each of its steps.
struct Round {
    number: u32,
    units: Vec<Range<u64>>,
    /// By node: the parts that it is sent, and that it sends.
    out: Vec<Vec<Range<u64>>>,
    back: Vec<Vec<Range<u64>>>,
}

impl Round {
    fn new(number: u32, units: Vec<Range<u64>>, session: &mut Session, me: NodeId) -> Self {
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
        session.publish(others().map(|(_, units)| units.clone()).collect());
        Self {
            number,
            units,
            out,
            back,
        }
    }
}

/// Calls a method of a session that gives it back, with the runtime.
macro_rules! on_session {
    ($node:expr, $session:expr, $method:ident $(, $argument:expr)*) => {{
        let Some(session) = $session.take() else {
            return Err(Interruption::Restart);
        };
        let (session, result) = session.$method($node.runtime $(, $argument)*);
        *$session = Some(session);
        result
    }};
}

/// The division by what nodes have told of their devices, those left out that do not work.
pub(super) fn first_division<'n>(
    workload: &dyn Divisible,
    nodes: impl IntoIterator<Item = &'n NodeInfo>,
    working: &[Vec<bool>],
) -> Vec<Range<u64>> {
    let units = workload.units();
    let cost = workload.cost(&(0..units));
    let speeds = nodes.into_iter().zip(working).map(|(node, working)| {
        let devices = node
            .devices
            .iter()
            .zip(working)
            .filter(|(_, works)| **works);
        let seconds = devices.map(|(device, _)| device.seconds(cost, 0.0));
        seconds.map(|seconds| 1.0 / seconds).sum()
    });
    let speeds: Vec<f64> = speeds.collect();
    match speeds.iter().all(|speed: &f64| speed.is_finite()) {
        true => divided(units, &speeds),
        // Devices of which nothing is known are alike.
        false => {
            let alike = speeds.iter().map(|speed| f64::from(u8::from(*speed > 0.0)));
            divided(units, &alike.collect::<Vec<_>>())
        }
    }
}

impl Node<'_> {
    /// Computes all steps. Returns how many were done: fewer, where all changes in a step
    /// sum to what is tolerated.
    ///
    /// # Errors
    /// When all begin anew, and what a run refuses.
    pub(super) fn co_run(
        &mut self,
        bands: &Bands,
        [result, figure]: [SpaceId; 2],
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, Interruption> {
        let mut session = None;
        self.machine.hold_together(true);
        let done = self.co_run_with(bands, &mut session, progress);
        let done = done.and_then(|(steps, units)| {
            self.keep_bands(bands, &mut session, units, [result, figure])?;
            Ok(steps)
        });
        self.busy(false);
        if let Some(session) = session {
            self.close_session(session);
        }
        if done.is_ok() {
            // From now on the directories say whether a loss makes all begin anew.
            self.machine.hold_together(false);
        }
        done.map(u64::from)
    }

    fn co_run_with<'w>(
        &mut self,
        bands: &Bands<'w>,
        session: &mut Option<Session<'w>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(u32, Vec<Range<u64>>), Interruption> {
        let (attempt, me) = (self.machine.restarts(), self.me());
        if me == NodeId::FIRST {
            let units =
                first_division(bands.workload, self.machine.nodes(), self.machine.working());
            self.tell_division((attempt, 0), &units)?;
        }
        let units = self.division((attempt, 0))?;
        if units[me.index()].is_empty() {
            let began = Instant::now();
            self.until(|node| node.bands.ended.contains_key(&attempt))?;
            self.steps_took = began.elapsed();
            return Ok(self.bands.ended.remove(&attempt).unwrap_or_default());
        }
        let mut set_up =
            self.open_session(bands, session, &units[me.index()], bands.steps, None)?;
        let mut round = match session {
            Some(session) => Round::new(0, units, session, me),
            None => return Err(Interruption::Restart),
        };
        self.begin_together(&round)?;
        let began = Instant::now();
        let (mut step, mut asked, mut took) = (0, 0, 0);
        while step < bands.steps {
            took += self.step(session, bands.workload.name())?;
            let about = About {
                attempt,
                round: round.number,
                step,
            };
            self.exchange(session, &round, about, When::Step)?;
            let now = self.now();
            if let Some(traced) = &mut self.subtasks.traced {
                traced.end(now);
            }
            step += 1;
            progress(step.into());
            let change = session.as_ref().and_then(Session::change);
            if bands
                .tolerance
                .zip(change)
                .is_some_and(|(most, sum)| sum <= most)
            {
                break;
            }
            let others = round.units.iter().filter(|units| !units.is_empty()).count() > 1;
            if others && step < bands.steps && is_compared(step.into()) {
                let seconds = took as f64 / 1e9 / f64::from(step - asked);
                (asked, took) = (step, 0);
                let left = bands.steps - step;
                let next = self.compare(&round, Pace { seconds, set_up }, left)?;
                round.number += 1;
                if next != round.units {
                    let later = self.move_units(session, &round, &next)?;
                    if let Some(session) = session.take() {
                        self.close_session(session);
                    }
                    let own = next[me.index()].clone();
                    set_up = self.open_session(bands, session, &own, left, Some(&later))?;
                    round = match session {
                        Some(session) => Round::new(round.number, next, session, me),
                        None => return Err(Interruption::Restart),
                    };
                }
            }
        }
        self.steps_took = began.elapsed();
        if !on_session!(self, session, gather).map_err(ClusterError::from)? {
            return Err(self.spoiled(session));
        }
        let about = About {
            attempt,
            round: round.number,
            step: ENDS,
        };
        self.exchange(session, &round, about, When::End)?;
        if self.speaks(&round.units) {
            let idle = (0..)
                .map(NodeId)
                .zip(&round.units)
                .filter(|(_, units)| units.is_empty());
            let idle = idle.map(|(node, _)| node);
            let idle: Vec<NodeId> = idle.filter(|node| !self.lost[node.index()]).collect();
            for to in idle {
                let message = Message::BandsEnded {
                    attempt,
                    steps: step,
                    units: round.units.clone(),
                };
                self.send(to, message)?;
            }
        }
        Ok((step, round.units))
    }

    /// Whether this node is the first one with units, which decides about the next rounds.
    fn speaks(&self, units: &[Range<u64>]) -> bool {
        units.iter().position(|units| !units.is_empty()) == Some(self.me().index())
    }

    fn tell_division(
        &mut self,
        (attempt, round): (u64, u32),
        units: &[Range<u64>],
    ) -> Result<(), ClusterError> {
        for to in (0..self.size()).map(NodeId) {
            if !self.lost[to.index()] {
                let units = units.to_vec();
                let message = Message::Division {
                    attempt,
                    round,
                    units,
                };
                self.send(to, message)?;
            }
        }
        Ok(())
    }

    fn division(&mut self, of: (u64, u32)) -> Result<Vec<Range<u64>>, Interruption> {
        self.until(|node| node.bands.divisions.contains_key(&of))?;
        Ok(self.bands.divisions.remove(&of).unwrap_or_default())
    }

    /// Opens this node's units on its devices. Returns the seconds that it took.
    fn open_session<'w>(
        &mut self,
        bands: &Bands<'w>,
        session: &mut Option<Session<'w>>,
        units: &Range<u64>,
        steps: u32,
        later: Option<&Later>,
    ) -> Result<f64, Interruption> {
        let began = Instant::now();
        let options = Options {
            trace: match self.subtasks.traced {
                Some(_) => Tracing::Commands,
                None => Tracing::None,
            },
            ..Options::of_steps(steps)
        };
        let part = (bands.workload, units.clone());
        let balancer = |setup: &Setup| -> Box<dyn Balancer> { Box::new(Dawl::new(setup)) };
        loop {
            let lost: Vec<bool> = (0..self.record.devices.len() as u32)
                .map(|device| self.lost_devices.contains(&DeviceIndex(device)))
                .collect();
            let part = (part.0, part.1.clone());
            match Session::open(self.runtime, part, (&options, &lost), &balancer, later) {
                Ok(opened) => {
                    *session = Some(opened);
                    self.tell_session_losses(session)?;
                    return Ok(began.elapsed().as_secs_f64());
                }
                Err(CorunError::AllLost { why, .. }) => {
                    self.lose_all(&why)?;
                    return Err(self.begins_anew(&why));
                }
                Err(CorunError::Runtime(RuntimeError::DeviceLost { why, device })) => {
                    let is_gone = |number: usize| {
                        !lost[number] && self.runtime.generation(DeviceId(number)).is_none()
                    };
                    let Some(gone) = (0..lost.len()).find(|number| is_gone(*number)) else {
                        return Err(
                            ClusterError::from(RuntimeError::DeviceLost { why, device }).into()
                        );
                    };
                    self.lose_device(DeviceIndex(gone as u32), why)?;
                }
                Err(error) => return Err(ClusterError::from(error).into()),
            }
        }
    }

    /// Computes a step of this node's units.
    fn step(&mut self, session: &mut Option<Session>, name: &str) -> Result<Nanos, Interruption> {
        self.busy(true);
        let now = self.now();
        if let Some(traced) = &mut self.subtasks.traced {
            traced.begin(name, now);
        }
        let stepped = on_session!(self, session, step);
        self.busy(false);
        self.tell_session_losses(session)?;
        match stepped {
            Ok(Stepped::Done(took)) => Ok(took),
            Ok(Stepped::Spoiled) => Err(self.spoiled(session)),
            Err(CorunError::AllLost { why, .. }) => {
                self.lose_all(&why)?;
                Err(self.begins_anew(&why))
            }
            Err(error) => Err(ClusterError::from(error).into()),
        }
    }

    fn tell_session_losses(&mut self, session: &Option<Session>) -> Result<(), ClusterError> {
        let losses = session.iter().flat_map(|session| session.losses());
        let losses: Vec<(usize, String)> =
            losses.map(|loss| (loss.device, loss.why.clone())).collect();
        losses
            .into_iter()
            .try_for_each(|(device, why)| self.lose_device(DeviceIndex(device as u32), why))
    }

    fn spoiled(&mut self, session: &Option<Session>) -> Interruption {
        if let Err(error) = self.tell_session_losses(session) {
            return error.into();
        }
        let losses = session.iter().flat_map(|session| session.losses());
        let why = losses
            .last()
            .map_or_else(String::new, |loss| loss.why.clone());
        self.begins_anew(&why)
    }

    /// Tells that what this node had is gone, and waits until all begin anew.
    fn begins_anew(&mut self, why: &str) -> Interruption {
        let why = format!("{}: {why}", self.me());
        if let Err(error) = self.tell(Event::Gone { why }) {
            return error.into();
        }
        match self.until(|_| false) {
            Err(interruption) => interruption,
            Ok(()) => Interruption::Restart,
        }
    }

    /// Waits until all nodes have begun with their units.
    fn begin_together(&mut self, round: &Round) -> Result<(), Interruption> {
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

    /// Sends what others read of the present version, and takes in what this node reads.
    fn exchange(
        &mut self,
        session: &mut Option<Session>,
        round: &Round,
        about: About,
        when: When,
    ) -> Result<(), Interruption> {
        let me = self.me().index();
        let own = on_session!(self, session, sums, when).map_err(ClusterError::from)?;
        let with_units = |node: &usize| *node != me && !round.units[*node].is_empty();
        let others: Vec<usize> = (0..round.units.len()).filter(with_units).collect();
        // At the end, nothing but sums travels.
        let is_step = when == When::Step;
        for to in &others {
            let parts = if is_step { &round.out[*to][..] } else { &[] };
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
        let sends = |from: &&usize| own.is_some() || is_step && !round.back[**from].is_empty();
        let senders: Vec<usize> = others.iter().filter(sends).copied().collect();
        let has = |node: &Self, from: &usize| {
            let key = (about, NodeId(*from as u32));
            node.bands.data.contains_key(&key)
        };
        self.until_sent(|node| senders.iter().all(|from| has(node, from)))?;
        let mut sums = Vec::new();
        for from in senders {
            let parts = if is_step { &round.back[from][..] } else { &[] };
            let own = self.take_band(session, about, from, parts)?;
            sums.push((round.units[from].clone(), own));
        }
        if own.is_some() {
            on_session!(self, session, add_up, when, &sums).map_err(ClusterError::from)?;
        }
        Ok(())
    }

    fn send_band(
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
        let mut message = encode(&Message::Band {
            attempt,
            round,
            step,
            sums: sums.len() as u64,
        })?;
        let at = message.len();
        message.extend_from_slice(sums);
        if let Some(session) = session {
            session.present(self.runtime, parts, |bytes| {
                message.extend_from_slice(bytes)
            })?;
        }
        self.record.sent_bytes += (message.len() - at) as u64;
        Ok(self.wire.send(to, message)?)
    }

    /// Takes in what a node has sent, which is here. Returns what its units sum.
    fn take_band(
        &mut self,
        session: &Option<Session>,
        about: About,
        from: usize,
        parts: &[Range<u64>],
    ) -> Result<Vec<u8>, ClusterError> {
        let from = NodeId(from as u32);
        let no_message = || ClusterError::NoMessage {
            from: from.to_string(),
        };
        let arrived = self.bands.data.remove(&(about, from));
        let (bytes, begin, end) = arrived.ok_or_else(no_message)?;
        let sums = bytes.get(begin..end).ok_or_else(no_message)?.to_vec();
        let mut rest = &bytes[end..];
        let expected: u64 = parts.iter().map(|part| part.end - part.start).sum();
        if expected != rest.len() as u64 {
            return Err(no_message());
        }
        if let Some(session) = session {
            session.present(self.runtime, parts, |to| {
                let (own, behind) = rest.split_at(to.len());
                to.copy_from_slice(own);
                rest = behind;
            })?;
        }
        self.record.received_bytes += (bytes.len() - begin) as u64;
        Ok(sums)
    }

    /// Tells this node's pace. Returns the division of the next round.
    fn compare(
        &mut self,
        round: &Round,
        pace: Pace,
        steps_left: u32,
    ) -> Result<Vec<Range<u64>>, Interruption> {
        let (attempt, number) = (self.machine.restarts(), round.number);
        let with_units: Vec<u32> = (0..)
            .zip(&round.units)
            .filter(|(_, units)| !units.is_empty())
            .map(|(node, _)| node)
            .collect();
        let speaker = NodeId(with_units.first().copied().unwrap_or(0));
        let message = Message::Pace {
            attempt,
            round: number,
            pace,
        };
        self.send(speaker, message)?;
        if speaker == self.me() {
            let key = |node: &u32| (attempt, number, NodeId(*node));
            self.until(|node| {
                with_units
                    .iter()
                    .all(|of| node.bands.paces.contains_key(&key(of)))
            })?;
            let all = 0..round.units.len() as u32;
            let paces: Vec<Option<Pace>> = all
                .map(|node| self.bands.paces.remove(&key(&node)))
                .collect();
            let next = redivided(&round.units, &paces, steps_left.into());
            let next = next.unwrap_or_else(|| round.units.clone());
            self.tell_division((attempt, number + 1), &next)?;
        }
        self.division((attempt, number + 1))
    }

    /// Sends each node what it needs to begin with the units that it gets, and takes in what
    /// this one needs. `round` has the units as they were.
    fn move_units(
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
            let arrived = self.bands.data.remove(&key);
            let Some((bytes, _, end)) = arrived else {
                continue;
            };
            let mut rest = &bytes[end..];
            for part in parts {
                let length = ((part.end - part.start) as usize).min(rest.len());
                let (own, behind) = rest.split_at(length);
                later.parts.push((part.start, own.to_vec()));
                rest = behind;
            }
            self.record.received_bytes += (bytes.len() - end) as u64;
        }
        Ok(later)
    }

    /// Keeps this node's part of the result, and notes who has the others.
    fn keep_bands(
        &mut self,
        bands: &Bands,
        session: &mut Option<Session>,
        units: Vec<Range<u64>>,
        [result, figure]: [SpaceId; 2],
    ) -> Result<(), Interruption> {
        let columns = self.spaces.extent(result).columns;
        let me = self.me().index();
        let mut speaker = true;
        for (node, units) in units
            .iter()
            .enumerate()
            .filter(|(_, units)| !units.is_empty())
        {
            let holder = NodeId(node as u32);
            let rows = (bands.rows)(units);
            let part = Part {
                space: result,
                block: Block::new(rows, 0..columns),
            };
            let mut kept = Vec::new();
            if node == me
                && let Some(session) = session.as_ref()
            {
                let row = self.spaces.extent(result).columns * self.spaces.extent(result).element;
                let bytes = part.block.rows.start * row..part.block.rows.end * row;
                let mut all = Vec::new();
                session
                    .present(self.runtime, &[bytes], |bytes| all = bytes.to_vec())
                    .map_err(ClusterError::from)?;
                kept.push((part.clone(), all));
            }
            if part.block.elements() > 0 {
                self.spaces.written(&part, holder);
            }
            // The first node with units has the figure, too, which all of them know.
            if std::mem::take(&mut speaker) {
                let part = Part {
                    space: figure,
                    block: Block::new(0..1, 0..1),
                };
                self.spaces.written(&part, holder);
                if node == me
                    && let Some(session) = session.as_ref()
                {
                    let number = session.eigenvalue().or(session.change());
                    kept.push((part, number.unwrap_or(f64::NAN).to_ne_bytes().to_vec()));
                }
            }
            for (part, bytes) in kept
                .into_iter()
                .filter(|(part, _)| part.block.elements() > 0)
            {
                let Subtasks { graph, store, .. } = &mut self.subtasks;
                store.insert_bytes(graph, self.runtime, &self.spaces, part, &bytes)?;
            }
        }
        Ok(())
    }

    /// Gives a session's memory back, and notes what the devices did.
    fn close_session(&mut self, session: Session) {
        let outcome = session.close(self.runtime);
        for step in &outcome.steps {
            for (device, part) in step.devices.iter().zip(&mut self.record.devices) {
                part.subtasks += device.chunks;
                part.seconds += device.busy_seconds;
                self.pieces_done += device.chunks;
            }
        }
        if let Some(traced) = &mut self.subtasks.traced {
            let steps = outcome.steps.len().min(traced.tasks.len());
            traced.corun(&outcome.trace, (traced.tasks.len() - steps) as u32);
        }
    }
}
