//! What a node does when the protocol says so.

use std::time::Duration;

use super::encode::encode;
use super::error::ClusterError;
use super::node::{Node, Written};
use crate::cluster::NodeId;
use crate::cluster::protocol::{Action, Cause, DeviceIndex, Event, Message, RequestId};
use crate::cluster::space::{Part, SpaceId, pieces};
use crate::cluster::task::TaskId;
use crate::parallel;

/// Bytes that a thread fills at once.
const PIECE: u64 = 16 << 20;

impl Node<'_> {
    pub(super) fn act(&mut self, actions: Vec<Action>) -> Result<(), ClusterError> {
        actions.into_iter().try_for_each(|action| self.one(action))
    }

    fn one(&mut self, action: Action) -> Result<(), ClusterError> {
        match action {
            Action::Send { to, message } => self.send(to, message),
            Action::Serve { to, request, parts } => self.serve(to, request, &parts),
            Action::Start { device, subtask } => self.start(device, subtask),
            // A kernel that runs cannot be stopped; its result is not asked for.
            Action::Abort { .. } => Ok(()),
            Action::Keep { subtask } => {
                if let Some(written) = self.held.remove(&subtask) {
                    self.keep(subtask, written);
                }
                Ok(())
            }
            Action::Discard { subtask } => {
                self.held.remove(&subtask);
                self.kept.remove(&subtask);
                Ok(())
            }
            Action::Release { request } => {
                self.store.release(request);
                Ok(())
            }
            Action::SendCombined { to } => self.send_combined(to),
            Action::WakeAt(at) => {
                self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
                Ok(())
            }
            Action::Ended { results } => {
                self.ended = Some(results);
                Ok(())
            }
            Action::Restart { cause } => {
                match cause {
                    Cause::Lost(node) => self.lost[node.index()] = true,
                    // One node tells it for all.
                    Cause::Mistake(why) if self.me() == NodeId::FIRST => {
                        let note = format!("the tasks began anew after a mistake: {why}");
                        self.record.notes.push(note);
                    }
                    Cause::Mistake(_) => {}
                }
                self.restarts = true;
                Ok(())
            }
            Action::Lost { node, heir } => self.inherit(node, heir),
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
        if let Message::Fetch { request, parts, .. } = &message {
            self.requests.insert(*request, parts.clone());
        }
        if to == self.me() {
            self.own.push_back(message);
            return Ok(());
        }
        Ok(self.wire.send(to.index(), encode(&message)?)?)
    }

    /// Sends parts of spaces that another node asked for.
    fn serve(
        &mut self,
        to: NodeId,
        request: RequestId,
        parts: &[Part],
    ) -> Result<(), ClusterError> {
        let mut message = encode(&Message::Data { request })?;
        let at = message.len();
        if self
            .store
            .append(&self.spaces, parts, &mut message)
            .is_err()
        {
            // The other node knows already that this one answers for a lost one.
            self.unserved.push((to, request, parts.to_vec()));
            return Ok(());
        }
        self.record.sent_bytes += (message.len() - at) as u64;
        Ok(self.wire.send(to.index(), message)?)
    }

    /// Computes the first contents of a part.
    pub(super) fn fill(&mut self, part: Part) -> Result<(), ClusterError> {
        let fill = self.fills.get(part.space.0 as usize).cloned().flatten();
        let Some(fill) = fill else {
            let Part { space, block } = part;
            return Err(ClusterError::Missing { space, block });
        };
        let extent = self.spaces.extent(part.space);
        let block = &part.block;
        let mut data = vec![0; extent.bytes(block) as usize];
        let mut rest = &mut data[..];
        let mut jobs = Vec::new();
        for piece in pieces(extent, block, PIECE) {
            let (bytes, behind) = rest.split_at_mut(extent.bytes(&piece) as usize);
            jobs.push((piece, bytes));
            rest = behind;
        }
        let filled = parallel::map(jobs, |(block, piece)| fill(&block, piece));
        filled.into_iter().collect::<Result<(), _>>()?;
        self.store.insert(part, data);
        Ok(())
    }

    fn start(&mut self, device: DeviceIndex, subtask: u64) -> Result<(), ClusterError> {
        let Some(task) = self.task.clone() else {
            return Ok(());
        };
        self.busy(true);
        let from = (&self.store, &self.spaces);
        let task = (self.machine.task(), &*task);
        match self
            .executor
            .start(self.runtime, from, task, device, subtask)
        {
            Ok(()) => Ok(()),
            Err(ClusterError::Runtime(error)) => self.lose_device(device, error.to_string()),
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, subtask: u64, written: Written) {
        let combine = self.task.as_ref().and_then(|task| task.combine());
        match combine {
            None => {
                self.kept.insert(subtask, written);
            }
            Some(combine) => match &mut self.combined {
                None => self.combined = Some(written),
                Some(sums) => {
                    for ((_, sum), (_, other)) in sums.iter_mut().zip(&written) {
                        combine(sum, other);
                    }
                }
            },
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
        let Some(task) = self.task.clone().filter(|_| id == self.machine.task()) else {
            return Ok(());
        };
        let mut at = 0;
        let parts = task.writes(0).into_iter().map(|part| {
            let begin = at;
            at += self.spaces.bytes(&part) as usize;
            let data = bytes.get(begin..at).map(<[u8]>::to_vec);
            data.map(|data| (part, data))
        });
        let written: Option<Written> = parts.collect();
        if let Some(written) = written {
            self.keep(0, written);
        }
        self.tell(Event::Combined)
    }

    /// Another node is lost. Its heir computes the first contents of its blocks.
    fn inherit(&mut self, node: NodeId, heir: NodeId) -> Result<(), ClusterError> {
        self.lost[node.index()] = true;
        let mut inherited = Vec::new();
        if heir == self.me() {
            let spaces = (0..self.fills.len() as u32).map(SpaceId);
            for space in spaces.filter(|space| !self.spaces.is_made(*space)) {
                let whole = self.spaces.extent(space).whole();
                let holders = self.spaces.directory(space).holders(&whole);
                let of_node = holders.filter(|(_, holder)| holder.node == node && holder.initial);
                inherited.extend(of_node.map(|(block, _)| Part { space, block }));
            }
        }
        self.spaces.lost(node, heir);
        inherited.into_iter().try_for_each(|part| self.fill(part))?;
        for (to, request, parts) in std::mem::take(&mut self.unserved) {
            self.serve(to, request, &parts)?;
        }
        Ok(())
    }

    /// Tells all other nodes that the run ends, and why. The first node passes on what it
    /// was told, as those who learn of its end before would take that for the reason.
    pub(super) fn fail(&mut self, error: ClusterError) -> ClusterError {
        let why = match &error {
            ClusterError::Stopped(why) if self.me() == NodeId::FIRST => why.clone(),
            // Each of the others notices itself that the first one is lost.
            ClusterError::Stopped(_) | ClusterError::FirstLost => return error,
            // The others have been told that this one is.
            ClusterError::Excluded { me, .. } if *me != NodeId::FIRST => return error,
            ClusterError::Interrupted => format!("interrupted at {}", self.me()),
            ClusterError::Refused(why) => why.clone(),
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
