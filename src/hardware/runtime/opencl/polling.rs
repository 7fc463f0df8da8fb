//! Polls the events of drivers whose callbacks are costly.
//!
//! NVIDIA's driver calls back from a thread that spins on one core all the time
//! (580.159 on an H200), and notifies 53 us late. Where the system preempts only at
//! timer ticks (100 a second there), a thread that wakes on that core waits for the
//! next tick: steps of 3 ms took 10 or 20. So the driver thread polls the events of
//! such a driver itself while it waits.

use std::collections::VecDeque;
use std::sync::Arc;

use super::completion::TokenCell;
use super::device::OpenDevice;
use super::handle::{Event, Queue};
use super::in_flight::ended_with;

/// The polled commands of an in-order queue, oldest first.
struct PolledQueue {
    queue: Arc<Queue>,
    device: usize,
    commands: VecDeque<(Arc<Event>, Arc<TokenCell>)>,
    /// Whether nothing more will be enqueued.
    closed: bool,
}

/// Every polled command. Queues are in order, so only the oldest of each is
/// queried.
#[derive(Default)]
pub(super) struct Polling(Vec<PolledQueue>);

/// Whether a driver's callbacks are better avoided.
pub(super) fn needs_polling(driver: &str) -> bool {
    driver.starts_with("NVIDIA")
}

impl Polling {
    /// Adds a command that was just enqueued.
    pub(super) fn add(
        &mut self,
        queue: &Arc<Queue>,
        device: usize,
        event: Arc<Event>,
        cell: Arc<TokenCell>,
    ) {
        let known = self.0.iter_mut().find(|p| Arc::ptr_eq(&p.queue, queue));
        if let Some(polled) = known {
            polled.commands.push_back((event, cell));
        } else {
            self.0.push(PolledQueue {
                queue: Arc::clone(queue),
                device,
                commands: VecDeque::from([(event, cell)]),
                closed: false,
            });
        }
    }

    /// Delivers the completions of ended commands. True while commands remain.
    pub(super) fn poll(&mut self, devices: &[OpenDevice]) -> bool {
        let mut some_remain = false;
        for polled in &mut self.0 {
            while let Some((event, cell)) = polled.commands.front() {
                let Some(code) = ended_with(event, &devices[polled.device]) else {
                    some_remain = true;
                    break;
                };
                cell.deliver(code);
                polled.commands.pop_front();
            }
        }
        some_remain
    }

    /// Forgets a queue once it is empty.
    pub(super) fn close(&mut self, queue: &Arc<Queue>) {
        for polled in &mut self.0 {
            polled.closed |= Arc::ptr_eq(&polled.queue, queue);
        }
        self.0
            .retain(|polled| !polled.closed || !polled.commands.is_empty());
    }
}
