//! Which commands go on to their backends, and which are held back.

use std::collections::{HashSet, VecDeque};

use crate::runtime::{EventId, IdMap, QueueId};

/// The order of commands across backends. `H` is what is held of a command.
pub struct Order<H> {
    lanes: IdMap<QueueId, Lane<H>>,
    /// Commands that have not ended.
    events: IdMap<EventId, Place>,
    /// Commands that failed. Every other event that is not in `events` is done.
    failed: HashSet<EventId>,
    /// Queues that hold commands back, in the order in which they began to.
    holding: Vec<QueueId>,
}

struct Lane<H> {
    backend: usize,
    held: VecDeque<Waiting<H>>,
    /// Commands that the backend has and has not ended.
    sent: usize,
    /// Whether a command failed: so does everything behind it.
    failed: bool,
}

struct Waiting<H> {
    event: EventId,
    wait: Vec<EventId>,
    held: H,
}

/// Where a command that has not ended is.
struct Place {
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
            lanes: IdMap::default(),
            events: IdMap::default(),
            failed: HashSet::new(),
            holding: Vec::new(),
        }
    }
}

impl<H> Order<H> {
    /// Opens a queue of a backend.
    pub fn open(&mut self, queue: QueueId, backend: usize) {
        let lane = Lane {
            backend,
            held: VecDeque::new(),
            sent: 0,
            failed: false,
        };
        self.lanes.insert(queue, lane);
    }

    /// Closes a queue that holds nothing back.
    pub fn close(&mut self, queue: QueueId) {
        self.lanes.remove(&queue);
    }

    /// Whether no command is held back.
    pub fn holds_nothing(&self) -> bool {
        self.holding.is_empty()
    }

    /// Lets a new command pass to its backend if it need not be held back;
    /// answers what it waits for there.
    pub fn pass(
        &mut self,
        queue: QueueId,
        event: EventId,
        wait: &[EventId],
    ) -> Option<Vec<EventId>> {
        let lane = self.lanes.get(&queue)?;
        if !lane.held.is_empty() {
            return None;
        }
        let Verdict::Send(wait) = self.judge(lane, wait) else {
            return None;
        };
        self.send(queue, event);
        Some(wait)
    }

    /// What a command that passes would wait for at its backend, if it may pass;
    /// it is not taken into the books, for nobody hears of its end.
    pub fn pass_quietly(&self, queue: QueueId, wait: &[EventId]) -> Option<Vec<EventId>> {
        let lane = self.lanes.get(&queue)?;
        if !lane.held.is_empty() {
            return None;
        }
        match self.judge(lane, wait) {
            Verdict::Send(wait) => Some(wait),
            Verdict::Fail | Verdict::Hold => None,
        }
    }

    /// Holds a command back behind everything in its queue.
    pub fn hold(&mut self, queue: QueueId, event: EventId, wait: &[EventId], held: H) {
        let Some(lane) = self.lanes.get_mut(&queue) else {
            return;
        };
        if lane.held.is_empty() {
            self.holding.push(queue);
        }
        lane.held.push_back(Waiting {
            event,
            wait: wait.to_vec(),
            held,
        });
        let place = Place {
            queue,
            backend: lane.backend,
            sent: false,
        };
        self.events.insert(event, place);
    }

    /// A command has ended.
    pub fn ended(&mut self, event: EventId, failed: bool) {
        if failed {
            self.failed.insert(event);
            let lane = self.events.get(&event).map(|place| place.queue);
            if let Some(lane) = lane.and_then(|queue| self.lanes.get_mut(&queue)) {
                lane.failed = true;
            }
        }
        self.withdrawn(event);
    }

    /// A command's backend would not have it: it comes back to the front of its
    /// queue, and fails with all behind it once everything before has ended.
    pub fn put_back(&mut self, event: EventId, held: H) {
        let Some(place) = self.events.get_mut(&event) else {
            return;
        };
        place.sent = false;
        let queue = place.queue;
        let Some(lane) = self.lanes.get_mut(&queue) else {
            return;
        };
        lane.sent -= 1;
        lane.failed = true;
        if lane.held.is_empty() {
            self.holding.push(queue);
        }
        lane.held.push_front(Waiting {
            event,
            wait: Vec::new(),
            held,
        });
    }

    /// A command was refused and counts as never submitted.
    pub fn withdrawn(&mut self, event: EventId) {
        let Some(place) = self.events.remove(&event) else {
            return;
        };
        if place.sent
            && let Some(lane) = self.lanes.get_mut(&place.queue)
        {
            lane.sent -= 1;
        }
    }

    /// The next held command to send on or to fail, if any can go.
    pub fn next(&mut self) -> Option<Step<H>> {
        for index in 0..self.holding.len() {
            let queue = self.holding[index];
            let Some(lane) = self.lanes.get(&queue) else {
                continue;
            };
            let Some(first) = lane.held.front() else {
                continue;
            };
            let verdict = self.judge(lane, &first.wait);
            if matches!(verdict, Verdict::Hold) {
                continue;
            }
            let lane = self.lanes.get_mut(&queue)?;
            let first = lane.held.pop_front()?;
            if lane.held.is_empty() {
                self.holding.remove(index);
            }
            let (event, held) = (first.event, first.held);
            return Some(match verdict {
                Verdict::Send(wait) => {
                    self.send(queue, event);
                    Step::Send { event, held, wait }
                }
                _ => Step::Fail { event, held },
            });
        }
        None
    }

    fn send(&mut self, queue: QueueId, event: EventId) {
        if let Some(lane) = self.lanes.get_mut(&queue) {
            lane.sent += 1;
            let place = Place {
                queue,
                backend: lane.backend,
                sent: true,
            };
            self.events.insert(event, place);
        }
    }

    fn judge(&self, lane: &Lane<H>, wait: &[EventId]) -> Verdict {
        let mut local = Vec::new();
        let (mut hold, mut fail) = (false, lane.failed);
        for event in wait {
            match self.events.get(event) {
                Some(place) if place.sent && place.backend == lane.backend => local.push(*event),
                Some(_) => hold = true,
                None => fail |= self.failed.contains(event),
            }
        }
        // A command fails only after everything that it waits for has ended,
        // so that a queue's completions come in order.
        if fail {
            hold |= lane.sent > 0 || !local.is_empty();
        }
        match (hold, fail) {
            (true, _) => Verdict::Hold,
            (_, true) => Verdict::Fail,
            _ => Verdict::Send(local),
        }
    }
}
