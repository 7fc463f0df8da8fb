//! How fast nodes and the links between them are, when they will have finished, and which of their
//! devices are late.

use std::collections::HashMap;

use crate::cluster::NodeId;
use crate::time::Nanos;

use super::data::Missing;
use super::rate::Rates;
use super::state::Network;
use super::{Finished, Next, TaskState};

/// Subtasks that a device should have in its node's queue beside those on it, so that
/// their data arrive while it computes.
const AHEAD: f64 = 2.0;

/// How many times as much work as its devices need a node may have, so that its link is busy.
const LINKED: f64 = 8.0;

/// How many times as late a subtask will be as it is now. Times vary a little, so what is
/// just late is expected soon; what is late by a third would better be done elsewhere.
const LATER: f64 = 4.0;

/// The part of a subtask's time after which a policy looks again whether somebody is late.
const LOOK: f64 = 0.5;

/// A policy does not look more often, which would cost more than it could gain.
const LEAST_LOOK: Nanos = 1_000_000;

#[derive(Clone)]
struct Device {
    rates: Rates,
    /// The kind of subtasks that are most of the work.
    main: usize,
    depth: usize,
    /// Since when it computes the subtask that it will report next, if that is known. A
    /// device that waits for data is not late.
    since: Option<Nanos>,
    /// The weight of the greatest subtask that it may compute now, but at least 1.
    weight: f64,
    /// Whether it has reported that its node has nothing for it.
    idle: bool,
}

impl Device {
    fn busy(&self, now: Nanos) -> f64 {
        match self.since {
            Some(since) if !self.idle => now.saturating_sub(since) as f64 * 1e-9,
            _ => 0.0,
        }
    }

    fn seconds(&self, now: Nanos) -> f64 {
        // Nothing is known of a device without a description: all are alike.
        let known = |seconds: f64| if seconds > 0.0 { seconds } else { 1.0 };
        known(
            self.rates
                .of(self.main)
                .seconds_at_least(self.busy(now), self.weight),
        )
    }
}

/// What is known of all nodes' devices.
#[derive(Clone, Default)]
pub struct Paces {
    /// The names of the kinds of subtasks.
    kinds: Vec<String>,
    /// What each device's description was corrected by for subtasks of a name.
    learned: HashMap<String, Vec<Vec<f64>>>,
    nodes: Vec<Vec<Device>>,
    /// Work a second of each node, and of all.
    paces: Vec<f64>,
    all: f64,
    /// When the policy is woken next.
    wake: Nanos,
    /// When something was reported last in this task.
    last: Nanos,
}

impl Paces {
    /// A task or a chain begins. Devices are as fast as they were in the last task of a name,
    /// or, in the first one, as their descriptions say.
    pub fn begin(&mut self, state: &TaskState) {
        let last = self.last;
        for (kind, name) in std::mem::take(&mut self.kinds).into_iter().enumerate() {
            let correction = |d: &Device| {
                let busy = if kind == d.main { d.busy(last) } else { 0.0 };
                d.rates.of(kind).correction(busy, d.weight)
            };
            let corrections = |node: &Vec<Device>| node.iter().map(correction).collect();
            let learned = self.nodes.iter().map(corrections).collect();
            self.learned.insert(name, learned);
        }
        let kinds = state.kinds();
        self.kinds = kinds.names().map(str::to_owned).collect();
        let learned: Vec<_> = (self.kinds.iter())
            .map(|name| self.learned.get(name))
            .collect();
        let correction = |node: usize, device: usize, kind: usize| {
            let known = learned[kind].and_then(|nodes| nodes.get(node)?.get(device));
            known.copied().unwrap_or(1.0)
        };
        let nodes = state.nodes().iter().enumerate().map(|(node, info)| {
            let devices = info
                .devices
                .iter()
                .enumerate()
                .map(|(index, device)| Device {
                    rates: Rates::new(device, kinds)
                        .corrected(|kind| correction(node, index, kind)),
                    main: kinds.main(),
                    depth: device.depth.max(1) as usize,
                    since: None,
                    weight: 1.0,
                    idle: true,
                });
            devices.collect()
        });
        self.nodes = nodes.collect();
        self.paces = vec![0.0; state.nodes().len()];
        self.wake = 0;
        self.look(state);
    }

    /// Takes into account who is late now, and who is lost.
    pub fn look(&mut self, state: &TaskState) {
        self.last = state.now();
        for node in 0..self.nodes.len() {
            self.note(NodeId(node as u32), state);
        }
        self.all = self.paces.iter().sum();
    }

