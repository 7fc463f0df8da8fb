//! The coordinator: carries out what the policy orders, and knows when a task has ended.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::{Action, Message, Results};
use crate::cluster::NodeId;
use crate::cluster::info::Nodes;
use crate::cluster::space::Spaces;
use crate::cluster::task::chain::Chain;
use crate::cluster::task::{Task, TaskId};
use crate::spread::{Completion, Finished, Network, Order, Requests, Spread, TaskState};
use crate::time::Nanos;

/// A task that runs, or a chain of them.
struct Running {
    id: TaskId,
    chain: Arc<Chain>,
    state: TaskState,
    phase: Phase,
    /// How many of its tasks' ends were reported.
    ended: usize,
    /// By node: the subtasks of which it knows who has their results.
    informed: Vec<HashSet<u64>>,
}

impl Running {
    /// Who has what these subtasks read of the results of others, as far as a node does
    /// not know it.
    fn written(&mut self, node: NodeId, subtasks: &[Range<u64>]) -> Results {
        let mut written = Vec::new();
        if self.chain.is_woven() {
            let sources = subtasks.iter().cloned().flatten();
            let sources = sources.flat_map(|subtask| self.chain.sources(subtask));
            for writer in sources.filter_map(|source| source.writer) {
                if let Some(holder) = self.state.ledger().holder(writer)
                    && self.informed[node.index()].insert(writer)
                {
                    written.push((writer..writer + 1, holder));
                }
            }
        }
        written.into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Computing,
    /// The nodes' results are combined at a node.
    Combining(NodeId),
}

/// The coordinator, at node 0.
pub(super) struct Coordinator {
    spread: Box<dyn Spread>,
    network: Network,
    nodes: Nodes,
    alive: Vec<bool>,
    /// Which devices of each node work.
    working: Vec<Vec<bool>>,
    /// The number of nodes that get subtasks, the first ones.
    part: usize,
    running: Option<Running>,
    /// Who has results of the last chain, which the directory may not have yet.
    last: Vec<NodeId>,
    /// How often the tasks have begun anew since the policy broke a rule.
    mistakes: u32,
    /// Whether all nodes have data of a computation that is no task, so that a loss makes all
    /// begin anew.
    is_held_together: bool,
}

/// So many mistakes of the policy are repaired. A mistake that it makes again and again
/// ends the run.
const MISTAKES: u32 = 3;

impl Coordinator {
    pub fn new(spread: Box<dyn Spread>, network: Network) -> Self {
        Self {
            spread,
            network,
            nodes: Nodes::from([]),
            alive: Vec::new(),
            working: Vec::new(),
            part: usize::MAX,
            running: None,
            last: Vec::new(),
            mistakes: 0,
            is_held_together: false,
        }
    }

    /// All nodes have reported what they are.
    pub fn welcome(&mut self, nodes: Nodes) {
        self.alive = vec![true; nodes.len()];
        self.working = nodes
            .iter()
            .map(|node| vec![true; node.devices.len()])
            .collect();
        self.nodes = nodes;
    }

    /// Whether a loss makes all begin anew, whatever data are lost.
    pub fn hold_together(&mut self, is_so: bool) {
        self.is_held_together = is_so;
    }

    /// Only the first nodes, so many, get subtasks.
    pub fn take_part(&mut self, nodes: usize) {
        self.part = nodes;
    }

    /// Which devices of each node work.
    pub fn working(&self) -> &[Vec<bool>] {
        &self.working
    }

    pub fn requests(&self) -> Requests {
        self.spread.requests()
    }

    fn tell(&self, message: &Message, actions: &mut Vec<Action>) {
        for node in (0..).map(NodeId).take(self.alive.len()) {
            if self.alive[node.index()] {
                let message = message.clone();
                actions.push(Action::Send { to: node, message });
            }
        }
    }

