//! A node's part in a task: its queue, what it fetches, and what runs.

use std::collections::{BTreeSet, HashMap};
use std::ops::{AddAssign, Range};
use std::sync::Arc;

use super::coordinator::Combining;
use super::copies::{Copies, Relayed};
use super::devices::{Devices, Queue, Running};
use super::fetch::{Fetches, travels_alone};
use super::{Action, DeviceIndex, Message, RequestId, Results};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::space::Spaces;
use crate::cluster::task::chain::{Chain, Source};
use crate::cluster::task::{Task, TaskId, extend_runs};
use crate::spread::rate::Kinds;
use crate::spread::{Network, Next};
use crate::time::Nanos;

/// What became of a node's subtasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those whose results count. In a task that reduces, those that the coordinator has
    /// accepted, wherever the combined result is.
    pub subtasks: u64,
    /// Those that were computed, or begun, although another node had their result first.
    pub copied: u64,
    /// Those that were given back before they began.
    pub given_back: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.subtasks += other.subtasks;
        self.copied += other.copied;
        self.given_back += other.given_back;
    }
}

/// Subtasks behind the next one that are looked at, at most.
const BEHIND: usize = 128;

/// A node's part in the present task, or in a chain of them.
pub(super) struct Work {
    pub id: TaskId,
    pub task: Arc<Chain>,
    kinds: Kinds,
    queue: Queue,
    /// Who has what other subtasks have written for those that were given to this node.
    written: HashMap<u64, NodeId>,
    /// How many subtasks it was given, and how much had come, when it looked last which of them
    /// can begin without waiting for what others wait for.
    given: u64,
    looked: (u64, u64),
    /// Subtasks whose results this node has.
    done: BTreeSet<u64>,
    pub fetches: Fetches,
    network: Network,
    copies: Copies,
    pub combining: Combining,
    pub counts: Counts,
}

fn send(message: Message, actions: &mut Vec<Action>) {
    let to = NodeId::FIRST;
    actions.push(Action::Send { to, message });
}

fn serve(relayed: Relayed, actions: &mut Vec<Action>) {
    let Relayed {
        to,
        request,
        source,
    } = relayed;
    let sources = vec![source];
    actions.push(Action::Serve {
        to,
        request,
        sources,
    });
}

impl Work {
    pub fn new(
        (id, me): (TaskId, NodeId),
        (task, info): (Arc<Chain>, &NodeInfo),
        fetches: Fetches,
        (network, spaces): (Network, &Spaces),
    ) -> Self {
        Self {
            id,
            kinds: Kinds::of(Arc::clone(&task), Some(spaces), info.devices.iter()),
            queue: Queue::new(task.is_woven()),
            task,
            written: HashMap::new(),
            given: 0,
            looked: (0, 0),
            done: BTreeSet::new(),
            fetches,
            network,
            copies: Copies::new(me, network),
            combining: Combining::default(),
            counts: Counts::default(),
        }
    }

    /// The kinds of its subtasks.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The subtasks that are here and have not ended; `None` if there are more than `most`.
    pub fn present(&self, devices: &Devices, most: usize) -> Option<Vec<u64>> {
        let running = devices.all_running(self.id).map(|(_, subtask)| subtask);
        let present: Vec<u64> = running.chain(self.queue.iter()).take(most + 1).collect();
        (present.len() <= most).then_some(present)
    }

    /// The coordinator gives subtasks, and tells who has what was written for them. A node
    /// without devices gives them back.
    pub fn assign(
        &mut self,
        subtasks: Vec<Range<u64>>,
        written: &Results,
        devices: &Devices,
        actions: &mut Vec<Action>,
    ) {
        for (run, node) in written.iter() {
            (self.written).extend(run.clone().map(|subtask| (subtask, *node)));
        }
        self.given += 1;
        self.queue.extend(subtasks.into_iter().flatten());
        if devices.working() == 0 {
            self.give_all_back(actions);
        }
    }

    fn give_all_back(&mut self, actions: &mut Vec<Action>) {
        let mut subtasks = Vec::new();
        for subtask in self.queue.take() {
            self.fetches.leave(subtask, actions);
            extend_runs(&mut subtasks, subtask);
            self.counts.given_back += 1;
        }
        let (task, kept) = (self.id, Vec::new());
        let message = Message::Revoked {
            task,
            subtasks,
            kept,
        };
        send(message, actions);
    }

    /// The coordinator wants subtasks back: it gets those that have not begun.
    pub fn revoke(&mut self, subtasks: Vec<Range<u64>>, actions: &mut Vec<Action>) {
        let asked: BTreeSet<u64> = subtasks.into_iter().flatten().collect();
        let (mut back, mut kept) = (Vec::new(), Vec::new());
        for subtask in asked {
            match self.queue.remove(subtask) {
                true => {
                    self.fetches.leave(subtask, actions);
                    extend_runs(&mut back, subtask);
                    self.counts.given_back += 1;
                }
                false => extend_runs(&mut kept, subtask),
            }
        }
        let message = Message::Revoked {
            task: self.id,
            subtasks: back,
            kept,
        };
        send(message, actions);
    }

