//! What happens at a node: what befalls it, its turns at the wire, and its end.

use std::sync::Arc;

use super::RandomTask;
use super::seen::Fault;
use super::world::{PULSE, Stage, World, WorldEvent};
use crate::cluster::NodeId;
use crate::cluster::protocol::Event;
use crate::cluster::task::Task;
use crate::cluster::task::chain::{Chain, Chaining};
use crate::cluster::wire::Arrived;

/// The chain of the next tasks.
fn chain(tasks: &[Arc<RandomTask>]) -> Arc<Chain> {
    let mut tasks = tasks.iter().map(|task| Arc::clone(task) as Arc<dyn Task>);
    let first = tasks.next().expect("tasks are left");
    let mut chaining = Chaining::new(first);
    while tasks.next().is_some_and(|task| chaining.push(&task)) {}
    Arc::new(chaining.build())
}

impl World {
    /// What was decided befalls a node, after so much has happened to it.
    pub fn befall(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.happened += 1;
        let mut due = node.befalls.iter();
        let Some(place) = due.position(|(after, _)| *after <= node.happened) else {
            return;
        };
        match node.befalls.swap_remove(place).1 {
            Fault::Kill => self.at(self.now, index, WorldEvent::Kill),
            Fault::Stop(time) => {
                node.stopped = self.now + time;
                // Shorter ones are no reason to end.
                self.note(index, time > PULSE.silence / 4);
            }
        }
    }

    /// Notes what may end a run without a result.
    fn note(&mut self, index: usize, matters: bool) {
        let all_joined = self.nodes.iter().all(|node| node.machine.is_ready());
        self.may_end |= matters && (index == 0 || !all_joined);
    }

    pub fn kill(&mut self, index: usize) {
        self.nodes[index].stage = Stage::Killed;
        self.note(index, true);
        self.vanish(index);
    }

    /// A node's process is gone. Some wires tell it at once, with others the others hear
    /// nothing of it any longer.
    fn vanish(&mut self, index: usize) {
        let faults = self.links[index].faults();
        match self.random.bool() {
            true => faults.kill(index),
            false => faults.cut(index),
        }
    }

    /// A node's process ends.
    pub fn over(&mut self, index: usize, verdict: Result<(), String>) {
        if self.nodes[index].is_there() {
            let none_left = |why: &String| why.contains("no node has a device left");
            self.may_end |= verdict.as_ref().is_err_and(none_left);
            self.nodes[index].stage = Stage::Over(verdict);
            self.vanish(index);
        }
    }

    pub fn turn(&mut self, index: usize) {
        let now = self.now;
        let ends = match self.nodes[index].stage {
            Stage::Runs => {
                self.take_in(index);
                Ok(())
            }
            Stage::Settles => match self.links[index].has_settled(now) {
                Ok(true) => {
                    self.nodes[index].stage = Stage::Leaves;
                    self.links[index].begin_to_leave()
                }
                other => other.map(|_| ()),
            },
            Stage::Leaves => match self.links[index].has_left(now) {
                Ok(true) => {
                    self.over(index, Ok(()));
                    Ok(())
                }
                other => other.map(|_| ()),
            },
            Stage::Killed | Stage::Over(_) => Ok(()),
        };
        if let Err(error) = ends {
            self.over(index, Err(error.to_string()));
        }
        self.turn_soon(index);
    }

    /// A node takes some of what has arrived.
    fn take_in(&mut self, index: usize) {
        for _ in 0..self.random.u32(1..12) {
            match self.links[index].pump(self.now) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.wrong.get_or_insert(error.to_string());
                }
            }
        }
        while self.nodes[index].stage == Stage::Runs
            && self.nodes[index].stopped <= self.now
            && let Some(arrived) = self.links[index].take_arrived()
        {
            self.befall(index);
            match arrived {
                Arrived::Message { from, bytes } => {
                    self.nodes[index].own_messages -= u32::from(from == index);
                    let place = bytes.try_into().map_or(u64::MAX, u64::from_le_bytes);
                    let sent = self.sent.get_mut(place as usize);
                    if let Some(event) = sent.and_then(Option::take) {
                        self.handle(from, index, event);
                    }
                }
                Arrived::Lost { rank, .. } => {
                    let node = NodeId(rank as u32);
                    self.handle(index, index, WorldEvent::Event(Event::NodeLost { node }));
                }
                Arrived::Excluded { by } => {
                    let by = NodeId(by as u32);
                    self.handle(index, index, WorldEvent::Event(Event::Excluded { by }));
                }
            }
        }
    }

    /// Something of `from` happens at a node.
    pub fn handle(&mut self, from: usize, index: usize, event: WorldEvent) {
        let now = self.now;
        let node = &mut self.nodes[index];
        let mut actions = Vec::new();
        let event = match event {
            _ if node.stage != Stage::Runs => return,
            WorldEvent::Event(event) => {
                if let Event::DeviceLost { device, .. } = event {
                    node.failed.insert(device);
                }
                event
            }
            WorldEvent::Data(request, contents) => {
                node.fetched.insert(request, contents);
                Event::Fetched { request }
            }
            WorldEvent::Partial(task, results) => {
                if node.machine.task() != task {
                    return;
                }
                node.combined.extend(results);
                Event::Combined
            }
            WorldEvent::Done(task, device, subtask, took) => {
                if node.failed.contains(&device) {
                    return;
                }
                if node.machine.task() == task {
                    node.kept.insert(subtask);
                }
                Event::Done {
                    device,
                    task,
                    subtask,
                    took,
                }
            }
            WorldEvent::Begin => {
                if !node.computes && node.next < self.tasks.len() {
                    let chain = chain(&self.tasks[node.next..]);
                    node.computes = true;
                    (node.first, node.ended) = (node.next, 0);
                    node.next += chain.tasks().len();
                    node.chain = Some(Arc::clone(&chain));
                    node.kept.clear();
                    node.made.clear();
                    node.combined.clear();
                    node.machine.begin(chain, &node.spaces, now, &mut actions);
                    self.act(index, actions);
                }
                return;
            }
            WorldEvent::Summary(attempt) => {
                if attempt == node.machine.restarts() {
                    node.summaries.insert(from);
                }
                self.finish_if_all_have(index);
                return;
            }
            WorldEvent::Finish => {
                self.settle(index);
                return;
            }
            WorldEvent::Kill | WorldEvent::Turn => return,
        };
        let was_ready = node.machine.is_ready();
        node.machine.on(event, now, &node.spaces, &mut actions);
        if !was_ready && node.machine.is_ready() {
            self.begin_soon(index);
        }
        self.act(index, actions);
        if index == 0 {
            self.finish_if_all_have(index);
        }
    }

    /// At the first node: when all that are left have ended their tasks, all end.
    fn finish_if_all_have(&mut self, index: usize) {
        let first = &self.nodes[index];
        let has = |node: usize| first.lost.contains(&node) || first.summaries.contains(&node);
        // What it has reported itself may be that the tasks begin anew.
        if first.stage != Stage::Runs
            || first.own_messages > 0
            || !first.summaries.contains(&0)
            || !(0..self.nodes.len()).all(has)
        {
            return;
        }
        for to in 1..self.nodes.len() {
            self.wire(index, to, WorldEvent::Finish);
        }
        self.settle(index);
    }

    fn settle(&mut self, index: usize) {
        self.nodes[index].stage = Stage::Settles;
        if let Err(error) = self.links[index].begin_to_settle() {
            self.wrong.get_or_insert(error.to_string());
        }
    }
}
