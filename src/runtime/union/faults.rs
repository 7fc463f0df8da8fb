//! Fault injection: a device fails a command, or is lost, at a chosen moment.
//! For tests and drills on real devices; the simulator schedules its own faults.

use std::collections::HashSet;

use crate::runtime::{Command, DeviceId, Status};

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With the device's launch of this number, counted from 0.
    Launch(u64),
    /// With the device's first command of this phase or a later one.
    Phase(u32),
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
    /// Lost devices whose loss a completion has reported.
    reported: HashSet<DeviceId>,
    pub phase: u32,
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

    /// How a command of a device fails, if a fault strikes it.
    pub fn strike(&mut self, device: DeviceId, command: &Command) -> Option<Status> {
        if self.is_empty() {
            return None;
        }
        let launches = &mut self.launches[device.0];
        let before = *launches;
        *launches += command.launches().count() as u64;
        let (after, phase) = (*launches, self.phase);
        let is_due = |fault: &mut Fault| {
            fault.device == device
                && match fault.when {
                    When::Launch(number) => after > before && after > number,
                    When::Phase(begin) => phase >= begin,
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
}
