//! What a node's driver does for the protocol.

use std::sync::Arc;

use super::check::{Versions, elements, first_contents, value};
use super::world::{World, WorldEvent};
use crate::cluster::NodeId;
use crate::cluster::protocol::{Action, Cause, DeviceIndex, Event, Message};
use crate::cluster::space::SpaceBlock;
use crate::cluster::task::Task;
use crate::cluster::task::chain::Source;
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
                self.wire(index, to.index(), WorldEvent::Event(event));
            }
            Action::Serve {
                to,
                request,
                sources,
            } => {
                let served = sources.iter().map(|source| self.served(index, source));
                match served.collect::<Option<Vec<Versions>>>() {
                    Some(served) => {
                        let contents = served.into_iter().flatten().collect();
                        self.wire(index, to.index(), WorldEvent::Data(request, contents));
                    }
                    // Nobody waits for it, or the run does not end.
                    None => self.seen.unserved += 1,
                }
            }
            Action::Start { device, subtask } => self.start(index, device, subtask)?,
            Action::Abort { .. } => {}
            Action::Keep { subtask } => {
                if !node.kept.contains(&subtask) {
                    return Err(format!("{subtask} is kept, but not done"));
                }
                node.combined.push(subtask);
                let Some(chain) = &node.chain else {
                    return Err(format!("{subtask} is kept without a chain"));
                };
                let (place, own) = chain.place(subtask);
                let written = chain.writes(subtask).into_iter();
                for part in written.filter(|_| !chain.reduces()) {
                    let all = elements(&part)
                        .map(|e| ((Some(subtask), e), value(node.first + place, own)));
                    node.made.extend(all);
                }
            }
            Action::Discard { subtask } => {
                self.seen.discards += 1;
                if !node.kept.remove(&subtask) {
                    return Err(format!("{subtask} is discarded, but not there"));
                }
                node.made.retain(|(writer, _), _| *writer != Some(subtask));
            }
            Action::Release { request } => {
                node.fetched.remove(&request);
            }
            Action::SendCombined { to } => {
                let results = std::mem::take(&mut node.combined);
                self.wire(index, to.index(), WorldEvent::Partial(task, results));
            }
            Action::WakeAt(at) => {
                let at = at.max(self.now + 1);
                self.at(at, index, WorldEvent::Event(Event::Woken));
            }
            Action::Ended {
                index: task,
                results,
            } => self.ended(index, task, &results)?,
            Action::Restart { cause } => {
                self.seen.restarts += 1;
                if let Cause::Lost(lost) = cause {
                    self.nodes[index].lost.insert(lost.index());
                }
                let me = NodeId(index as u32);
                let successor = |node| self.nodes[index].machine.successor(node);
                let own = first_contents(&self.first_spaces, self.count, me, successor);
                let mut spaces = self.first_spaces.clone();
                for lost in (0..self.nodes.len() as u32).map(NodeId) {
                    spaces.lost(lost, successor(lost));
                }
                let node = &mut self.nodes[index];
                (node.own, node.spaces, node.next) = (own, spaces, 0);
                node.computes = false;
                node.chain = None;
                node.fetched.clear();
                node.summaries.clear();
                self.begin_soon(index);
            }
            Action::Lost {
                node: lost,
                successor,
            } => {
                self.seen.losses += 1;
                node.lost.insert(lost.index());
                if node.spaces.lost(lost, successor) {
                    return Err("data are lost without a restart".into());
                }
            }
            Action::Fail { why } => {
                // The first node passes on what it received.
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

    /// What a node sends of a source: what it has as its own, or what it has fetched. It may
    /// be asked before it knows that it answers for a lost node. None if it was overwritten.
    fn served(&self, index: usize, source: &Source) -> Option<Versions> {
        let (node, space) = (&self.nodes[index], source.part.space);
        let fetched = |key| node.fetched.values().find_map(|of| of.get(&key)).copied();
        let mut contents = Versions::new();
        if source.writer.is_some() {
            for element in elements(&source.part) {
                let key = (source.writer, element);
                let has = node.made.get(&key).copied().or_else(|| fetched(key));
                contents.insert(key, has?);
            }
            return Some(contents);
        }
        for (block, holder) in node.spaces.directory(space).holders(&source.part.block) {
            let is_own = node.machine.successor(holder.node).index() == index;
            for element in elements(&SpaceBlock { space, block }) {
                let has = match is_own {
                    true => node.own.get(&element).copied(),
                    false => fetched((None, element)),
                };
                contents.insert((None, element), has.unwrap_or(0));
            }
        }
        Some(contents)
    }

    /// What a node has of an element that a subtask reads.
    fn has(&self, index: usize, source: &Source) -> Versions {
        let (node, space) = (&self.nodes[index], source.part.space);
        let me = NodeId(index as u32);
        let mut all = Versions::new();
        let directory = node.spaces.directory(space);
        let before = directory.holders(&source.part.block);
        let before = before.filter(|_| source.writer.is_none());
        let written = source.writer.map(|_| (source.part.block.clone(), None));
        let blocks = before.map(|(block, holder)| (block, Some(holder.node)));
        for (block, holder) in written.into_iter().chain(blocks) {
            for element in elements(&SpaceBlock { space, block }) {
                let key = (source.writer, element);
                let fetched = || node.fetched.values().find_map(|of| of.get(&key));
                let has = match holder {
                    Some(holder) if node.machine.successor(holder) == me => {
                        node.own.get(&element).or(Some(&0))
                    }
                    Some(_) => fetched(),
                    None => node.made.get(&key).or_else(fetched),
                };
                all.extend(has.map(|has| (key, *has)));
            }
        }
        all
    }

    /// Checks that all that a subtask reads is there, and is what it should be: what the tasks
    /// before its task have written last.
    fn start(&mut self, index: usize, device: DeviceIndex, subtask: u64) -> Result<(), String> {
        let node = &self.nodes[index];
        let Some(chain) = node.chain.clone() else {
            return Err(format!("{subtask} begins without a chain"));
        };
        let (place, own) = chain.place(subtask);
        let number = node.first + place;
        let mut read = Versions::new();
        for source in chain.sources(subtask) {
            read.extend(self.has(index, &source));
        }
        for part in self.tasks[number].reads(own) {
            for element in elements(&part) {
                let mut of_element = read.iter().filter(|((_, of), _)| *of == element);
                let has = of_element.next().map(|(_, has)| has);
                if has != self.reference[number].get(&element) || of_element.next().is_some() {
                    return Err(format!("{subtask} begins where {element:?} is {has:?}"));
                }
            }
        }
        self.seen.ahead += u64::from(self.is_ahead(index, place));
        let node = &self.nodes[index];
        let info = &node.info.devices[device.0 as usize];
        let seconds = self.tasks[number].cost(own).flops / info.flops;
        // Now and then something takes far longer.
        let slow = if self.random.u32(..20) == 0 {
            20.0
        } else {
            0.5 + self.random.f64()
        };
        let took = (seconds * slow * 1e9) as Nanos + 1;
        let task = node.machine.task();
        let at = self.now + took;
        self.at(at, index, WorldEvent::Done(task, device, subtask, took));
        Ok(())
    }

    /// Whether a subtask of the chain's task of an index begins before all subtasks of the tasks
    /// before it are done.
    fn is_ahead(&self, index: usize, place: usize) -> bool {
        let node = &self.nodes[index];
        let has_ended = |task| {
            let of_chain = self.nodes.iter().filter(|of| of.first == node.first);
            of_chain.map(|of| of.ended).any(|ended| ended > task)
        };
        let is_done = |number| self.nodes.iter().any(|of| of.kept.contains(&number));
        let chain = node.chain.iter();
        chain.into_iter().any(|chain| {
            (node.ended..place).any(|task| {
                let mut subtasks = 0..chain.tasks()[task].count();
                !has_ended(task) && !subtasks.all(|own| is_done(chain.number(task, own)))
            })
        })
    }

    /// The task of an index in a node's chain has ended.
    fn ended(
        &mut self,
        index: usize,
        place: usize,
        results: &[(std::ops::Range<u64>, NodeId)],
    ) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let Some(chain) = node.chain.clone().filter(|_| node.ended == place) else {
            return Err(format!("{place} ends where {} have", node.ended));
        };
        node.ended += 1;
        let number = node.first + place;
        let task = Arc::clone(&self.tasks[number]);
        let me = NodeId(index as u32);
        let all = results.iter().flat_map(|(range, _)| range.clone());
        if !all.eq(0..task.count()) {
            return Err(format!("the results are {results:?} of {}", task.count()));
        }
        // What was overwritten is forgotten.
        for part in (0..task.count()).flat_map(|subtask| task.writes(subtask)) {
            for element in elements(&part) {
                node.own.remove(&element);
                node.made.retain(|(writer, of), _| {
                    *of != element || writer.is_none_or(|writer| chain.place(writer).0 >= place)
                });
            }
        }
        let mine = results.iter().filter(|(_, node)| *node == me);
        let mine: Vec<u64> = mine.flat_map(|(range, _)| range.clone()).collect();
        for &subtask in &mine {
            if !task.reduces() && !node.kept.contains(&chain.number(place, subtask)) {
                return Err(format!("{me} does not have {subtask}"));
            }
            let written = if task.reduces() { 0 } else { subtask };
            for part in task.writes(subtask) {
                node.own
                    .extend(elements(&part).map(|e| (e, value(number, written))));
            }
        }
        let kept = node.kept.len();
        node.kept.retain(|subtask| chain.place(*subtask).0 > place);
        if !task.reduces() && kept - node.kept.len() != mine.len() {
            return Err(format!("{me} keeps results that another node has"));
        }
        if task.reduces() && results.iter().any(|(_, node)| *node == me) {
            node.combined.sort_unstable();
            if !node.combined.iter().copied().eq(0..task.count()) {
                return Err(format!("combined are {:?}", node.combined));
            }
        }
        node.spaces.record(&*task, results);
        if place + 1 < chain.tasks().len() {
            return Ok(());
        }
        node.chain = None;
        node.fetched.clear();
        node.computes = false;
        match node.next == self.tasks.len() {
            true => {
                let attempt = node.machine.restarts();
                self.wire(index, 0, WorldEvent::Summary(attempt));
            }
            false => self.begin_soon(index),
        }
        Ok(())
    }

    fn stop_others(&mut self, why: &str) {
        for to in 1..self.nodes.len() {
            let (from, why) = (NodeId::FIRST, why.to_owned());
            let message = Message::Stop { why };
            self.wire(0, to, WorldEvent::Event(Event::Message { from, message }));
        }
    }
}
