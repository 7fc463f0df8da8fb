//! Division of single launches over the places of their queue.
//!
//! * Here is what of a launch keeps it whole; what a kernel's text tells is in the
//!   library (`source::divisible`).
//! * `ask` makes copies for an examination, `examine` answers on them with a trial, and
//!   `entries` has what is known of a launch without one. `bytes` has the numbers for
//!   trials, and compares and restores buffers at their device.
//! * `prepare` builds programs for parts before a launch needs them.
//! * `parts` gives the parts to drivers, and brings results together.
//! * `pays` says whether parts are faster, by the rates of the last ones.

mod ask;
mod bytes;
mod entries;
mod examine;
mod parts;
mod pays;
mod prepare;

use std::borrow::Cow;
use std::sync::Arc;

use pdawl_api::profile::kernels::Division as Verdict;

use crate::command::Command;
use crate::handle::Ref;
use crate::launch::Launch;
use crate::native::Native;
use crate::queue::{Queue, State};
use crate::records::{DivisionRecord, UNKNOWN, Why};
use crate::settings::{Division, settings};
use crate::shape::Cut;
use crate::status::Fallible;

use crate::argument::Argument;
use parts::{Divided, PlaceBlocks};

pub use entries::note;

/// Has a launch's kernel examined if it must be. Returns what the launch waits for.
pub fn begin(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
) -> Option<Arc<DivisionRecord>> {
    let division = settings().division;
    // Out of order, a launch that does not wait could write what is being copied.
    let waits = division == Division::Equal;
    if division == Division::None || (queue.is_unordered() && !waits) {
        return None;
    }
    if refusal(queue, command, launch).is_some() {
        return None;
    }
    let entry = launch.division();
    // Asking at each launch would take longer than some launches.
    if entry.is_due() || (waits && entry.is_new()) {
        let examined = entries::examined(launch);
        match entries::by_others(&examined) {
            Some(verdict) => entry.settle(verdict),
            None => {
                let default_place = launch.default_place(queue, state.place);
                let place = match waits {
                    true => Some(default_place),
                    false => pays::where_to_examine(
                        queue,
                        default_place,
                        command,
                        launch,
                        examined.len(),
                    ),
                };
                if let Some(place) = place {
                    examine(queue, state, command, launch, place);
                }
            }
        }
    }
    let known = entry.verdict();
    let repays = known.is_some_and(|verdict| {
        let able: Vec<usize> = launch.able(queue).collect();
        let known = (entry, &*verdict);
        let lacking = prepare::lacking(queue, state, launch, known, &able);
        if lacking.is_empty() {
            return false;
        }
        if waits {
            prepare::build(queue, state, launch, known, &lacking);
            return true;
        }
        // A device without a part may never have the program.
        let Some(launches) = entry.time_to_build() else {
            return false;
        };
        let planned = planned(queue, command, launch, entry, &verdict);
        planned.is_ok_and(|(divided, _)| {
            let places: Vec<usize> = divided.parts.iter().map(|(place, _)| *place).collect();
            let lacking = prepare::lacking(queue, state, launch, known, &places);
            let building = launch.kernel.program.build_seconds() * lacking.len() as f64;
            // As many launches are expected as there were, in earlier runs too.
            let expected = launch
                .launches_before(queue, state.place)
                .max(launches as f64);
            let is_worth = !lacking.is_empty() && divided.gain * expected >= building;
            if is_worth {
                prepare::build(queue, state, launch, known, &lacking);
            }
            is_worth && divided.gain >= building
        })
    });
    ((waits || repays) && entry.is_examined()).then(|| Arc::clone(entry))
}

/// Whether it may become known how to divide launches like this one.
pub fn is_undecided(queue: &Queue, command: &Command, launch: &Launch) -> bool {
    settings().division == Division::IfItPays
        && !queue.is_unordered()
        && launch.able(queue).nth(1).is_some()
        && launch.division().verdict().is_none()
        && refusal(queue, command, launch).is_none()
}

