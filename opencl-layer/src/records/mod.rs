//! What is known of launches with one key.
//!
//! A launch asks for the times of its kernel, whether to time it, and whether to sample it.
//! Making a key and looking it up takes longer than the answers, so a kernel finds the
//! record of a launch by numbers ([`Records`]), and each record is made once.
//!
//! * `entry` has what is known of dividing launches, and the machine's file. Here are the times of
//!   launches that have ended, and what became of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::panic;
use std::sync::{Arc, LazyLock};

use opencl_sys::{CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START};
use pdawl_api::profile::kernels::KernelKey;

use crate::known::Known;
use crate::lock::{ENTRIES, Guard, KERNEL_RECORDS, Mutex, RECORD, RECORDS};
use crate::native::Native;
use crate::process_end;
use crate::queue::Queue;
use crate::shape::Shape;
use crate::status::Fallible;

pub mod entry;

pub use entry::DivisionRecord;

/// Times of a kernel at a device that are wanted before only those launches are timed
/// whose number in the process is a power of two and not small: what takes times is
/// opened late, and takes time itself.
const TIMED: u64 = 3;
const NOT_SMALL: u64 = 64;

/// What is known of launches with one key.
pub struct KernelRecord {
    pub key: KernelKey,
    /// Tells it from all other records of the process.
    pub number: usize,
    /// The seconds that its launches have taken in earlier runs.
    spent_before: f64,
    /// What is known of dividing its launches.
    pub divisions: Known<Deciding, DivisionRecord, ENTRIES>,
    state: Mutex<State, RECORD>,
}

#[derive(Default)]
struct State {
    devices: Vec<AtDevice>,
    /// How often somebody has asked whether to sample it.
    asked: u64,
}

/// What is known at devices of one name in profiles.
#[derive(Default)]
struct AtDevice {
    name: String,
    /// The median of its last seconds.
    seconds: Option<f64>,
    /// How many times are kept in the machine's file.
    times: u64,
    /// Launches in this process.
    launches: u64,
    /// Whether a sample was begun in this process.
    was_sampled: bool,
}

impl AtDevice {
    fn spent(&self) -> f64 {
        self.launches as f64 * self.seconds.unwrap_or(0.0)
    }

    /// Counts a launch. Returns whether it is to be timed.
    fn launches(&mut self) -> bool {
        self.launches += 1;
        let count = self.launches;
        let timed = self.times.max(count - 1);
        timed < TIMED || (count >= NOT_SMALL && count.is_power_of_two())
    }
}

impl State {
    /// What is known at a device. What earlier runs know is read when it is first wanted.
    fn at(&mut self, key: &KernelKey, device: &str) -> &mut AtDevice {
        let known = self.devices.iter().position(|at| at.name == device);
        let index = known.unwrap_or_else(|| {
            let (seconds, times) = entry::kept(key, device).unzip();
            self.devices.push(AtDevice {
                name: device.to_owned(),
                seconds,
                times: times.unwrap_or(0),
                ..AtDevice::default()
            });
            self.devices.len() - 1
        });
        &mut self.devices[index]
    }

    /// Counts that somebody asks. Returns whether it is the first time, the second, the
    /// fourth and so on.
    fn is_asked_rarely(&mut self) -> bool {
        self.asked += 1;
        self.asked.is_power_of_two()
    }
}

fn all() -> &'static Known<KernelKey, KernelRecord, RECORDS> {
    static ALL: LazyLock<Known<KernelKey, KernelRecord, RECORDS>> = LazyLock::new(|| {
        // SAFETY: the function may be called when the process ends.
        unsafe { libc::atexit(save) };
        Known::default()
    });
    &ALL
}

extern "C" fn save() {
    if process_end::is_forked() {
        return;
    }
    let _ = panic::catch_unwind(|| {
        let all = all().all().into_iter();
        let spent = all.map(|record| (record.key.clone(), record.spent_here()));
        entry::save(spent.collect());
    });
}

/// The record of a key.
pub fn of(key: KernelKey) -> Arc<KernelRecord> {
    all().of(key, |key, number| {
        Arc::new(KernelRecord {
            number,
            spent_before: entry::spent_before(key),
            divisions: Known::default(),
            state: Mutex::default(),
            key: key.clone(),
        })
    })
}

