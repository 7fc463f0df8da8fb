//! A node: takes what happened to the part that it concerns.

use std::collections::HashMap;
use std::sync::Arc;

use super::coordinator::Coordinator;
use super::copies::Relayed;
use super::devices::Devices;
use super::fetch::Fetches;
use super::work::{Counts, Work};
use super::{Action, Cause, DeviceIndex, Event, Message, Settings};
use crate::cluster::NodeId;
use crate::cluster::info::{NodeInfo, Nodes};
use crate::cluster::space::Spaces;
use crate::cluster::task::TaskId;
use crate::cluster::task::chain::Chain;
use crate::spread::{Finished, Requests, Spread};
use crate::time::Nanos;

/// Tasks are numbered from 1 after each restart, of which the upper half has the number.
const RESTART: u64 = 1 << 32;

/// A node of a cluster as a state machine.
///
/// Its driver calls [`Self::hello`] once, then [`Self::on`] for each event, until
/// [`Self::is_ready`]. It calls [`Self::begin`] for each chain of tasks, and [`Self::on`]
/// until all of its tasks have ended. With each [`Action::Ended`] it notes in its spaces who
/// has the results ([`Spaces::record`]). All nodes begin the same chains in the same order,
/// each when it likes. What is sent to the node itself must come back as an event, in order, too.
pub struct NodeMachine {
    me: NodeId,
    program: String,
    info: NodeInfo,
    settings: Settings,
    /// At the coordinator: what each node has reported.
    infos: Vec<Option<NodeInfo>>,
    coordinator: Option<Coordinator>,
    nodes: Nodes,
    devices: Devices,
    /// The present chain, or the last one.
    task: TaskId,
    work: Option<Work>,
    /// Messages for tasks that have not begun here.
    early: Vec<(NodeId, Message)>,
    next_request: u64,
    /// Who answers for lost nodes.
    successors: HashMap<NodeId, NodeId>,
    /// Of the tasks that have ended since they began last.
    counts: Counts,
}

impl NodeMachine {
    /// Node `me` of `nodes`, which runs `program`. Node 0 needs the policy; others have
    /// none.
    ///
    /// # Panics
    /// When node 0 has no policy.
    pub fn new(
        me: NodeId,
        nodes: u32,
        program: String,
        info: NodeInfo,
        settings: Settings,
        spread: Option<Box<dyn Spread>>,
    ) -> Self {
        assert!(
            me != NodeId::FIRST || spread.is_some(),
            "node 0 needs a policy"
        );
        let coordinator = spread.filter(|_| me == NodeId::FIRST);
        Self {
            me,
            program,
            devices: Devices::new(&info, settings.prefetch),
            info,
            settings,
            infos: vec![
                None;
                if me == NodeId::FIRST {
                    nodes as usize
                } else {
                    0
                }
            ],
            coordinator: coordinator.map(|spread| Coordinator::new(spread, settings.network)),
            nodes: Nodes::from([]),
            task: TaskId(0),
            work: None,
            early: Vec::new(),
            next_request: 0,
            successors: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Tells the coordinator what this node is.
    pub fn hello(&self, actions: &mut Vec<Action>) {
        let (program, info) = (self.program.clone(), self.info.clone());
        let message = Message::Hello { program, info };
        let to = NodeId::FIRST;
        actions.push(Action::Send { to, message });
    }

    /// Whether all nodes are there, so that tasks may begin.
    pub fn is_ready(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// All nodes, lost ones included; none before they are all there.
    pub fn nodes(&self) -> &[NodeInfo] {
        &self.nodes
    }

    /// The node that has a node's data with first contents: itself, unless it was lost.
    /// New spaces must be placed accordingly.
    pub fn successor(&self, mut node: NodeId) -> NodeId {
        while let Some(&successor) = self.successors.get(&node) {
            node = successor;
        }
        node
    }

    /// All nodes compute together something that is no task. At the coordinator, a loss makes
    /// all begin anew then.
    pub fn hold_together(&mut self, is_so: bool) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.hold_together(is_so);
        }
    }

    /// At the coordinator: only the first nodes, so many, get subtasks from now on, until the
    /// tasks begin anew.
    pub fn take_part(&mut self, nodes: usize) {
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.take_part(nodes);
        }
    }

