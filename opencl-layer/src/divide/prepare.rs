//! Builds programs for parts, on a thread, before a launch needs them.

use std::sync::Arc;

use pdawl_api::profile::kernels::Division as Verdict;

use super::examine::refused;
use crate::form::Form;
use crate::handle::Remembered;
use crate::launch::Launch;
use crate::own_queue::Lane;
use crate::process_end::{EXAMINATIONS, while_alive};
use crate::program::Program;
use crate::queue::{Queue, State};
use crate::records::DivisionRecord;
use crate::shape::Cut;
use crate::status::Fallible;

/// The programs that the parts of a queue's launches need.
pub struct Programs {
    program: Remembered<Program>,
    lanes: Vec<Lane>,
}

impl Programs {
    /// Those for launches of a kernel at some places of a queue.
    pub fn of(
        queue: &Queue,
        state: &mut State,
        launch: &Launch,
        places: impl Iterator<Item = usize>,
    ) -> Fallible<Self> {
        let lanes = places.map(|place| queue.timed_lane(state, place));
        Ok(Self {
            program: launch.kernel.program.remember(),
            lanes: lanes.collect::<Fallible<_>>()?,
        })
    }

    /// Builds what a verdict needs, and returns it, or a refusal.
    pub fn build(&self, cuts: &[Cut], verdict: Verdict) -> Verdict {
        let Some(form) = form(cuts, &verdict) else {
            return verdict;
        };
        for lane in &self.lanes {
            // Nobody launches kernels of a program that is gone. This keeps none alive but
            // for a moment.
            let Some(program) = self.program.get() else {
                return verdict;
            };
            if let Err(code) = program.prepare(lane.program(form)) {
                return refused(&format!(
                    "its program cannot be built for parts: code {code}"
                ));
            }
        }
        verdict
    }
}

fn form(cuts: &[Cut], verdict: &Verdict) -> Option<Form> {
    let axis = match verdict {
        Verdict::Refused { .. } => return None,
        Verdict::Sliced { axis, .. } | Verdict::Merged { axis, .. } => *axis,
    };
    let cut = cuts.iter().find(|cut| cut.axis.dimension == axis)?;
    Some(cut.form())
}

/// Which of some places lack the program that a known verdict needs.
pub fn lacking(
    queue: &Queue,
    state: &mut State,
    launch: &Launch,
    (entry, verdict): (&Arc<DivisionRecord>, &Verdict),
    places: &[usize],
) -> Vec<usize> {
    let Some(form) = form(&entry.cuts, verdict) else {
        return Vec::new();
    };
    let mut is_built = |place: usize| {
        let lane = queue.timed_lane(state, place);
        lane.is_ok_and(|lane| launch.kernel.program.has(lane.program(form)))
    };
    let places = places.iter().copied();
    places.filter(|place| !is_built(*place)).collect()
}

/// Has programs built that a known verdict needs at some places.
pub fn build(
    queue: &Queue,
    state: &mut State,
    launch: &Launch,
    (entry, verdict): (&Arc<DivisionRecord>, &Verdict),
    places: &[usize],
) {
    let Ok(programs) = Programs::of(queue, state, launch, places.iter().copied()) else {
        return;
    };
    entry.reconsider();
    let (entry, verdict) = (Arc::clone(entry), verdict.clone());
    EXAMINATIONS.run(move || {
        let verdict = while_alive(|| programs.build(&entry.cuts, verdict));
        entry.tell(verdict);
    });
}
