//! What a node does when the protocol says so.

use std::sync::Arc;
use std::time::Duration;

use super::ClusterError;
use super::encode::encode;
use super::node::{Combined, Node};
use super::subtasks::{FEW, OfChain, Subtasks, Written};
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::{Action, Cause, Event, Message};
use pdawl_core::cluster::space::{SpaceBlock, SpaceId};
use pdawl_core::cluster::task::{Task, TaskId};

impl Node<'_> {
    pub(super) fn act(&mut self, actions: Vec<Action>) -> Result<(), ClusterError> {
        actions.into_iter().try_for_each(|action| self.one(action))
    }

    fn one(&mut self, action: Action) -> Result<(), ClusterError> {
        match action {
            Action::Send { to, message } => self.send(to, message),
            Action::Serve {
                to,
                request,
                sources,
            } => self.serve(to, request, sources),
            Action::Start { subtask, .. } => self.start(subtask),
            // A kernel that runs cannot be stopped; its result is not asked for.
            Action::Abort { .. } => Ok(()),
            Action::Keep { subtask } => match self.held.remove(&subtask) {
                Some(written) => self.keep(subtask, written),
                None => Ok(()),
            },
            Action::Discard { subtask } => {
                let held = self.held.remove(&subtask);
                self.subtasks.discard(held.unwrap_or_default());
                let index = self.place(subtask).0;
                let Subtasks { graph, store, .. } = &mut self.subtasks;
                for (part, kept) in self.kept.remove(&subtask).into_iter().flatten() {
                    store.discard(graph, &part, kept, index);
                }
                Ok(())
            }
            Action::Release { request } => {
                self.requests.remove(&request);
                let Subtasks { graph, store, .. } = &mut self.subtasks;
                store.release(graph, request);
                Ok(())
            }
            Action::SendCombined { to } => self.send_combined(to),
            Action::WakeAt(at) => {
                self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
                Ok(())
            }
            Action::Ended { index, results } => self.end(index, &results),
            Action::Restart { cause } => {
                match cause {
                    Cause::Lost(node) => self.lost[node.index()] = true,
                    // One node tells it for all.
                    Cause::Mistake(why) if self.me() == NodeId::FIRST => {
                        let note = format!("the tasks began anew: {why}");
                        self.record.notes.push(note);
                    }
                    Cause::Mistake(_) => {}
                }
                self.restarts = true;
                Ok(())
            }
            Action::Lost { node, successor } => self.take_over(node, successor),
            Action::Fail { why } => Err(ClusterError::Stopped(why)),
            Action::FirstLost => Err(ClusterError::FirstLost),
            Action::Excluded { by } => {
                let me = self.me();
                Err(ClusterError::Excluded { me, by })
            }
        }
    }

    /// Sends a message. What goes to this node itself comes back as an event.
    pub(super) fn send(&mut self, to: NodeId, message: Message) -> Result<(), ClusterError> {
        if let Message::Fetch {
            request, sources, ..
        } = &message
        {
            self.requests.insert(*request, sources.clone());
        }
        if to == self.me() {
            self.own.push_back(message);
            return Ok(());
        }
        Ok(self.wire.send(to.index(), encode(&message)?)?)
    }

    /// Computes the first contents of a part.
    pub(super) fn fill(&mut self, part: SpaceBlock) -> Result<(), ClusterError> {
        let fill = self.fills.get(part.space.0 as usize).cloned().flatten();
        let Some(fill) = fill else {
            let SpaceBlock { space, block } = part;
            return Err(ClusterError::Missing { space, block });
        };
        let Subtasks { graph, store, .. } = &mut self.subtasks;
        store.fill(graph, self.runtime, &self.spaces, part, &fill)
    }

    pub(super) fn start(&mut self, subtask: u64) -> Result<(), ClusterError> {
        let Some(chain) = self.chain.clone() else {
            return Ok(());
        };
        let id = self.machine.task();
        if self.subtasks.runs(id, subtask) {
            // Its device was lost, and another one computes it.
            return Ok(());
        }
        if let Some((device, took)) = self.computed.get(&subtask).copied()
            && self.held.contains_key(&subtask)
        {
            // It had ended when it was taken for lost with a device.
            return self.tell(Event::Done {
                device,
                task: id,
                subtask,
                took,
            });
        }
        self.busy(true);
        let (index, own) = chain.place(subtask);
        let task = Arc::clone(&self.tasks[index]);
        let several = self.subtasks.are_several().then_some(FEW);
        let present = several.and_then(|few| self.machine.present(few));
        let of_chain = OfChain {
            id,
            chain: &chain,
            subtask,
            task: &*task,
        };
        match (self.subtasks).start(self.runtime, &self.spaces, of_chain, present.as_deref()) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let codelet = task.launch(own).codelet;
                let computing = match (&codelet.host, &codelet.opencl) {
                    (Some(_), None) => "hosts",
                    (None, Some(_)) => "OpenCL devices",
                    _ => "hosts and OpenCL devices",
                };
                let why = format!(
                    "no device is left that can compute {}, which {computing} compute; --devices or \
                     ClusterOptions::devices names others",
                    codelet.name
                );
                self.lose_all(&why)
            }
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, subtask: u64, written: Written) -> Result<(), ClusterError> {
        if self.chain.as_ref().is_some_and(|chain| chain.reduces()) {
            let bytes = self.subtasks.bytes(self.runtime, &written)?;
            self.subtasks.discard(written);
            self.combine(bytes);
        } else {
            let index = self.place(subtask).0;
            for (part, kept) in &written {
                (self.subtasks.store).insert(part.clone(), *kept, index);
            }
            self.kept.insert(subtask, written);
        }
        Ok(())
    }

    /// The index of a subtask's task in the chain, and its number there.
    pub(super) fn place(&self, subtask: u64) -> (usize, u64) {
        let chain = self.chain.as_ref();
        chain.map_or((0, subtask), |chain| chain.place(subtask))
    }

    fn combine(&mut self, results: Combined) {
        let combine = self.tasks.first().and_then(|task| task.combine());
        match (&mut self.combined, combine) {
            (Some(sums), Some(combine)) => {
                for ((_, sum), (_, other)) in sums.iter_mut().zip(&results) {
                    combine(sum, other);
                }
            }
            (sums, _) => *sums = Some(results),
        }
    }

    fn send_combined(&mut self, to: NodeId) -> Result<(), ClusterError> {
        let task = self.machine.task();
        let mut message = encode(&Message::Partial { task })?;
        let at = message.len();
        for (_, data) in self.combined.take().into_iter().flatten() {
            message.extend(data);
        }
        self.record.sent_bytes += (message.len() - at) as u64;
        Ok(self.wire.send(to.index(), message)?)
    }

    /// Combines what another node sent with this node's results.
    pub(super) fn take_partial(&mut self, id: TaskId, bytes: &[u8]) -> Result<(), ClusterError> {
        let task = self.tasks.first().filter(|_| id == self.machine.task());
        let Some(task) = task.cloned() else {
            return Ok(());
        };
        let mut at = 0;
        let parts = task.writes(0).into_iter().map(|part| {
            let begin = at;
            at += self.spaces.bytes(&part) as usize;
            let data = bytes.get(begin..at).map(<[u8]>::to_vec);
            data.map(|data| (part, data))
        });
        let results: Option<Combined> = parts.collect();
        if let Some(results) = results {
            self.combine(results);
        }
        self.tell(Event::Combined)
    }

    /// Another node is lost. Its successor computes the first contents of its blocks.
    fn take_over(&mut self, node: NodeId, successor: NodeId) -> Result<(), ClusterError> {
        self.lost[node.index()] = true;
        let mut inherited = Vec::new();
        if successor == self.me() {
            let spaces = (0..self.fills.len() as u32).map(SpaceId);
            for space in spaces.filter(|space| !self.spaces.is_made(*space)) {
                let whole = self.spaces.extent(space).whole();
                let holders = self.spaces.directory(space).holders(&whole);
                let of_node = holders.filter(|(_, holder)| holder.node == node && holder.initial);
                inherited.extend(of_node.map(|(block, _)| SpaceBlock { space, block }));
            }
        }
        self.spaces.lost(node, successor);
        inherited.into_iter().try_for_each(|part| self.fill(part))?;
        let unserved = std::mem::take(&mut self.unserved);
        self.answers.extend(unserved);
        self.answer()
    }

    /// Tells all other nodes that the run ends, and why. The first node passes on what it
    /// was told, as those who learn of its end before would take that for the reason.
    pub fn fail(&mut self, error: ClusterError) -> ClusterError {
        let why = match &error {
            ClusterError::Stopped(why) if self.me() == NodeId::FIRST => why.clone(),
            // Each of the others notices itself that the first one is lost.
            ClusterError::Stopped(_) | ClusterError::FirstLost => return error,
            // The others have been told that this one is.
            ClusterError::Excluded { me, .. } if *me != NodeId::FIRST => return error,
            ClusterError::Interrupted => format!("interrupted at {}", self.me()),
            ClusterError::Refused(why) => why.clone(),
            error @ ClusterError::Unlike { .. } => error.to_string(),
            error => format!("{}: {error}", self.me()),
        };
        if let Ok(message) = encode(&Message::Stop { why }) {
            let me = self.wire.rank();
            for rank in (0..self.wire.size()).filter(|rank| *rank != me) {
                // Nothing is left to be done for a rank that cannot be told.
                let _ = self.wire.send(rank, message.clone());
            }
            // Those who heard the reason from others are gone, and take nothing any longer.
            if !matches!(error, ClusterError::Stopped(_)) {
                let _ = self.wire.flush(LAST_WORDS);
            }
        }
        error
    }
}

/// Time for the last messages to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);
