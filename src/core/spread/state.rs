//! What a policy knows of the running task, which of its subtasks may begin, and through which it
//! gives its orders.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::data::{Data, Missing};
use super::ledger::{BrokenRule, Completion, Ledger};
use super::paces::Links;
use super::rate::Kinds;
use crate::cluster::NodeId;
use crate::cluster::info::{NodeInfo, Nodes};
use crate::cluster::space::Spaces;
use crate::cluster::task::chain::Chain;
use crate::cluster::task::{Task, extend_runs};
use crate::time::Nanos;

/// What a policy wants to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// A node computes these subtasks, after those that it has.
    Assign {
        node: NodeId,
        subtasks: Vec<Range<u64>>,
    },
    /// A node gives back those of these subtasks that have not begun.
    Revoke {
        node: NodeId,
        subtasks: Vec<Range<u64>>,
    },
    /// The policy is asked again at this time.
    WakeAt(Nanos),
}

/// What is known of the wires between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Bytes a second that a node can receive.
    pub bandwidth: f64,
    /// From a message to a node until its answer arrives.
    pub round_trip: Nanos,
}

impl Default for Network {
    /// Ethernet of 10 Gbit/s; an answer takes as long as a process that naps between two
    /// looks at its messages needs.
    fn default() -> Self {
        Self {
            bandwidth: 1.25e9,
            round_trip: 200_000,
        }
    }
}

/// A running task, or a chain of them, as the coordinator sees it.
pub struct TaskState {
    task: Arc<Chain>,
    precedence: Precedence,
    /// The subtasks that may begin since the last call of [`Self::take_freed`].
    freed: Vec<u64>,
    kinds: Kinds,
    nodes: Nodes,
    /// Which devices of each node work; none of a lost node does.
    working: Vec<Vec<bool>>,
    ledger: Ledger,
    data: Option<Data>,
    links: Links,
    /// The subtasks whose data were not where they were given last.
    fetched: Vec<bool>,
    network: Network,
    now: Nanos,
    orders: Vec<Order>,
    /// The first rule that the policy has broken.
    broken: Option<BrokenRule>,
}

impl TaskState {
    /// A chain of tasks that begins, of which at most `window` are to be begun and not ended.
    /// `working` says which devices of each node work. With `spaces`, the state knows where
    /// data are.
    pub fn new(
        (task, window): (Arc<Chain>, usize),
        nodes: Nodes,
        working: Vec<Vec<bool>>,
        spaces: Option<&Spaces>,
        network: Network,
        now: Nanos,
    ) -> Self {
        let devices = nodes.iter().flat_map(|node| &node.devices);
        let kinds = Kinds::of(Arc::clone(&task), spaces, devices);
        let weights = (0..task.count()).map(|subtask| kinds.weight(subtask) as f32);
        let mut ledger = Ledger::new(weights.collect(), nodes.len());
        let precedence = Precedence::new(Arc::clone(&task), window);
        ledger.hold((0..task.count()).filter(|subtask| !precedence.may_begin(*subtask)));
        Self {
            kinds,
            ledger,
            precedence,
            freed: Vec::new(),
            data: spaces.and_then(|spaces| Data::of(&task, spaces, nodes.len())),
            links: Links::new(nodes.len(), network),
            fetched: vec![false; task.count() as usize],
            task,
            nodes,
            working,
            network,
            now,
            orders: Vec::new(),
            broken: None,
        }
    }

    /// Nanoseconds on the coordinator's clock.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The number of subtasks.
    pub fn count(&self) -> u64 {
        self.task.count()
    }

    /// The kinds of the subtasks.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// All nodes, lost ones included.
    pub fn nodes(&self) -> &[NodeInfo] {
        &self.nodes
    }

    /// The nodes with devices that work.
    pub fn working(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = (0..).map(NodeId).zip(&self.working);
        nodes
            .filter(|(_, works)| works.contains(&true))
            .map(|(node, _)| node)
    }

    /// The devices of a node that work, by their place in its list.
    pub fn devices(&self, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        let devices = self.working[node.index()].iter().enumerate();
        devices
            .filter(|(_, works)| **works)
            .map(|(device, _)| device)
    }

    /// Where all subtasks are.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Bytes that a node would have to fetch for a subtask; 0 where nothing is known.
    pub fn missing(&self, subtask: u64, node: NodeId) -> u64 {
        let data = self.data.iter();
        let blocks = data.flat_map(|data| data.missing(subtask, node));
        blocks.map(|block: Missing| block.bytes).sum()
    }

