//! Which commands are sent to their backends, and which are held back.

use std::collections::{HashSet, VecDeque};

use crate::runtime::{EventId, IdMap, QueueId};

/// The order of commands across backends. `H` is what is held of a command.
pub struct Order<H> {
    queues: IdMap<QueueId, QueueState<H>>,
    /// Commands that have not ended.
    pending: IdMap<EventId, Pending>,
    /// Commands that failed. Every other event that is not in `pending` is done.
    failed: HashSet<EventId>,
    /// Queues that hold commands back, in the order in which they began to.
    holding: Vec<QueueId>,
}

struct QueueState<H> {
    backend: usize,
    held: VecDeque<HeldCommand<H>>,
    /// Commands that the backend has and that have not ended.
    sent: usize,
    /// Whether a command failed: so does everything behind it.
    failed: bool,
}

struct HeldCommand<H> {
    event: EventId,
    wait: Vec<EventId>,
    held: H,
    /// Whether it fails whatever it waits for.
    refused: bool,
}

/// A command that has not ended.
struct Pending {
    queue: QueueId,
    backend: usize,
    sent: bool,
}

/// What is to be done with a held command.
pub enum Step<H> {
    /// Its backend gets it; `wait` is what it still waits for there.
    Send {
        event: EventId,
        held: H,
        wait: Vec<EventId>,
    },
    /// It fails; everything before it in its queue has ended.
    Fail { event: EventId, held: H },
}

/// What a command's waits amount to now.
enum Verdict {
    Send(Vec<EventId>),
    Fail,
    Hold,
}

impl<H> Default for Order<H> {
    fn default() -> Self {
        Self {
            queues: IdMap::default(),
            pending: IdMap::default(),
            failed: HashSet::new(),
            holding: Vec::new(),
        }
    }
}

impl<H> Order<H> {
    /// Opens a queue of a backend.
    pub fn open(&mut self, queue: QueueId, backend: usize) {
        let state = QueueState {
            backend,
            held: VecDeque::new(),
            sent: 0,
            failed: false,
        };
        self.queues.insert(queue, state);
    }

    /// Closes a queue that holds nothing back.
    pub fn close(&mut self, queue: QueueId) {
        self.queues.remove(&queue);
    }

    /// Whether no command is held back.
    pub fn holds_nothing(&self) -> bool {
        self.holding.is_empty()
    }

    /// What a new command waits for at its backend, if it can be sent now. It is
    /// to be noted by [`Self::sent`], unless it has no event.
    pub fn pass(&self, queue: QueueId, wait: &[EventId]) -> Option<Vec<EventId>> {
        let state = self.queues.get(&queue)?;
        if !state.held.is_empty() {
            return None;
        }
        match self.judge(state, wait, false) {
            Verdict::Send(wait) => Some(wait),
            Verdict::Fail | Verdict::Hold => None,
        }
    }

    /// Holds a command back behind everything in its queue. One that is `refused`
    /// fails when its turn comes, with all behind it.
    pub fn hold(
        &mut self,
        queue: QueueId,
        event: EventId,
        wait: &[EventId],
        held: H,
        refused: bool,
    ) {
        let Some(state) = self.queues.get_mut(&queue) else {
            return;
        };
        if state.held.is_empty() {
            self.holding.push(queue);
        }
        state.held.push_back(HeldCommand {
            event,
            wait: wait.to_vec(),
            held,
            refused,
        });
        let pending = Pending {
            queue,
            backend: state.backend,
            sent: false,
        };
        self.pending.insert(event, pending);
    }

    /// A command has ended.
    pub fn ended(&mut self, event: EventId, failed: bool) {
        if failed {
            self.failed.insert(event);
            let queue = self.pending.get(&event).map(|pending| pending.queue);
            if let Some(state) = queue.and_then(|queue| self.queues.get_mut(&queue)) {
                state.failed = true;
            }
        }
        self.withdrawn(event);
    }

    /// A command's backend refused it: it returns to the front of its queue, and
    /// fails with all behind it once everything before has ended.
    pub fn put_back(&mut self, event: EventId, held: H) {
        let Some(pending) = self.pending.get_mut(&event) else {
            return;
        };
        pending.sent = false;
        let queue = pending.queue;
        let Some(state) = self.queues.get_mut(&queue) else {
            return;
        };
        state.sent -= 1;
        if state.held.is_empty() {
            self.holding.push(queue);
        }
        state.held.push_front(HeldCommand {
            event,
            wait: Vec::new(),
            held,
            refused: true,
        });
    }

    /// A command was refused and counts as never submitted.
    pub fn withdrawn(&mut self, event: EventId) {
        let Some(pending) = self.pending.remove(&event) else {
            return;
        };
        if pending.sent
            && let Some(state) = self.queues.get_mut(&pending.queue)
        {
            state.sent -= 1;
        }
    }

    /// The next held command to send or to fail, if any is due.
    pub fn next(&mut self) -> Option<Step<H>> {
        for index in 0..self.holding.len() {
            let queue = self.holding[index];
            let Some(state) = self.queues.get(&queue) else {
                continue;
            };
            let Some(first) = state.held.front() else {
                continue;
            };
            let verdict = self.judge(state, &first.wait, first.refused);
            if matches!(verdict, Verdict::Hold) {
                continue;
            }
            let state = self.queues.get_mut(&queue)?;
            let HeldCommand { event, held, .. } = state.held.pop_front()?;
            if state.held.is_empty() {
                self.holding.remove(index);
            }
            return Some(match verdict {
                Verdict::Send(wait) => {
                    self.sent(queue, event);
                    Step::Send { event, held, wait }
                }
                _ => Step::Fail { event, held },
            });
        }
        None
    }

    /// Notes that a backend gets a command.
    pub fn sent(&mut self, queue: QueueId, event: EventId) {
        if let Some(state) = self.queues.get_mut(&queue) {
            state.sent += 1;
            let pending = Pending {
                queue,
                backend: state.backend,
                sent: true,
            };
            self.pending.insert(event, pending);
        }
    }

    fn judge(&self, state: &QueueState<H>, wait: &[EventId], refused: bool) -> Verdict {
        let mut local = Vec::new();
        let (mut hold, mut fail) = (false, state.failed || refused);
        for event in wait {
            match self.pending.get(event) {
                Some(pending) if pending.sent && pending.backend == state.backend => {
                    local.push(*event);
                }
                Some(_) => hold = true,
                None => fail |= self.failed.contains(event),
            }
        }
        // A command fails only after everything that it waits for has ended,
        // so that a queue's completions come in order.
        if fail {
            hold |= state.sent > 0 || !local.is_empty();
        }
        match (hold, fail) {
            (true, _) => Verdict::Hold,
            (_, true) => Verdict::Fail,
            _ => Verdict::Send(local),
        }
    }
}
