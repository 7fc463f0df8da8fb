//! What is known of dividing a launch: by its key, its shape, the sizes of its arguments and
//! the scalars that decide which bytes it writes.

use std::fmt::Write;
use std::sync::Arc;

use pdawl_api::profile::kernels::{Agreeing, Division as Verdict};

use crate::argument::Argument;
use crate::context::Place;
use crate::launch::Launch;
use crate::native::Native;
use crate::program::SeparateGroups;
use crate::queue::{Queue, State};
use crate::records::{Deciding, DivisionRecord, KernelRecord, entry, note_ended};
use crate::settings::settings;
use crate::shape::Cut;

impl Launch {
    /// What is known of dividing it.
    pub fn division(&self) -> &Arc<DivisionRecord> {
        self.division.get_or_init(|| {
            let record = self.record();
            let deciding = deciding(self, self.kernel.separate_groups());
            record.divisions.of(deciding, |deciding, _| {
                let key = begin(record) + &text(deciding);
                let kept = kept(&key, self);
                Arc::new(DivisionRecord::new(key, Cut::all(&self.shape), kept))
            })
        })
    }
}

fn deciding(launch: &Launch, separate_groups: &SeparateGroups) -> Deciding {
    let Ok(division) = separate_groups else {
        return Deciding::new();
    };
    let iterates = launch.iterates();
    let decides = |index: &usize| {
        division.scalars.contains(index) || (iterates && division.fixed.contains(index))
    };
    let arguments = launch.arguments.iter().enumerate();
    let deciding = arguments.filter_map(|(index, set)| match &set.argument {
        Argument::Bytes(bytes) if decides(&index) => Some((index, Some(Arc::clone(bytes)))),
        Argument::Local(_) => Some((index, None)),
        _ => None,
    });
    deciding.collect()
}

/// What decides, as files have it.
fn text(deciding: &Deciding) -> String {
    let mut text = String::new();
    for (index, bytes) in deciding {
        // Writing to a string does not fail.
        let _ = match bytes {
            Some(_) => write!(text, " {index}="),
            None => write!(text, " {index}!"),
        };
        for byte in bytes.iter().flat_map(|bytes| bytes.iter()) {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

/// A part that runs, whose time is to be noted.
pub struct PartTiming {
    pub entry: Arc<DivisionRecord>,
    pub record: Arc<KernelRecord>,
    pub place: usize,
    /// Its groups along the axis, and those of the launch.
    pub groups: usize,
    pub all: usize,
    pub native: Arc<Native>,
}

/// The parts of a queue's launches that run.
#[derive(Default)]
struct Running(Vec<PartTiming>);

/// Notes a part that runs.
pub fn runs(state: &mut State, part: PartTiming) {
    state.kept.of::<Running>().0.push(part);
}

/// Notes the times of parts that have ended, and forgets these.
pub fn note(queue: &Queue, state: &mut State) {
    let Running(timings) = state.kept.of();
    let native = |part: &PartTiming| Arc::clone(&part.native);
    note_ended(timings, native, |part, seconds| part.ended(queue, seconds));
}

impl PartTiming {
    fn ended(&self, queue: &Queue, seconds: f64) {
        let place = &queue.context.places[self.place];
        let rate = seconds / self.groups as f64;
        self.entry
            .note(|figures| figures.ran(&place.real.name, rate));
        // A kernel whose launches are all divided has no other times for the next run.
        if self.record.seconds(&place.profile).is_none() {
            self.record.took(&place.profile, rate * self.all as f64);
        }
    }
}

/// What the keys of all entries of a record begin with.
fn begin(record: &KernelRecord) -> String {
    format!("{} :", record.key)
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

/// What earlier runs have found out about launches with a key.
fn kept(key: &str, launch: &Launch) -> Option<Verdict> {
    let places = &launch.kernel.program.context.places;
    entry::kept_division(key).filter(|kept| is_enough(kept, places))
}

/// Values of a kernel's scalars with which it is examined, at most. An examination takes the
/// time of several launches, and some programs have another value in each.
const VALUES: usize = 3;

/// The verdicts of a kernel with all values of its scalars.
pub fn examined(launch: &Launch) -> Vec<Verdict> {
    let places = &launch.kernel.program.context.places;
    let mut kept = entry::kept_divisions(&begin(launch.record()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_values_and_their_absence() {
        let value: Arc<[u8]> = [1, 0xab].as_slice().into();
        let deciding = vec![(2, None), (10, Some(value))];
        assert_eq!(text(&deciding), " 2! 10=01ab");
        assert_eq!(text(&Deciding::new()), "");
    }

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