    /// Seconds for which links carry more if a node computes a subtask than if another one
    /// does.
    pub fn move_seconds(&self, subtask: u64, from: NodeId, to: NodeId) -> f64 {
        let returns = |data: &Data| data.returns(subtask, to).map(|(bytes, _)| bytes).sum();
        let back: u64 = self.data.as_ref().map_or(0, returns);
        let moved = self.missing(subtask, to) + back;
        moved.saturating_sub(self.missing(subtask, from)) as f64 / self.network.bandwidth
    }

    /// Whether a node's link carries what the node was given subtasks for, and too little to
    /// stay busy.
    pub fn link_has_room(&self, node: NodeId) -> bool {
        self.links.has_room(node, self.now)
    }

    /// Seconds until what a subtask changes at a node would be back at the nodes that have it
    /// now, if it is computed in so many seconds.
    pub fn back(&self, subtask: u64, node: NodeId, computed: f64) -> f64 {
        let data = self.data.iter();
        let blocks = data.flat_map(|data| data.returns(subtask, node));
        self.links.back(node, blocks, computed, self.now)
    }

    /// Seconds until a node would have what it lacks for a subtask, if it asked for it now;
    /// 0 if it lacks nothing, and where nothing is known.
    pub fn arrival(&self, subtask: u64, node: NodeId) -> f64 {
        let data = self.data.iter();
        let blocks = data.flat_map(|data| data.missing(subtask, node));
        self.links.arrival(node, blocks, self.now)
    }

    /// Bytes that a subtask reads; 0 where nothing is known.
    pub fn reads(&self, subtask: u64) -> u64 {
        self.data.as_ref().map_or(0, |data| data.bytes(subtask))
    }

    /// The number of blocks that a subtask reads; 0 where nothing is known.
    pub fn blocks(&self, subtask: u64) -> usize {
        self.data.as_ref().map_or(0, |data| data.count(subtask))
    }

    /// The node that has most of what a subtask reads.
    pub fn main_holder(&self, subtask: u64) -> Option<NodeId> {
        self.data
            .as_ref()
            .and_then(|data| data.main_holder(subtask))
    }

    /// How many of a node's subtasks lacked nothing when they were given to it.
    pub fn local(&self, node: NodeId) -> usize {
        let queue = self.ledger.queue(node).iter();
        queue.filter(|&&s| !self.fetched[s as usize]).count()
    }

    /// What is known of the wires.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Gives free subtasks to a node, in this order. One that is not free is a broken rule
    /// ([`Self::broken`]).
    pub fn assign(&mut self, node: NodeId, subtasks: impl IntoIterator<Item = u64>) {
        let mut runs = Vec::new();
        for subtask in subtasks {
            if let Err(broken) = self.ledger.assign(subtask, node) {
                self.broken.get_or_insert(broken);
                continue;
            }
            self.note_fetch(subtask, node);
            extend_runs(&mut runs, subtask);
        }
        if !runs.is_empty() {
            let subtasks = runs;
            self.orders.push(Order::Assign { node, subtasks });
        }
    }

    /// Gives a subtask that another node has to a node as well. The result of the first
    /// one counts. One that is not at exactly one other node is a broken rule
    /// ([`Self::broken`]).
    pub fn copy(&mut self, node: NodeId, subtask: u64) {
        if let Err(broken) = self.ledger.copy(subtask, node) {
            self.broken.get_or_insert(broken);
            return;
        }
        self.note_fetch(subtask, node);
        let one = subtask..subtask + 1;
        let subtasks = vec![one];
        self.orders.push(Order::Assign { node, subtasks });
    }

    fn note_fetch(&mut self, subtask: u64, node: NodeId) {
        self.fetched[subtask as usize] = self.missing(subtask, node) > 0;
        if let Some(data) = &mut self.data {
            let blocks = data.missing(subtask, node);
            self.links.fetch(node, blocks, self.now);
            let returns = data.returns(subtask, node);
            self.links.send_back(node, returns, self.now);
            data.fetch(subtask, node);
        }
    }

    /// Asks a node to give back subtasks. It answers which it has not begun; these are
    /// free then.
    pub fn revoke(&mut self, node: NodeId, subtasks: &[u64]) {
        let mut runs = Vec::new();
        self.ledger.revoke(subtasks.iter().copied(), node);
        subtasks
            .iter()
            .for_each(|&subtask| extend_runs(&mut runs, subtask));
        if !runs.is_empty() {
            let subtasks = runs;
            self.orders.push(Order::Revoke { node, subtasks });
        }
    }

    /// The first rule that the policy has broken in this task. Its orders are of no use then.
    pub fn broken(&self) -> Option<BrokenRule> {
        self.broken
    }

