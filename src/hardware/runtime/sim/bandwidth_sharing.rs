//! How running commands share bandwidth and compute: the fluid model of all simulated things,
//! be they commands on devices or transfers between the nodes of a cluster.
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
//!
//! Rates are computed again where flows touch: in the set of flows that resources connect with
//! the ones that begin or end. So a thousand nodes that compute by themselves cost no more than
//! one.

mod filling;

use std::collections::BTreeSet;

use crate::runtime::IdMap;
use crate::time::Nanos;

pub use filling::Filling;

/// A resource of a [`Fluid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource(usize);

impl Resource {
    /// Its position among the resources, in the order of their making.
    pub fn index(self) -> usize {
        self.0
    }
}

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

/// The owner's name of a flow. Names of running flows differ.
pub type FlowKey = u64;

#[derive(Clone, Debug)]
struct Flow {
    key: FlowKey,
    /// Flows that start later have greater numbers.
    number: u64,
    uses: Vec<Use>,
    /// Fraction that was still to be done at `since`.
    left: f64,
    since: Nanos,
    /// Progress a second, and what it would be if the flow were alone.
    rate: f64,
    alone: f64,
    /// When it ends, if nothing changes.
    end: Option<Nanos>,
}

impl Flow {
    /// Gives it a rate from now on.
    fn set_rate(&mut self, rate: f64, now: Nanos) {
        self.left -= self.rate * (now - self.since) as f64 * 1e-9;
        self.since = now;
        self.rate = rate;
        let ns = self.left.max(0.0) / rate * 1e9;
        self.end = (ns < NEVER).then(|| now + (ns - SLACK).ceil().max(0.0) as Nanos);
    }
}

#[derive(Clone, Debug)]
struct Shared {
    capacity: f64,
    /// Positions of the flows that use it.
    flows: Vec<usize>,
    /// What these take of it a second, each as if it were alone.
    demand: f64,
    /// What all flows that have begun need of it.
    begun: f64,
    /// Whether its flows may have other rates by now.
    is_stale: bool,
}

/// Resources, and the flows that share them.
#[derive(Clone, Debug, Default)]
pub struct Fluid {
    now: Nanos,
    resources: Vec<Shared>,
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    started: u64,
    positions: IdMap<FlowKey, usize>,
    /// When each flow ends, its number and its position.
    ends: BTreeSet<(Nanos, u64, usize)>,
    stale: Vec<usize>,
    scratch: Scratch,
}

/// Fraction of a nanosecond that is ignored, against rounding.
const SLACK: f64 = 1e-6;

/// Nanoseconds from which on nothing ends.
const NEVER: f64 = 1e18;

/// Flows of a connected set beyond which only those on the same resources as the changed one
/// are regarded, each with the part of them that it would have if nothing else limited their
/// flows. That is exact where a resource limits all of its flows, and too low where some are
/// limited elsewhere. The exact rates of a thousand nodes that all send to each other would
/// take longer than the run that is simulated.
const EXACT: usize = 256;

/// Beyond [`EXACT`], a rate stays as it is until it is wrong by this part: resources with
/// thousands of flows would otherwise change all of them with each one that begins.
const INEXACT: f64 = 0.01;

/// What is used again and again while rates are computed.
#[derive(Clone, Debug, Default)]
struct Scratch {
    flows: Met,
    resources: Met,
    /// The flows and resources of a connected set.
    connected: (Vec<usize>, Vec<usize>),
    filling: Filling,
    rates: Vec<(usize, f64)>,
}

/// Numbers that were met in this round, each with the order in which it was. A new round
/// forgets all of them at once.
#[derive(Clone, Debug, Default)]
struct Met {
    round: u64,
    /// By number: the last round in which it was met, and its place then.
    last: Vec<(u64, usize)>,
}

impl Met {
    /// Begins a round with numbers below `count`.
    fn begin(&mut self, count: usize) {
        self.round += 1;
        self.last.resize(count.max(self.last.len()), (0, 0));
    }

    /// Whether a number is met for the first time; it then gets this place.
    fn insert(&mut self, number: usize, place: usize) -> bool {
        let is_first = self.last[number].0 != self.round;
        if is_first {
            self.last[number] = (self.round, place);
        }
        is_first
    }

