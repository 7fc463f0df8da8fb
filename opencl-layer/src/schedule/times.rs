//! The times of kernels and copies at each device, measured and remembered.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::{panic, ptr};

use opencl_sys::{
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, cl_profiling_info, cl_ulong,
};
use pdawl::machine::{Fingerprint, Host};
use pdawl::profile::kernels::{Division, KernelKey, KernelProfiles, KernelTimes, path_of_user};

use crate::context::Place;
use crate::native::Native;
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};

/// A launch of a kernel at a place, whose time is to be noted.
pub struct Timing {
    key: KernelKey,
    place: usize,
    native: Arc<Native>,
}

impl Timing {
    pub fn new(key: KernelKey, place: usize, native: Arc<Native>) -> Self {
        Self { key, place, native }
    }
}

/// Times of a kernel at a device that are wanted before only those launches are timed
/// whose number in the process is a power of two and not small: what takes times is
/// opened late, and takes time itself.
const TIMED: u64 = 3;
const NOT_SMALL: u64 = 64;

struct Store {
    /// `None` without a folder for them.
    profiles: Option<KernelProfiles>,
    /// Times without such a folder.
    seconds: HashMap<(KernelKey, String), f64>,
    /// Verdicts without such a folder.
    divisions: BTreeMap<String, Division>,
    /// Launches in this process.
    launches: HashMap<(KernelKey, String), u64>,
    /// Kernels and devices for which a sample was begun in this process.
    sampled: HashSet<(KernelKey, String)>,
}

fn store() -> MutexGuard<'static, Store> {
    static STORE: LazyLock<Mutex<Store>> = LazyLock::new(|| Mutex::new(open()));
    STORE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open() -> Store {
    let host = Host::detect();
    let fingerprint = Fingerprint::of(&host.model, host.online, []);
    let profiles = path_of_user(&fingerprint).ok().map(|path| {
        KernelProfiles::open(path.clone(), &fingerprint)
            .inspect_err(|error| eprintln!("pdawl: {error}"))
            .unwrap_or_else(|_| KernelProfiles::empty(path, &fingerprint))
    });
    // SAFETY: the function may be called when the process ends.
    unsafe { libc::atexit(save) };
    Store {
        profiles,
        seconds: HashMap::new(),
        divisions: BTreeMap::new(),
        launches: HashMap::new(),
        sampled: HashSet::new(),
    }
}

extern "C" fn save() {
    let _ = panic::catch_unwind(|| {
        let mut store = store();
        let spent: Vec<(KernelKey, f64)> = (store.launches.keys())
            .map(|(key, device)| (key.clone(), store.spent_at(key, device)))
            .collect();
        if let Some(profiles) = &mut store.profiles {
            for (key, seconds) in spent {
                profiles.spend(&key, seconds);
            }
            if let Err(error) = profiles.save() {
                eprintln!("pdawl: {error}");
            }
        }
    });
}

impl Store {
    fn seconds(&self, key: &KernelKey, device: &str) -> Option<f64> {
        let kept = self
            .profiles
            .as_ref()
            .and_then(|profiles| profiles.seconds(key, device));
        kept.or_else(|| self.seconds.get(&(key.clone(), device.to_owned())).copied())
    }

    /// The seconds that a kernel has taken at a device in this process.
    fn spent_at(&self, key: &KernelKey, device: &str) -> f64 {
        let count = self.launches.get(&(key.clone(), device.to_owned()));
        let seconds = self.seconds(key, device).unwrap_or(0.0);
        count.map_or(0.0, |count| *count as f64 * seconds)
    }

    fn record(&mut self, key: &KernelKey, device: &str, seconds: f64) {
        match &mut self.profiles {
            Some(profiles) => drop(profiles.record(key, device, seconds)),
            None => drop(
                self.seconds
                    .insert((key.clone(), device.to_owned()), seconds),
            ),
        }
    }
}

/// The seconds of a kernel or a measurement at a place, if they are known.
pub fn seconds(place: &Place, key: &KernelKey) -> Option<f64> {
    store().seconds(key, &place.profile)
}

/// The seconds of a kernel at a device of this name in profiles, if they are known.
pub fn known_seconds(key: &KernelKey, device: &str) -> Option<f64> {
    store().seconds(key, device)
}