    /// Has the policy woken when it should look again, unless it will be.
    pub fn wake(&mut self, state: &mut TaskState) {
        let now = state.now();
        let fastest = self.fastest(state);
        if state.ledger().open() > 0 && self.wake <= now && fastest.is_finite() {
            let wait = (fastest * LOOK * 1e9) as Nanos;
            self.wake = now + wait.max(LEAST_LOOK);
            state.wake_at(self.wake);
        }
    }

    fn note(&mut self, node: NodeId, state: &TaskState) {
        self.weigh(node, state);
        let devices = &self.nodes[node.index()];
        let pace = |device: usize| 1.0 / devices[device].seconds(state.now());
        // The sum of nothing would be -0, and a time divided by it before all others.
        let pace = state
            .devices(node)
            .map(pace)
            .fold(0.0, |sum, pace| sum + pace);
        self.all += pace - self.paces[node.index()];
        self.paces[node.index()] = pace;
    }

    /// What a node's devices compute is among the first subtasks that it was given.
    fn weigh(&mut self, node: NodeId, state: &TaskState) {
        let ledger = state.ledger();
        let first = ledger.queue(node).iter().take(self.slots(node, state));
        let weight = first
            .map(|&subtask| ledger.weight(subtask))
            .fold(1.0, f64::max);
        for device in &mut self.nodes[node.index()] {
            device.weight = weight;
        }
    }

    /// A node has been given subtasks: its devices compute.
    pub fn given(&mut self, node: NodeId, state: &TaskState) {
        self.weigh(node, state);
        let devices = &mut self.nodes[node.index()];
        let busy = devices.iter().filter(|device| !device.idle).count();
        let idle = devices.iter_mut().filter(|device| device.idle);
        for (place, device) in (busy..).zip(idle) {
            device.idle = false;
            device.since = (place < state.local(node)).then_some(state.now());
        }
    }

    /// A device has ended a subtask.
    pub fn done(&mut self, finished: &Finished, state: &TaskState) {
        let node = finished.node;
        self.last = state.now();
        let Some(device) = self.nodes[node.index()].get_mut(finished.device) else {
            return;
        };
        let weight = state.ledger().weight(finished.subtask);
        let kind = state.kinds().kind(finished.subtask);
        (device.rates).done((kind, weight), finished.took, state.now());
        device.idle = finished.next == Next::Nothing;
        device.since = (finished.next == Next::Computes).then_some(state.now());
        self.note(node, state);
    }

    /// Work a second of a node.
    pub fn pace(&self, node: NodeId) -> f64 {
        self.paces[node.index()]
    }

    /// Work a second of all nodes.
    pub fn all(&self) -> f64 {
        self.all
    }

    /// Seconds from an order until its answer.
    pub fn round_trip(&self, state: &TaskState) -> f64 {
        state.network().round_trip as f64 * 1e-9
    }

    /// Subtasks that a node's devices have at once.
    pub fn slots(&self, node: NodeId, state: &TaskState) -> usize {
        let devices = &self.nodes[node.index()];
        state
            .devices(node)
            .map(|device| devices[device].depth)
            .sum()
    }

    /// The work that a node should have: its slowest device must not find the queue so
    /// short that the others had better do the rest, and the next data must arrive in time.
    pub fn enough(&self, node: NodeId, state: &TaskState) -> f64 {
        let devices = &self.nodes[node.index()];
        let times = state
            .devices(node)
            .map(|device| &devices[device])
            .map(|device| device.rates.of(device.main).seconds());
        let slowest = times.fold(0.0, f64::max);
        let ahead = AHEAD * state.devices(node).count() as f64;
        let pace = self.pace(node);
        self.slots(node, state) as f64 + ahead + pace * (slowest + self.round_trip(state))
    }

    /// Whether a node has the work that it should have before `next`, in some proportion: its
    /// devices need not wait, and its link is busy, if there is anything to fetch. In a chain of
    /// tasks, what comes after `next` is not counted.
    pub fn is_fed(
        &self,
        node: NodeId,
        (next, proportion): (Option<u64>, f64),
        state: &TaskState,
    ) -> bool {
        let load = match next.filter(|_| state.chain().is_woven()) {
            Some(next) => state.ledger().load_before(node, next),
            None => state.ledger().load(node),
        };
        let enough = self.enough(node, state);
        let most = if state.link_has_room(node) {
            LINKED
        } else {
            1.0
        };
        load >= proportion * enough * most
    }

