//! Division of single launches over the places of their queue.
//!
//! * `refuse` says what of a launch keeps it whole; what a kernel's text tells is in the
//!   library (`source::divisible`).
//! * `ask` makes copies for an examination, `examine` answers on them with a `trial`, and
//!   `verdict` keeps the answers. `fill` has the numbers for trials.
//! * `cut` has the blocks of a launch, and `form` the text that lets a program run in parts.
//! * `prepare` builds programs for parts before a launch needs them.
//! * `parts` gives the parts to drivers, and `merged` brings results together.
//! * `pays` says whether parts are faster, by the `rates` of the last ones.
//! * `worker` has the threads for what waits for devices.

mod ask;
mod cut;
mod examine;
mod fill;
mod form;
mod merged;
mod parts;
mod pays;
mod prepare;
mod rates;
mod refuse;
mod trial;
mod verdict;
mod worker;

use std::ops::Range;
use std::sync::Arc;

use pdawl::profile::kernels::Division as Verdict;

use crate::command::Command;
use crate::handle::Ref;
use crate::launch::Launch;
use crate::native::Native;
use crate::queue::{Queue, State};
use crate::settings::{Division, settings};
use crate::status::Fallible;

use cut::Cut;
use parts::{Divided, Part};

pub use form::Form;
pub use rates::{PartTiming, note};
pub use verdict::{Entry, entry, of_kernel};

/// Has a launch's kernel examined if it must be. Returns what the launch waits for.
pub fn begin(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Option<Arc<Entry>> {
    let division = settings().division;
    // Out of order, a launch that does not wait could write what is being copied.
    let waits = division == Division::Equal;
    if division == Division::None || (queue.is_unordered() && !waits) {
        return None;
    }
    if refuse::reason(queue, command, launch).is_some() {
        return None;
    }
    let entry = launch.division();
    // Asking at each launch would take longer than some launches.
    let is_asked = entry.is_new() && (entry.is_due() || waits);
    let examined = match is_asked {
        true => verdict::examined(launch),
        false => Vec::new(),
    };
    if let Some(verdict) = verdict::by_others(&examined) {
        entry.settle(verdict);
    }
    let is_worth = || pays::is_worth(queue, command, launch, examined.len());
    if let Some(verdict) = entry.verdict() {
        prepare::missing(queue, state, launch, (entry, verdict));
    } else if (waits || (is_asked && is_worth())) && entry.begin() {
        let place = match launch.can_run_at(state.place) {
            true => state.place,
            false => *queue
                .places
                .iter()
                .find(|place| launch.can_run_at(**place))?,
        };
        if let Err(code) = ask::ask(queue, state, command, launch, (place, entry)) {
            let why = format!("a driver refused copies for its examination with code {code}");
            entry.refuse(&why);
        }
    }
    (waits && entry.is_examined()).then(|| {
        entry.wake(queue);
        Arc::clone(entry)
    })
}

/// Gives a launch to drivers in parts; `None` if it must stay whole.
pub fn issue(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Option<Fallible<Arc<Native>>> {
    if settings().division == Division::None {
        return None;
    }
    note(&mut state.plan.parts);
    let entry = launch.division();
    let verdict = match refuse::reason(queue, command, launch) {
        Some(why) => Err(why),
        None => match entry.verdict() {
            Some(Verdict::Refused { reason }) => Err(reason),
            Some(verdict) => Ok(verdict),
            None if entry.is_examined() => {
                Err("it is being examined, or its program is built for parts".to_owned())
            }
            None => Err(UNKNOWN.to_owned()),
        },
    };
    let planned = verdict.and_then(|verdict| planned(queue, command, launch, entry, verdict));
    match planned {
        Err(reason) => {
            entry.note(|figures| figures.whole = Some(reason));
            None
        }
        Ok((divided, merges)) => {
            divided.count(queue);
            Some(match merges {
                true => divided.merged(queue, state),
                false => divided.sliced(queue, state),
            })
        }
    }
}

/// Why launches stay whole of which nothing is known.
pub const UNKNOWN: &str = "it has not been examined";

/// A launch in parts and whether their results must be merged, or why it stays whole.
fn planned<'a>(
    queue: &Queue,
    command: &'a Command,
    launch: &'a Launch,
    entry: &'a Arc<Entry>,
    verdict: Verdict,
) -> Result<(Divided<'a>, bool), String> {
    let (axis, agreeing, merges) = match verdict {
        Verdict::Sliced { axis, agreeing } => (axis, agreeing, false),
        Verdict::Merged { axis, agreeing, .. } => (axis, agreeing, true),
        Verdict::Refused { reason } => return Err(reason),
    };
    let cut = Cut::all(&launch.shape)
        .into_iter()
        .find(|cut| cut.axis == axis);
    let cut = cut.ok_or("it has one group along the axis")?;
    let mut places = refuse::able(queue, launch, &cut);
    if settings().exact {
        let agrees = |place: &usize| {
            let profile = &queue.context.places[*place].profile;
            agreeing.get(profile).copied().unwrap_or(false)
        };
        places.retain(agrees);
        if places.len() < 2 {
            return Err("no two devices have the same results, bit for bit".to_owned());
        }
    }
    let mut divided = Divided {
        command,
        launch,
        entry,
        cut,
        parts: Vec::new(),
    };
    divided.parts = match settings().division {
        Division::Equal => shared(&divided.cut, &places, &vec![1.0; places.len()]),
        _ => pays::parts(queue, &divided, &places, merges)?,
    };
    match divided.parts.len() {
        0 | 1 => Err("one place alone can run it, or is to run all of it".to_owned()),
        _ => Ok((divided, merges)),
    }
}

/// The blocks of a launch for each place, in proportion to weights.
fn shared(cut: &Cut, places: &[usize], weights: &[f64]) -> Vec<Part> {
    let counts = pdawl::balance::largest_remainder(cut.blocks() as u64, weights);
    let mut at = 0;
    let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
    for (place, count) in places.iter().zip(counts) {
        let end = at + count as usize;
        if end > at {
            parts.push((*place, at..end));
        }
        at = end;
    }
    parts
}
