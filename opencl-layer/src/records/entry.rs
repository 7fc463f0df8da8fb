//! What is known of dividing each kernel: by its key, its shape, the sizes of its arguments
//! and the scalars that decide which bytes it writes.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use pdawl_api::machine::{Fingerprint, Host};
use pdawl_api::profile::kernels::{
    Division, Division as Verdict, KernelKey, KernelProfiles, path_of_user,
};

use super::{Figures, Why};
use crate::lock::{Condvar, ENTRY, Guard, Mutex, STORE};
use crate::process_end::while_alive;
use crate::shape::Cut;

type Task = Box<dyn FnOnce() + Send>;

/// One kernel, as far as dividing it is concerned.
pub struct DivisionRecord {
    /// What files know it by.
    pub key: String,
    /// The ways to divide its launches.
    pub cuts: Vec<Cut>,
    state: Mutex<State, ENTRY>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// How often somebody has asked whether to examine it.
    asked: u64,
    /// Launches that have lacked programs for parts.
    lacking: u64,
    /// What is to be done when it is known.
    waiting: Vec<Task>,
    figures: Figures,
}

#[derive(Clone, Default)]
enum Stage {
    /// Nobody has examined it.
    #[default]
    New,
    Examining,
    Known(Arc<Verdict>),
}

impl DivisionRecord {
    /// The entry of a key, whose launches can be divided in these ways, with what earlier runs
    /// have found out.
    pub fn new(key: String, cuts: Vec<Cut>, kept: Option<Verdict>) -> Self {
        Self {
            key,
            cuts,
            state: Mutex::new(State {
                stage: kept.map_or(Stage::New, |kept| Stage::Known(Arc::new(kept))),
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> Guard<'_, State, ENTRY> {
        self.state.lock()
    }

    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<Arc<Verdict>> {
        match &self.state().stage {
            Stage::Known(verdict) => Some(Arc::clone(verdict)),
            _ => None,
        }
    }

    /// Whether nobody has begun to examine it and it is time to ask whether to do so: ever
    /// more rarely.
    pub fn is_due(&self) -> bool {
        let mut state = self.state();
        let is_new = matches!(state.stage, Stage::New);
        state.asked += u64::from(is_new);
        is_new && state.asked.is_power_of_two()
    }

    /// How many launches have lacked programs for parts, if it is time to ask whether devices
    /// should have these: ever more rarely.
    pub fn time_to_build(&self) -> Option<u64> {
        let mut state = self.state();
        state.lacking += 1;
        state.lacking.is_power_of_two().then_some(state.lacking)
    }

    /// Whether nobody has begun to examine it.
    pub fn is_new(&self) -> bool {
        matches!(self.state().stage, Stage::New)
    }

    /// Whether nobody has begun to examine it; from now on somebody has.
    pub fn begin(&self) -> bool {
        let mut state = self.state();
        let is_new = matches!(state.stage, Stage::New);
        if is_new {
            state.stage = Stage::Examining;
        }
        is_new
    }

    /// Programs are built for a verdict. Until it is reported again, nobody divides by it.
    pub fn reconsider(&self) {
        self.state().stage = Stage::Examining;
    }

    /// Whether it is being examined.
    pub fn is_examined(&self) -> bool {
        matches!(self.state().stage, Stage::Examining)
    }

    /// Has something done when it is known.
    pub fn when_known(&self, task: impl FnOnce() + Send + 'static) {
        self.state().waiting.push(Box::new(task));
    }

    /// Waits until it is known.
    pub fn wait(&self) {
        let mut state = self.state();
        while matches!(state.stage, Stage::Examining) {
            state = self.changed.wait(state);
        }
    }

    /// Keeps what was found out for other runs.
    pub fn keep(&self, verdict: &Verdict) {
        keep_division(&self.key, verdict);
    }

    /// What was found out, or that it is otherwise than it seemed.
    pub fn tell(&self, verdict: Verdict) {
        let waiting = {
            let mut state = self.state();
            state.stage = Stage::Known(Arc::new(verdict));
            std::mem::take(&mut state.waiting)
        };
        self.changed.notify_all();
        for task in waiting {
            while_alive(task);
        }
    }

    /// Says what is known without an examination, unless one has begun.
    pub fn settle(&self, verdict: Verdict) {
        let mut state = self.state();
        if matches!(state.stage, Stage::New) {
            state.stage = Stage::Known(Arc::new(verdict));
        }
    }

    /// Refuses it in this process, where no lock must be taken.
    pub fn refuse(&self, reason: &str) {
        let reason = reason.to_owned();
        self.state().stage = Stage::Known(Arc::new(Verdict::Refused { reason }));
        self.changed.notify_all();
    }

    /// Notes why a launch stays whole.
    pub fn stays_whole(&self, why: Why) {
        let whole = &mut self.state().figures.whole;
        // Most launches stay whole for the reason of the one before.
        if whole.as_ref() != Some(&why) {
            *whole = Some(why.into_owned());
        }
    }

    /// The seconds of a group at a device in the last divided launches.
    pub fn seconds_of_group(&self, device: &str) -> Option<f64> {
        self.state().figures.seconds_of_group(device)
    }

    /// What became of it.
    pub fn figures(&self) -> Figures {
        self.state().figures.clone()
    }

    /// Notes what became of it.
    pub fn note(&self, note: impl FnOnce(&mut Figures)) {
        note(&mut self.state().figures);
    }
}

// What the machine's file has of kernels: their times at each device, and what was found out
// about dividing them.

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
