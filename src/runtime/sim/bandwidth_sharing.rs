//! How running commands share bandwidth and compute: the simulator's fluid model.
//!
//! A *resource* has a capacity a second (bytes, or seconds of a whole device).
//! A *flow* is a running command: for each resource that it uses, the amount
//! that it needs until it is done. It progresses at one rate on all of them.
//!
//! Rates are max-min fair in each flow's *dominant share*: the largest
//! fraction of any resource that it takes, in units of what it would take if
//! it ran alone. Progressive filling raises the share of all flows together
//! until a resource is full, freezes that resource's users, and continues with
//! the others. Flows that meet on a full resource therefore slow by the same
//! factor, whatever their speed alone: a kernel of all cores keeps more of the
//! host's memory than a transfer does, since it has more requests in flight.
//! Equal bytes for both would favour the transfer. (Dominant shares: Ghodsi et
//! al., Dominant Resource Fairness, NSDI 2011.)

use crate::time::Nanos;

/// A resource of a [`Fluid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource(usize);

/// How much of a resource a flow needs until it is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    pub resource: Resource,
    pub amount: f64,
    /// The greatest fraction of the resource that the flow can use, above 0 and at
    /// most 1.
    pub most: f64,
}

impl Use {
    /// Use of up to the whole resource.
    pub fn of(resource: Resource, amount: f64) -> Self {
        Self {
            resource,
            amount,
            most: 1.0,
        }
    }
}

/// The owner's name of a flow.
pub type FlowKey = u64;

#[derive(Clone, Debug)]
struct Flow {
    key: FlowKey,
    uses: Vec<Use>,
    /// Fraction still to be done.
    left: f64,
    /// Progress a second.
    rate: f64,
}

/// Resources, and the flows that share them.
#[derive(Clone, Debug, Default)]
pub struct Fluid {
    capacities: Vec<f64>,
    flows: Vec<Flow>,
    /// Whether rates are out of date.
    stale: bool,
}

/// Fraction of a nanosecond that is ignored, against rounding.
const SLACK: f64 = 1e-6;

impl Fluid {
    /// A new resource with this capacity a second.
    pub fn resource(&mut self, capacity: f64) -> Resource {
        self.capacities.push(capacity);
        Resource(self.capacities.len() - 1)
    }

    /// Changes a resource's capacity from now on.
    pub fn set_capacity(&mut self, resource: Resource, capacity: f64) {
        self.capacities[resource.0] = capacity;
        self.stale = true;
    }

    /// Starts a flow. One that needs nothing ends at once.
    pub fn start(&mut self, key: FlowKey, uses: Vec<Use>) {
        self.flows.push(Flow {
            key,
            uses: uses.into_iter().filter(|u| u.amount > 0.0).collect(),
            left: 1.0,
            rate: 0.0,
        });
        self.stale = true;
    }

    /// Removes a flow before its end.
    pub fn stop(&mut self, key: FlowKey) {
        self.flows.retain(|f| f.key != key);
        self.stale = true;
    }

    /// The flows, in the order of their start.
    pub fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.flows.iter().map(|f| f.key)
    }

    /// Nanoseconds until the next flow ends, if one will.
    pub fn next_end(&mut self) -> Option<Nanos> {
        self.share();
        self.flows
            .iter()
            .map(|f| f.left / f.rate * 1e9)
            .min_by(f64::total_cmp)
            .filter(|ns| *ns < 1e18)
            .map(|ns| (ns - SLACK).ceil().max(0.0) as Nanos)
    }

    /// Lets `ns` pass, which is at most [`Self::next_end`], and returns the
    /// flows that ended, in the order of their start.
    pub fn advance(&mut self, ns: Nanos) -> Vec<FlowKey> {
        self.share();
        let seconds = ns as f64 * 1e-9;
        let mut ended = Vec::new();
        self.flows.retain_mut(|f| {
            if f.rate.is_finite() {
                f.left -= f.rate * seconds;
            } else {
                f.left = 0.0;
            }
            let done = f.left <= f.rate.min(f64::MAX) * SLACK * 1e-9;
            if done {
                ended.push(f.key);
            }
            !done
        });
        self.stale |= !ended.is_empty();
        ended
    }

    /// Sets the rates, by progressive filling.
    fn share(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let alone: Vec<f64> = self
            .flows
            .iter()
            .map(|f| {
                f.uses
                    .iter()
                    .map(|u| self.capacities[u.resource.0] * u.most / u.amount)
                    .fold(f64::INFINITY, f64::min)
            })
            .collect();
        let mut free = self.capacities.clone();
        let mut open: Vec<usize> = (0..self.flows.len()).collect();
        // The demand of all open flows for each resource if each ran alone.
        let mut wanted = vec![0.0; free.len()];
        while !open.is_empty() {
            wanted.fill(0.0);
            for &i in &open {
                for u in &self.flows[i].uses {
                    wanted[u.resource.0] += u.amount * alone[i];
                }
            }
            let level = (0..free.len())
                .filter(|&r| wanted[r] > 0.0)
                .map(|r| free[r].max(0.0) / wanted[r])
                .fold(1.0, f64::min);
            let full: Vec<bool> = (0..free.len())
                .map(|r| wanted[r] > 0.0 && free[r].max(0.0) / wanted[r] <= level * (1.0 + 1e-12))
                .collect();
            open.retain(|&i| {
                let flow = &mut self.flows[i];
                let frozen = level >= 1.0 || flow.uses.iter().any(|u| full[u.resource.0]);
                if frozen {
                    flow.rate = level * alone[i];
                    for u in &flow.uses {
                        free[u.resource.0] -= u.amount * flow.rate;
                    }
                }
                !frozen
            });
        }
    }

    /// Progress a second of every flow, in the order of their start.
    #[cfg(test)]
    pub fn rates(&mut self) -> Vec<f64> {
        self.share();
        self.flows.iter().map(|f| f.rate).collect()
    }
}

#[cfg(test)]
mod tests;