    /// A task begins.
    pub fn begin(
        &mut self,
        id: TaskId,
        chain: Arc<Chain>,
        spaces: &Spaces,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        let data = self.spread.wants_data().then_some(spaces);
        if !self.part_works() {
            self.part = usize::MAX;
        }
        let (nodes, mut working) = (Arc::clone(&self.nodes), self.working.clone());
        let without = working.iter_mut().skip(self.part);
        without.for_each(|devices| devices.fill(false));
        let woven = (Arc::clone(&chain), self.spread.window());
        let state = TaskState::new(woven, nodes, working, data, self.network, now);
        self.running = Some(Running {
            id,
            chain,
            state,
            phase: Phase::Computing,
            ended: 0,
            informed: vec![HashSet::new(); self.alive.len()],
        });
        self.decide(id, now, actions, |spread, state| spread.begin(state));
        self.end_if_done(actions);
    }

    /// Has the policy decide, if a task computes, and carries out what it orders.
    fn decide(
        &mut self,
        task: TaskId,
        now: Nanos,
        actions: &mut Vec<Action>,
        decide: impl FnOnce(&mut dyn Spread, &mut TaskState),
    ) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.id != task || running.phase != Phase::Computing {
            return;
        }
        running.state.set_now(now);
        decide(&mut *self.spread, &mut running.state);
        if let Some(broken) = running.state.broken() {
            let why = format!("policy {}: {broken}", self.spread.name());
            self.repair(why, actions);
            return;
        }
        for order in running.state.take_orders() {
            let (to, message) = match order {
                Order::Assign { node, subtasks } => {
                    let written = running.written(node, &subtasks);
                    let message = Message::Assign {
                        task,
                        subtasks,
                        written,
                    };
                    (node, message)
                }
                Order::Revoke { node, subtasks } => (node, Message::Revoke { task, subtasks }),
                Order::WakeAt(at) => {
                    actions.push(Action::WakeAt(at));
                    continue;
                }
            };
            actions.push(Action::Send { to, message });
        }
    }

    /// The policy has made a mistake. What nodes have of the present attempt is given up, so
    /// a mistake costs time, and not the run.
    fn repair(&mut self, why: String, actions: &mut Vec<Action>) {
        self.mistakes += 1;
        self.running = None;
        self.last.clear();
        let message = match self.mistakes > MISTAKES {
            true => Message::Stop {
                why: format!(
                    "{why}; the tasks have begun anew {MISTAKES} times, so another --spread is \
                     needed"
                ),
            },
            false => Message::Again { why },
        };
        self.tell(&message, actions);
    }

    /// A node has lost data of tasks that have ended.
    pub fn gone(&mut self, why: String, actions: &mut Vec<Action>) {
        self.running = None;
        self.last.clear();
        self.tell(&Message::Again { why }, actions);
    }

    /// The time that the policy asked for has come.
    pub fn woken(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        if let Some(task) = self.running.as_ref().map(|running| running.id) {
            self.decide(task, now, actions, |spread, state| spread.woken(state));
        }
    }

    /// A node has done a subtask.
    pub fn done(
        &mut self,
        task: TaskId,
        mut finished: Finished,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        if !self.alive[finished.node.index()] {
            return;
        }
        let Some(running) = self.running.as_mut().filter(|running| running.id == task) else {
            return;
        };
        let (node, subtask) = (finished.node, finished.subtask);
        finished.counts = match running.state.note_done(subtask, node) {
            Completion::First { cancel } => {
                if running.chain.reduces() {
                    let message = Message::Accept { task, subtask };
                    actions.push(Action::Send { to: node, message });
                }
                if let Some(to) = cancel {
                    let message = Message::Cancel { task, subtask };
                    actions.push(Action::Send { to, message });
                }
                true
            }
            Completion::Again => false,
        };
        self.decide(task, now, actions, |spread, state| {
            spread.done(&finished, state);
            let freed = state.take_freed();
            if !freed.is_empty() {
                spread.freed(&freed, state);
            }
        });
        self.end_if_done(actions);
    }

