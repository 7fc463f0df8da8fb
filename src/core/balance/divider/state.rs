//! What a divider knows, and how it is written and read.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::chunks::Chunks;
use super::cut::Measure;
use super::estimate::Estimate;
use super::why::Decision;
use super::{Divider, DividerError, Options};

/// The version of what [`Divider::to_json`] writes.
pub(super) const VERSION: u32 = 1;

/// What is known of a part.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub estimate: Estimate,
    pub is_lost: bool,
    /// Seconds of the steps in which it had no units.
    pub idle: f64,
    /// The last step that showed a change, and seconds a unit before it.
    pub changed: Option<(u64, f64)>,
}

/// Everything but what follows from the options.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub version: u32,
    pub options: Options,
    pub parts: Vec<Part>,
    /// The units of the present step, and the range of each part; no ranges before the first.
    pub units: Range<u64>,
    pub ranges: Vec<Range<u64>>,
    /// Whether the present step has not ended.
    pub is_open: bool,
    /// Steps that have ended.
    pub steps: u64,
    /// Units that moved when the present step began.
    pub moved: u64,
    /// Units that have moved, and the seconds that it took.
    pub moves: (u64, f64),
    pub decision: Option<Decision>,
    pub chunks: Option<Chunks>,
}

impl Divider {
    /// Everything, as JSON, to go on elsewhere or later.
    ///
    /// # Errors
    /// When a balancer of co-runs decides, whose state is its own.
    pub fn to_json(&self) -> Result<String, DividerError> {
        if self.decider.is_some() {
            let why = "a divider with a balancer of co-runs is not written".to_owned();
            return Err(DividerError::Option {
                option: "balancer",
                why,
            });
        }
        serde_json::to_string(&self.state).map_err(|error| DividerError::State(error.to_string()))
    }

    /// A divider with the state that another one wrote.
    ///
    /// # Errors
    /// When the text is no state of a divider.
    pub fn from_json(text: &str) -> Result<Self, DividerError> {
        let wrong = |error: serde_json::Error| DividerError::State(error.to_string());
        let state: State = serde_json::from_str(text).map_err(wrong)?;
        state.options.check()?;
        let measure = Measure::new(
            state.options.granularity,
            &state.options.weights,
            &state.options.sizes,
        );
        state
            .check()
            .map_err(|why| DividerError::State(why.to_owned()))?;
        Ok(Self {
            state,
            measure,
            decider: None,
        })
    }
}

impl State {
    /// Whether it is one that a divider can have.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let (parts, units) = (self.options.parts, self.options.units);
        let is_within = |range: &Range<u64>| range.start <= range.end && range.end <= units;
        let follows = |ranges: &[Range<u64>]| {
            let mut end = self.units.start;
            ranges
                .iter()
                .all(|range| std::mem::replace(&mut end, range.end) == range.start)
                && end == self.units.end
        };
        if self.version != VERSION {
            return Err("its version is another one");
        }
        // Far more than anyone counts, and far from where counters end.
        let changes = self.parts.iter().filter_map(|part| part.changed);
        let counts = [self.steps, self.moved, self.moves.0];
        let mut counts = counts.into_iter().chain(changes.map(|(step, _)| step));
        if counts.any(|count| count > 1 << 62) {
            return Err("its steps or moves are too many");
        }
        if self.parts.len() != parts || !matches!(self.ranges.len(), n if n == 0 || n == parts) {
            return Err("its parts are not as many as the options say");
        }
        if !is_within(&self.units)
            || !self.ranges.iter().all(is_within)
            || (!self.ranges.is_empty() && !follows(&self.ranges))
        {
            return Err("its ranges are not those of its units");
        }
        if (self.is_open || self.chunks.is_some()) && self.ranges.is_empty() {
            return Err("its step has no ranges");
        }
        match self
            .chunks
            .as_ref()
            .is_none_or(|chunks| chunks.suits(parts, &self.units))
        {
            true => Ok(()),
            false => Err("its chunks are not those of its units"),
        }
    }
}