/// Has a launch's kernel examined at a place, unless somebody has begun to.
fn examine(
    queue: &Ref<Queue>,
    state: &mut State,
    command: &Command,
    launch: &Launch,
    place: usize,
) {
    let entry = launch.division();
    if !entry.begin() {
        return;
    }
    if let Err(code) = ask::ask(queue, state, command, launch, (place, entry)) {
        let why = format!("a driver refused copies for its examination with code {code}");
        entry.refuse(&why);
    }
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
    note(queue, state);
    let entry = launch.division();
    let verdict = entry.verdict();
    let planned = match (refusal(queue, command, launch), verdict.as_deref()) {
        (Some(why), _) => Err(why.into()),
        (None, Some(verdict)) => {
            let mut ready = |divided: &Divided| {
                let places: Vec<usize> = divided.parts.iter().map(|(place, _)| *place).collect();
                prepare::lacking(queue, state, launch, (entry, verdict), &places).is_empty()
            };
            match planned(queue, command, launch, entry, verdict) {
                // To build it now would make the launch late.
                Ok((divided, _)) if !ready(&divided) => {
                    Err("its program is not built for parts, which would cost more".into())
                }
                planned => planned,
            }
        }
        (None, None) if entry.is_examined() => {
            Err("it is being examined, or its program is built for parts".into())
        }
        (None, None) => Err(UNKNOWN),
    };
    match planned {
        Err(why) => {
            entry.stays_whole(why);
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

/// Why a launch is not divided whatever an examination tells, if there is a reason.
fn refusal<'a>(queue: &Queue, command: &Command, launch: &'a Launch) -> Option<&'a str> {
    if let Err(why) = launch.kernel.separate_groups() {
        return Some(why);
    }
    let refusal =
        (launch.refusal).get_or_init(|| reason(queue, command, launch, &launch.division().cuts));
    refusal.as_deref()
}

/// A launch in parts and whether their results must be merged, or why it stays whole.
fn planned<'a>(
    queue: &Queue,
    command: &'a Command,
    launch: &'a Launch,
    entry: &'a Arc<DivisionRecord>,
    verdict: &'a Verdict,
) -> Result<(Divided<'a>, bool), Why<'a>> {
    let (axis, agreeing, merges) = match verdict {
        Verdict::Sliced { axis, agreeing } => (axis, agreeing, false),
        Verdict::Merged { axis, agreeing, .. } => (axis, agreeing, true),
        Verdict::Refused { reason } => return Err(reason.as_str().into()),
    };
    let cut = entry.cuts.iter().find(|cut| cut.axis.dimension == *axis);
    let cut = cut.ok_or("it has one group along the axis")?;
    let mut places = able(queue, launch, cut);
    if settings().exact {
        let agrees = |place: &usize| {
            let profile = &queue.context.places[*place].profile;
            agreeing.get(profile).copied().unwrap_or(false)
        };
        places.retain(agrees);
        if places.len() < 2 {
            return Err("no two devices have the same results, bit for bit".into());
        }
    }
    let mut divided = Divided {
        command,
        launch,
        entry,
        cut,
        parts: Vec::new(),
        gain: 0.0,
    };
    match settings().division {
        Division::Equal => {
            let weight = |place: &usize| settings().shares.get(*place).copied().unwrap_or(1.0);
            let weights: Vec<f64> = places.iter().map(weight).collect();
            divided.parts = shared(cut, &places, &weights);
        }
        _ => (divided.parts, divided.gain) = pays::parts(queue, &divided, &places, merges)?,
    }
    match divided.parts.len() {
        0 | 1 => Err("one place alone can run it, or is to run all of it".into()),
        _ => Ok((divided, merges)),
    }
}

/// The blocks of a launch for each place, in proportion to weights.
fn shared(cut: &Cut, places: &[usize], weights: &[f64]) -> Vec<PlaceBlocks> {
    let counts = pdawl_api::balance::largest_remainder(cut.blocks(), weights);
    let mut at = 0;
    let mut parts: Vec<PlaceBlocks> = Vec::new();
    for (place, count) in places.iter().zip(counts) {
        let end = at + count;
        if end > at {
            parts.push((*place, at..end));
        }
        at = end;
    }
    parts
}

/// Why a launch is not divided, if there is a reason beside its kernel's text.
fn reason(
    queue: &Queue,
    command: &Command,
    launch: &Launch,
    cuts: &[Cut],
) -> Option<Cow<'static, str>> {
    if command.fixed_place().is_some() {
        return Some("it uses an image, which is at one place".into());
    }
    if (queue.places.iter()).any(|place| launch.shape_of(*place).is_some()) {
        return Some("the program gives its launches other shapes by device".into());
    }
    let offset = launch.shape.offset.iter().flatten();
    if offset.copied().any(|offset| offset > 0) {
        return Some("the launch has an offset".into());
    }
    if cuts.is_empty() {
        return Some("it has one group along every axis".into());
    }
    if launch.writes().next().is_none() {
        return Some("it writes no buffer".into());
    }
    if launch
        .arguments
        .iter()
        .any(|set| matches!(set.argument, Argument::Sampler(_)))
    {
        return Some("it has a sampler".into());
    }
    overlap(launch).map(Cow::Owned)
}

/// Two arguments that share bytes, one of which is written.
fn overlap(launch: &Launch) -> Option<String> {
    for (written, other) in launch.writes() {
        for (index, mem) in launch.mems() {
            if index != written && mem.overlaps(0..mem.size, other, 0..other.size) {
                return Some(format!(
                    "arguments {} and {} share bytes",
                    index.min(written),
                    index.max(written)
                ));
            }
        }
    }
    None
}

/// The places that can run parts of a launch.
fn able(queue: &Queue, launch: &Launch, cut: &Cut) -> Vec<usize> {
    let fits = |place: &usize| {
        let most = launch.kernel.group_limit(*place);
        most.is_some_and(|most| cut.items_of_group() <= most)
    };
    launch.able(queue).filter(fits).collect()
}
