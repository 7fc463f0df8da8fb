//! Together: all nodes finish at the same time. The default.
//!
//! A node has as many subtasks as it needs for not waiting until the next ones arrive; the
//! others stay with the coordinator, so that a node that slows has little. How fast devices
//! are follows from their descriptions, then from what they report, and from what they do
//! not report: a subtask that takes long is evidence before it ends. When all are given
//! out, a node that will soon have nothing gets those that wait at the node that would
//! finish last. When none wait, a subtask that runs is copied where the copy is expected to
//! end first.
//!
//! A node gets the subtasks for which it must fetch least, counting what it fetched for
//! those before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::paces::Paces;
use super::{Finished, Spread, TaskState};
use crate::cluster::NodeId;
use crate::spread::Runs;

/// A copy is made where it is expected to end in this part of the time that the original
/// needs: it costs transfers, and expectations err. A device that is at half its speed
/// keeps what it runs.
const COPY_MARGIN: f64 = 0.5;

/// A node has far more to do than others if it would finish so many times later than all
/// together.
const OVERLOADED: f64 = 2.0;

/// Nodes whose work is given to others. They are those that would finish last when the
/// coordinator looked, and so few that helping takes as long in a large cluster.
const LATEST: usize = 64;

/// Tasks of a chain that may be begun and not ended: a factorisation's update, and the panel,
/// the rows and the update after it, twice.
const WINDOW: usize = 7;

/// The policy.
pub struct Together {
    by_data: bool,
    paces: Paces,
    /// The nodes that would finish last.
    latest: Vec<NodeId>,
    choice: Choice,
}

/// What was found out about the nodes that would finish last, as long as nothing changes.
#[derive(Default)]
struct Seen {
    /// When each will have finished.
    ends: Option<Vec<(f64, NodeId)>>,
    running: Option<Vec<Running>>,
}

/// A subtask that runs.
struct Running {
    node: NodeId,
    /// The seconds that it is expected to need.
    left: f64,
    subtask: u64,
}

/// Whether a subtask of a node that would finish in `left` seconds may move to another one.
/// Links would have to carry it, and other nodes wait for what they carry, so this must take
/// less than computing it, unless the node has far more to do than others, which could fetch it
/// in the meantime.
fn may_move(
    paces: &Paces,
    subtask: u64,
    (from, left): (NodeId, f64),
    to: NodeId,
    state: &TaskState,
) -> bool {
    let ledger = state.ledger();
    let mean = ledger.open_weight() / paces.all();
    let compute = ledger.weight(subtask) / paces.pace(from);
    let travels = state.move_seconds(subtask, from, to);
    travels < compute || left > OVERLOADED * (mean + travels)
}

impl Together {
    /// The policy, with regard to where data are or without.
    pub fn new(by_data: bool) -> Self {
        Self {
            by_data,
            paces: Paces::default(),
            latest: Vec::new(),
            choice: Choice::default(),
        }
    }

    /// Whether others would have finished everything before this node has finished one
    /// more.
    fn declines(&self, node: NodeId, state: &TaskState) -> bool {
        let others = self.paces.all() - self.paces.pace(node);
        let weight = state.ledger().open_weight();
        self.paces.finish(node, 1, state) * others > weight + 1.0
    }

    /// Whether a node has the work that it should have, in some proportion.
    fn is_fed(&self, node: NodeId, proportion: f64, state: &TaskState) -> bool {
        let next = self.choice.first(node, state);
        self.paces.is_fed(node, (next, proportion), state)
    }

    /// Gives free subtasks to a node that will have too few.
    fn feed(&mut self, node: NodeId, state: &mut TaskState) {
        if self.is_fed(node, 1.0, state) {
            return;
        }
        // A quarter more, so that not each report is answered by a message.
        while !self.is_fed(node, 1.25, state) && !self.declines(node, state) {
            let Some(subtask) = self.take(node, state) else {
                return;
            };
            state.assign(node, [subtask]);
            self.paces.given(node, state);
        }
    }

