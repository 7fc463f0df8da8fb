//! What became of a kernel's launches, as far as dividing them is concerned.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use opencl_sys::{CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START};

use super::KernelRecord;
use crate::native::Native;
use crate::queue::Queue;
use crate::status::Fallible;

/// Launches of which the rates are kept: few, so that shares follow what changes.
const LAST: usize = 5;

/// What became of it in this process.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Launches that were divided.
    pub divided: u64,
    /// Divided launches whose parts wrote unlike values to one byte.
    pub clashes: u64,
    /// By device: the groups that it ran of all groups of divided launches.
    pub groups: BTreeMap<String, u64>,
    /// Why the last launch that was not divided was not.
    pub whole: Option<Why<'static>>,
    /// By device: the seconds of a group along the axis in the last divided launches, the
    /// oldest first.
    pub rates: BTreeMap<String, Vec<f64>>,
}

/// Why a launch stays whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Why<'a> {
    Because(Cow<'a, str>),
    /// The predicted seconds of its parts and of the whole.
    Slower {
        parts: f64,
        whole: f64,
    },
}

/// Why launches stay whole of which nothing is known.
pub const UNKNOWN: Why<'static> = Why::Because(Cow::Borrowed("it has not been examined"));

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Because(why) => f.write_str(why),
            Self::Slower { parts, whole } => write!(
                f,
                "parts are predicted to take {parts:.3e} s, and the whole {whole:.3e} s"
            ),
        }
    }
}

impl<'a> From<&'a str> for Why<'a> {
    fn from(why: &'a str) -> Self {
        Self::Because(Cow::Borrowed(why))
    }
}

impl Why<'_> {
    pub fn into_owned(self) -> Why<'static> {
        match self {
            Self::Because(why) => Why::Because(Cow::Owned(why.into_owned())),
            Self::Slower { parts, whole } => Why::Slower { parts, whole },
        }
    }
}

impl Figures {
    /// A device took so many seconds for each group.
    pub fn ran(&mut self, device: &str, seconds: f64) {
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

/// A launch of a kernel at a place, whose time is to be noted.
pub struct Timing {
    pub record: Arc<KernelRecord>,
    pub place: usize,
    pub native: Arc<Native>,
}

/// Notes the times of launches that have ended, and forgets these launches.
pub fn note(queue: &Queue, timings: &mut Vec<Timing>) {
    let native = |timing: &Timing| Arc::clone(&timing.native);
    note_ended(timings, native, |timing, seconds| {
        let place = &queue.context.places[timing.place];
        timing.record.took(&place.profile, seconds);
    });
}

/// Notes the seconds of what has ended, and forgets it. What failed tells nothing.
pub fn note_ended<T>(
    running: &mut Vec<T>,
    native: impl Fn(&T) -> Arc<Native>,
    note: impl Fn(&T, f64),
) {
    running.retain(|one| {
        let native = native(one);
        let status = native.execution_status();
        if let (Ok(0), Ok(seconds)) = (status, duration(&native)) {
            note(one, seconds);
        }
        status.is_ok_and(|status| status > 0)
    });
}

/// The seconds that a command took on its device.
fn duration(native: &Native) -> Fallible<f64> {
    let start = native.device_time(CL_PROFILING_COMMAND_START)?;
    let end = native.device_time(CL_PROFILING_COMMAND_END)?;
    Ok(end.saturating_sub(start) as f64 * 1e-9)
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
