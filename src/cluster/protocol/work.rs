//! A node's part in a task: its queue, what it fetches, and what runs.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::combine::Combining;
use super::devices::{Devices, Running};
use super::fetch::Fetches;
use super::{Action, DeviceIndex, Message, RequestId};
use crate::cluster::NodeId;
use crate::cluster::space::Spaces;
use crate::cluster::task::{Task, TaskId, extend_runs};
use crate::codelet::Cost;
use crate::spread::rate::{mean_cost, weight};
use crate::time::Nanos;

/// A node's part in the present task.
pub(super) struct Work {
    pub id: TaskId,
    pub task: Arc<dyn Task>,
    mean: Cost,
    /// What has not begun, in the order in which it was given.
    queue: VecDeque<u64>,
    /// Subtasks whose results this node has.
    done: BTreeSet<u64>,
    pub fetches: Fetches,
    pub combining: Combining,
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
            queue: VecDeque::new(),
            done: BTreeSet::new(),
            fetches,
            combining: Combining::default(),
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
        for subtask in std::mem::take(&mut self.queue) {
            self.fetches.leave(subtask, actions);
            extend_runs(&mut subtasks, subtask);
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
        let waiting: BTreeSet<u64> = self.queue.iter().copied().collect();
        for &subtask in &asked {
            match waiting.contains(&subtask) {
                true => {
                    self.fetches.leave(subtask, actions);
                    extend_runs(&mut back, subtask);
                }
                false => extend_runs(&mut kept, subtask),
            }
        }
        self.queue.retain(|subtask| !asked.contains(subtask));
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
            actions.push(Action::Discard { subtask });
        } else if let Some(place) = self.queue.iter().position(|&other| other == subtask) {
            self.queue.remove(place);
            self.fetches.leave(subtask, actions);
        } else if let Some(device) = devices.cancel(self.id, subtask) {
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
            actions.push(Action::Keep { subtask });
        }
    }

    /// A device has ended a subtask of this task.
    pub fn done(
        &mut self,
        running: Running,
        device: DeviceIndex,
        took: Nanos,
        actions: &mut Vec<Action>,
    ) {
        let subtask = running.subtask;
        self.fetches.leave(subtask, actions);
        if running.cancelled {
            actions.push(Action::Discard { subtask });
            return;
        }
        self.done.insert(subtask);
        if !self.task.reduces() {
            actions.push(Action::Keep { subtask });
        }
        let message = Message::Done {
            task: self.id,
            subtask,
            device: device.0,
            took,
            waiting: self.queue.len() as u64,
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
            self.queue.push_front(subtask);
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
        let mut started = true;
        while started {
            started = false;
            let ahead = prefetch as usize * devices.working();
            let window = devices.free_slots(self.id) + ahead;
            let mut ready = None;
            for (place, &subtask) in self.queue.iter().take(window).enumerate() {
                if !self.fetches.has(subtask) {
                    self.fetches.fetch(subtask, &self.task, spaces, actions);
                }
                // A cancelled run of it must end first: its result is told apart by nothing.
                let runs = || devices.runs(self.id, subtask);
                if ready.is_none() && self.fetches.is_here(subtask) && !runs() {
                    ready = Some(place);
                }
            }
            if let Some(place) = ready
                && let Some(device) = devices.next(self.id, self.queue.len(), now)
                && let Some(subtask) = self.queue.remove(place)
            {
                devices.start(device, self.id, subtask, now);
                let device = DeviceIndex(device as u32);
                actions.push(Action::Start { device, subtask });
                started = true;
            }
        }
    }
}