    /// Another node has the result of a subtask. The coordinator learns when it is
    /// forgotten here, as a report that it is done may be on its way.
    pub fn cancel(&mut self, subtask: u64, devices: &mut Devices, actions: &mut Vec<Action>) {
        if self.done.remove(&subtask) {
            self.counts.copied += 1;
            actions.push(Action::Discard { subtask });
        } else if self.queue.remove(subtask) {
            self.counts.given_back += 1;
            self.fetches.leave(subtask, actions);
        } else if let Some(device) = devices.cancel(self.id, subtask) {
            self.counts.copied += 1;
            actions.push(Action::Abort { device, subtask });
        }
        let run = subtask..subtask + 1;
        let message = Message::Revoked {
            task: self.id,
            subtasks: vec![run],
            kept: Vec::new(),
        };
        send(message, actions);
    }

    /// In a task that reduces, the result of a subtask counts.
    pub fn accept(&mut self, subtask: u64, actions: &mut Vec<Action>) {
        if self.done.contains(&subtask) {
            self.counts.subtasks += 1;
            actions.push(Action::Keep { subtask });
        }
    }

    /// A device has ended a subtask of this task. The result is whether anybody wants it.
    pub fn done(&mut self, running: Running, actions: &mut Vec<Action>) -> bool {
        let subtask = running.subtask;
        self.fetches.leave(subtask, actions);
        if running.cancelled {
            actions.push(Action::Discard { subtask });
            return false;
        }
        self.done.insert(subtask);
        if !self.task.reduces() {
            actions.push(Action::Keep { subtask });
        }
        true
    }

    /// A device has ended a subtask that reads more than was known: it is begun again when all
    /// that is here.
    pub fn lacked(
        &mut self,
        running: Running,
        devices: &Devices,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        let subtask = running.subtask;
        if running.cancelled {
            return self.fetches.leave(subtask, actions);
        }
        let chain = (&*self.task, &self.written);
        (self.fetches).fetch_again(subtask, chain, spaces, actions);
        self.queue.again(subtask);
        if devices.working() == 0 {
            self.give_all_back(actions);
        }
    }

    /// Tells the coordinator that a subtask is done, and what its device does now.
    pub fn report(
        &self,
        subtask: u64,
        device: DeviceIndex,
        took: Nanos,
        devices: &Devices,
        actions: &mut Vec<Action>,
    ) {
        let waits = !(self.queue.asked()).any(|subtask| self.fetches.is_here(subtask));
        let next = match devices.computes(device) {
            true => Next::Computes,
            false if waits && self.queue.len() > 0 => Next::Waits,
            // The node's other devices do the rest sooner, if there is any.
            false => Next::Nothing,
        };
        let message = Message::Done {
            task: self.id,
            subtask,
            device: device.0,
            took,
            next,
        };
        send(message, actions);
    }

    /// A device has failed: what ran on it is to be done first by the others.
    pub fn device_lost(
        &mut self,
        running: impl IntoIterator<Item = u64>,
        devices: &Devices,
        actions: &mut Vec<Action>,
    ) {
        for subtask in running {
            self.queue.again(subtask);
        }
        if devices.working() == 0 {
            self.give_all_back(actions);
        }
    }

    /// A node asks for parts that are this node's. It gets them from here, or from another
    /// node that has asked for them before.
    pub fn asked(
        &mut self,
        to: NodeId,
        (request, sources): (RequestId, Vec<Source>),
        (now, spaces): (Nanos, &Spaces),
        actions: &mut Vec<Action>,
    ) {
        if self.fetches.is_lost(to) {
            // It asked before it was lost, and has nothing that others could get from it.
            return;
        }
        if let [source] = &sources[..]
            && travels_alone(spaces.bytes(&source.part), self.network)
        {
            let source = source.clone();
            let bytes = spaces.bytes(&source.part);
            let wanted = Relayed {
                to,
                request,
                source,
            };
            let sender = self.copies.sender(wanted.clone(), bytes, now);
            if sender != self.fetches.me() {
                let message = Message::Relay {
                    task: self.id,
                    to,
                    request,
                    source: wanted.source,
                };
                let to = sender;
                return actions.push(Action::Send { to, message });
            }
        }
        actions.push(Action::Serve {
            to,
            request,
            sources,
        });
    }

    /// A node tells this one to answer the request of another one.
    pub fn relay(&mut self, from: NodeId, relayed: Relayed, actions: &mut Vec<Action>) {
        if !self.fetches.relay(&relayed, actions) {
            let Relayed {
                to,
                request,
                source,
            } = relayed;
            let message = Message::NotHere {
                task: self.id,
                to,
                request,
                source,
            };
            let to = from;
            actions.push(Action::Send { to, message });
        }
    }

