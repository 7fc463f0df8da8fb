//! What is known of dividing each kernel: by its key, its shape, the sizes of its arguments
//! and the scalars that decide which bytes it writes.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use pdawl::profile::kernels::{Agreeing, Division as Verdict};

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
    /// How often somebody has asked whether to examine it.
    asked: u64,
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

/// Values of a kernel's scalars with which it is examined, at most. An examination takes the
/// time of some forty launches, and some programs have another value in each.
const VALUES: usize = 3;

/// The verdicts of a kernel with all values of its scalars.
pub fn examined(launch: &Launch) -> Vec<Verdict> {
    let places = &launch.kernel.program.context.places;
    let mut kept = schedule::kept_divisions(&begin(launch));
    kept.retain(|kept| is_enough(kept, places));
    kept
}

/// The verdict of a kernel whose scalars have a value with which it was not examined, if it
/// was with enough others. Results are merged: what parts write tells all of itself then.
pub fn by_others(examined: &[Verdict]) -> Option<Verdict> {
    if examined.len() < VALUES {
        return None;
    }
    let mut all: Option<(usize, Agreeing)> = None;
    for one in examined {
        let (axis, agreeing) = match one {
            Verdict::Refused { reason } => {
                let reason = format!("with other values of its scalars, {reason}");
                return Some(Verdict::Refused { reason });
            }
            Verdict::Sliced { axis, agreeing } | Verdict::Merged { axis, agreeing, .. } => {
                (*axis, agreeing.clone())
            }
        };
        let (_, known) = all.get_or_insert((axis, agreeing.clone()));
        known.retain(|device, agrees| {
            *agrees &= agreeing.get(device) == Some(&true);
            agreeing.contains_key(device)
        });
    }
    let (axis, agreeing) = all?;
    let reason = "it was examined with other values of its scalars".to_owned();
    Some(Verdict::Merged {
        axis,
        reason,
        agreeing,
    })
}

/// What the keys of all verdicts of a kernel begin with.
fn begin(launch: &Launch) -> String {
    format!("{} :", launch.key())
}

/// The kernel's key in profiles, and the values of scalars that matter. A null pointer is
/// told from a buffer of as many bytes as a pointer.
fn key(launch: &Launch, apart: &Apart) -> String {
    let mut key = begin(launch);
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

    /// Whether nobody has begun to examine it.
    pub fn is_new(&self) -> bool {
        matches!(self.state().stage, Stage::New)
    }

    /// Whether it is time to ask again whether to examine it: ever more rarely.
    pub fn is_due(&self) -> bool {
        let mut state = self.state();
        state.asked += 1;
        state.asked.is_power_of_two()
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

    /// Says what is known without an examination, unless one has begun.
    pub fn settle(&self, verdict: Verdict) {
        let mut state = self.state();
        if matches!(state.stage, Stage::New) {
            state.stage = Stage::Known(verdict);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sliced(devices: &[(&str, bool)]) -> Verdict {
        let agreeing = devices
            .iter()
            .map(|(name, agrees)| ((*name).to_owned(), *agrees));
        Verdict::Sliced {
            axis: 1,
            agreeing: agreeing.collect(),
        }
    }

    #[test]
    fn enough_other_values_tell_that_results_are_merged() {
        let one = sliced(&[("a", true), ("b", true), ("c", true)]);
        let two = sliced(&[("a", true), ("b", false)]);
        assert_eq!(by_others(&[one.clone(), two.clone()]), None);
        let Some(Verdict::Merged { axis, agreeing, .. }) =
            by_others(&[one.clone(), two, one.clone()])
        else {
            panic!("it is merged");
        };
        assert_eq!(axis, 1);
        assert_eq!(
            agreeing,
            [("a".to_owned(), true), ("b".to_owned(), false)].into()
        );
        let refused = Verdict::Refused {
            reason: "it prints".to_owned(),
        };
        let all = by_others(&[one.clone(), refused, one]);
        assert!(matches!(all, Some(Verdict::Refused { reason }) if reason.ends_with("it prints")));
    }
}
