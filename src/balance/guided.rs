//! HGuided, as published for EngineCL (Nozal, Bosque, Beivide): packets that
//! shrink with the remaining work, weighted by the devices' powers:
//! `packet_i = max(min_i, floor(G_r P_i / (k_i n sum P)))`, with `G_r` the
//! remaining work, `P_i` the powers, `n` the devices and `k` = 2.
//!
//! Powers are equal at first and then measured. Devices with memory of their
//! own hold a part of what their power implies; the packets are of the rest.

use super::division::largest_remainder;
use super::{Balancer, DeviceView, Next, Setup, StepPlan, StepReport, StepState};

/// The published divisor, within its range of 1 to 4.
const K: f64 = 2.0;
/// The part of what its power implies that a device holds; the rest is left
/// to the packets, so that all can still end together.
const HELD_PART: f64 = 0.9;
/// Weight of the last step in a power.
const LAST: f64 = 0.5;
/// Relative change of a device's held units below which nothing moves.
const STEADY: f64 = 0.05;

/// The balancer. See the module's page.
#[derive(Clone, Debug)]
pub struct Guided {
    units: u64,
    devices: Vec<DeviceView>,
    alive: Vec<bool>,
    /// Units a second; `None` before anything was measured.
    powers: Vec<Option<f64>>,
    held: Option<Vec<u64>>,
}

impl Guided {
    pub fn new(setup: &Setup) -> Self {
        Self {
            units: setup.units,
            devices: setup.devices.clone(),
            alive: vec![true; setup.devices.len()],
            powers: vec![None; setup.devices.len()],
            held: None,
        }
    }

    /// A device's power; the unmeasured are as strong as the mean.
    fn power(&self, device: usize) -> f64 {
        if !self.alive[device] {
            return 0.0;
        }
        self.powers[device].unwrap_or_else(|| {
            let known = || self.powers.iter().flatten();
            match known().count() {
                0 => 1.0,
                count => known().sum::<f64>() / count as f64,
            }
        })
    }

    fn total_power(&self) -> f64 {
        (0..self.devices.len()).map(|d| self.power(d)).sum()
    }

    /// What each device should hold by its power.
    fn implied(&self) -> Vec<u64> {
        let powers: Vec<f64> = (0..self.devices.len()).map(|d| self.power(d)).collect();
        (largest_remainder(self.units, &powers)
            .iter()
            .zip(&self.devices))
        .map(|(count, device)| {
            let held = (*count as f64 * HELD_PART).floor() as u64;
            held.min(device.capacity.unwrap_or(0))
        })
        .collect()
    }

    fn is_steady(&self, held: &[u64], implied: &[u64]) -> bool {
        (held.iter().zip(implied).zip(&self.alive)).all(|((held, implied), alive)| {
            let moved = held.abs_diff(*implied) as f64;
            (*alive || *held == 0) && moved <= STEADY * self.units as f64
        })
    }
}

impl Balancer for Guided {
    fn name(&self) -> String {
        "guided".to_owned()
    }

    fn plan(&mut self, _step: u32) -> StepPlan {
        let implied = self.implied();
        let held = match self.held.take() {
            Some(held) if self.is_steady(&held, &implied) => held,
            _ => implied,
        };
        self.held = Some(held.clone());
        let pool = self.units - held.iter().sum::<u64>();
        let powers: Vec<f64> = (0..self.devices.len()).map(|d| self.power(d)).collect();
        let pooled = largest_remainder(pool, &powers);
        StepPlan { held, pooled }
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        let left: u64 = state.left.iter().sum();
        if left == 0 || !self.alive[device] {
            return Next::Done;
        }
        let part = self.power(device) / (K * self.devices.len() as f64 * self.total_power());
        let packet = (left as f64 * part).floor() as u64;
        Next::Take(packet.max(self.devices[device].min_chunk).clamp(1, left))
    }

    fn step_ended(&mut self, report: &StepReport) {
        for (power, did) in self.powers.iter_mut().zip(&report.devices) {
            let busy = did.held_busy.max(did.pooled_busy).max(1);
            let units = did.held + did.pooled;
            if units == 0 {
                continue;
            }
            let measured = units as f64 * 1e9 / busy as f64;
            *power = Some(power.map_or(measured, |old| old + LAST * (measured - old)));
        }
    }

    fn lost(&mut self, device: usize) {
        self.alive[device] = false;
        if let Some(held) = &mut self.held {
            held[device] = 0;
        }
    }
}