    /// Tells the ends of tasks, in order.
    fn end_if_done(&mut self, actions: &mut Vec<Action>) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.phase != Phase::Computing {
            return;
        }
        if !running.chain.reduces() {
            while let Some(running) = &self.running
                && running.ended < running.state.ended()
            {
                let results = running.state.results(running.ended);
                self.end(results, actions);
            }
            return;
        }
        if running.state.ledger().open() > 0 {
            return;
        }
        let (task, results) = (running.id, running.state.results(0));
        let mut nodes: Vec<NodeId> = results.iter().map(|(_, node)| *node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        match nodes.first() {
            Some(&first) => {
                running.phase = Phase::Combining(first);
                for &to in &nodes {
                    let nodes = nodes.clone();
                    let message = Message::Combine { task, nodes };
                    actions.push(Action::Send { to, message });
                }
            }
            None => self.end(results, actions),
        }
    }

    /// All results of a reduction are combined.
    pub fn combined(&mut self, task: TaskId, actions: &mut Vec<Action>) {
        let Some(running) = self.running.as_ref().filter(|running| running.id == task) else {
            return;
        };
        if let Phase::Combining(node) = running.phase {
            let count = running.state.count();
            self.end(vec![(0..count, node)], actions);
        }
    }

    /// The next task of the chain has ended.
    fn end(&mut self, results: Vec<(Range<u64>, NodeId)>, actions: &mut Vec<Action>) {
        let Some(running) = &mut self.running else {
            return;
        };
        let (task, index, results) = (running.id, running.ended, Results::from(results));
        running.ended += 1;
        if index == 0 {
            self.last.clear();
        }
        self.last.extend(results.iter().map(|(_, node)| *node));
        self.last.sort_unstable();
        self.last.dedup();
        if running.ended == running.chain.tasks().len() {
            self.running = None;
        }
        let message = Message::Ended {
            task,
            index,
            results,
        };
        self.tell(&message, actions);
    }

    /// A node gives subtasks back and keeps others.
    pub fn revoked(
        &mut self,
        task: TaskId,
        node: NodeId,
        (subtasks, kept): (&[Range<u64>], &[Range<u64>]),
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        if !self.alive[node.index()] {
            return;
        }
        let Some(running) = self.running.as_mut().filter(|running| running.id == task) else {
            return;
        };
        if !running.state.note_revoked(node, subtasks, kept) {
            return;
        }
        self.decide(task, now, actions, |spread, state| {
            spread.revoked(node, subtasks, kept, state);
        });
    }

    /// A device of a node has failed.
    pub fn device_lost(
        &mut self,
        node: NodeId,
        device: u32,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        let device = device as usize;
        if let Some(works) = self.working[node.index()].get_mut(device) {
            *works = false;
        }
        if self.fail_without_devices(actions) {
            return;
        }
        if self.running.is_some() && !self.part_works() {
            let why = "the nodes that took part have no device left".to_owned();
            return self.gone(why, actions);
        }
        let Some(running) = &mut self.running else {
            return;
        };
        running.state.note_device_lost(node, device);
        let task = running.id;
        self.decide(task, now, actions, |spread, state| {
            spread.device_lost(node, device, state);
        });
    }

    /// Whether a node that gets subtasks can compute them.
    fn part_works(&self) -> bool {
        let part = self.working.iter().take(self.part);
        part.flatten().any(|works| *works)
    }

    fn fail_without_devices(&self, actions: &mut Vec<Action>) -> bool {
        let none = !self.working.iter().flatten().any(|&works| works);
        if none {
            let why = "no node has a device left; start the program again".to_owned();
            self.tell(&Message::Stop { why }, actions);
        }
        none
    }