    fn place(&self, number: usize) -> usize {
        self.last[number].1
    }
}

impl Fluid {
    /// A new resource with this capacity a second.
    pub fn resource(&mut self, capacity: f64) -> Resource {
        self.resources.push(Shared {
            capacity,
            flows: Vec::new(),
            demand: 0.0,
            begun: 0.0,
            is_stale: false,
        });
        Resource(self.resources.len() - 1)
    }

    /// Changes a resource's capacity from now on.
    pub fn set_capacity(&mut self, resource: Resource, capacity: f64) {
        let of = resource.0;
        if self.resources[of].capacity == capacity {
            return;
        }
        self.resources[of].capacity = capacity;
        for place in 0..self.resources[of].flows.len() {
            let position = self.resources[of].flows[place];
            let Some(flow) = &mut self.flows[position] else {
                continue;
            };
            let before = std::mem::replace(&mut flow.alone, alone(&flow.uses, &self.resources));
            for used in &flow.uses {
                let more = used.amount * (flow.alone - before);
                self.resources[used.resource.0].demand += more;
            }
        }
        self.touch(of);
    }

    /// Seconds that a resource needs for all flows that have begun.
    pub fn seconds(&self, resource: Resource) -> f64 {
        let of = &self.resources[resource.0];
        of.begun / of.capacity
    }