impl KernelRecord {
    fn state(&self) -> Guard<'_, State, RECORD> {
        self.state.lock()
    }

    /// The seconds of a launch at a device of this name in profiles, if they are known.
    pub fn seconds(&self, device: &str) -> Option<f64> {
        self.state().at(&self.key, device).seconds
    }

    /// Notes the seconds of a launch at a device.
    pub fn took(&self, device: &str, seconds: f64) {
        let mut state = self.state();
        let at = state.at(&self.key, device);
        match entry::record(&self.key, device, seconds) {
            Some((median, times)) => (at.seconds, at.times) = (Some(median), times),
            None => at.seconds = Some(seconds),
        }
    }

    /// Whether the next launch at a device is to be timed; counts it.
    pub fn wants_time(&self, device: &str) -> bool {
        let mut state = self.state();
        state.at(&self.key, device).launches()
    }

    /// The seconds that all launches have taken in this process.
    pub fn spent_here(&self) -> f64 {
        self.state().devices.iter().map(AtDevice::spent).sum()
    }

    /// The seconds that all launches have taken, in this process and before.
    pub fn spent(&self) -> f64 {
        self.spent_before + self.spent_here()
    }

    /// Whether it is time to ask which of some devices need a sample: ever more rarely, and
    /// never where the seconds are known or a sample was begun.
    pub fn is_due_for_samples<'a>(&self, devices: impl Iterator<Item = &'a str>) -> bool {
        let mut state = self.state();
        let mut needs = false;
        for device in devices {
            let at = state.at(&self.key, device);
            needs |= at.seconds.is_none() && !at.was_sampled;
        }
        needs && state.is_asked_rarely()
    }

    /// Whether a sample at a device was begun.
    pub fn was_sampled(&self, device: &str) -> bool {
        self.state().at(&self.key, device).was_sampled
    }

    /// Whether nobody has begun a sample at a device; from now on somebody has.
    pub fn first_sample(&self, device: &str) -> bool {
        let mut state = self.state();
        let at = state.at(&self.key, device);
        !std::mem::replace(&mut at.was_sampled, true)
    }
}

/// The records of one kernel's launches, by the [`numbers`] that tell their keys apart.
pub type Records = Known<Vec<usize>, KernelRecord, KERNEL_RECORDS>;

/// What of a launch decides which bytes it writes, beside its key, by argument: a value, or
/// that there is none. A null pointer is thus distinguished from a buffer of as many
/// bytes as a pointer.
pub type Deciding = Vec<(usize, Option<Arc<[u8]>>)>;

/// All of a kernel's launch that its key is made of.
pub fn numbers(shape: &Shape, sizes: impl Iterator<Item = usize>) -> Vec<usize> {
    let (global, local) = (&shape.global, shape.local.as_deref().unwrap_or_default());
    // The first two tell where the others belong.
    let mut numbers = vec![global.len(), local.len()];
    numbers.extend(global.iter().chain(local));
    numbers.extend(sizes);
    numbers
}

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
    use pdawl_api::profile::kernels::Program;

    use super::*;

    #[test]
    fn launches_have_the_same_numbers_if_and_only_if_they_have_the_same_key() {
        let sizes = [1, 2];
        let pairs: Vec<Vec<usize>> = (sizes.iter())
            .flat_map(|one| sizes.map(|two| vec![*one, two]))
            .collect();
        let lists: Vec<Vec<usize>> = sizes.iter().map(|size| vec![*size]).chain(pairs).collect();
        let mut seen = Vec::new();
        for global in &lists {
            let like = |local: &&Vec<usize>| local.len() == global.len();
            let locals = lists.iter().filter(like).map(Some).chain([None]);
            for local in locals {
                for arguments in lists.iter().chain([&Vec::new()]) {
                    let shape = Shape {
                        offset: None,
                        global: global.clone(),
                        local: local.cloned(),
                    };
                    let bytes: Vec<u64> = arguments.iter().map(|size| *size as u64).collect();
                    let program = Program::new(b"", "");
                    let local = shape.local.as_deref();
                    let key = KernelKey::new(program, "f", global, local, &bytes);
                    seen.push((numbers(&shape, arguments.iter().copied()), key));
                }
            }
        }
        for (numbers, key) in &seen {
            for (other_numbers, other_key) in &seen {
                assert_eq!(
                    numbers == other_numbers,
                    key == other_key,
                    "{key} {other_key}"
                );
            }
        }
    }

    #[test]
    fn what_was_refused_is_asked_for_ever_more_rarely() {
        let mut state = State::default();
        let asked = (1..=100).filter(|_| state.is_asked_rarely());
        // 1, 2, 4 to 64.
        assert_eq!(asked.count(), 7);
    }

    #[test]
    fn the_first_launches_are_timed_and_later_ones_ever_more_rarely() {
        let timed = |times: u64| {
            let mut at = AtDevice {
                times,
                ..AtDevice::default()
            };
            let timed = (1..=200).filter(|_| at.launches());
            timed.collect::<Vec<u64>>()
        };
        assert_eq!(timed(0), [1, 2, 3, 64, 128]);
        assert_eq!(timed(TIMED), [64, 128]);
    }

    #[test]
    fn time_is_what_launches_take() {
        let mut at = AtDevice::default();
        for _ in 0..8 {
            at.launches();
        }
        assert_eq!(at.spent(), 0.0);
        at.seconds = Some(0.5);
        assert_eq!(at.spent(), 4.0);
    }

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