    /// A node does not have a block that it was to send.
    pub fn not_here(&mut self, from: NodeId, relayed: Relayed, actions: &mut Vec<Action>) {
        self.copies.forgotten(from, &relayed.source);
        serve(relayed, actions);
    }

    /// A node is lost, and another one answers for what it has. This one sends what the lost
    /// one was to send for it.
    pub fn lost(
        &mut self,
        lost: NodeId,
        successor: NodeId,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        self.fetches.lost(lost, successor, spaces, actions);
        for relayed in self.copies.lost(lost) {
            serve(relayed, actions);
        }
    }

    /// The chain's task of an index has ended, as those before it have.
    pub fn ended(
        &mut self,
        (index, me): (usize, NodeId),
        results: &Results,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        if !self.task.reduces() {
            let own = results.iter().filter(|(_, node)| *node == me);
            let own = own.map(|(run, _)| run.end - run.start);
            self.counts.subtasks += own.sum::<u64>();
        }
        if index + 1 < self.task.tasks().len() {
            self.fetches.ended(index, &self.task, spaces, actions);
        }
    }

    /// What a request brings is here.
    pub fn fetched(&mut self, request: RequestId, actions: &mut Vec<Action>) {
        self.fetches.fetched(request, actions);
    }

    /// Fetches what the next subtasks read, and starts those that devices have room for.
    pub fn advance(
        &mut self,
        devices: &mut Devices,
        prefetch: u32,
        spaces: &Spaces,
        now: Nanos,
        actions: &mut Vec<Action>,
    ) {
        loop {
            if let Some((device, subtask)) = self.next(devices, now) {
                self.queue.remove(subtask);
                let work = self.work_of(subtask);
                devices.start(device, (self.id, subtask), work, now);
                let device = DeviceIndex(device as u32);
                actions.push(Action::Start { device, subtask });
                continue;
            }
            let may_ask = match prefetch {
                0 => self.queue.fetched() < devices.free_slots(self.id),
                _ => self.fetches.has_room(prefetch),
            };
            match self.queue.next_unasked() {
                Some(_) if !may_ask && self.look_behind(devices, spaces, actions) => {}
                // Where it is still on a device, though its result was not wanted, the end of
                // that run leaves what it reads.
                Some(subtask) if may_ask && !devices.runs(self.id, subtask) => {
                    let chain = (&*self.task, &self.written);
                    let needs = self.fetches.fetch(subtask, chain, spaces, actions);
                    self.queue.set_asked(needs);
                }
                _ => return,
            }
        }
    }

    /// The kind of a subtask, and how much work it is.
    fn work_of(&self, subtask: u64) -> (usize, f64) {
        (self.kinds.kind(subtask), self.kinds.weight(subtask))
    }

    /// The next subtask that a device should begin now, and that device.
    fn next(&self, devices: &Devices, now: Nanos) -> Option<(usize, u64)> {
        if devices.free_slots(self.id) == 0 {
            return None;
        }
        // A cancelled run of it must end first: nothing distinguishes its result.
        let can_begin =
            |subtask: &u64| self.fetches.is_here(*subtask) && !devices.runs(self.id, *subtask);
        let ready = || self.queue.asked().filter(can_begin);
        // The costs of a task's subtasks are not kept, so those that wait are taken to be like
        // the first one.
        let first = self.work_of(ready().next()?);
        let work_of = |subtask| match self.task.is_woven() {
            true => self.work_of(subtask),
            false => first,
        };
        let asked = self.queue.asked().filter(|subtask| !can_begin(subtask));
        let later = asked.chain(self.queue.unasked());
        let ready = ready().map(|subtask| (subtask, work_of(subtask)));
        devices.next(self.id, ready, later.map(work_of), now)
    }

    /// In a chain, where the next subtask's data cannot be asked for yet and a device has room:
    /// finds those behind it of which all data are here. The result is whether there are any.
    fn look_behind(
        &mut self,
        devices: &Devices,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) -> bool {
        let now = (self.given, self.fetches.arrivals);
        if !self.task.is_woven() || self.looked == now || devices.free_slots(self.id) == 0 {
            return false;
        }
        self.looked = now;
        let chain = (&*self.task, &self.written);
        let behind = self.queue.unasked().take(BEHIND);
        let here = behind.filter(|&subtask| {
            !devices.runs(self.id, subtask) && self.fetches.has_all(subtask, chain, spaces)
        });
        let here: Vec<u64> = here.collect();
        for &subtask in &here {
            let chain = (&*self.task, &self.written);
            let needs = self.fetches.fetch(subtask, chain, spaces, actions);
            self.queue.asked_early(subtask, needs);
        }
        !here.is_empty()
    }
}
