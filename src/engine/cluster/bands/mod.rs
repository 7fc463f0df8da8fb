//! A co-run over nodes: each has a run of neighbouring units, which its devices share as on
//! one machine ([`Session`]). After each step, nodes send each other what they read of the
//! others' units, and what all of them add up (`mail`). From time to time they compare
//! their paces, and divide the units anew where that pays (`division`). A loss makes all begin
//! anew: the first version is known, and later ones need what the lost device had.

mod division;
mod mail;
mod opened;

use std::ops::Range;
use std::time::Instant;

use self::mail::Round;
use super::ClusterError;
use super::node::{Interruption, Node};
use super::subtasks::Subtasks;
use crate::balance::bands::{Pace, is_compared};
use crate::corun::When;
use crate::corun::session::Session;
use crate::workload::cluster::Bands;
use crate::workload::ends;
pub(super) use division::first_division;
pub(super) use mail::BandMail;
use mail::{About, ENDS};
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::space::{Block, SpaceBlock, SpaceId};

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
use on_session;

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
            let network = self.leaves_out;
            let (nodes, working) = (self.machine.nodes(), self.machine.working());
            let (units, note) = first_division(bands, nodes, working, network);
            self.record.notes.extend(note);
            self.tell_division((attempt, 0), &units)?;
        }
        let units = self.division((attempt, 0))?;
        if units[me.index()].is_empty() {
            let began = Instant::now();
            self.until(|node| node.bands.ended.contains_key(&attempt))?;
            self.steps_took = began.elapsed();
            return Ok(self.bands.ended.remove(&attempt).unwrap_or_default());
        }
        let mut set_up = self.open_session(bands, session, &units, bands.supersteps, None)?;
        let mut round = match session {
            Some(session) => Round::new(0, units, session, me),
            None => return Err(Interruption::Restart),
        };
        self.begin_together(&round)?;
        let began = Instant::now();
        let supersteps = bands.supersteps;
        let steps = supersteps.count();
        let (mut step, mut took) = (0, Vec::new());
        while step < steps {
            took.push(self.step(session, bands.workload.name())?);
            let about = About {
                attempt,
                round: round.number,
                step,
            };
            step += 1;
            let travel = step < steps;
            self.exchange(session, &round, about, (When::Step, travel))?;
            let now = self.now();
            if let Some(traced) = &mut self.subtasks.traced {
                traced.end(now);
            }
            progress(supersteps.done(step).into());
            let change = session.as_ref().and_then(Session::change);
            if bands
                .tolerance
                .zip(change)
                .is_some_and(|(most, change)| ends(change, most))
            {
                break;
            }
            let others = round.units.iter().filter(|units| !units.is_empty()).count() > 1;
            if others && step < steps && is_compared(step.into()) {
                let pace = Pace::of(&std::mem::take(&mut took), set_up);
                let left = supersteps.after(step);
                let next = self.compare(&round, pace, left.count())?;
                round.number += 1;
                if next != round.units {
                    if self.speaks(&next) {
                        let note = format!(
                            "the nodes divided the units anew after {} steps",
                            supersteps.done(step)
                        );
                        self.record.notes.push(note);
                    }
                    let later = self.move_units(session, &round, &next)?;
                    if let Some(session) = session.take() {
                        self.close_session(session);
                    }
                    set_up = self.open_session(bands, session, &next, left, Some(&later))?;
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
        self.exchange(session, &round, about, (When::End, false))?;
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
                    steps: supersteps.done(step),
                    units: round.units.clone(),
                };
                self.send(to, message)?;
            }
        }
        Ok((supersteps.done(step), round.units))
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
            let part = SpaceBlock {
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
                let part = SpaceBlock {
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
}