/// What was found out about dividing launches with this key, in this run or before.
pub fn kept_division(key: &str) -> Option<Division> {
    let store = store();
    let profiles = store.profiles.as_ref();
    profiles.and_then(|profiles| profiles.division(key).cloned())
}

/// What was found out about dividing launches with keys that begin so.
pub fn kept_divisions(begin: &str) -> Vec<Division> {
    let store = store();
    match &store.profiles {
        Some(profiles) => profiles.divisions(begin).cloned().collect(),
        None => (store.divisions.range(begin.to_owned()..))
            .take_while(|(key, _)| key.starts_with(begin))
            .map(|(_, division)| division.clone())
            .collect(),
    }
}

/// Keeps what was found out about dividing launches.
pub fn keep_division(key: &str, division: &Division) {
    let mut store = store();
    match &mut store.profiles {
        Some(profiles) => profiles.record_division(key, division),
        None => drop(store.divisions.insert(key.to_owned(), division.clone())),
    }
}

/// Notes the seconds of a kernel or a measurement at a place.
pub fn record(place: &Place, key: &KernelKey, seconds: f64) {
    store().record(key, &place.profile, seconds);
}

/// Whether the next launch of a kernel at a place is to be timed; counts it.
pub fn wants(place: &Place, key: &KernelKey) -> bool {
    let mut store = store();
    let count = store
        .launches
        .entry((key.clone(), place.profile.clone()))
        .or_default();
    *count += 1;
    let count = *count;
    let times = store.profiles.as_ref();
    let times = times.and_then(|profiles| profiles.times(key, &place.profile));
    let kept = times.map_or(0, KernelTimes::count).max(count - 1);
    kept < TIMED || (count >= NOT_SMALL && count.is_power_of_two())
}

/// Launches of a kernel at a place in this process.
pub fn launches(place: &Place, key: &KernelKey) -> u64 {
    let launches = &store().launches;
    launches
        .get(&(key.clone(), place.profile.clone()))
        .copied()
        .unwrap_or(0)
}

/// The seconds that a kernel has taken, in this process at some places and in those before.
pub fn spent(places: &[Place], key: &KernelKey) -> f64 {
    let store = store();
    let before = store
        .profiles
        .as_ref()
        .map_or(0.0, |profiles| profiles.spent(key));
    let mut devices: Vec<&str> = places.iter().map(|place| place.profile.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    let here = devices
        .into_iter()
        .map(|device| store.spent_at(key, device));
    before + here.sum::<f64>()
}

/// Whether nobody has begun a sample of a kernel at a place; from now on somebody has.
pub fn first_sample(place: &Place, key: &KernelKey) -> bool {
    store().sampled.insert((key.clone(), place.profile.clone()))
}

/// Whether a sample of a kernel at a place was begun.
pub fn was_sampled(place: &Place, key: &KernelKey) -> bool {
    store()
        .sampled
        .contains(&(key.clone(), place.profile.clone()))
}

/// Notes the times of launches that have ended, and forgets these launches.
pub fn note(queue: &Queue, timings: &mut Vec<Timing>) {
    timings.retain(|timing| match timing.native.execution_status() {
        Ok(status) if status > 0 => true,
        Ok(0) => {
            if let Ok(seconds) = duration(&timing.native) {
                record(&queue.context.places[timing.place], &timing.key, seconds);
            }
            false
        }
        _ => false,
    });
}

/// The seconds that a command took on its device.
pub fn duration(native: &Native) -> Fallible<f64> {
    let at = |what: cl_profiling_info| -> Fallible<cl_ulong> {
        let mut nanoseconds: cl_ulong = 0;
        let (size, value) = (
            size_of::<cl_ulong>(),
            ptr::from_mut(&mut nanoseconds).cast(),
        );
        check(driver!(
            native.table,
            clGetEventProfilingInfo(native.event, what, size, value, ptr::null_mut())
        ))?;
        Ok(nanoseconds)
    };
    let (start, end) = (
        at(CL_PROFILING_COMMAND_START)?,
        at(CL_PROFILING_COMMAND_END)?,
    );
    Ok(end.saturating_sub(start) as f64 * 1e-9)
}
