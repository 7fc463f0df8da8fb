//! Finds the commands that have ended, and sends their completions.

use std::sync::Arc;

use super::{DeviceOf, Driver, Machine, Pending};
use crate::runtime::{Completion, Nanos, Status};

impl<D: Driver> Machine<D> {
    /// Sends the completions of what has ended. True while commands are to be asked for again at
    /// once. `asks` has the driver asked for all commands, after a long silence.
    pub(super) fn complete(&mut self, mut asks: bool) -> bool {
        self.driver.look(&mut self.devices, &self.in_flight);
        loop {
            let (mut some_ended, mut some_wait, mut some_remain) = (false, false, false);
            let open = self.queues.values_mut();
            for queue in open.chain(&mut self.closing) {
                let device = &mut self.devices[queue.device];
                while let Some(pending) = queue.in_flight.front() {
                    let Some((status, at)) = self.driver.ended(device, pending, asks) else {
                        some_remain |= self.driver.is_polled(device);
                        break;
                    };
                    // Whether those that it waited for ended well decides how it ends.
                    let mut waits = pending.waits.iter();
                    if waits.any(|event| self.in_flight.contains_key(event)) {
                        some_remain |= self.driver.is_polled(device);
                        some_wait = true;
                        break;
                    }
                    let Some(mut pending) = queue.in_flight.pop_front() else {
                        break;
                    };
                    some_ended = true;
                    let event = pending.completion.event;
                    self.in_flight.remove(&event);
                    // What the command used may be released now.
                    pending.keep_alive.clear();
                    let is_skipped = queue.poisoned
                        || pending
                            .waits
                            .iter()
                            .any(|event| self.failed.contains(event));
                    let times = (std::mem::replace(&mut queue.ended, at), at);
                    let mut completion = timed(&mut self.driver, device, &pending, &status, times);
                    completion.status = match status {
                        Status::Done if is_skipped => Status::Skipped,
                        Status::DeviceLost(why) => {
                            Status::DeviceLost(device.mark_lost(&why).to_owned())
                        }
                        other => other,
                    };
                    if completion.status != Status::Done {
                        queue.poisoned = true;
                        self.failed.insert(event);
                    }
                    self.driver.retire(device, pending);
                    // The receiver is gone only when the runtime is being dropped.
                    let _ = self.completions.send(completion);
                }
            }
            if some_wait && (some_ended || !asks) {
                // What others have waited for has ended, whether the driver told that or not.
                asks = true;
                continue;
            }
            if some_ended {
                let is_over = |queue: &mut super::OpenQueue<D>| queue.in_flight.is_empty();
                for queue in self.closing.extract_if(.., is_over) {
                    self.driver.close(queue);
                }
                if self.in_flight.is_empty() {
                    self.driver.rest(&self.devices);
                }
            }
            return some_remain;
        }
    }
}

/// The completion of a command that has ended, with its times. The host learnt of the end of the
/// command before it, and of its own, at `before` and `notified`.
fn timed<D: Driver>(
    driver: &mut D,
    device: &mut DeviceOf<D>,
    pending: &Pending<D>,
    status: &Status,
    (before, notified): (Nanos, Nanos),
) -> Completion {
    let mut completion = pending.completion.clone();
    let timed = pending.timed.as_ref();
    let timed = timed.filter(|_| *status == Status::Done);
    let mut stamps = |[first, last]: &[Arc<D::Event>; 2], device: &mut DeviceOf<D>| {
        driver.stamps(device, first, last)
    };
    if let Some(stamped) = timed.and_then(|timed| stamps(timed, device)) {
        let times = device.clock.times(completion.queued, &stamped, notified);
        let kernels = pending.kernels.as_ref();
        let kernels = kernels.and_then(|kernels| stamps(kernels, device));
        if let (Some(stages), Some(kernels)) = (&mut completion.stages, kernels) {
            let kernels = (kernels.started, kernels.ended);
            stages.kernels = device.clock.within(&times, kernels);
        }
        completion.submitted = times.submitted;
        completion.started = times.started;
        completion.ended = times.ended;
        return completion;
    }
    completion.submitted = completion.queued;
    // A successful command may have run since the one before it ended; a failed one did not.
    completion.started = match status {
        Status::Done => completion.queued.max(before).min(notified),
        _ => notified,
    };
    completion.ended = notified;
    if let Some(stages) = &mut completion.stages {
        stages.kernels = (completion.started, notified);
    }
    completion
}
