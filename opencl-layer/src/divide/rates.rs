//! How fast each device runs a kernel's parts.

use std::sync::Arc;

use crate::native::Native;
use crate::queue::Queue;
use crate::queue::State;
use crate::records::{DivisionRecord, KernelRecord, note_ended};

/// A part that runs, whose time is to be noted.
pub struct PartTiming {
    pub entry: Arc<DivisionRecord>,
    pub record: Arc<KernelRecord>,
    pub place: usize,
    /// Its groups along the axis, and those of the launch.
    pub groups: usize,
    pub all: usize,
    pub native: Arc<Native>,
}

/// The parts of a queue's launches that run.
#[derive(Default)]
struct Running(Vec<PartTiming>);

/// Notes a part that runs.
pub fn runs(state: &mut State, part: PartTiming) {
    state.kept.of::<Running>().0.push(part);
}

/// Notes the times of parts that have ended, and forgets these.
pub fn note(queue: &Queue, state: &mut State) {
    let Running(timings) = state.kept.of();
    let native = |part: &PartTiming| Arc::clone(&part.native);
    note_ended(timings, native, |part, seconds| part.ended(queue, seconds));
}

impl PartTiming {
    fn ended(&self, queue: &Queue, seconds: f64) {
        let place = &queue.context.places[self.place];
        let rate = seconds / self.groups as f64;
        self.entry
            .note(|figures| figures.ran(&place.real.name, rate));
        // A kernel whose launches are all divided has no other times for the next run.
        if self.record.seconds(&place.profile).is_none() {
            self.record.took(&place.profile, rate * self.all as f64);
        }
    }
}
