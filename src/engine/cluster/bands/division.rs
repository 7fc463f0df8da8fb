//! The division of units among nodes: by what they have reported of their devices, and then by
//! what they have measured.

use std::ops::Range;

use super::mail::Round;
use crate::balance::bands::{Pace, divided, redivided, taking_part};
use crate::cluster::ClusterError;
use crate::cluster::node::{Interruption, Node};
use crate::spread::Network;
use crate::workload::cluster::Bands;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::NodeInfo;
use pdawl_core::cluster::protocol::Message;

/// Nodes are expected to be so many times as fast as they turn out to be: what they tell are peaks.
const OPTIMISTIC: f64 = 2.0;
/// The part of a message's round trip for which its driver and its receiver's are busy.
const MESSAGE: f64 = 0.25;

/// The division by what nodes have reported of their devices. Those are left out that do not work,
/// and on a network of which something is known those that do not gain what they exchange; a note
/// says so.
pub(in crate::cluster) fn first_division<'n>(
    bands: &Bands,
    nodes: impl IntoIterator<Item = &'n NodeInfo>,
    working: &[Vec<bool>],
    network: Option<Network>,
) -> (Vec<Range<u64>>, Option<String>) {
    let units = bands.workload.units();
    let cost = bands.workload.cost(&(0..units));
    let slower = OPTIMISTIC * f64::from(bands.supersteps.size());
    let speeds = nodes.into_iter().zip(working).map(|(node, working)| {
        let devices = node
            .devices
            .iter()
            .zip(working)
            .filter(|(_, works)| **works);
        let seconds = devices.map(|(device, _)| device.seconds(cost, 0.0));
        seconds.map(|seconds| 1.0 / (slower * seconds)).sum()
    });
    let speeds: Vec<f64> = speeds.collect();
    if !speeds.iter().all(|speed: &f64| speed.is_finite()) {
        // Devices of which nothing is known are alike.
        let alike = speeds.iter().map(|speed| f64::from(u8::from(*speed > 0.0)));
        return (divided(units, &alike.collect::<Vec<_>>()), None);
    }
    let exchanging = |network: Network, nodes: usize| {
        let (bytes, others) = bands.received(nodes as u64);
        let trips = 0.5 + MESSAGE * others as f64;
        match others {
            0 => 0.0,
            _ => bytes / network.bandwidth + trips * network.round_trip as f64 * 1e-9,
        }
    };
    let part = network.and_then(|network| taking_part(&speeds, |n| exchanging(network, n)));
    let Some((part, [seconds, of_all])) = part.filter(|(part, _)| *part != speeds) else {
        return (divided(units, &speeds), None);
    };
    let count = part.iter().filter(|speed| **speed > 0.0).count();
    let note = format!(
        "{count} of {} nodes take part: a step is expected to take {:.3} ms, {:.3} ms on all",
        speeds.len(),
        1e3 * seconds,
        1e3 * of_all
    );
    (divided(units, &part), Some(note))
}

impl Node<'_> {
    /// Whether this node is the first one with units, which decides about the next rounds.
    pub(super) fn speaks(&self, units: &[Range<u64>]) -> bool {
        units.iter().position(|units| !units.is_empty()) == Some(self.me().index())
    }

    pub(super) fn tell_division(
        &mut self,
        (attempt, round): (u64, u32),
        units: &[Range<u64>],
    ) -> Result<(), ClusterError> {
        for to in (0..self.size()).map(NodeId) {
            // Who has no units takes part in no further round.
            let has_units = !units[to.index()].is_empty();
            if !self.lost[to.index()] && (round == 0 || has_units) {
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

    pub(super) fn division(&mut self, of: (u64, u32)) -> Result<Vec<Range<u64>>, Interruption> {
        self.until(|node| node.bands.divisions.contains_key(&of))?;
        Ok(self.bands.divisions.remove(&of).unwrap_or_default())
    }

    /// Tells this node's pace. Returns the division of the next round.
    pub(super) fn compare(
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
}
