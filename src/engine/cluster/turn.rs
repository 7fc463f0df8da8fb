//! A turn of a node: it looks at everything that can happen, and pauses if nothing did.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::ClusterError;
use super::answers::PORTION;
use super::node::Node;
use super::subtasks::{EndedSubtask, Happened};
use crate::graph::GraphRunError;
use crate::runtime::Completion;
use crate::runtime::error::is_unfit;
use pdawl_core::cluster::protocol::{DeviceIndex, Event};
use pdawl_core::cluster::wire::Arrived;

/// How long a node polls without a pause after something has happened. An answer over a
/// fast network comes within this time.
pub(super) const AWAKE: Duration = Duration::from_micros(100);

/// The shortest pause. It leaves its core to the workers.
pub(super) const PAUSE: Duration = Duration::from_micros(20);

/// The longest pause of a node that may get messages: they end no wait for a device.
const LONGEST: Duration = Duration::from_micros(800);

/// The longest pause of the only node, which a completion ends, and what sets `stop` does
/// not.
const LONGEST_ALONE: Duration = Duration::from_millis(5);

/// Pauses get longer with the time in which nothing has happened, and are this part of it:
/// what is waited for comes later by no more.
const PART: u32 = 16;

impl Node<'_> {
    /// Looks once at everything that can happen, and pauses if nothing did.
    pub(super) fn turn(&mut self) -> Result<(), ClusterError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ClusterError::Interrupted);
        }
        let mut happened = false;
        while let Some(message) = self.own.pop_front() {
            self.message(self.me(), message)?;
            happened = true;
        }
        // What comes fast is taken in between other things.
        let mut taken = 0;
        while taken < PORTION
            && let Some(arrived) = self.wire.poll()?
        {
            if let Arrived::Message { bytes, .. } = &arrived {
                taken += bytes.len() as u64;
            }
            self.take_in(arrived)?;
            happened = true;
        }
        if self.wake_at.is_some_and(|at| at <= self.now()) {
            self.wake_at = None;
            self.tell(Event::Woken)?;
        }
        let mut completions = Vec::new();
        while let Some(completion) = self.runtime.wait(Some(Duration::ZERO))? {
            completions.push(completion);
        }
        happened |= !completions.is_empty();
        self.advance(completions)?;
        self.answer()?;
        self.pause(happened || self.subtasks.changed || self.is_answering())
    }

    fn pause(&mut self, happened: bool) -> Result<(), ClusterError> {
        let now = Instant::now();
        if happened {
            self.awake_until = now + AWAKE;
            self.quiet_since = now;
        }
        if happened || now < self.awake_until {
            std::thread::yield_now();
            return Ok(());
        }
        let longest = self.longest_pause();
        let mut pause = ((now - self.quiet_since) / PART).clamp(PAUSE, longest);
        if let Some(at) = self.wake_at {
            pause = pause.min(Duration::from_nanos(at.saturating_sub(self.now())));
        }
        if self.subtasks.is_quiet() {
            self.wire.rest(pause)?;
        } else if let Some(completion) = self.runtime.wait(Some(pause))? {
            self.advance(vec![completion])?;
            self.quiet_since = Instant::now();
        }
        Ok(())
    }

    fn longest_pause(&self) -> Duration {
        let waits_for_data = self.collects || !self.requests.is_empty();
        match self.size() {
            1 => LONGEST_ALONE,
            // What arrives ends the pause of a node that waits for no device.
            _ if waits_for_data && !self.subtasks.is_quiet() => PAUSE,
            _ => LONGEST,
        }
    }

    /// Gives the devices what they can do, and tells the protocol what they have done.
    fn advance(&mut self, completions: Vec<Completion>) -> Result<(), ClusterError> {
        if self.has_gaps || completions.is_empty() && !self.subtasks.changed {
            return Ok(());
        }
        let happened = match self.subtasks.turn(self.runtime, completions) {
            Ok(happened) => happened,
            Err(ClusterError::Graph(error @ GraphRunError::Gone(_))) => {
                self.has_gaps = true;
                self.tell_losses()?;
                let why = format!("{}: {error}", self.me());
                return self.tell(Event::Gone { why });
            }
            Err(error) => return Err(error),
        };
        if self.subtasks.is_idle() {
            self.busy(false);
        }
        let Happened {
            ended,
            has_unplaced,
            undone,
        } = happened;
        for ended in ended {
            self.ended_subtask(ended)?;
        }
        self.tell_losses()?;
        for (task, subtask) in undone {
            if task == self.machine.task() {
                self.start(subtask)?;
            }
        }
        match has_unplaced {
            false => Ok(()),
            true => self.lose_all("no device is left that can compute the task's subtasks"),
        }
    }

    fn tell_losses(&mut self) -> Result<(), ClusterError> {
        let mut losses = self.subtasks.take_losses().into_iter();
        losses.try_for_each(|(device, why)| self.lose_device(device, why))
    }

    fn ended_subtask(&mut self, ended: EndedSubtask) -> Result<(), ClusterError> {
        let EndedSubtask {
            device,
            took,
            task,
            subtask,
            parts,
            written,
        } = ended;
        let (index, own) = self.place(subtask);
        let present = self.tasks.get(index);
        let present = present.filter(|_| task == self.machine.task());
        let lacked = present.map_or_else(Vec::new, |task| task.lacked(own));
        if self.machine.is_of_attempt(task) {
            for (device, took) in &parts {
                self.record.devices[device.0 as usize].seconds += *took as f64 / 1e9;
            }
        }
        if !lacked.is_empty() {
            let touched = &mut self.record.touched;
            touched.runs += 1;
            touched.blocks += lacked.len() as u64;
            touched.bytes += lacked
                .iter()
                .map(|part| self.spaces.bytes(part))
                .sum::<u64>();
            self.subtasks.discard(written);
            return self.tell(Event::Lacked {
                device,
                task,
                subtask,
            });
        }
        if self.machine.is_of_attempt(task) {
            self.record.devices[device.0 as usize].subtasks += 1;
            self.record.divided += u64::from(parts.len() > 1);
        }
        if task == self.machine.task() && self.chain.is_some() {
            self.held.insert(subtask, written);
            self.computed.insert(subtask, (device, took));
        } else {
            self.subtasks.discard(written);
        }
        self.tell(Event::Done {
            device,
            task,
            subtask,
            took,
        })
    }

    /// No device can do what is asked for: other nodes must.
    pub(super) fn lose_all(&mut self, why: &str) -> Result<(), ClusterError> {
        let devices = 0..self.record.devices.len() as u32;
        devices
            .map(DeviceIndex)
            .try_for_each(|device| self.lose_device(device, why.to_owned()))
    }

    pub(super) fn lose_device(
        &mut self,
        device: DeviceIndex,
        why: String,
    ) -> Result<(), ClusterError> {
        if self.lost_devices.contains(&device) {
            return Ok(());
        }
        self.lost_devices.push(device);
        let name = &self.record.devices[device.0 as usize].name;
        let what = if is_unfit(&why) { "left out" } else { "lost" };
        self.record.notes.push(format!("{name} was {what}: {why}"));
        self.tell(Event::DeviceLost { device, why })
    }

    pub(super) fn busy(&mut self, computes: bool) {
        match (self.busy_since, computes) {
            (None, true) => self.busy_since = Some(Instant::now()),
            (Some(since), false) => {
                self.record.busy_seconds += since.elapsed().as_secs_f64();
                self.busy_since = None;
            }
            _ => {}
        }
    }
}