    /// Whether a node will soon have a device without work.
    pub fn is_hungry(&self, node: NodeId, state: &TaskState) -> bool {
        let waits = self.round_trip(state) * 2.0 * self.pace(node);
        let soon = self.slots(node, state) as f64 + waits;
        state.ledger().load(node) <= soon
    }

    /// Seconds until a node has finished what it has and `more` subtasks of mean size.
    pub fn finish(&self, node: NodeId, more: usize, state: &TaskState) -> f64 {
        let (load, pace) = (state.ledger().load(node), self.pace(node));
        let count = state.ledger().queue(node).len() + more;
        let slots = self.slots(node, state);
        if count > 2 * slots || pace == 0.0 {
            return (load + more as f64) / pace;
        }
        if count == 0 {
            return 0.0;
        }
        // A device finishes one after the other; the next one began some time ago.
        let devices = &self.nodes[node.index()];
        let mut ends: Vec<(f64, f64)> = Vec::new();
        for device in state.devices(node) {
            let device = &devices[device];
            let seconds = device.seconds(state.now());
            let begun = device.busy(state.now()).min(seconds * 0.9);
            ends.push((seconds - begun, seconds));
        }
        let mut end = 0.0;
        for _ in 0..count {
            let Some(first) = ends.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return f64::INFINITY;
            };
            end = first.0;
            first.0 += first.1;
        }
        let mean = (load + more as f64) / count as f64;
        end * mean
    }

    /// Seconds until a node would have fetched a subtask, computed it on a device of mean
    /// speed, and sent back what it changes, if it had nothing else to compute.
    pub fn fetched(&self, subtask: u64, node: NodeId, state: &TaskState) -> f64 {
        let devices = state.devices(node).count() as f64;
        let compute = devices / self.pace(node) * state.ledger().weight(subtask);
        state.back(subtask, node, state.arrival(subtask, node) + compute)
    }

    /// The time that the fastest device of all takes for a subtask.
    pub fn fastest(&self, state: &TaskState) -> f64 {
        let nodes = state.working();
        let times = nodes.flat_map(|node| {
            let devices = &self.nodes[node.index()];
            state
                .devices(node)
                .map(|device| devices[device].seconds(state.now()))
        });
        times.fold(f64::INFINITY, f64::min)
    }

    /// The seconds that the fastest free device of a node takes; `None` if all compute.
    pub fn free_device(&self, node: NodeId, state: &TaskState) -> Option<f64> {
        if state.ledger().queue(node).len() >= state.devices(node).count() {
            return None;
        }
        let devices = &self.nodes[node.index()];
        let idle = state.devices(node).filter(|&device| devices[device].idle);
        let times = idle.map(|device| devices[device].seconds(state.now()));
        times.min_by(f64::total_cmp)
    }

    /// What runs at a node, with the seconds that it is expected to need. The node's oldest
    /// subtask is taken for that of the device that has not reported for longest. What is
    /// late will be later, but needs at most as long again as it has had.
    pub fn running<'a>(
        &'a self,
        node: NodeId,
        state: &'a TaskState,
    ) -> impl Iterator<Item = (f64, u64)> + 'a {
        let now = state.now();
        let devices = &self.nodes[node.index()];
        let busy = state.devices(node).map(|device| &devices[device]);
        let mut busy: Vec<&Device> = busy.filter(|device| !device.idle).collect();
        busy.sort_by_key(|device| device.since);
        let left = move |device: &Device, subtask: u64| {
            let rate = device.rates.of(state.kinds().kind(subtask));
            let expected = rate.seconds() * state.ledger().weight(subtask);
            let late = device.busy(now) - expected;
            (-late).max((late * LATER).min(expected + late))
        };
        let queue = state.ledger().queue(node).iter();
        queue
            .zip(busy)
            .map(move |(&subtask, device)| (left(device, subtask), subtask))
    }
}

/// The times at which each node's link will be free again, in either direction. They are
/// expectations: what is asked for first comes first, and nothing else travels.
#[derive(Clone, Debug)]
pub struct Links {
    network: Network,
    receives: Vec<Nanos>,
    sends: Vec<Nanos>,
    /// The time that the greatest block of all takes.
    longest: Nanos,
}

/// Blocks that a node should know to ask for: what it is given next takes some time to come.
const ON_THEIR_WAY: Nanos = 8;

