//! The division of units among nodes: by what they have reported of their devices, and then by
//! what they have measured.

use std::ops::Range;

use super::mail::Round;
use crate::balance::bands::{Pace, divided, redivided};
use crate::cluster::ClusterError;
use crate::cluster::node::{Interruption, Node};
use crate::workload::Divisible;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::NodeInfo;
use pdawl_core::cluster::protocol::Message;

/// The division by what nodes have reported of their devices, those left out that do not work.
pub(in crate::cluster) fn first_division<'n>(
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