    /// Asks to be woken at a time.
    pub fn wake_at(&mut self, at: Nanos) {
        self.orders.push(Order::WakeAt(at));
    }

    /// What was ordered since the last call. A node gets one order instead of several
    /// that follow each other.
    pub fn take_orders(&mut self) -> Vec<Order> {
        let mut orders: Vec<Order> = Vec::new();
        let mut last: HashMap<NodeId, usize> = HashMap::new();
        for order in self.orders.drain(..) {
            match order {
                Order::Assign { node, subtasks } => {
                    if let Some(Order::Assign {
                        subtasks: before, ..
                    }) = last.get(&node).map(|&place| &mut orders[place])
                    {
                        before.extend(subtasks);
                        continue;
                    }
                    last.insert(node, orders.len());
                    orders.push(Order::Assign { node, subtasks });
                }
                Order::Revoke { node, subtasks } => {
                    last.remove(&node);
                    orders.push(Order::Revoke { node, subtasks });
                }
                Order::WakeAt(at) => orders.push(Order::WakeAt(at)),
            }
        }
        orders
    }

    /// Tells the time.
    pub fn set_now(&mut self, now: Nanos) {
        self.now = now;
    }

    /// A node has the result of a subtask. To be reported before the policy learns of it.
    pub fn note_done(&mut self, subtask: u64, node: NodeId) -> Completion {
        let completion = self.ledger.done(subtask, node);
        if let Completion::First { .. } = completion {
            if let Some(data) = &mut self.data {
                data.written(subtask, node);
            }
            for freed in self.precedence.done(subtask) {
                if let Some(data) = &mut self.data {
                    data.find_main_holder(freed);
                }
                self.ledger.set_free(freed);
                self.freed.push(freed);
            }
        }
        completion
    }

    /// The subtasks that may begin since the last call, as what they read is final now.
    pub fn take_freed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.freed)
    }

    /// How many tasks of the chain have ended, and those before them.
    pub fn ended(&self) -> usize {
        self.precedence.ended()
    }

    /// The chain.
    pub fn chain(&self) -> &Chain {
        &self.task
    }

    /// Which node has the result of each subtask of the chain's task of this index.
    pub fn results(&self, task: usize) -> Vec<(Range<u64>, NodeId)> {
        let subtasks = 0..self.task.tasks()[task].count();
        (self.ledger).results(subtasks.map(|subtask| self.task.number(task, subtask)))
    }

    /// A node has answered for subtasks. To be reported before the policy learns of it. The
    /// result is whether the answer is about more than copies that were to be forgotten.
    pub fn note_revoked(&mut self, node: NodeId, back: &[Range<u64>], kept: &[Range<u64>]) -> bool {
        let mut concerns = back.is_empty();
        for (runs, back) in [(back, true), (kept, false)] {
            for subtask in runs.iter().cloned().flatten() {
                concerns |= self.ledger.answered(subtask, node, back);
            }
        }
        concerns
    }

    /// A node is lost, and another one answers for its data. To be reported before the policy
    /// learns of it.
    pub fn note_lost(&mut self, node: NodeId, successor: NodeId) {
        self.working[node.index()].fill(false);
        self.ledger.lost(node);
        self.precedence.undone(self.ledger.open());
        if let Some(data) = &mut self.data {
            data.lost(node, successor);
        }
    }

    /// A device of a node has failed. To be reported before the policy learns of it.
    pub fn note_device_lost(&mut self, node: NodeId, device: usize) {
        if let Some(works) = self.working[node.index()].get_mut(device) {
            *works = false;
        }
    }
}

/// What is done of a chain, and what waits for it.
struct Precedence {
    chain: Arc<Chain>,
    /// By subtask of a chain of several tasks: those that write what it reads and are not done.
    waits: Vec<u32>,
    /// By task: how many of its subtasks are not done.
    left: Vec<u64>,
    /// How many tasks have ended, and those before them.
    ended: usize,
    /// How many tasks may have begun and not ended.
    window: usize,
}

impl Precedence {
    /// Of a chain of which nothing is done. At most `window` of its tasks are to be begun and
    /// not ended: what they overwrite is kept until they have.
    pub fn new(chain: Arc<Chain>, window: usize) -> Self {
        let mut waits = Vec::new();
        if chain.is_woven() {
            waits = vec![0; chain.count() as usize];
            let readers = (0..chain.count()).flat_map(|subtask| chain.readers(subtask));
            readers.for_each(|reader| waits[*reader as usize] += 1);
        }
        let mut precedence = Self {
            left: chain.tasks().iter().map(|task| task.count()).collect(),
            chain,
            waits,
            ended: 0,
            window: window.max(1),
        };
        precedence.end();
        precedence
    }

