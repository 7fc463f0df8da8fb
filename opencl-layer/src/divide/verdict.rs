//! What earlier runs and other values of a kernel's scalars tell of dividing its launches.

use pdawl::profile::kernels::{Agreeing, Division as Verdict};

use crate::context::Place;
use crate::launch::Launch;
use crate::records::{KernelRecord, store};
use crate::settings::settings;

/// What the keys of all entries of a record begin with.
pub fn begin(record: &KernelRecord) -> String {
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
pub fn kept(key: &str, launch: &Launch) -> Option<Verdict> {
    let places = &launch.kernel.program.context.places;
    store::kept_division(key).filter(|kept| is_enough(kept, places))
}

/// Values of a kernel's scalars with which it is examined, at most. An examination takes the
/// time of several launches, and some programs have another value in each.
const VALUES: usize = 3;

/// The verdicts of a kernel with all values of its scalars.
pub fn examined(launch: &Launch) -> Vec<Verdict> {
    let places = &launch.kernel.program.context.places;
    let mut kept = store::kept_divisions(&begin(launch.record()));
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