impl Links {
    pub fn new(nodes: usize, network: Network) -> Self {
        Self {
            network,
            receives: vec![0; nodes],
            sends: vec![0; nodes],
            longest: 0,
        }
    }

    fn seconds_left(&self, at: Nanos, now: Nanos) -> f64 {
        at.saturating_sub(now) as f64 * 1e-9
    }

    /// Seconds until a node has received these blocks, beside what it asked for before; 0 if
    /// there are none.
    pub fn arrival(&self, node: NodeId, blocks: impl Iterator<Item = Missing>, now: Nanos) -> f64 {
        let mut bytes = 0;
        let mut free = self.receives[node.index()];
        for block in blocks {
            bytes += block.bytes;
            let sends = block.holder.map(|holder| self.sends[holder.index()]);
            free = free.max(sends.unwrap_or(0));
        }
        if bytes == 0 {
            return 0.0;
        }
        self.seconds_left(free, now) + bytes as f64 / self.network.bandwidth
    }

    /// Seconds until nodes have got back blocks of these bytes, which a node has in so many
    /// seconds.
    pub fn back(
        &self,
        node: NodeId,
        blocks: impl Iterator<Item = (u64, NodeId)>,
        seconds: f64,
        now: Nanos,
    ) -> f64 {
        let sends = self.seconds_left(self.sends[node.index()], now);
        blocks.fold(seconds, |end, (bytes, to)| {
            let receives = self.seconds_left(self.receives[to.index()], now);
            end.max(sends).max(receives) + bytes as f64 / self.network.bandwidth
        })
    }

    /// A node will send these blocks back.
    pub fn send_back(
        &mut self,
        node: NodeId,
        blocks: impl Iterator<Item = (u64, NodeId)>,
        now: Nanos,
    ) {
        for (bytes, to) in blocks {
            let takes = (bytes as f64 / self.network.bandwidth * 1e9) as Nanos;
            for free in [
                &mut self.sends[node.index()],
                &mut self.receives[to.index()],
            ] {
                *free = (*free).max(now) + takes;
            }
        }
    }

    /// Whether a node receives something, and less than it should know of.
    pub fn has_room(&self, node: NodeId, now: Nanos) -> bool {
        let left = self.receives[node.index()].saturating_sub(now);
        left > 0 && left < ON_THEIR_WAY * self.longest
    }

