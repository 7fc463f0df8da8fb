//! What a node's driver does for the protocol.

use std::sync::Arc;

use super::check::{elements, first_contents, value};
use super::world::{Happens, World};
use crate::cluster::NodeId;
use crate::cluster::protocol::{Action, Cause, DeviceIndex, Event, Message};
use crate::cluster::space::{Part, SpaceId};
use crate::cluster::task::Task;
use crate::time::Nanos;

impl World {
    pub fn act(&mut self, index: usize, actions: Vec<Action>) {
        for action in actions {
            if let Err(why) = self.act_one(index, action) {
                self.wrong.get_or_insert(why);
            }
        }
    }

    fn act_one(&mut self, index: usize, action: Action) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let task = node.machine.task();
        match action {
            Action::Send { to, message } => {
                let from = NodeId(index as u32);
                match &message {
                    Message::Fetch { .. } => self.seen.fetches += 1,
                    Message::Relay { .. } => self.seen.relays += 1,
                    Message::NotHere { .. } => self.seen.not_here += 1,
                    Message::Revoked { subtasks, .. } => {
                        self.seen.revoked += subtasks.iter().map(|r| r.end - r.start).sum::<u64>();
                    }
                    Message::Combined { .. } => self.seen.combined += 1,
                    _ => {}
                }
                let event = Event::Message { from, message };
                self.wire(index, to.index(), Happens::Event(event));
            }
            Action::Serve { to, request, parts } => {
                let contents = parts.iter().flat_map(|part| self.served(index, part));
                let contents = contents.collect();
                self.wire(index, to.index(), Happens::Data(request, contents));
            }
            Action::Start { device, subtask } => self.start(index, device, subtask)?,
            Action::Abort { .. } => {}
            Action::Keep { subtask } => {
                if !node.kept.contains(&subtask) {
                    return Err(format!("{subtask} is kept, but not done"));
                }
                node.combined.push(subtask);
            }
            Action::Discard { subtask } => {
                self.seen.discards += 1;
                if !node.kept.remove(&subtask) {
                    return Err(format!("{subtask} is discarded, but not there"));
                }
            }
            Action::Release { request } => {
                node.fetched.remove(&request);
            }
            Action::SendCombined { to } => {
                let results = std::mem::take(&mut node.combined);
                self.wire(index, to.index(), Happens::Partial(task, results));
            }
            Action::WakeAt(at) => {
                let at = at.max(self.now + 1);
                self.at(at, index, Happens::Event(Event::Woken));
            }
            Action::Ended { results } => self.ended(index, &results)?,
            Action::Restart { cause } => {
                self.seen.restarts += 1;
                if let Cause::Lost(lost) = cause {
                    self.nodes[index].lost.insert(lost.index());
                }
                let me = NodeId(index as u32);
                let heir = |node| self.nodes[index].machine.heir(node);
                let own = first_contents(&self.first_spaces, self.count, me, heir);
                let mut spaces = self.first_spaces.clone();
                for lost in (0..self.nodes.len() as u32).map(NodeId) {
                    spaces.lost(lost, heir(lost));
                }
                let node = &mut self.nodes[index];
                (node.own, node.spaces, node.next) = (own, spaces, 0);
                node.computes = false;
                node.fetched.clear();
                node.summaries.clear();
                self.begin_soon(index);
            }
            Action::Lost { node: lost, heir } => {
                self.seen.losses += 1;
                node.lost.insert(lost.index());
                if node.spaces.lost(lost, heir) {
                    return Err("data are lost without a restart".into());
                }
            }
            Action::Fail { why } => {
                // The first node passes on what it was told.
                if index == 0 {
                    self.stop_others(&why);
                }
                self.over(index, Err(why));
            }
            Action::FirstLost => self.over(index, Err("the first node is lost".into())),
            Action::Excluded { by } => {
                self.seen.excluded += 1;
                if index == 0 {
                    self.stop_others("the first node is taken for lost");
                }
                self.over(index, Err(format!("{by} takes it for lost")));
            }
        }
        Ok(())
    }

    /// What a node sends of a part: what it has as its own, or what it has fetched. It may
    /// be asked before it knows that it answers for a lost node.
    fn served(&self, index: usize, part: &Part) -> Vec<((SpaceId, u64), u64)> {
        let (node, space) = (&self.nodes[index], part.space);
        let mut contents = Vec::new();
        for (block, holder) in node.spaces.directory(space).holders(&part.block) {
            let is_own = node.machine.heir(holder.node).index() == index;
            for element in elements(&Part { space, block }) {
                let fetched = || node.fetched.values().find_map(|c| c.get(&element));
                let has = match is_own {
                    true => node.own.get(&element),
                    false => fetched(),
                };
                contents.push((element, has.copied().unwrap_or(0)));
            }
        }
        contents
    }

    /// Checks that all that a subtask reads is there, and is what it should be.
    fn start(&mut self, index: usize, device: DeviceIndex, subtask: u64) -> Result<(), String> {
        let node = &self.nodes[index];
        let number = node.next - 1;
        let me = NodeId(index as u32);
        for part in self.tasks[number].reads(subtask) {
            for (block, holder) in node.spaces.directory(part.space).holders(&part.block) {
                let space = part.space;
                for element in elements(&Part { space, block }) {
                    let fetched = || node.fetched.values().find_map(|c| c.get(&element));
                    let has = match node.machine.heir(holder.node) == me {
                        true => node.own.get(&element).or(Some(&0)),
                        false => fetched(),
                    };
                    if has != self.reference[number].get(&element) {
                        return Err(format!("{subtask} begins where {element:?} is {has:?}"));
                    }
                }
            }
        }
        let info = &node.info.devices[device.0 as usize];
        let seconds = self.tasks[number].cost(subtask).flops / info.flops;
        // Now and then something takes far longer.
        let slow = if self.random.u32(..20) == 0 {
            20.0
        } else {
            0.5 + self.random.f64()
        };
        let took = (seconds * slow * 1e9) as Nanos + 1;
        let task = node.machine.task();
        let at = self.now + took;
        self.at(at, index, Happens::Done(task, device, subtask, took));
        Ok(())
    }

    fn ended(
        &mut self,
        index: usize,
        results: &[(std::ops::Range<u64>, NodeId)],
    ) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let number = node.next - 1;
        let task = Arc::clone(&self.tasks[number]);
        let me = NodeId(index as u32);
        let all = results.iter().flat_map(|(range, _)| range.clone());
        if !all.eq(0..task.count()) {
            return Err(format!("the results are {results:?} of {}", task.count()));
        }
        let mine = results.iter().filter(|(_, node)| *node == me);
        for subtask in mine.flat_map(|(range, _)| range.clone()) {
            if !task.reduces() && !node.kept.contains(&subtask) {
                return Err(format!("{me} does not have {subtask}"));
            }
            let written = if task.reduces() { 0 } else { subtask };
            for part in task.writes(subtask) {
                node.own
                    .extend(elements(&part).map(|e| (e, value(number, written))));
            }
        }
        let mine = results.iter().filter(|(_, node)| *node == me);
        let mine: u64 = mine.map(|(range, _)| range.end - range.start).sum();
        if !task.reduces() && node.kept.len() as u64 != mine {
            return Err(format!("{me} keeps results that another node has"));
        }
        if task.reduces() && results.iter().any(|(_, node)| *node == me) {
            node.combined.sort_unstable();
            if !node.combined.iter().copied().eq(0..task.count()) {
                return Err(format!("combined are {:?}", node.combined));
            }
        }
        node.spaces.record(&*task, results);
        node.fetched.clear();
        node.computes = false;
        match node.next == self.tasks.len() {
            true => {
                let attempt = node.machine.restarts();
                self.wire(index, 0, Happens::Summary(attempt));
            }
            false => self.begin_soon(index),
        }
        Ok(())
    }

    fn stop_others(&mut self, why: &str) {
        for to in 1..self.nodes.len() {
            let (from, why) = (NodeId::FIRST, why.to_owned());
            let message = Message::Stop { why };
            self.wire(0, to, Happens::Event(Event::Message { from, message }));
        }
    }
}