    /// Starts a flow. One that needs nothing ends at once.
    pub fn start(&mut self, key: FlowKey, mut uses: Vec<Use>) {
        uses.retain(|used| used.amount > 0.0);
        let position = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() - 1
        });
        let alone = alone(&uses, &self.resources);
        for used in &uses {
            let of = &mut self.resources[used.resource.0];
            of.flows.push(position);
            of.demand += used.amount * alone;
            of.begun += used.amount;
        }
        for used in &uses {
            self.touch(used.resource.0);
        }
        let end = uses.is_empty().then_some(self.now);
        self.ends
            .extend(end.map(|end| (end, self.started, position)));
        self.positions.insert(key, position);
        self.flows[position] = Some(Flow {
            key,
            number: self.started,
            uses,
            left: 1.0,
            since: self.now,
            rate: 0.0,
            alone,
            end,
        });
        self.started += 1;
    }

    /// Removes a flow before its end, if it is there.
    pub fn stop(&mut self, key: FlowKey) {
        if let Some(position) = self.positions.remove(&key) {
            self.remove(position);
        }
    }

    /// Takes a flow out.
    fn remove(&mut self, position: usize) {
        let Some(flow) = self.flows[position].take() else {
            return;
        };
        self.free.push(position);
        if let Some(end) = flow.end {
            self.ends.remove(&(end, flow.number, position));
        }
        for used in &flow.uses {
            let of = &mut self.resources[used.resource.0];
            if let Some(place) = of.flows.iter().position(|other| *other == position) {
                of.flows.swap_remove(place);
            }
            of.demand -= used.amount * flow.alone;
            if of.flows.is_empty() {
                // What rounding has left of the sum.
                of.demand = 0.0;
            }
            self.touch(used.resource.0);
        }
    }

    /// The flows of a resource may have other rates from now on.
    fn touch(&mut self, resource: usize) {
        if !std::mem::replace(&mut self.resources[resource].is_stale, true) {
            self.stale.push(resource);
        }
    }

    /// Nanoseconds until the next flow ends, if one will.
    pub fn next_end(&mut self) -> Option<Nanos> {
        self.share();
        self.ends.first().map(|(at, ..)| at - self.now)
    }

    /// Lets `ns` pass, which is at most [`Self::next_end`], and returns the
    /// flows that ended, in the order of their start.
    pub fn advance(&mut self, ns: Nanos) -> Vec<FlowKey> {
        self.share();
        self.now += ns;
        let mut ended = Vec::new();
        while let Some(&(at, _, position)) = self.ends.first() {
            if at > self.now {
                break;
            }
            self.ends.pop_first();
            if let Some(flow) = &mut self.flows[position] {
                flow.end = None;
                ended.push(flow.key);
                self.positions.remove(&flow.key);
            }
            self.remove(position);
        }
        ended
    }

    /// Sets the rates that are out of date.
    fn share(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        let mut stale = std::mem::take(&mut self.stale);
        let mut scratch = std::mem::take(&mut self.scratch);
        for &resource in &stale {
            // Another one has led to it before.
            if !self.resources[resource].is_stale {
                continue;
            }
            let allowed = match self.connect(resource, &mut scratch) {
                true => {
                    self.fair(&mut scratch);
                    0.0
                }
                false => {
                    self.resources[resource].is_stale = false;
                    self.equal(resource, &mut scratch.rates);
                    INEXACT
                }
            };
            for (position, rate) in scratch.rates.drain(..) {
                self.set_rate(position, rate, allowed);
            }
        }
        stale.clear();
        self.stale = stale;
        self.scratch = scratch;
    }

    /// Gives a flow a rate, unless the one that it has differs by no more than a part.
    fn set_rate(&mut self, position: usize, rate: f64, allowed: f64) {
        let Some(flow) = &mut self.flows[position] else {
            return;
        };
        if (flow.rate - rate).abs() <= allowed * flow.rate && flow.end.is_some() {
            return;
        }
        let before = flow.end;
        flow.set_rate(rate, self.now);
        if before == flow.end {
            return;
        }
        if let Some(end) = before {
            self.ends.remove(&(end, flow.number, position));
        }
        if let Some(end) = flow.end {
            self.ends.insert((end, flow.number, position));
        }
    }

    /// Finds the flows that are connected with a resource, and their resources. False if there
    /// are too many.
    fn connect(&mut self, resource: usize, scratch: &mut Scratch) -> bool {
        let (flows, resources) = &mut scratch.connected;
        flows.clear();
        resources.clear();
        scratch.flows.begin(self.flows.len());
        scratch.resources.begin(self.resources.len());
        scratch.resources.insert(resource, 0);
        resources.push(resource);
        let mut next = 0;
        while next < resources.len() {
            let of = &self.resources[resources[next]];
            if of.flows.len() > EXACT {
                return false;
            }
            for &position in &of.flows {
                if !scratch.flows.insert(position, flows.len()) {
                    continue;
                }
                flows.push(position);
                if flows.len() > EXACT {
                    return false;
                }
                for used in self.flows[position].iter().flat_map(|flow| &flow.uses) {
                    if scratch.resources.insert(used.resource.0, resources.len()) {
                        resources.push(used.resource.0);
                    }
                }
            }
            next += 1;
        }
        for &resource in &*resources {
            self.resources[resource].is_stale = false;
        }
        true
    }

    /// Max-min fair rates of the connected flows.
    fn fair(&self, scratch: &mut Scratch) {
        let Scratch {
            resources: met,
            connected: (flows, resources),
            filling,
            rates,
            ..
        } = scratch;
        filling.clear();
        for &resource in &*resources {
            filling.resource(self.resources[resource].capacity);
        }
        for flow in flows.iter().filter_map(|of| self.flows[*of].as_ref()) {
            let demands = flow.uses.iter();
            let alone = flow.alone;
            let demands = demands.map(|used| (met.place(used.resource.0), used.amount * alone));
            filling.flow(demands);
        }
        let shares = filling.fill();
        rates.extend(flows.iter().zip(shares).filter_map(|(position, share)| {
            let flow = self.flows[*position].as_ref()?;
            Some((*position, share * flow.alone))
        }));
    }

    /// Rates of a resource's flows, of which each slows by the greatest factor that the demand
    /// for one of its resources wants.
    fn equal(&self, resource: usize, rates: &mut Vec<(usize, f64)>) {
        let share = |used: &Use| {
            let of = &self.resources[used.resource.0];
            of.capacity / of.demand
        };
        for &position in &self.resources[resource].flows {
            if let Some(flow) = &self.flows[position] {
                let share = flow.uses.iter().map(share).fold(1.0, f64::min);
                rates.push((position, share * flow.alone));
            }
        }
    }
}

/// The progress a second of a flow that is alone.
fn alone(uses: &[Use], resources: &[Shared]) -> f64 {
    let rate = |used: &Use| resources[used.resource.0].capacity * used.most / used.amount;
    uses.iter().map(rate).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
