//! What was decided, in words.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Divider;
use super::state::Part;
use crate::quantity::Seconds;

/// The last decision. Seconds are those that a step is expected to take.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) enum Decision {
    /// The user has given shares.
    Given,
    /// There were no ranges of these units before, or a part that had some is lost.
    /// No seconds where no speed was known.
    Anew { seconds: Option<f64> },
    /// A part that had no units was given some.
    Tried,
    Moved {
        seconds: f64,
        before: f64,
        moved: u64,
        cost: f64,
    },
    /// Better ranges did not pay.
    Kept {
        seconds: f64,
        better: f64,
        cost: f64,
    },
}

impl Divider {
    /// Why the parts have the ranges that they have: the last decision, and a line for each part.
    pub fn why(&self) -> String {
        let state = &self.state;
        let Some(decision) = &state.decision else {
            return "no step has begun".to_owned();
        };
        let step = state.steps + u64::from(state.is_open);
        let mut text = format!("step {step}: ");
        let all = state.units.end - state.units.start;
        let _ = match decision {
            Decision::Given => write!(text, "the shares that were given"),
            Decision::Anew { seconds: None } => write!(text, "equal shares, as no speed is known"),
            Decision::Anew {
                seconds: Some(seconds),
            } => write!(text, "by speeds; {} expected", Seconds(*seconds)),
            Decision::Tried => write!(text, "a part that had no units is tried again"),
            Decision::Moved {
                seconds,
                before,
                moved,
                cost,
            } => write!(
                text,
                "{moved} of {all} units change parts: {} expected in place of {}{}",
                Seconds(*seconds),
                Seconds(*before),
                moving(*cost)
            ),
            Decision::Kept {
                seconds, better, ..
            } if better >= seconds => {
                write!(text, "as before: {} expected", Seconds(*seconds))
            }
            Decision::Kept {
                seconds,
                better,
                cost,
            } => write!(
                text,
                "as before: {} expected; {} by other ranges is no gain that pays{}",
                Seconds(*seconds),
                Seconds(*better),
                moving(*cost)
            ),
        };
        let noise = self.noise();
        for (number, part) in state.parts.iter().enumerate() {
            let range = state.ranges.get(number).cloned().unwrap_or_default();
            let units = range.end - range.start;
            let share = 100.0 * units as f64 / (all.max(1)) as f64;
            let _ = write!(
                text,
                "\npart {number}: {units} units, {share:.1} %{}",
                part.words(noise)
            );
            let limit = state.options.limits.get(number).copied().flatten();
            let more = (self.measure.size(&range)).saturating_add(state.options.granularity);
            if limit.is_some_and(|limit| more > limit) {
                text.push_str("; its limit allows no more");
            }
        }
        text
    }
}

impl Part {
    fn words(&self, noise: f64) -> String {
        let mut words = String::new();
        if let Some(seconds) = self.estimate.seconds() {
            let _ = write!(words, "; {} a unit of work", Seconds(seconds));
            let _ = match self.estimate.error(noise) {
                Some(error) => write!(words, ", within {:.1} %", 200.0 * error),
                None => write!(words, ", as was guessed"),
            };
        }
        if let Some((step, before)) = self.changed {
            let _ = write!(words, ", {} before step {}", Seconds(before), step + 1);
        }
        if self.is_lost {
            words.push_str("; lost");
        }
        words
    }
}

fn moving(cost: f64) -> String {
    match cost > 0.0 {
        true => format!(", and to move them takes {}", Seconds(cost)),
        false => String::new(),
    }
}
