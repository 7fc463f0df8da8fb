//! Division of single launches over the places of their queue.
//!
//! * `refuse` says what of a launch keeps it whole; what a kernel's text tells is in the
//!   library (`source::divisible`).
//! * `ask` makes copies for an examination, `examine` answers on them with a `trial`, and
//!   `verdict` keeps the answers. `fill` has the numbers for trials, `merge` compares bytes.
//! * `cut` has the blocks of a launch, and `form` the text that lets a program run in parts.
//! * `prepare` builds programs for parts before a launch needs them.
//! * `parts` gives the parts to drivers, and `merged` brings results together.
//! * `worker` has the threads for what waits for devices.

mod ask;
mod cut;
mod examine;
mod fill;
mod form;
mod merge;
mod merged;
mod parts;
mod prepare;
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
use verdict::entry;

pub use form::Form;
pub use verdict::{Entry, of_kernel};

/// Has a launch's kernel examined if it must be. Returns what the launch waits for.
pub fn begin(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Option<Arc<Entry>> {
    if settings().division != Division::Equal {
        return None;
    }
    if refuse::reason(queue, command, launch).is_some() {
        return None;
    }
    let entry = entry(launch);
    if let Some(verdict) = entry.verdict() {
        prepare::missing(queue, state, launch, (&entry, verdict));
    } else if entry.begin() {
        let place = match launch.can_run_at(state.place) {
            true => state.place,
            false => *queue
                .places
                .iter()
                .find(|place| launch.can_run_at(**place))?,
        };
        if let Err(code) = ask::ask(queue, state, command, launch, (place, &entry)) {
            let why = format!("a driver refused copies for its examination with code {code}");
            entry.refuse(&why);
        }
    }
    entry.is_examined().then(|| {
        entry.wake(queue);
        entry
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
    let entry = entry(launch);
    let verdict = match refuse::reason(queue, command, launch) {
        Some(why) => Err(why),
        None => match entry.verdict() {
            Some(Verdict::Refused { reason }) => Err(reason),
            Some(verdict) => Ok(verdict),
            None => Err("it has not been examined".to_owned()),
        },
    };
    let (axis, merges) = match verdict {
        Ok(Verdict::Sliced { axis }) => (axis, false),
        Ok(Verdict::Merged { axis, .. }) => (axis, true),
        Ok(Verdict::Refused { reason }) | Err(reason) => {
            entry.note(|figures| figures.whole = Some(reason));
            return None;
        }
    };
    let cut = Cut::all(&launch.shape)
        .into_iter()
        .find(|cut| cut.axis == axis)?;
    let places = refuse::able(queue, launch, &cut);
    let parts = shared(&cut, &places, &vec![1.0; places.len()]);
    if parts.len() < 2 {
        let why = "one place alone can run it".to_owned();
        entry.note(|figures| figures.whole = Some(why));
        return None;
    }
    entry.note(|figures| {
        figures.divided += 1;
        for (place, blocks) in &parts {
            let device = queue.context.places[*place].real.name.clone();
            *figures.groups.entry(device).or_default() += cut.groups_of(blocks) as u64;
        }
    });
    let divided = Divided {
        command,
        launch,
        entry: &entry,
        cut,
        parts,
    };
    Some(match merges {
        true => divided.merged(queue, state),
        false => divided.sliced(queue, state),
    })
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
