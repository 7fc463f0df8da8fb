//! The division of a loop of the user's: which units each part computes in the next step, from what
//! the steps before took. No device, thread or clock is known here, so any loop can be divided,
//! and ranks that are told the same seconds decide the same without a word between them.
//!
//! ```
//! use pdawl_core::balance::divider::{Divider, Options};
//!
//! # fn main() -> Result<(), pdawl_core::balance::divider::DividerError> {
//! let mut divider = Divider::new(Options::new(1_000_000, 2))?;
//! for _ in 0..5 {
//!     let parts = divider.next()?.to_vec();
//!     // The user's own: part 1 is three times as fast.
//!     let seconds = [1e-6, 3e-6].map(|unit| Some(unit));
//!     let seconds = [0, 1].map(|part| seconds[part].map(|s| s * (parts[part].end - parts[part].start) as f64));
//!     divider.took(&seconds)?;
//! }
//! let parts = divider.next()?;
//! assert_eq!(parts, [0..750_000, 750_000..1_000_000]);
//! # Ok(())
//! # }
//! ```
//!
//! `estimate` has what a unit takes on each part, `cut` the ranges, `chunks` the form without
//! barriers, `why` the words. docs/divider.md explains it and says where it does not help.

mod choose;
mod chunks;
mod cut;
mod decider;
mod error;
mod estimate;
mod options;
mod state;
#[cfg(test)]
mod tests;
mod why;

use std::ops::Range;

use self::cut::Measure;
use self::decider::Decider;
use self::estimate::{Estimate, Noise};
use self::state::{Part, State, VERSION};

pub use self::error::DividerError;
pub use self::options::Options;

/// Seconds outside of these are taken for the nearest: clocks show no less, and nobody waits longer.
const SECONDS: [f64; 2] = [1e-12, 1e12];
/// Most seconds a unit of work.
const SLOWEST: f64 = 1e100;

/// Divides the units of a step among parts so that all end together, and corrects that by what
/// each step took. See the module's page.
pub struct Divider {
    state: State,
    measure: Measure,
    /// Who decides in place of the estimates, if anyone.
    decider: Option<Decider>,
}

impl Divider {
    /// # Errors
    /// When an option is wrong; the error names it.
    pub fn new(options: Options) -> Result<Self, DividerError> {
        options.check()?;
        let supposed = |part: usize| {
            let rate = options.rates.get(part).filter(|rate| **rate > 0.0);
            rate.map(|rate| Estimate::supposed(1.0 / rate))
        };
        let part = |part: usize| Part {
            estimate: supposed(part).unwrap_or_default(),
            ..Part::default()
        };
        Ok(Self {
            decider: None,
            measure: Measure::new(options.granularity, &options.weights, &options.sizes),
            state: State {
                version: VERSION,
                parts: (0..options.parts).map(part).collect(),
                units: 0..options.units,
                ranges: Vec::new(),
                is_open: false,
                steps: 0,
                moved: 0,
                moves: (0, 0.0),
                decision: None,
                chunks: None,
                options,
            },
        })
    }