    /// Takes a free subtask for a node. If another node has most of what it reads, that one
    /// must not be expected to have done it sooner.
    fn take(&mut self, node: NodeId, state: &TaskState) -> Option<u64> {
        let paces = &self.paces;
        let end = |subtask, node, more| {
            let computed = paces.finish(node, more, state);
            computed.max(paces.fetched(subtask, node, state))
        };
        self.choice
            .take(node, state, |choice, subtask, main_holder| {
                let waiting = choice.waiting(main_holder);
                let left = paces.finish(main_holder, waiting, state);
                may_move(paces, subtask, (main_holder, left), node, state)
                    && end(subtask, node, 1) < end(subtask, main_holder, waiting)
            })
    }

    /// Gives free subtasks to all nodes that have too few, one by one to the node that
    /// would finish it first.
    fn share(&mut self, state: &mut TaskState) {
        if state.ledger().free().is_empty() {
            return;
        }
        let hungry = state.working();
        let hungry = hungry.filter(|&node| !self.is_fed(node, 1.0, state));
        let hungry: Vec<NodeId> = hungry.collect();
        let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for (place, node) in hungry.iter().enumerate() {
            ends.push(Reverse((self.end_of_one_more(*node, state), place)));
        }
        while let Some(Reverse((_, place))) = ends.pop() {
            let node = hungry[place];
            let Some(subtask) = self.take(node, state) else {
                continue;
            };
            state.assign(node, [subtask]);
            self.paces.given(node, state);
            if !self.is_fed(node, 1.0, state) {
                ends.push(Reverse((self.end_of_one_more(node, state), place)));
            }
        }
    }

    /// When a node would have done one more subtask, as a number to compare.
    fn end_of_one_more(&self, node: NodeId, state: &TaskState) -> u64 {
        // The bits of positive numbers are ordered as the numbers are.
        self.paces.finish(node, 1, state).max(0.0).to_bits()
    }

    /// When nothing is free: has a node that will soon have nothing get what waits or runs
    /// elsewhere.
    fn help(&mut self, node: NodeId, seen: &mut Seen, state: &mut TaskState) {
        if !state.ledger().free().is_empty() || !self.paces.is_hungry(node, state) {
            return;
        }
        let ends = seen.ends.get_or_insert_with(|| self.ends(state));
        let others = ends.iter().filter(|(_, other)| *other != node);
        let able = others.filter(|(_, other)| state.ledger().revoking(*other).is_empty());
        let last = able.max_by(|a, b| a.0.total_cmp(&b.0)).copied();
        let Some((end, last)) = last else { return };
        if self.revoke(last, end, node, state) || self.copy(node, seen, state) {
            *seen = Seen::default();
        }
    }

    /// When the nodes that would finish last will have.
    fn ends(&self, state: &TaskState) -> Vec<(f64, NodeId)> {
        let end = |&node| (self.paces.finish(node, 0, state), node);
        self.latest.iter().map(end).collect()
    }

    /// What runs at the nodes that would finish last.
    fn running(&self, state: &TaskState) -> Vec<Running> {
        let of_node = |&node| {
            let running = self.paces.running(node, state);
            running.map(move |(left, subtask)| Running {
                node,
                left,
                subtask,
            })
        };
        self.latest.iter().flat_map(of_node).collect()
    }

    /// Asks a node that would finish in `end` seconds for those of its waiting subtasks that
    /// another one would finish sooner. The result is whether there are any.
    fn revoke(&mut self, from: NodeId, end: f64, to: NodeId, state: &mut TaskState) -> bool {
        let ledger = state.ledger();
        let begun = self.paces.slots(from, state);
        let waiting = ledger.queue(from).iter().skip(begun).rev();
        let waiting = waiting.filter(|&&subtask| !ledger.is_copied(subtask));
        let (mut weight, mut bytes) = (0.0, 0);
        let mut moved = Vec::new();
        for &subtask in waiting {
            let there = end - weight / self.paces.pace(from);
            let fetched = bytes as f64 / state.network().bandwidth;
            let computed = self.paces.finish(to, moved.len() + 1, state);
            let here = computed.max(fetched + self.paces.fetched(subtask, to, state));
            if here + self.paces.round_trip(state) >= there
                || !may_move(&self.paces, subtask, (from, end), to, state)
            {
                break;
            }
            weight += ledger.weight(subtask);
            bytes += state.missing(subtask, to);
            moved.push(subtask);
        }
        moved.reverse();
        state.revoke(from, &moved);
        !moved.is_empty()
    }

