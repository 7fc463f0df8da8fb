//! How fast each device runs a kernel's parts.

use std::sync::Arc;

use super::verdict::{Entry, Figures};
use crate::native::Native;
use crate::queue::Queue;
use crate::schedule::{self, KernelRecord};

/// Launches of which the rates are kept: few, so that shares follow what changes.
const LAST: usize = 5;

/// A part that runs, whose time is to be noted.
pub struct PartTiming {
    pub entry: Arc<Entry>,
    pub record: Arc<KernelRecord>,
    pub place: usize,
    /// Its groups along the axis, and those of the launch.
    pub groups: usize,
    pub all: usize,
    pub native: Arc<Native>,
}

/// Notes the times of parts that have ended, and forgets these.
pub fn note(queue: &Queue, timings: &mut Vec<PartTiming>) {
    timings.retain(|timing| match timing.native.execution_status() {
        Ok(status) if status > 0 => true,
        Ok(0) => {
            if let Ok(seconds) = schedule::duration(&timing.native) {
                timing.ended(queue, seconds);
            }
            false
        }
        _ => false,
    });
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

impl Figures {
    /// A device took so many seconds for each group.
    fn ran(&mut self, device: &str, seconds: f64) {
        let rates = self.rates.entry(device.to_owned()).or_default();
        rates.push(seconds);
        let old = rates.len().saturating_sub(LAST);
        rates.drain(..old);
    }

    /// The seconds of a group at a device: the median, which one slow launch does not move.
    pub fn seconds_of_group(&self, device: &str) -> Option<f64> {
        let rates = self.rates.get(device)?;
        let mut sorted = [f64::INFINITY; LAST];
        sorted[..rates.len()].copy_from_slice(rates);
        sorted.sort_by(f64::total_cmp);
        sorted[..rates.len()].get(rates.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_rates_counts() {
        let mut figures = Figures::default();
        assert_eq!(figures.seconds_of_group("a"), None);
        for seconds in [9.0, 9.0, 1.0, 2.0, 1.0, 50.0, 1.0] {
            figures.ran("a", seconds);
        }
        assert_eq!(figures.seconds_of_group("a"), Some(1.0));
        assert_eq!(figures.seconds_of_group("b"), None);
    }
}