    /// A node is gone. Its data with first contents go to the next node that is there. If
    /// it had others, or results were being combined, the tasks begin anew.
    pub fn lost(&mut self, lost: NodeId, spaces: &Spaces, now: Nanos, actions: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.alive[lost.index()], false) {
            return;
        }
        self.working[lost.index()].fill(false);
        if self.fail_without_devices(actions) {
            return;
        }
        let count = self.alive.len();
        let mut nodes = (1..count).map(|step| (lost.index() + step) % count);
        let successor = nodes
            .find(|&node| self.alive[node])
            .map_or(0, |node| node as u32);
        let successor = NodeId(successor);
        let combining = self
            .running
            .as_ref()
            .is_some_and(|running| running.phase != Phase::Computing);
        let unrecorded = self.last.contains(&lost);
        // Others may have read what it had computed, and what they read may be overwritten.
        let woven = self.running.as_ref().is_some_and(|running| {
            running.chain.is_woven() && running.state.ledger().has_results(lost)
        });
        let joint = combining || unrecorded || woven || self.is_held_together || !self.part_works();
        let restart = joint || spaces.clone().lost(lost, successor);
        let message = Message::Lost {
            node: lost,
            successor,
            restart,
        };
        self.tell(&message, actions);
        // If it was only out of reach, it must not wait for the others.
        actions.push(Action::Send { to: lost, message });
        if restart {
            self.running = None;
            self.last.clear();
            return;
        }
        let Some(running) = &mut self.running else {
            return;
        };
        running.state.note_lost(lost, successor);
        let task = running.id;
        self.decide(task, now, actions, |spread, state| spread.lost(lost, state));
    }
}

// Combining the nodes' results of a reduction along a binary tree (Unicorn, section III,
// figure 3).

/// A node's part in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Combining {
    /// How many other nodes' results are combined with this node's.
    combined: usize,
    /// How many nodes send their results to this one, and the node that gets them all;
    /// `None` before the coordinator has sent its order, and when this node's part is done.
    part: Option<(usize, Option<NodeId>)>,
}

impl Combining {
    /// The coordinator has informed the nodes that have results. The one at place p sends its
    /// to that at p without its lowest bit.
    pub fn begin(&mut self, me: NodeId, nodes: &[NodeId], task: TaskId, actions: &mut Vec<Action>) {
        let Some(place) = nodes.iter().position(|&node| node == me) else {
            return;
        };
        let steps = (0..usize::BITS).map(|bit| 1usize << bit);
        let steps = steps.take_while(|step| place & step == 0 && *step < nodes.len());
        let children = steps.filter(|step| place + step < nodes.len()).count();
        let parent = (place > 0).then(|| nodes[place & (place - 1)]);
        self.part = Some((children, parent));
        self.advance(task, actions);
    }

    /// Another node's results are combined with this node's.
    pub fn combined(&mut self, task: TaskId, actions: &mut Vec<Action>) {
        self.combined += 1;
        self.advance(task, actions);
    }

    fn advance(&mut self, task: TaskId, actions: &mut Vec<Action>) {
        match self.part {
            Some((children, parent)) if children == self.combined => {
                self.part = None;
                actions.push(match parent {
                    Some(to) => Action::SendCombined { to },
                    None => Action::Send {
                        to: NodeId::FIRST,
                        message: Message::Combined { task },
                    },
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every node sends once, and the first one has all, for any number of nodes.
    #[test]
    fn all_results_reach_the_first_node() {
        for count in 1..20 {
            let nodes: Vec<NodeId> = (0..count).map(|node| NodeId(node * 3)).collect();
            let mut parts = vec![Combining::default(); nodes.len()];
            let mut had: Vec<Vec<usize>> = (0..nodes.len()).map(|node| vec![node]).collect();
            let mut actions = Vec::new();
            let mut ended = None;
            for place in (0..nodes.len()).rev() {
                parts[place].begin(nodes[place], &nodes, TaskId(1), &mut actions);
                let mut from = place;
                while let Some(action) = actions.pop() {
                    let Action::SendCombined { to } = action else {
                        ended = Some(from);
                        continue;
                    };
                    let to = nodes.iter().position(|&node| node == to).unwrap();
                    let sent = std::mem::take(&mut had[from]);
                    had[to].extend(sent);
                    parts[to].combined(TaskId(1), &mut actions);
                    from = to;
                }
            }
            assert_eq!(ended, Some(0));
            had[0].sort();
            assert!(had[0].iter().copied().eq(0..nodes.len()));
        }
    }
}