    /// At the coordinator: which devices of each node work. Elsewhere none.
    pub fn working(&self) -> &[Vec<bool>] {
        let coordinator = self.coordinator.as_ref();
        coordinator.map_or(&[], Coordinator::working)
    }

    /// At the coordinator: the policy's requests for other nodes' work.
    pub fn requests(&self) -> Requests {
        let coordinator = self.coordinator.as_ref();
        coordinator.map_or_else(Requests::default, Coordinator::requests)
    }

    /// The present chain of tasks, or the last one. Its tasks have one number.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// How often the tasks have begun anew, as all nodes know it: two losses may be reported at
    /// once.
    pub fn restarts(&self) -> u64 {
        self.task.0 / RESTART
    }

    /// Whether a task belongs to the present attempt.
    pub fn is_of_attempt(&self, task: TaskId) -> bool {
        task.0 / RESTART == self.restarts()
    }

    /// The subtasks of the present task that are here and have not ended; `None` if there are
    /// more than `most`.
    pub fn present(&self, most: usize) -> Option<Vec<u64>> {
        let work = self.work.as_ref();
        work.map_or_else(
            || Some(Vec::new()),
            |work| work.present(&self.devices, most),
        )
    }

    /// What became of this node's subtasks in the tasks that have ended since the tasks
    /// began last.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Begins the next chain of tasks. The driver calls it when the node is ready and no task
    /// runs.
    pub fn begin(
        &mut self,
        task: Arc<Chain>,
        spaces: &Spaces,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        self.task.0 += 1;
        let network = self.settings.network;
        let fetches = Fetches::new(
            self.me,
            self.task,
            (self.settings.cache, network),
            self.next_request,
            self.successors.clone(),
        );
        let work = Work::new(
            (self.task, self.me),
            (Arc::clone(&task), &self.info),
            fetches,
            (network, spaces),
        );
        self.devices.begin(&self.info, work.kinds());
        self.work = Some(work);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.begin(self.task, task, spaces, now, actions);
        }
        for (from, message) in std::mem::take(&mut self.early) {
            self.message(from, message, now, spaces, actions);
        }
        self.advance(now, spaces, actions);
    }

    /// Something happened.
    pub fn on(&mut self, event: Event, now: Nanos, spaces: &Spaces, actions: &mut Vec<Action>) {
        match event {
            Event::Message { from, message } => self.message(from, message, now, spaces, actions),
            Event::Fetched { request } => match &mut self.work {
                Some(work) => work.fetched(request, actions),
                None => actions.push(Action::Release { request }),
            },
            Event::Done {
                device,
                task,
                subtask,
                took,
            } => self.done(device, (task, subtask), took, (now, spaces), actions),
            Event::Lacked {
                device,
                task,
                subtask,
            } => {
                let ran = self.devices.done(device, (task, subtask), now);
                if let Some(work) = &mut self.work
                    && let Some(running) = ran.filter(|running| running.task == work.id)
                {
                    work.lacked(running, &self.devices, spaces, actions);
                }
            }
            Event::DeviceLost { device, .. } => {
                let lost = self.devices.lost(device);
                let message = Message::DeviceLost { device: device.0 };
                let to = NodeId::FIRST;
                actions.push(Action::Send { to, message });
                if let Some(work) = &mut self.work {
                    let id = work.id;
                    let wanted = lost.iter().filter(|r| r.task == id && !r.cancelled);
                    work.device_lost(wanted.map(|r| r.subtask), &self.devices, actions);
                }
            }
            Event::Gone { why } => {
                let attempt = self.restarts();
                let to = NodeId::FIRST;
                let message = Message::Gone { attempt, why };
                actions.push(Action::Send { to, message });
            }
            Event::Combined => {
                if let Some(work) = &mut self.work {
                    work.combining.combined(work.id, actions);
                }
            }
            Event::NodeLost { node } => self.node_lost(node, now, spaces, actions),
            // The coordinator alone says who is lost. Without it there is no run, so it is
            // lost if one other node says so: all nodes come to one verdict. Other nodes
            // have reported to the coordinator that they do not reach this one.
            Event::Excluded { by } if self.me == NodeId::FIRST || by == NodeId::FIRST => {
                actions.push(Action::Excluded { by });
            }
            Event::Excluded { .. } => {}
            Event::Woken => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.woken(now, actions);
                }
            }
        }
        self.advance(now, spaces, actions);
    }

    fn advance(&mut self, now: Nanos, spaces: &Spaces, actions: &mut Vec<Action>) {
        if let Some(work) = &mut self.work {
            let prefetch = self.settings.prefetch;
            work.advance(&mut self.devices, prefetch, spaces, now, actions);
        }
    }

    fn done(
        &mut self,
        device: DeviceIndex,
        (task, subtask): (TaskId, u64),
        took: Nanos,
        (now, spaces): (Nanos, &Spaces),
        actions: &mut Vec<Action>,
    ) {
        let Some(running) = self.devices.done(device, (task, subtask), now) else {
            return;
        };
        // Where its task has ended, nothing of it is wanted.
        let work = self.work.as_mut().filter(|work| work.id == running.task);
        if let Some(work) = work {
            let kinds = work.kinds();
            let work_of = (kinds.kind(subtask), kinds.weight(subtask));
            self.devices.learn(device, work_of, took, now);
            if work.done(running, actions) {
                // What the device does next is part of the report.
                let prefetch = self.settings.prefetch;
                work.advance(&mut self.devices, prefetch, spaces, now, actions);
                work.report(subtask, device, took, &self.devices, actions);
            }
        }
    }

    fn node_lost(&mut self, node: NodeId, now: Nanos, spaces: &Spaces, actions: &mut Vec<Action>) {
        let is_ready = self.is_ready();
        match &mut self.coordinator {
            _ if node == NodeId::FIRST => actions.push(Action::FirstLost),
            // A node that ends since another one has told why is lost, too: the first one tells
            // which came first.
            None => actions.push(Action::Send {
                to: NodeId::FIRST,
                message: Message::Unreachable { node },
            }),
            Some(coordinator) if is_ready => coordinator.lost(node, spaces, now, actions),
            Some(_) => {
                let why = format!("{node} was lost before the run began; start the program again");
                actions.push(Action::Fail { why });
            }
        }
    }

    /// The task that a message is about.
    fn task_of(message: &Message) -> Option<TaskId> {
        match message {
            Message::Assign { task, .. }
            | Message::Revoke { task, .. }
            | Message::Cancel { task, .. }
            | Message::Accept { task, .. }
            | Message::Combine { task, .. }
            | Message::Ended { task, .. }
            | Message::Fetch { task, .. }
            | Message::Relay { task, .. }
            | Message::NotHere { task, .. } => Some(*task),
            _ => None,
        }
    }

    fn message(
        &mut self,
        from: NodeId,
        message: Message,
        now: Nanos,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        match Self::task_of(&message) {
            Some(task) if task > self.task => self.early.push((from, message)),
            Some(task) => {
                if self.work.as_ref().is_some_and(|work| work.id == task) {
                    self.task_message(from, message, (now, spaces), actions);
                }
            }
            None => self.other_message(from, message, now, spaces, actions),
        }
    }

    /// A message about the present task.
    fn task_message(
        &mut self,
        from: NodeId,
        message: Message,
        of: (Nanos, &Spaces),
        actions: &mut Vec<Action>,
    ) {
        let Some(work) = &mut self.work else { return };
        match message {
            Message::Assign {
                subtasks, written, ..
            } => work.assign(subtasks, &written, &self.devices, actions),
            Message::Revoke { subtasks, .. } => work.revoke(subtasks, actions),
            Message::Cancel { subtask, .. } => work.cancel(subtask, &mut self.devices, actions),
            Message::Accept { subtask, .. } => work.accept(subtask, actions),
            Message::Combine { nodes, task } => {
                work.combining.begin(self.me, &nodes, task, actions);
            }
            Message::Ended { index, results, .. } => {
                work.ended((index, self.me), &results, of.1, actions);
                if index + 1 == work.task.tasks().len() {
                    self.stop_work(actions);
                }
                actions.push(Action::Ended { index, results });
            }
            Message::Fetch {
                request, sources, ..
            } => work.asked(from, (request, sources), of, actions),
            Message::Relay {
                to,
                request,
                source,
                ..
            } => {
                let relayed = Relayed {
                    to,
                    request,
                    source,
                };
                work.relay(from, relayed, actions);
            }
            Message::NotHere {
                to,
                request,
                source,
                ..
            } => {
                let relayed = Relayed {
                    to,
                    request,
                    source,
                };
                work.not_here(from, relayed, actions);
            }
            _ => {}
        }
    }

    /// Ends the present task here. What still runs is a copy of what another node did, or
    /// will be done again.
    fn stop_work(&mut self, actions: &mut Vec<Action>) {
        if let Some(work) = self.work.take() {
            self.next_request = work.fetches.next();
            self.counts += work.counts;
            for (device, subtask) in self.devices.all_running(work.id) {
                self.counts.copied += 1;
                let device = DeviceIndex(device as u32);
                actions.push(Action::Abort { device, subtask });
            }
        }
    }

    fn other_message(
        &mut self,
        from: NodeId,
        message: Message,
        now: Nanos,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        match message {
            Message::Hello { program, info } => self.greeted(from, &program, info, actions),
            Message::Welcome { nodes } => self.nodes = nodes,
            Message::Lost {
                node,
                successor,
                restart,
            } => self.received_lost(node, successor, restart, spaces, actions),
            Message::Again { why } => self.restart(Cause::Mistake(why), actions),
            Message::Stop { why } => actions.push(Action::Fail { why }),
            Message::Unreachable { node } => self.node_lost(node, now, spaces, actions),
            Message::Gone { attempt, why } => {
                if attempt == self.restarts()
                    && let Some(coordinator) = &mut self.coordinator
                {
                    coordinator.gone(why, actions);
                }
            }
            message => {
                if let Some(coordinator) = &mut self.coordinator {
                    Self::coordinate(coordinator, from, message, now, actions);
                }
            }
        }
    }

    fn coordinate(
        coordinator: &mut Coordinator,
        node: NodeId,
        message: Message,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        match message {
            Message::Done {
                task,
                subtask,
                device,
                took,
                next,
            } => {
                let finished = Finished {
                    node,
                    device: device as usize,
                    subtask,
                    took,
                    next,
                    counts: true,
                };
                coordinator.done(task, finished, now, actions);
            }
            Message::Revoked {
                task,
                subtasks,
                kept,
            } => coordinator.revoked(task, node, (&subtasks, &kept), now, actions),
            Message::Combined { task } => coordinator.combined(task, actions),
            Message::DeviceLost { device } => coordinator.device_lost(node, device, now, actions),
            _ => {}
        }
    }

    /// At the coordinator: a node reports what it is. When all have, all nodes receive it.
    fn greeted(&mut self, from: NodeId, program: &str, info: NodeInfo, actions: &mut Vec<Action>) {
        let Some(coordinator) = &mut self.coordinator else {
            return;
        };
        let all = (0..).map(NodeId).take(self.infos.len());
        if program != self.program {
            let why = format!(
                "{from} ({}) runs `{program}`, node 0 runs `{}`; start the same program with the same arguments on all nodes",
                info.name, self.program
            );
            for to in all {
                let message = Message::Stop { why: why.clone() };
                actions.push(Action::Send { to, message });
            }
            return;
        }
        if let Some(infos) = self.infos.get_mut(from.index()) {
            *infos = Some(info);
        }
        if !self.infos.iter().all(Option::is_some) {
            return;
        }
        if let Some(nodes) = self.infos.iter().cloned().collect::<Option<Nodes>>() {
            coordinator.welcome(Arc::clone(&nodes));
            for to in all {
                let nodes = Arc::clone(&nodes);
                let message = Message::Welcome { nodes };
                actions.push(Action::Send { to, message });
            }
        }
    }

    /// The coordinator reports that a node is lost.
    fn received_lost(
        &mut self,
        node: NodeId,
        successor: NodeId,
        restart: bool,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        if node == self.me {
            let by = NodeId::FIRST;
            actions.push(Action::Excluded { by });
            return;
        }
        self.successors.insert(node, successor);
        if restart {
            self.restart(Cause::Lost(node), actions);
            return;
        }
        actions.push(Action::Lost { node, successor });
        if let Some(work) = &mut self.work {
            work.lost(node, successor, spaces, actions);
        }
    }

    /// The tasks begin anew. What was reported of the present attempt is forgotten.
    fn restart(&mut self, cause: Cause, actions: &mut Vec<Action>) {
        self.stop_work(actions);
        self.counts = Counts::default();
        self.task = TaskId((self.restarts() + 1) * RESTART);
        self.early
            .retain(|(_, message)| Self::task_of(message).is_some_and(|task| task > self.task));
        actions.push(Action::Restart { cause });
    }
}
