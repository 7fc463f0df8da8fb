//! HGuided, as published for EngineCL (Nozal, Bosque, Beivide): packets that
//! shrink with the remaining work, weighted by the devices' powers:
//! `packet_i = max(min_i, floor(G_r P_i / (k_i n sum P)))`, with `G_r` the
//! remaining work, `P_i` the powers, `n` the devices and `k` = 2.
//!
//! Powers come from probes where the engine ran some (EngineCL takes them as
//! input), else they are equal at first. Then they are measured and smoothed over
//! steps. Devices with their own memory hold a part of what their power on held
//! units implies. The packets are cut from the rest, the pool, and weighted by the
//! powers measured on the pool: a GPU is slower on streamed units than on held ones.

use super::{Balancer, DeviceView, Next, Probe, ProbeKind, Setup, StepPlan, StepReport, StepState};
use crate::balance::apportion::largest_remainder;
use crate::time::Nanos;

/// The published divisor, within its range of 1 to 4.
const K: f64 = 2.0;
/// The part of the units implied by its power that a device holds. The packets
/// share the rest, so that all devices can still finish together.
const HELD_PART: f64 = 0.9;
/// Weight of the last step in a power.
const LAST: f64 = 0.5;
/// Relative change of a device's held units below which nothing moves.
const STEADY: f64 = 0.05;

/// Units a second, smoothed; `None` before anything was measured.
type Power = Option<f64>;

/// The balancer. See the module's page.
#[derive(Clone, Debug)]
pub struct Guided {
    units: u64,
    devices: Vec<DeviceView>,
    alive: Vec<bool>,
    /// On held units, or on the pool for a device that computes on host memory.
    local: Vec<Power>,
    /// On pool units, of which packets consist.
    pool: Vec<Power>,
    held: Option<Vec<u64>>,
}

impl Guided {
    pub fn new(setup: &Setup) -> Self {
        let count = setup.devices.len();
        Self {
            units: setup.units,
            devices: setup.devices.clone(),
            alive: vec![true; count],
            local: vec![None; count],
            pool: vec![None; count],
            held: None,
        }
    }

    /// A device's power on the pool; the mean of the others where unmeasured.
    fn pool_power(&self, device: usize) -> f64 {
        if !self.alive[device] {
            return 0.0;
        }
        self.pool[device].unwrap_or_else(|| mean(&self.pool))
    }

    fn pool_powers(&self) -> Vec<f64> {
        (0..self.devices.len())
            .map(|d| self.pool_power(d))
            .collect()
    }

    /// The units that each device should hold by its power.
    fn implied(&self) -> Vec<u64> {
        let powers: Vec<f64> = (self.local.iter().zip(&self.alive))
            .map(|(local, alive)| match alive {
                true => local.unwrap_or_else(|| mean(&self.local)),
                false => 0.0,
            })
            .collect();
        let counts = largest_remainder(self.units, &powers);
        (counts.iter().zip(&self.devices))
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

    fn wants_probes(&self) -> bool {
        true
    }

    fn probed(&mut self, probe: &Probe) {
        let power = Some(probe.units as f64 / probe.seconds);
        match probe.kind {
            ProbeKind::Held => self.local[probe.device] = power,
            ProbeKind::Streamed | ProbeKind::Beside => self.pool[probe.device] = power,
            ProbeKind::Alone => {
                self.local[probe.device] = power;
                self.pool[probe.device] = power;
            }
        }
    }

    fn plan(&mut self, _step: u32) -> StepPlan {
        let implied = self.implied();
        let held = match self.held.take() {
            Some(held) if self.is_steady(&held, &implied) => held,
            _ => implied,
        };
        self.held = Some(held.clone());
        let pool = self.units - held.iter().sum::<u64>();
        let pooled = largest_remainder(pool, &self.pool_powers());
        StepPlan { held, pooled }
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        let left: u64 = state.left.iter().sum();
        if left == 0 || !self.alive[device] {
            return Next::Done;
        }
        let total: f64 = (0..self.devices.len()).map(|d| self.pool_power(d)).sum();
        let part = self.pool_power(device) / (K * self.devices.len() as f64 * total);
        let packet = (left as f64 * part).floor() as u64;
        Next::Take(packet.max(self.devices[device].min_chunk).clamp(1, left))
    }

    fn step_ended(&mut self, report: &StepReport) {
        for (d, did) in report.devices.iter().enumerate() {
            learn(&mut self.pool[d], did.pooled, did.pooled_busy);
            match self.devices[d].capacity {
                Some(_) => learn(&mut self.local[d], did.held, did.held_busy),
                None => self.local[d] = self.pool[d],
            }
        }
    }

    fn lost(&mut self, device: usize) {
        self.alive[device] = false;
        if let Some(held) = &mut self.held {
            held[device] = 0;
        }
    }

    fn returned(&mut self, device: usize, _step: u32) {
        self.alive[device] = true;
        self.held = None;
    }
}

/// Updates a power: `units` took `busy` nanoseconds.
fn learn(power: &mut Power, units: u64, busy: Nanos) {
    if units > 0 && busy > 0 {
        let measured = units as f64 * 1e9 / busy as f64;
        *power = Some(power.map_or(measured, |old| old + LAST * (measured - old)));
    }
}

/// The mean of the known powers; 1 where none is known.
fn mean(powers: &[Power]) -> f64 {
    let known = || powers.iter().flatten();
    match known().count() {
        0 => 1.0,
        count => known().sum::<f64>() / count as f64,
    }
}