    /// How many tasks have ended, and those before them.
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// Whether a subtask may begin.
    pub fn may_begin(&self, subtask: u64) -> bool {
        let (task, _) = self.chain.place(subtask);
        let waits = self.waits.get(subtask as usize);
        waits.is_none_or(|waits| *waits == 0) && task < self.ended + self.window
    }

    fn end(&mut self) {
        while self.left.get(self.ended) == Some(&0) {
            self.ended += 1;
        }
    }

    /// A subtask is done. Those that may begin now, and could not before.
    pub fn done(&mut self, subtask: u64) -> Vec<u64> {
        let (task, _) = self.chain.place(subtask);
        self.left[task] -= 1;
        if !self.chain.is_woven() {
            self.end();
            return Vec::new();
        }
        let before = self.ended + self.window;
        self.end();
        let mut may = Vec::new();
        for &reader in self.chain.readers(subtask) {
            self.waits[reader as usize] -= 1;
            if self.chain.place(reader).0 < before && self.may_begin(reader) {
                may.push(reader);
            }
        }
        let last = self.chain.tasks().len().min(self.ended + self.window);
        for task in before..last {
            let subtasks = 0..self.chain.tasks()[task].count();
            let numbers = subtasks.map(|subtask| self.chain.number(task, subtask));
            may.extend(numbers.filter(|number| self.may_begin(*number)));
        }
        may.sort_unstable();
        may
    }

    /// What was done by a lost node is to be done again. The chain is of one task, of which so
    /// much is not done now.
    pub fn undone(&mut self, open: u64) {
        if let [left] = &mut self.left[..] {
            *left = open;
            self.ended = 0;
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::{Block, SpaceBlock, SpaceId};
    use crate::cluster::task::chain::Chaining;
    use crate::cluster::task::fixtures::ListedTask;

    const COUNT: u64 = 4;

    /// Each subtask changes its element of a row, and reads the one before it.
    fn step() -> Arc<dyn Task> {
        let columns = |columns| SpaceBlock {
            space: SpaceId(0),
            block: Block::new(0..1, columns),
        };
        let task = ListedTask::light(COUNT)
            .reading(|subtask| columns(subtask.saturating_sub(1)..subtask + 1))
            .writing(|subtask| columns(subtask..subtask + 1));
        Arc::new(task)
    }

    fn chain(tasks: usize) -> Arc<Chain> {
        let mut chaining = Chaining::new(step());
        for _ in 1..tasks {
            assert!(chaining.push(&step()));
        }
        Arc::new(chaining.build())
    }

    /// Subtasks by task and number there.
    fn places(chain: &Chain, numbers: &[u64]) -> Vec<(usize, u64)> {
        let mut places: Vec<_> = numbers.iter().map(|number| chain.place(*number)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn a_subtask_waits_for_what_it_reads_only() {
        let chain = chain(3);
        let mut precedence = Precedence::new(Arc::clone(&chain), 3);
        let all: Vec<u64> = (0..chain.count()).collect();
        let first: Vec<u64> = all
            .iter()
            .copied()
            .filter(|s| precedence.may_begin(*s))
            .collect();
        assert_eq!(places(&chain, &first), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        let mut done = |task, subtask| {
            let may = precedence.done(chain.number(task, subtask));
            places(&chain, &may)
        };
        assert_eq!(done(0, 0), [(1, 0)]);
        assert_eq!(done(0, 2), []);
        assert_eq!(done(0, 1), [(1, 1), (1, 2)]);
        assert_eq!(done(1, 0), [(2, 0)]);
        assert_eq!(done(1, 1), [(2, 1)]);
        assert_eq!(done(0, 3), [(1, 3)]);
        assert_eq!(precedence.ended(), 1);
    }

    #[test]
    fn a_window_of_one_task_is_a_barrier() {
        let chain = chain(2);
        let mut precedence = Precedence::new(Arc::clone(&chain), 1);
        for subtask in 0..COUNT - 1 {
            assert!(precedence.done(chain.number(0, subtask)).is_empty());
        }
        let may = precedence.done(chain.number(0, COUNT - 1));
        assert_eq!(places(&chain, &may), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    }

    /// Whoever is awaited longest has the least number.
    #[test]
    fn numbers_follow_what_is_to_be_done_after() {
        let chain = chain(3);
        let tasks: Vec<usize> = (0..chain.count()).map(|s| chain.place(s).0).collect();
        assert!(tasks.is_sorted(), "{tasks:?}");
    }
}