    /// Has a node that has a device free compute what runs elsewhere and would end later
    /// there. The result is whether there is something.
    fn copy(&mut self, node: NodeId, seen: &mut Seen, state: &mut TaskState) -> bool {
        let Some(free) = self.paces.free_device(node, state) else {
            return false;
        };
        let mut worst: Option<(f64, u64)> = None;
        let running = seen.running.get_or_insert_with(|| self.running(state));
        for other in running.iter().filter(|other| other.node != node) {
            let (subtask, ledger) = (other.subtask, state.ledger());
            let most = other.left * COPY_MARGIN;
            // When its data arrive takes long to say, and nothing needs less than no time.
            let here = free * ledger.weight(subtask) + self.paces.round_trip(state);
            if most <= here || ledger.is_copied(subtask) {
                continue;
            }
            let end = state.back(subtask, node, here + state.arrival(subtask, node));
            let gain = most - end;
            if gain > 0.0 && worst.is_none_or(|w| w.0 < gain) {
                worst = Some((gain, subtask));
            }
        }
        let Some((_, subtask)) = worst else {
            return false;
        };
        state.copy(node, subtask);
        self.paces.given(node, state);
        true
    }

    /// Has every node that could wait get work, and looks again later.
    fn look(&mut self, state: &mut TaskState) {
        self.paces.look(state);
        self.share(state);
        let ends = |node| (self.paces.finish(node, 0, state), node);
        let mut latest: Vec<(f64, NodeId)> = state.working().map(ends).collect();
        latest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        latest.truncate(LATEST);
        self.latest = latest.into_iter().map(|(_, node)| node).collect();
        let nodes: Vec<NodeId> = state.working().collect();
        let mut seen = Seen::default();
        for node in nodes {
            self.help(node, &mut seen, state);
        }
        self.paces.wake(state);
    }
}

impl Spread for Together {
    fn name(&self) -> &'static str {
        match self.by_data {
            true => "together",
            false => "oblivious",
        }
    }

    fn wants_data(&self) -> bool {
        self.by_data
    }

    fn begin(&mut self, state: &mut TaskState) {
        self.paces.begin(state);
        self.choice = Choice::new(self.by_data, state);
        self.look(state);
    }

    fn window(&self) -> usize {
        WINDOW
    }

    fn freed(&mut self, subtasks: &[u64], state: &mut TaskState) {
        self.choice.freed(subtasks.iter().copied(), state);
        let mut main_holders: Vec<NodeId> = (subtasks.iter())
            .filter_map(|subtask| state.main_holder(*subtask))
            .collect();
        main_holders.sort_unstable();
        main_holders.dedup();
        for main_holder in main_holders {
            self.feed(main_holder, state);
        }
        self.share(state);
        self.paces.wake(state);
    }

    fn done(&mut self, finished: &Finished, state: &mut TaskState) {
        self.paces.done(finished, state);
        self.feed(finished.node, state);
        self.help(finished.node, &mut Seen::default(), state);
    }

    fn revoked(
        &mut self,
        _: NodeId,
        subtasks: &[Range<u64>],
        _: &[Range<u64>],
        state: &mut TaskState,
    ) {
        self.choice.freed(subtasks.iter().cloned().flatten(), state);
        self.share(state);
    }

    fn lost(&mut self, _: NodeId, state: &mut TaskState) {
        // What the lost node had is its successor's now, which may have most of what other
        // subtasks read, too.
        self.choice = Choice::new(self.by_data, state);
        self.look(state);
    }

    fn device_lost(&mut self, _: NodeId, _: usize, state: &mut TaskState) {
        self.look(state);
    }

    fn woken(&mut self, state: &mut TaskState) {
        self.look(state);
    }
}

