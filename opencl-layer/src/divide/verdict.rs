//! What is known of dividing each kernel: by its key, its shape, the sizes of its arguments
//! and the scalars that decide which bytes it writes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pdawl::profile::kernels::{Agreeing, Division as Verdict};

use super::cut::Cut;
use super::entries;
use crate::context::Place;
use crate::handle::{Ref, Remembered};
use crate::launch::Launch;
use crate::process_end::while_alive;
use crate::queue::Queue;
use crate::schedule;
use crate::settings::settings;

/// One kernel, as far as dividing it is concerned.
pub struct Entry {
    /// What files know it by.
    pub key: String,
    /// The ways to divide its launches.
    pub cuts: Vec<Cut>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// How often somebody has asked whether to examine it.
    asked: u64,
    /// Launches that have lacked programs for parts.
    lacking: u64,
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
    Known(Arc<Verdict>),
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
    fn into_owned(self) -> Why<'static> {
        match self {
            Self::Because(why) => Why::Because(Cow::Owned(why.into_owned())),
            Self::Slower { parts, whole } => Why::Slower { parts, whole },
        }
    }
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

/// Values of a kernel's scalars with which it is examined, at most. An examination takes the
/// time of several launches, and some programs have another value in each.
const VALUES: usize = 3;

/// The verdicts of a kernel with all values of its scalars.
pub fn examined(launch: &Launch) -> Vec<Verdict> {
    let places = &launch.kernel.program.context.places;
    let mut kept = schedule::kept_divisions(&entries::begin(launch.record()));
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

impl Entry {
    /// The entry of a launch's key, with what earlier runs have found out.
    pub fn new(key: String, launch: &Launch) -> Self {
        let places = &launch.kernel.program.context.places;
        let kept = schedule::kept_division(&key).filter(|kept| is_enough(kept, places));
        Self {
            cuts: Cut::all(&launch.shape),
            state: Mutex::new(State {
                stage: kept.map_or(Stage::New, |kept| Stage::Known(Arc::new(kept))),
                ..State::default()
            }),
            changed: Condvar::new(),
            key,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            state.stage = Stage::Known(Arc::new(verdict));
            std::mem::take(&mut state.waiting)
        };
        self.changed.notify_all();
        for queue in waiting.iter().filter_map(Remembered::get) {
            while_alive(|| schedule::advance(&queue));
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
