//! The times of kernels and copies at each device, measured and remembered in the machine's
//! file.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::{panic, ptr};

use opencl_sys::{
    CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, cl_profiling_info, cl_ulong,
};
use pdawl::machine::{Fingerprint, Host};
use pdawl::profile::kernels::{Division, KernelKey, KernelProfiles, path_of_user};

use super::record::{self, KernelRecord};
use crate::native::Native;
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};

/// A launch of a kernel at a place, whose time is to be noted.
pub struct Timing {
    pub record: Arc<KernelRecord>,
    pub place: usize,
    pub native: Arc<Native>,
}

struct Store {
    /// `None` without a folder for them.
    profiles: Option<KernelProfiles>,
    /// Verdicts without such a folder.
    divisions: BTreeMap<String, Division>,
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
        divisions: BTreeMap::new(),
    }
}

extern "C" fn save() {
    let _ = panic::catch_unwind(|| {
        let spent: Vec<(KernelKey, f64)> = (record::all().iter())
            .map(|record| (record.key.clone(), record.spent_here()))
            .collect();
        if let Some(profiles) = &mut store().profiles {
            for (key, seconds) in spent {
                profiles.spend(&key, seconds);
            }
            if let Err(error) = profiles.save() {
                eprintln!("pdawl: {error}");
            }
        }
    });
}

/// The median of a kernel's last seconds at a device, and how many are kept, if there are
/// some of earlier runs.
pub fn kept(key: &KernelKey, device: &str) -> Option<(f64, u64)> {
    let store = store();
    let times = store.profiles.as_ref()?.times(key, device)?;
    Some((times.median(), times.count()))
}

/// The seconds that a kernel has taken in earlier runs.
pub fn spent_before(key: &KernelKey) -> f64 {
    let store = store();
    let profiles = store.profiles.as_ref();
    profiles.map_or(0.0, |profiles| profiles.spent(key))
}

/// Keeps the seconds of a kernel at a device for other runs, if there is a folder for them.
/// Returns what is [`kept`] now.
pub fn record(key: &KernelKey, device: &str, seconds: f64) -> Option<(f64, u64)> {
    let mut store = store();
    let profiles = store.profiles.as_mut()?;
    profiles.record(key, device, seconds);
    let times = profiles.times(key, device)?;
    Some((times.median(), times.count()))
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

/// Notes the times of launches that have ended, and forgets these launches.
pub fn note(queue: &Queue, timings: &mut Vec<Timing>) {
    timings.retain(|timing| match timing.native.execution_status() {
        Ok(status) if status > 0 => true,
        Ok(0) => {
            if let Ok(seconds) = duration(&timing.native) {
                let place = &queue.context.places[timing.place];
                timing.record.took(&place.profile, seconds);
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
