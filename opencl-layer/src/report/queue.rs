//! What a queue did.

use std::sync::Arc;
use std::time::Instant;

use pdawl::report::exec;
use pdawl::trace::Span;

use crate::command::Command;
use crate::context::Context;
use crate::native::Native;

use super::spans::{Ended, Pending};
use super::{Launches, spans};

/// The counts of a queue. They outlive it.
pub struct Counts {
    number: usize,
    /// By place.
    devices: Vec<exec::QueueDevice>,
    /// What profiles call the places' devices.
    profiles: Vec<String>,
    pub launches: Launches,
    /// The place of its last launch.
    place: Option<usize>,
    epoch: Epoch,
    pending: Vec<Pending>,
}

/// What the queue does until the program waits.
#[derive(Default)]
struct Epoch {
    began: Option<Instant>,
    has_launch: bool,
    /// The predicted seconds of the map, from the moment of the first prediction on.
    predicted: Option<(f64, Instant)>,
}

impl Counts {
    pub fn new(number: usize, context: &Context) -> Self {
        let devices = context.places.iter().map(|place| exec::QueueDevice {
            name: place.real.name.clone(),
            ..exec::QueueDevice::default()
        });
        Self {
            number,
            devices: devices.collect(),
            profiles: context
                .places
                .iter()
                .map(|place| place.profile.clone())
                .collect(),
            launches: Launches::default(),
            place: None,
            epoch: Epoch::default(),
            pending: Vec::new(),
        }
    }

    pub fn device(&self, place: usize) -> String {
        self.devices[place].name.clone()
    }

    /// What profiles call a place's device.
    pub fn profile(&self, place: usize) -> &str {
        &self.profiles[place]
    }

    pub fn places(&self) -> usize {
        self.devices.len()
    }

    pub fn issued(&mut self, command: &Command, place: usize) {
        self.epoch.began.get_or_insert_with(Instant::now);
        let device = &mut self.devices[place];
        device.commands += 1;
        if let Some(launch) = command.launch() {
            device.launches += 1;
            self.epoch.has_launch = true;
            self.place = Some(place);
            self.launches.count(launch, place);
        }
    }

    pub fn pending(&mut self, span: Span, place: usize, native: &Arc<Native>) {
        if spans::has_room(self.pending.len()) {
            self.pending.push(Pending::new(span, place, native));
        }
    }

    pub fn predicted(&mut self, seconds: f64) {
        let from = self.epoch.predicted.map(|(_, from)| from);
        self.epoch.predicted = Some((seconds, from.unwrap_or_else(Instant::now)));
    }

    /// Ends the epoch. Returns the commands that have ended.
    pub fn synchronised(&mut self) -> Vec<Ended> {
        let epoch = std::mem::take(&mut self.epoch);
        if let (Some(began), Some(place), true) = (epoch.began, self.place, epoch.has_launch) {
            let seconds = began.elapsed().as_secs_f64();
            let device = &mut self.devices[place];
            device.epochs += 1;
            device.measured_seconds += seconds;
            if let Some((predicted, from)) = epoch.predicted {
                device.predicted_epochs += 1;
                device.predicted_seconds += predicted;
                device.predicted_measured_seconds += from.elapsed().as_secs_f64();
            }
        }
        let mut ended = Vec::new();
        self.pending.retain(|pending| {
            let has_ended = pending.ended(self.number, &self.devices[pending.place].name);
            let runs = has_ended.is_none();
            // What failed, or has no times, is forgotten.
            ended.extend(has_ended.and_then(Result::ok));
            runs
        });
        ended
    }

    /// The queue as reports have it.
    pub fn described(&self) -> exec::Queue {
        let used = self.devices.iter().filter(|device| device.commands > 0);
        exec::Queue {
            number: self.number,
            device: self.place.map(|place| self.device(place)),
            devices: used.cloned().collect(),
        }
    }
}
