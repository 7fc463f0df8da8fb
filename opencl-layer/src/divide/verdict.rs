//! What is known of dividing each kernel: by its key, its shape, the sizes of its arguments
//! and the scalars that decide which bytes it writes.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use pdawl::profile::kernels::Division as Verdict;

use crate::argument::Argument;
use crate::context::Place;
use crate::handle::{Ref, Remembered};
use crate::kernel::Apart;
use crate::launch::Launch;
use crate::queue::Queue;
use crate::schedule;
use crate::settings::settings;

/// One kernel, as far as dividing it is concerned.
pub struct Entry {
    /// What files know it by.
    pub key: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// Queues that want to go on when it is known.
    waiting: Vec<Remembered<Queue>>,
    figures: Figures,
}

#[derive(Clone, Default)]
enum Stage {
    /// Nobody has examined it.
    #[default]
    New,
    Examining,
    Known(Verdict),
}

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
    pub whole: Option<String>,
    /// By device: the seconds of a group along the axis in the last divided launches, the
    /// oldest first.
    pub rates: BTreeMap<String, Vec<f64>>,
}

fn entries() -> MutexGuard<'static, HashMap<String, Arc<Entry>>> {
    static ENTRIES: LazyLock<Mutex<HashMap<String, Arc<Entry>>>> = LazyLock::new(Mutex::default);
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a launch.
pub fn entry(launch: &Launch) -> Arc<Entry> {
    let key = key(launch, launch.kernel.apart());
    let mut entries = entries();
    if let Some(entry) = entries.get(&key) {
        return Arc::clone(entry);
    }
    let places = &launch.kernel.program.context.places;
    let kept = schedule::kept_division(&key).filter(|kept| is_enough(kept, places));
    let entry = Arc::new(Entry {
        key: key.clone(),
        state: Mutex::new(State {
            stage: kept.map_or(Stage::New, Stage::Known),
            ..State::default()
        }),
        changed: Condvar::new(),
    });
    entries.insert(key, Arc::clone(&entry));
    entry
}

/// Whether a kept verdict tells all that this process asks.
fn is_enough(kept: &Verdict, places: &[Place]) -> bool {
    let Some(agreeing) = kept.agreeing().filter(|_| settings().exact) else {
        return true;
    };
    places
        .iter()
        .all(|place| agreeing.contains_key(&place.profile))
}

/// All entries whose key begins with that of a kernel in profiles.
pub fn of_kernel(kernel: &str) -> Vec<Arc<Entry>> {
    let mut found: Vec<Arc<Entry>> = (entries().values())
        .filter(|entry| entry.key.split(" :").next() == Some(kernel))
        .cloned()
        .collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// The kernel's key in profiles, and the values of scalars that matter. A null pointer is
/// told from a buffer of as many bytes as a pointer.
fn key(launch: &Launch, apart: &Apart) -> String {
    let mut key = format!("{} :", launch.key());
    let Ok(division) = &apart.division else {
        return key;
    };
    let iterates = launch.writes().any(|index| apart.reads[index]);
    for (index, set) in launch.arguments.iter().enumerate() {
        let decides =
            division.scalars.contains(&index) || (iterates && division.fixed.contains(&index));
        match &set.argument {
            Argument::Bytes(bytes) if decides => {
                // Writing to a string does not fail.
                let _ = write!(key, " {index}=");
                for byte in bytes {
                    let _ = write!(key, "{byte:02x}");
                }
            }
            Argument::Local(_) => {
                let _ = write!(key, " {index}!");
            }
            _ => {}
        }
    }
    key
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        match &self.state().stage {
            Stage::Known(verdict) => Some(verdict.clone()),
            _ => None,
        }
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

    /// Programs are built for a verdict. Until it is told again, nobody divides by it.
    pub fn reconsider(&self) {
        self.state().stage = Stage::Examining;
    }

    /// Whether it is being examined.
    pub fn is_examined(&self) -> bool {
        matches!(self.state().stage, Stage::Examining)
    }

    /// Has a queue go on when it is known.
    pub fn wake(&self, queue: &Ref<Queue>) {
        self.state().waiting.push(queue.remember());
    }

    /// Waits until it is known.
    pub fn wait(&self) {
        let mut state = self.state();
        while matches!(state.stage, Stage::Examining) {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Keeps what was found out for other runs.
    pub fn keep(&self, verdict: &Verdict) {
        schedule::keep_division(&self.key, verdict);
    }

    /// What was found out, or that it is otherwise than it seemed.
    pub fn tell(&self, verdict: Verdict) {
        let waiting = {
            let mut state = self.state();
            state.stage = Stage::Known(verdict);
            std::mem::take(&mut state.waiting)
        };
        self.changed.notify_all();
        for queue in waiting.iter().filter_map(Remembered::get) {
            schedule::advance(&queue);
        }
    }

    /// Refuses it in this process, where no lock must be taken.
    pub fn refuse(&self, reason: &str) {
        let reason = reason.to_owned();
        self.state().stage = Stage::Known(Verdict::Refused { reason });
        self.changed.notify_all();
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
