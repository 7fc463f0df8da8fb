//! What is known of dividing each kernel: by its key, its shape, the sizes of its arguments
//! and the scalars that decide which bytes it writes.

use std::sync::Arc;

use pdawl::profile::kernels::Division as Verdict;

use super::figures::{Figures, Why};
use super::store;
use crate::lock::{Condvar, ENTRY, Guard, Mutex};
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
        store::keep_division(&self.key, verdict);
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