/// Free subtasks that are compared for a node, at most, so that choosing takes the same time in
/// large tasks: of a product of 16 x 16 blocks, half of all.
const COMPARED: usize = 128;

/// Blocks that they read, where each reads many.
const BLOCKS: usize = 64 * COMPARED;

/// The part of what a subtask reads that is taken for its border. If a node lacks no more
/// of it, others are not compared.
const BORDER: f64 = 0.1;

/// Free subtasks by the node that has most of what they read.
#[derive(Default)]
struct Choice {
    by_data: bool,
    main_holders: Vec<Runs>,
}

impl Choice {
    pub fn new(by_data: bool, state: &TaskState) -> Self {
        let mut choice = Self {
            by_data,
            main_holders: vec![Runs::default(); state.nodes().len()],
        };
        choice.freed(0..state.count(), state);
        choice
    }

    /// These subtasks are free now, or were before.
    pub fn freed(&mut self, subtasks: impl IntoIterator<Item = u64>, state: &TaskState) {
        if !self.by_data {
            return;
        }
        for subtask in subtasks {
            if state.ledger().free().contains(subtask)
                && let Some(main_holder) = state.main_holder(subtask)
            {
                self.main_holders[main_holder.index()].insert(subtask);
            }
        }
    }

    /// Free subtasks of which a node has most.
    pub fn waiting(&self, node: NodeId) -> usize {
        self.main_holders[node.index()].len() as usize
    }

    /// In a chain of tasks: the free subtask that a node would be given next.
    pub fn first(&self, node: NodeId, state: &TaskState) -> Option<u64> {
        let main_holder = self.main_holders[node.index()].first();
        main_holder.or_else(|| state.ledger().free().first())
    }

    /// Takes a free subtask for which a node must fetch least, or not twice as much, of the
    /// first ones for which it has most and the first ones of all that it `may` compute, or
    /// the first for which it must fetch little. In a chain of tasks, the first for which it has
    /// most comes first: others wait for it.
    pub fn take(
        &mut self,
        node: NodeId,
        state: &TaskState,
        may: impl Fn(&Self, u64, NodeId) -> bool,
    ) -> Option<u64> {
        let free = state.ledger().free();
        if !self.by_data {
            return free.first();
        }
        let first = self.main_holders[node.index()].first();
        if let Some(first) = first.filter(|_| state.chain().is_woven()) {
            self.main_holders[node.index()].remove(first);
            return Some(first);
        }
        let blocks = free.first().map_or(1, |first| state.blocks(first));
        let compared = (BLOCKS / blocks.max(1)).clamp(1, COMPARED);
        let main_holder = self.main_holders[node.index()].iter().take(compared);
        let mut best: Option<(u64, u64)> = None;
        for subtask in main_holder.chain(free.iter().take(compared)) {
            let missing = state.missing(subtask, node);
            // Where about as much is lacking, the order of the task decides: a product's blocks
            // would otherwise be computed row by row, and each lacks a column.
            if best.is_some_and(|(least, _)| 2 * missing > least || missing == least) {
                continue;
            }
            let main_holder = state
                .main_holder(subtask)
                .filter(|&main_holder| main_holder != node);
            if main_holder.is_some_and(|main_holder| !may(self, subtask, main_holder)) {
                continue;
            }
            best = Some((missing, subtask));
            if missing as f64 <= BORDER * state.reads(subtask) as f64 {
                break;
            }
        }
        let (_, subtask) = best?;
        if let Some(main_holder) = state.main_holder(subtask) {
            self.main_holders[main_holder.index()].remove(subtask);
        }
        Some(subtask)
    }
}
