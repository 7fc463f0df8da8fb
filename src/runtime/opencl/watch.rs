//! Commands whose ends are looked for, instead of told by a callback.
//!
//! NVIDIA's driver calls back from a thread that spins on one core all the
//! while (580.159 on an H200: 100 % of a core, two thirds of it in the
//! system), sleeps in between on three more, and tells of an end 53 us late. Where the
//! system preempts only at its timer's ticks (100 a second there), whatever is
//! woken on the spinning thread's core waits for the next tick: steps of 3 ms
//! took 10 or 20. So such a driver's events are looked at by the engine's own
//! thread while it waits, which nothing has to wake.

use std::collections::VecDeque;
use std::sync::Arc;

use super::completion::Slot;
use super::device::OpenDevice;
use super::flight::ended_with;
use super::handle::{Event, Queue};

/// A command that is watched.
struct Watched {
    event: Arc<Event>,
    slot: Arc<Slot>,
}

/// The watched commands of an in-order queue, oldest first.
struct Line {
    queue: Arc<Queue>,
    device: usize,
    commands: VecDeque<Watched>,
    /// Whether nothing more will be enqueued.
    closed: bool,
}

/// Every watched command. Queues are in order, so only the oldest of each is
/// looked at.
#[derive(Default)]
pub(super) struct Watch(Vec<Line>);

/// Whether a driver's callbacks are better avoided.
pub(super) fn better_watched(driver: &str) -> bool {
    driver.starts_with("NVIDIA")
}

impl Watch {
    /// Takes in a command that was just enqueued.
    pub(super) fn add(
        &mut self,
        queue: &Arc<Queue>,
        device: usize,
        event: Arc<Event>,
        slot: Arc<Slot>,
    ) {
        let watched = Watched { event, slot };
        if let Some(line) = self.0.iter_mut().find(|l| Arc::ptr_eq(&l.queue, queue)) {
            line.commands.push_back(watched);
        } else {
            self.0.push(Line {
                queue: Arc::clone(queue),
                device,
                commands: VecDeque::from([watched]),
                closed: false,
            });
        }
    }

    /// Delivers what has ended. True while commands remain.
    pub(super) fn look(&mut self, devices: &[OpenDevice]) -> bool {
        let mut some_remain = false;
        for line in &mut self.0 {
            while let Some(first) = line.commands.front() {
                let Some(code) = ended_with(&first.event, &devices[line.device]) else {
                    some_remain = true;
                    break;
                };
                first.slot.deliver(code);
                line.commands.pop_front();
            }
        }
        some_remain
    }

    /// Forgets a queue once it is empty.
    pub(super) fn close(&mut self, queue: &Arc<Queue>) {
        for line in &mut self.0 {
            line.closed |= Arc::ptr_eq(&line.queue, queue);
        }
        self.0
            .retain(|line| !line.closed || !line.commands.is_empty());
    }
}