    /// A node asks for these blocks.
    pub fn fetch(&mut self, node: NodeId, blocks: impl Iterator<Item = Missing>, now: Nanos) {
        for block in blocks {
            let takes = (block.bytes as f64 / self.network.bandwidth * 1e9) as Nanos;
            self.longest = self.longest.max(takes);
            let sends = block.holder.map(|holder| &mut self.sends[holder.index()]);
            for free in sends.into_iter().chain([&mut self.receives[node.index()]]) {
                *free = (*free).max(now) + takes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::info::{DeviceInfo, NodeInfo};
    use crate::cluster::task::chain::Chain;
    use crate::cluster::task::fixtures::ListedTask;
    use crate::spread::Network;

    const SECOND: Nanos = 1_000_000_000;

    /// A task on a node with a device of an operation a second, all of it given out.
    fn given(works: bool) -> (Paces, TaskState) {
        let device = DeviceInfo {
            name: "cpu".into(),
            flops: 1.0,
            memory_bandwidth: f64::INFINITY,
            link_bandwidth: f64::INFINITY,
            depth: 1,
        };
        let node = NodeInfo {
            name: "node".into(),
            devices: vec![device],
            memory: 1 << 34,
        };
        let (task, nodes) = (
            (Arc::new(Chain::of(Arc::new(ListedTask::light(8)))), 1),
            Arc::new([node]),
        );
        let network = Network::default();
        let mut state = TaskState::new(task, nodes, vec![vec![works]], None, network, 0);
        let mut paces = Paces::default();
        paces.begin(&state);
        state.assign(NodeId(0), 0..8);
        paces.given(NodeId(0), &state);
        (paces, state)
    }

    /// The pace of a node whose device has done a subtask, and then said nothing for 10 s.
    fn pace_after(next: Next) -> f64 {
        let (mut paces, mut state) = given(true);
        state.set_now(SECOND);
        state.note_done(0, NodeId(0));
        let finished = Finished {
            node: NodeId(0),
            device: 0,
            subtask: 0,
            took: SECOND,
            next,
            counts: true,
        };
        paces.done(&finished, &state);
        assert_eq!(paces.pace(NodeId(0)), 1.0);
        state.set_now(11 * SECOND);
        paces.look(&state);
        paces.pace(NodeId(0))
    }

    #[test]
    fn a_device_that_waits_is_not_late() {
        assert!(pace_after(Next::Computes) < 0.2);
        assert_eq!(pace_after(Next::Waits), 1.0);
        assert_eq!(pace_after(Next::Nothing), 1.0);
    }

    #[test]
    fn a_node_without_devices_never_finishes() {
        let (paces, state) = given(false);
        assert_eq!(paces.finish(NodeId(0), 0, &state), f64::INFINITY);
    }

    const LINK_SECOND: Nanos = 1_000_000_000;

    /// Four nodes on links of 1000 bytes a second.
    fn links() -> Links {
        let network = Network {
            bandwidth: 1000.0,
            round_trip: 0,
        };
        Links::new(4, network)
    }

    fn block(bytes: u64, holder: u32) -> impl Iterator<Item = Missing> {
        let holder = Some(NodeId(holder));
        std::iter::once(Missing { bytes, holder })
    }

    #[test]
    fn blocks_queue_at_the_node_that_receives_them() {
        let mut links = links();
        assert_eq!(links.arrival(NodeId(0), block(2000, 1), 0), 2.0);
        links.fetch(NodeId(0), block(3000, 1), 0);
        links.fetch(NodeId(0), block(1000, 2), 0);
        assert_eq!(links.arrival(NodeId(0), block(2000, 3), 0), 6.0);
        assert_eq!(
            links.arrival(NodeId(0), block(2000, 3), 3 * LINK_SECOND),
            3.0
        );
        assert_eq!(
            links.arrival(NodeId(0), block(2000, 3), 9 * LINK_SECOND),
            2.0
        );
        assert_eq!(
            links.arrival(NodeId(3), block(2000, 0), 0),
            2.0,
            "sending is free"
        );
    }

    #[test]
    fn blocks_queue_at_the_node_that_sends_them() {
        let mut links = links();
        links.fetch(NodeId(0), block(5000, 3), 0);
        let both = || block(1000, 2).chain(block(1000, 3));
        assert_eq!(links.arrival(NodeId(1), both(), LINK_SECOND), 6.0);
        assert_eq!(links.arrival(NodeId(1), block(1000, 2), LINK_SECOND), 1.0);
    }

    #[test]
    fn what_is_changed_goes_back_when_both_links_are_free() {
        let mut links = links();
        let block = || std::iter::once((1000, NodeId(2)));
        assert_eq!(links.back(NodeId(1), std::iter::empty(), 0.5, 0), 0.5);
        assert_eq!(links.back(NodeId(1), block(), 0.5, 0), 1.5);
        links.fetch(NodeId(2), self::block(3000, 3), 0);
        assert_eq!(links.back(NodeId(1), block(), 0.5, 0), 4.0);
        links.send_back(NodeId(1), block(), 0);
        assert_eq!(links.back(NodeId(1), block(), 0.5, 0), 5.0);
    }

    #[test]
    fn a_link_should_have_some_blocks_to_carry() {
        let mut links = links();
        let node = NodeId(0);
        assert!(!links.has_room(node, 0), "the node lacks nothing");
        for count in 0..ON_THEIR_WAY {
            links.fetch(node, block(1000, 1), 0);
            assert_eq!(links.has_room(node, 0), count + 1 < ON_THEIR_WAY);
        }
        assert!(links.has_room(node, LINK_SECOND));
        assert!(!links.has_room(node, 8 * LINK_SECOND), "all has come");
    }

    #[test]
    fn what_several_nodes_have_waits_for_none_of_them() {
        let mut links = links();
        links.fetch(NodeId(0), block(5000, 3), 0);
        let copied = Missing {
            bytes: 1000,
            holder: None,
        };
        assert_eq!(links.arrival(NodeId(1), std::iter::once(copied), 0), 1.0);
    }

    #[test]
    fn a_link_that_was_free_begins_when_it_is_asked() {
        let mut links = links();
        links.fetch(NodeId(0), block(1000, 1), 4 * LINK_SECOND);
        assert_eq!(
            links.arrival(NodeId(0), block(1000, 2), 4 * LINK_SECOND),
            2.0
        );
    }

    #[test]
    fn what_a_node_has_arrives_at_once() {
        let mut links = links();
        links.fetch(NodeId(0), block(1000, 1), 0);
        assert_eq!(links.arrival(NodeId(0), std::iter::empty(), 0), 0.0);
    }
}
