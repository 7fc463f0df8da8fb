//! A node's part in a task: its queue, what it fetches, and what runs.

use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};
use std::sync::Arc;

use super::combine::Combining;
use super::devices::{Devices, Running};
use super::fetch::Fetches;
use super::queue::Queue;
use super::{Action, DeviceIndex, Message, RequestId};
use crate::cluster::NodeId;
use crate::cluster::space::Spaces;
use crate::cluster::task::{Task, TaskId, extend_runs};
use crate::codelet::Cost;
use crate::spread::Next;
use crate::spread::rate::{mean_cost, weight};
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

/// A node's part in the present task.
pub(super) struct Work {
    pub id: TaskId,
    pub task: Arc<dyn Task>,
    mean: Cost,
    queue: Queue,
    /// Subtasks whose results this node has.
    done: BTreeSet<u64>,
    pub fetches: Fetches,
    pub combining: Combining,
    pub counts: Counts,
}

fn send(message: Message, actions: &mut Vec<Action>) {
    let to = NodeId::FIRST;
    actions.push(Action::Send { to, message });
}

impl Work {
    pub fn new(id: TaskId, task: Arc<dyn Task>, fetches: Fetches) -> Self {
        Self {
            id,
            mean: mean_cost(&*task),
            task,
            queue: Queue::default(),
            done: BTreeSet::new(),
            fetches,
            combining: Combining::default(),
            counts: Counts::default(),
        }
    }

    /// The mean cost of its subtasks.
    pub fn mean(&self) -> Cost {
        self.mean
    }

    /// How much work a subtask is.
    pub fn weight(&self, subtask: u64) -> f64 {
        weight(self.task.cost(subtask), self.mean)
    }

    /// The coordinator gives subtasks. A node without devices gives them back.
    pub fn assign(
        &mut self,
        subtasks: Vec<Range<u64>>,
        devices: &Devices,
        actions: &mut Vec<Action>,
    ) {
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

    /// Another node has the result of a subtask. The coordinator is told when it is
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

    /// Tells the coordinator that a subtask is done, and what its device does now.
    pub fn report(
        &self,
        subtask: u64,
        device: DeviceIndex,
        took: Nanos,
        devices: &Devices,
        actions: &mut Vec<Action>,
    ) {
        let waits = self
            .queue
            .ready(|subtask| self.fetches.is_here(subtask))
            .is_none();
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
            // A cancelled run of it must end first: its result is told apart by nothing.
            let ready = self
                .queue
                .ready(|subtask| self.fetches.is_here(subtask) && !devices.runs(self.id, subtask));
            if let Some(subtask) = ready
                && let Some(device) = devices.next(self.id, self.queue.len(), now)
            {
                self.queue.remove(subtask);
                devices.start(device, self.id, subtask, now);
                let device = DeviceIndex(device as u32);
                actions.push(Action::Start { device, subtask });
                continue;
            }
            let ahead = prefetch as usize * devices.working();
            let window = devices.free_slots(self.id) + ahead;
            match self.queue.next_unasked() {
                // Where it is still on a device, though its result was not wanted, the end of
                // that run leaves what it reads.
                Some(subtask)
                    if self.queue.fetched() < window && !devices.runs(self.id, subtask) =>
                {
                    let needs = self.fetches.fetch(subtask, &self.task, spaces, actions);
                    self.queue.asked(needs);
                }
                _ => return,
            }
        }
    }
}
