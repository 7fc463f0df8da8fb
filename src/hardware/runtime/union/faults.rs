//! Fault injection: a device fails a command, or is lost, at a chosen moment.
//! For tests and drills on real devices; the simulator schedules its own faults.

use std::collections::HashSet;

use crate::runtime::{Command, DeviceId, Status};
use crate::time::Nanos;

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With the device's launch of this number, counted from 0.
    Launch(u64),
    /// With the device's first command of this phase or a later one.
    Phase(u32),
    /// So many nanoseconds after the first phase that begins from now on. A device that is
    /// lost then takes its commands in flight along.
    Time(Nanos),
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The device is gone, for this and every further command.
    Lose,
    /// The one command fails.
    Fail,
}

/// A fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub device: DeviceId,
    pub when: When,
    pub effect: Effect,
}

/// The reason that the completions of a lost device give.
pub(super) const LOST: &str = "lost on purpose";

/// The faults still to come, and what those before have done.
#[derive(Default)]
pub(super) struct Faults {
    pending: Vec<Fault>,
    /// Launches so far, by device.
    launches: Vec<u64>,
    lost: HashSet<DeviceId>,
    /// Those of them that took their commands in flight along.
    vanished: HashSet<DeviceId>,
    /// Lost devices whose loss a completion has reported.
    reported: HashSet<DeviceId>,
    phase: u32,
    /// When the first phase began.
    began: Option<Nanos>,
}

impl Faults {
    pub fn new(pending: Vec<Fault>, devices: usize) -> Self {
        Self {
            pending,
            launches: vec![0; devices],
            ..Self::default()
        }
    }

    /// Whether no device has a fault, now or later.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.lost.is_empty()
    }

    /// A phase begins.
    pub fn begin(&mut self, phase: u32, now: Nanos) {
        self.phase = phase;
        self.began.get_or_insert(now);
    }

    /// Whether a device refuses commands at once, since the driver knows that it
    /// is lost.
    pub fn refuses(&self, device: DeviceId) -> bool {
        self.reported.contains(&device)
    }

    /// Records a completion that the driver receives from a device.
    pub fn report(&mut self, device: DeviceId, status: &Status) {
        if matches!(status, Status::DeviceLost(_)) && self.lost.contains(&device) {
            self.reported.insert(device);
        }
    }

    /// How a command that is submitted to a device now fails, if a fault strikes it.
    pub fn strike(&mut self, device: DeviceId, command: &Command, now: Nanos) -> Option<Status> {
        if self.is_empty() {
            return None;
        }
        self.pass_time(device, now);
        let launches = &mut self.launches[device.0];
        let before = *launches;
        *launches += command.launches().count() as u64;
        let (after, phase, began) = (*launches, self.phase, self.began);
        let is_due = |fault: &mut Fault| {
            fault.device == device
                && match fault.when {
                    When::Launch(number) => after > before && after > number,
                    When::Phase(begin) => phase >= begin,
                    When::Time(after) => is_over(began, after, now),
                }
        };
        let mut struck = None;
        for fault in self.pending.extract_if(.., is_due) {
            match fault.effect {
                Effect::Lose => _ = self.lost.insert(device),
                Effect::Fail => struck = Some(Status::Failed("failed on purpose".to_owned())),
            }
        }
        match self.lost.contains(&device) {
            true => Some(Status::DeviceLost(LOST.to_owned())),
            false => struck,
        }
    }

    /// How a command of a device fails that has ended well, if the device was lost before
    /// the union receives the completion.
    pub fn overtake(&mut self, device: DeviceId, now: Nanos) -> Option<Status> {
        self.pass_time(device, now);
        let vanished = self.vanished.contains(&device);
        vanished.then(|| Status::DeviceLost(LOST.to_owned()))
    }

    /// Loses a device of which the time has come.
    fn pass_time(&mut self, device: DeviceId, now: Nanos) {
        let began = self.began;
        let is_due = |fault: &mut Fault| {
            fault.device == device
                && fault.effect == Effect::Lose
                && matches!(fault.when, When::Time(after) if is_over(began, after, now))
        };
        if self.pending.extract_if(.., is_due).count() > 0 {
            self.lost.insert(device);
            self.vanished.insert(device);
        }
    }
}

/// Whether so many nanoseconds have passed since a first phase began.
fn is_over(began: Option<Nanos>, after: Nanos, now: Nanos) -> bool {
    began.is_some_and(|began| now >= began.saturating_add(after))
}
