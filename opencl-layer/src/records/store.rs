//! What the machine's file has of kernels: their times at each device, and what was found out
//! about dividing them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pdawl::machine::{Fingerprint, Host};
use pdawl::profile::kernels::{Division, KernelKey, KernelProfiles, path_of_user};

use crate::lock::{Guard, Mutex, STORE};

struct Store {
    /// `None` without a folder for them.
    profiles: Option<KernelProfiles>,
    /// Verdicts without such a folder.
    divisions: BTreeMap<String, Division>,
}

fn store() -> Guard<'static, Store, STORE> {
    static KEPT: LazyLock<Mutex<Store, STORE>> = LazyLock::new(|| Mutex::new(open()));
    KEPT.lock()
}

fn open() -> Store {
    let host = Host::detect();
    let fingerprint = Fingerprint::of(&host.model, host.online, []);
    let profiles = path_of_user(&fingerprint).ok().map(|path| {
        KernelProfiles::open(path.clone(), &fingerprint)
            .inspect_err(|error| eprintln!("pdawl: {error}"))
            .unwrap_or_else(|_| KernelProfiles::empty(path, &fingerprint))
    });
    Store {
        profiles,
        divisions: BTreeMap::new(),
    }
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

/// Writes the machine's file, with the seconds that kernels have taken in this process.
pub fn save(spent: Vec<(KernelKey, f64)>) {
    if let Some(profiles) = &mut store().profiles {
        for (key, seconds) in spent {
            profiles.spend(&key, seconds);
        }
        if let Err(error) = profiles.save() {
            eprintln!("pdawl: {error}");
        }
    }
}