    /// The ranges of the next step, one a part in the parts' order, together all units. The same
    /// again where the present step has not ended.
    ///
    /// # Errors
    /// When all parts are lost, limits leave no room, or units that were taken are not done.
    #[expect(
        clippy::should_implement_trait,
        reason = "it borrows what it returns, and may fail"
    )]
    pub fn next(&mut self) -> Result<&[Range<u64>], DividerError> {
        self.next_of(0..self.state.options.units)
    }

    /// The same of some of the units: those that a part of another divider has.
    ///
    /// # Errors
    /// As [`Divider::next`], and when there are no such units.
    pub fn next_of(&mut self, units: Range<u64>) -> Result<&[Range<u64>], DividerError> {
        if self.begins(&units)? {
            let speeds = self.speeds()?;
            let state = &self.state;
            let decider = self.decider.as_mut();
            let shares = decider.map(|decider| decider.shares(|part| state.parts[part].is_lost));
            let ranges = match shares {
                Some(shares) => self.by_shares(&units, &shares, speeds)?,
                None => self.chosen(&units, &speeds)?,
            };
            self.begin(units, ranges);
        }
        Ok(&self.state.ranges)
    }

    /// The ranges of the next step by shares that the user has chosen, in any scale. Parts that are
    /// lost get nothing, and limits hold.
    ///
    /// # Errors
    /// As [`Divider::next`], and when a share is no number of 0 or more.
    pub fn next_by(&mut self, shares: &[f64]) -> Result<&[Range<u64>], DividerError> {
        self.entries(shares.len())?;
        let units = 0..self.state.options.units;
        let is_share = |share: &f64| (0.0..=1e100).contains(share);
        if let Some(part) = shares.iter().position(|share| !is_share(share)) {
            let why = format!(
                "part {part} has {}, which is outside 0 to 1e100",
                shares[part]
            );
            return Err(DividerError::Option {
                option: "shares",
                why,
            });
        }
        if self.begins(&units)? {
            let speeds = self.speeds()?;
            let ranges = self.by_shares(&units, shares, speeds)?;
            self.begin(units, ranges);
        }
        Ok(&self.state.ranges)
    }

    /// The step has ended: the seconds of each part, without those in which it waited for others;
    /// `None` for a part that is lost. Returns what lost parts had, each range with the part that
    /// computes it now, in the same step.
    ///
    /// # Errors
    /// When no step has begun, or seconds are none: nothing is learned then, and no part lost. The
    /// step has ended when limits leave no room for what lost parts had, or all are lost.
    pub fn took(
        &mut self,
        seconds: &[Option<f64>],
    ) -> Result<Vec<(usize, Range<u64>)>, DividerError> {
        self.took_moving(seconds, None)
    }

    /// The same, and the seconds before it in which units moved to their parts.
    ///
    /// # Errors
    /// As [`Divider::took`].
    pub fn took_moving(
        &mut self,
        seconds: &[Option<f64>],
        moving: Option<f64>,
    ) -> Result<Vec<(usize, Range<u64>)>, DividerError> {
        self.entries(seconds.len())?;
        if !self.state.is_open {
            return Err(DividerError::NoStep);
        }
        if self.state.chunks.is_some() {
            return Err(DividerError::Taken);
        }
        for (part, seconds) in seconds.iter().enumerate() {
            seconds.map_or(Ok(0.0), |seconds| checked(part, seconds))?;
        }
        if let Some(moving) = moving {
            let moving = checked(0, moving).map_err(|_| DividerError::Option {
                option: "moving",
                why: format!("{moving} are no seconds"),
            })?;
            let (moved, before) = self.state.moves;
            self.state.moves = (moved + self.state.moved, before + moving);
        }
        let noise = self.noise();
        let mut longest = 0.0_f64;
        for (part, seconds) in seconds.iter().enumerate() {
            match seconds {
                // Who is lost already is told again.
                None => self.state.parts[part].is_lost = true,
                Some(_) if self.state.parts[part].is_lost => {}
                Some(seconds) => {
                    let range = self.state.ranges[part].clone();
                    self.observe(part, &range, *seconds, noise);
                    longest = longest.max(*seconds);
                }
            }
        }
        self.ended(longest);
        self.taken_over()
    }

    /// A part that was lost has come back. It has the speed that it had.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn back(&mut self, part: usize) -> Result<(), DividerError> {
        self.part(part)?;
        self.state.parts[part].is_lost = false;
        Ok(())
    }

    /// Units of work a second of each part; 0 where nothing is known. A first guess for a later
    /// divider.
    pub fn rates(&self) -> Vec<f64> {
        let parts = self.state.parts.iter();
        let rates = parts.map(|part| part.estimate.seconds().map_or(0.0, |seconds| 1.0 / seconds));
        rates.collect()
    }

    /// Whether a step of these units is to begin: false where it has begun.
    fn begins(&mut self, units: &Range<u64>) -> Result<bool, DividerError> {
        let all = self.state.options.units;
        if units.start > units.end || units.end > all {
            return Err(DividerError::Outside {
                range: units.clone(),
                units: all,
            });
        }
        if self.state.chunks.is_some() {
            self.end_of_chunks()?;
        }
        Ok(!self.state.is_open || self.state.units != *units)
    }

    fn begin(&mut self, units: Range<u64>, ranges: Vec<Range<u64>>) {
        self.state.units = units;
        self.state.ranges = ranges;
        self.state.is_open = true;
    }

    fn noise(&self) -> f64 {
        Noise::of_all(self.state.parts.iter().map(|part| &part.estimate))
    }

    /// A part has computed a range in so many seconds.
    fn observe(&mut self, part: usize, range: &Range<u64>, seconds: f64, noise: f64) {
        let [least, most] = SECONDS;
        if let Some(decider) = &mut self.decider {
            decider.done(part, range.end - range.start, seconds.min(most));
        }
        let work = self.measure.work(range);
        // Clocks show 0 for what is shorter than they tell.
        if work <= 0.0 || seconds <= 0.0 {
            return;
        }
        let step = self.state.steps;
        let part = &mut self.state.parts[part];
        let unit = (seconds.clamp(least, most) / work).min(SLOWEST);
        if let Some(before) = part.estimate.observe(unit, noise) {
            part.changed = Some((step, before));
        }
    }

    /// The step has ended, after so many seconds.
    fn ended(&mut self, seconds: f64) {
        let state = &mut self.state;
        for (part, range) in state.parts.iter_mut().zip(&state.ranges) {
            part.idle = if range.is_empty() {
                part.idle + seconds.min(SECONDS[1])
            } else {
                0.0
            };
        }
        state.is_open = false;
        state.steps += 1;
        if let Some(decider) = &mut self.decider {
            decider.step_ended();
        }
    }

    /// The ranges of lost parts, divided among the others.
    fn taken_over(&self) -> Result<Vec<(usize, Range<u64>)>, DividerError> {
        let lost =
            |part: &usize| self.state.parts[*part].is_lost && !self.state.ranges[*part].is_empty();
        let lost: Vec<usize> = (0..self.state.parts.len()).filter(lost).collect();
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let speeds = self.speeds()?;
        let mut limits = self.state.options.limits.clone();
        for (limit, range) in limits.iter_mut().zip(&self.state.ranges) {
            *limit = limit.map(|limit| limit - self.measure.size(range).min(limit));
        }
        let mut all = Vec::new();
        for part in lost {
            let range = &self.state.ranges[part];
            let pieces = self
                .measure
                .cut(range, &speeds, &limits)
                .ok_or_else(|| self.no_room(&self.state.units))?;
            for (part, piece) in pieces
                .into_iter()
                .enumerate()
                .filter(|(_, piece)| !piece.is_empty())
            {
                if let Some(Some(limit)) = limits.get_mut(part) {
                    *limit -= self.measure.size(&piece);
                }
                all.push((part, piece));
            }
        }
        Ok(all)
    }

    fn entries(&self, given: usize) -> Result<(), DividerError> {
        let parts = self.state.options.parts;
        (given == parts)
            .then_some(())
            .ok_or(DividerError::Entries { given, parts })
    }

    fn part(&self, part: usize) -> Result<(), DividerError> {
        let parts = self.state.options.parts;
        (part < parts)
            .then_some(())
            .ok_or(DividerError::NoPart { part, parts })
    }
}

/// Seconds that are some.
fn checked(part: usize, seconds: f64) -> Result<f64, DividerError> {
    match seconds.is_finite() && seconds >= 0.0 {
        true => Ok(seconds),
        false => Err(DividerError::Seconds { part, seconds }),
    }
}
