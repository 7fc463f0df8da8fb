//! The form without barriers: a part takes units whenever it is free, and less the fewer are left.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Divider, DividerError, checked};

/// A part takes this part of its share of what is left, as in factoring (Hummel, Schonberg, Flynn).
const FACTOR: f64 = 0.5;
/// The same of a part of which nothing is known.
const UNKNOWN: f64 = 1.0 / 32.0;
/// Least part of its share of a step: what is smaller is mostly overhead.
const LEAST: f64 = 0.01;

/// A step whose units are taken one after the other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chunks {
    /// What is left of each part's range, and what lost parts have not done.
    pub left: Vec<Range<u64>>,
    /// What each part is computing.
    pub taken: Vec<Option<Range<u64>>>,
    /// Seconds of each part.
    seconds: Vec<f64>,
}

impl Chunks {
    pub(super) fn suits(&self, parts: usize, units: &Range<u64>) -> bool {
        let is_within = |range: &Range<u64>| {
            units.start <= range.start && range.start <= range.end && range.end <= units.end
        };
        self.taken.len() == parts
            && self.left.len() >= parts
            && self.seconds.len() == parts
            && self
                .left
                .iter()
                .chain(self.taken.iter().flatten())
                .all(is_within)
    }
}

impl Divider {
    /// The units that a free part computes next, or nothing: then the others do what is left, and
    /// the part is needed again only if one of them is lost ([`Divider::is_done`]). Begins a step
    /// where none has begun; [`Divider::next`] begins the one after.
    ///
    /// # Errors
    /// When the part is lost or has units, and as [`Divider::next`].
    pub fn take(&mut self, part: usize) -> Result<Option<Range<u64>>, DividerError> {
        self.part(part)?;
        if self.state.parts[part].is_lost {
            return Err(DividerError::Lost(part));
        }
        if !self.state.is_open {
            self.next()?;
        }
        let speeds = self.speeds()?;
        let is_known = self.state.parts[part].estimate.seconds().is_some();
        let ranges = &self.state.ranges;
        let chunks = self.state.chunks.get_or_insert_with(|| Chunks {
            left: ranges.clone(),
            taken: vec![None; ranges.len()],
            seconds: vec![0.0; ranges.len()],
        });
        if let Some(range) = chunks.taken[part].clone() {
            return Err(DividerError::Unfinished { part, range });
        }
        let measure = &self.measure;
        // Its own range first, then the one of which most is left.
        let length = |of: usize| chunks.left[of].end - chunks.left[of].start;
        let longest = (0..chunks.left.len()).max_by_key(|of| length(*of));
        let of = if length(part) > 0 {
            part
        } else {
            longest.unwrap_or(part)
        };
        let range = chunks.left[of].clone();
        if range.is_empty() {
            return Ok(None);
        }
        let left: f64 = chunks.left.iter().map(|range| measure.work(range)).sum();
        let share = speeds[part] / speeds.iter().sum::<f64>();
        let limit = self.state.options.limits.get(part).copied().flatten();
        let granule = range.start..measure.granule(&range);
        let work = match &mut self.decider {
            Some(decider) => match decider.next(part, chunks) {
                0 => return Ok(None),
                units => {
                    measure.work(&(range.start..range.start.saturating_add(units).min(range.end)))
                }
            },
            None => {
                let factor = if is_known { FACTOR } else { UNKNOWN };
                let least = measure.work(&self.state.units) * share * LEAST;
                (left * share * factor).max(least)
            }
        };
        let mut end = measure.most(&range, work, limit);
        if end == range.start {
            end = granule.end;
            // The others may have done all before.
            let busy = (0..speeds.len()).filter(|other| chunks.taken[*other].is_some());
            let others: f64 = busy.map(|other| speeds[other]).sum();
            if others > 0.0 && measure.work(&granule) / speeds[part] > left / others / FACTOR {
                return Ok(None);
            }
            if limit.is_some_and(|limit| measure.size(&granule) > limit) {
                return Err(self.no_room(&granule));
            }
        }
        chunks.left[of].start = end;
        let range = range.start..end;
        chunks.taken[part] = Some(range.clone());
        Ok(Some(range))
    }

    /// A part has computed what it had taken, in so many seconds.
    ///
    /// # Errors
    /// When it has taken nothing, or seconds are none.
    pub fn done(&mut self, part: usize, seconds: f64) -> Result<(), DividerError> {
        self.part(part)?;
        let seconds = checked(part, seconds)?;
        let chunks = self
            .state
            .chunks
            .as_mut()
            .ok_or(DividerError::NotTaken(part))?;
        let range = chunks.taken[part]
            .take()
            .ok_or(DividerError::NotTaken(part))?;
        chunks.seconds[part] += seconds;
        let noise = self.noise();
        self.observe(part, &range, seconds, noise);
        Ok(())
    }

    /// A part is lost. What it had taken is left for the others.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn lost(&mut self, part: usize) -> Result<(), DividerError> {
        self.part(part)?;
        self.state.parts[part].is_lost = true;
        if let Some(chunks) = &mut self.state.chunks
            && let Some(range) = chunks.taken[part].take()
        {
            chunks.left.push(range);
        }
        Ok(())
    }

    /// Whether all units of a step that parts take from are computed.
    pub fn is_done(&self) -> bool {
        let chunks = self.state.chunks.as_ref();
        chunks.is_some_and(|chunks| {
            chunks.left.iter().all(Range::is_empty) && chunks.taken.iter().all(Option::is_none)
        })
    }

    /// Ends a step of which all units were taken.
    pub(super) fn end_of_chunks(&mut self) -> Result<(), DividerError> {
        let Some(chunks) = &self.state.chunks else {
            return Ok(());
        };
        let mut taken = (0..).zip(&chunks.taken);
        if let Some((part, Some(range))) = taken.find(|(_, taken)| taken.is_some()) {
            return Err(DividerError::Unfinished {
                part,
                range: range.clone(),
            });
        }
        if let Some(left) = chunks.left.iter().find(|left| !left.is_empty()) {
            return Err(DividerError::Left(left.clone()));
        }
        let longest = chunks.seconds.iter().copied().fold(0.0, f64::max);
        self.state.chunks = None;
        self.ended(longest);
        Ok(())
    }
}
