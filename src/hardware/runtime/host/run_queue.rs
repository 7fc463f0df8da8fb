//! Which commands may run: the order of queues and the waits for events.
//!
//! A state machine behind the lock of the worker threads. It is consulted once
//! or twice a command and once a worker and command, never for a tile.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::job::Job;
use crate::runtime::{EventId, QueueId};

/// Commands that have not ended, by what they wait for.
pub struct RunQueue {
    queues: HashMap<QueueId, Queue>,
    pending: HashMap<EventId, Pending>,
    /// Events of commands that failed. Other events that are not pending are done.
    failed: HashSet<EventId>,
    /// For each pool the jobs that workers may claim tiles of.
    runnable: Vec<VecDeque<Arc<Job>>>,
}

/// An in-order queue.
struct Queue {
    pool: usize,
    /// The latest command, ended or not.
    last: Option<EventId>,
}

/// A command that has not ended.
struct Pending {
    job: Arc<Job>,
    pool: usize,
    /// Events that it still waits for.
    unmet: usize,
    /// Whether something that it waited for has failed.
    doomed: bool,
    /// Commands that wait for this one.
    dependents: Vec<EventId>,
}

impl RunQueue {
    /// A run queue for this many pools.
    pub fn new(pools: usize) -> Self {
        Self {
            queues: HashMap::new(),
            pending: HashMap::new(),
            failed: HashSet::new(),
            runnable: vec![VecDeque::new(); pools],
        }
    }

    /// Opens a queue of a pool.
    pub fn open(&mut self, queue: QueueId, pool: usize) {
        self.queues.insert(queue, Queue { pool, last: None });
    }

    /// Closes a queue; its commands still run in their turn.
    pub fn close(&mut self, queue: QueueId) {
        self.queues.remove(&queue);
    }

    /// The pool of a queue.
    pub fn pool(&self, queue: QueueId) -> Option<usize> {
        self.queues.get(&queue).map(|queue| queue.pool)
    }

    /// Adds a command behind its queue and the events of `wait`. `ready` is
    /// called when it can run at once; a command that can never run is
    /// returned.
    pub fn submit(&mut self, job: Job, wait: &[EventId], ready: impl Fn(&Job)) -> Option<Arc<Job>> {
        let job = Arc::new(job);
        let event = job.event();
        let queue = self.queues.get_mut(&job.queue())?;
        let pool = queue.pool;
        let before = queue.last.replace(event);
        let (mut unmet, mut doomed) = (0, false);
        for awaited in wait.iter().copied().chain(before) {
            if let Some(pending) = self.pending.get_mut(&awaited) {
                pending.dependents.push(event);
                unmet += 1;
            } else if self.failed.contains(&awaited) {
                doomed = true;
            }
        }
        if unmet == 0 {
            if doomed {
                self.failed.insert(event);
                return Some(job);
            }
            ready(&job);
            self.runnable[pool].push_back(Arc::clone(&job));
        }
        let pending = Pending {
            job,
            pool,
            unmet,
            doomed,
            dependents: Vec::new(),
        };
        self.pending.insert(event, pending);
        None
    }

    /// Notes that a command has ended. `ready` is called for each command that can
    /// run now; those that never will are returned, in an order that respects their
    /// queues.
    pub fn end(&mut self, event: EventId, failed: bool, ready: impl Fn(&Job)) -> Vec<Arc<Job>> {
        let mut doomed = Vec::new();
        let mut ended = VecDeque::from([(event, failed)]);
        while let Some((event, failed)) = ended.pop_front() {
            if failed {
                self.failed.insert(event);
            }
            let Some(pending) = self.pending.remove(&event) else {
                continue;
            };
            for dependent in pending.dependents {
                let Some(waiting) = self.pending.get_mut(&dependent) else {
                    continue;
                };
                waiting.unmet -= 1;
                waiting.doomed |= failed;
                if waiting.unmet > 0 {
                    continue;
                }
                if waiting.doomed {
                    doomed.push(Arc::clone(&waiting.job));
                    ended.push_back((dependent, true));
                } else {
                    ready(&waiting.job);
                    self.runnable[waiting.pool].push_back(Arc::clone(&waiting.job));
                }
            }
        }
        doomed
    }

    /// Claims parts of the pool's first command that has some, for this worker
    /// of the pool.
    pub fn claim(&mut self, pool: usize, worker: usize) -> Option<(Arc<Job>, Range<u64>)> {
        let jobs = &mut self.runnable[pool];
        while let Some(job) = jobs.front() {
            if let Some(parts) = job.claim(worker) {
                return Some((Arc::clone(job), parts));
            }
            jobs.pop_front();
        }
        None
    }

    /// Whether more than `few` tiles of a pool's runnable commands are unclaimed.
    /// Reads no more counters than it must: each is on a cache line that a worker
    /// writes to.
    pub fn has_more_than(&self, pool: usize, few: u64) -> bool {
        let mut counts = self.runnable[pool].iter().flat_map(|job| job.unclaimed());
        let mut unclaimed = 0;
        counts.any(|count| {
            unclaimed += count;
            unclaimed > few
        })
    }
}
