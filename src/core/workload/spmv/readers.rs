//! The units that read each page of a product's vector. They determine the parts of
//! the vector that a device needs, for any division of the units.
//!
//! A device's units are contiguous, so for each page only the first and the last unit
//! that reads it are recorded. This is exact for a device that has the first or the
//! last units. Another device may get additional pages, but misses none.

use std::ops::Range;

use super::Spmv;
use crate::parallel::{map, threads};

/// Numbers of a page.
pub const PAGE: u64 = 256;

/// The longest gap between pages, in numbers, that is transferred with them to save a
/// command: about as much as a link transfers while a command is enqueued.
const GAP: u64 = 32 << 10;

/// The first and the last unit that reads each page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readers {
    places: u64,
    pages: Vec<Span>,
}

/// The first and the last unit; no unit if the first is after the last.
type Span = (u32, u32);

const NOBODY: Span = (u32::MAX, 0);

impl Readers {
    /// Computes the readers from all entries, on all cores.
    pub fn of(spmv: &Spmv) -> Self {
        let places = u64::from(spmv.matrix().columns());
        let units = spmv.arrangement().units();
        let threads = threads() as u64;
        let share = |i: u64| units * i / threads..units * (i + 1) / threads;
        let shares = (0..threads).map(share).collect();
        let parts = map(shares, |share| read_by(spmv, places, share));
        let mut pages = vec![NOBODY; places.div_ceil(PAGE) as usize];
        for part in parts {
            for (page, span) in pages.iter_mut().zip(part) {
                *page = (page.0.min(span.0), page.1.max(span.1));
            }
        }
        Self { places, pages }
    }

    /// The parts of `within` that one of these ranges of units reads. Parts with a short
    /// gap between them are joined.
    pub fn read(&self, units: &[Range<u64>], within: &Range<u64>) -> Vec<Range<u64>> {
        let by = |span: &Span, units: &Range<u64>| {
            u64::from(span.0) < units.end
                && u64::from(span.1) >= units.start
                && span.0 <= span.1
                && !units.is_empty()
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        if within.is_empty() {
            return ranges;
        }
        let first = within.start / PAGE;
        let end = within.end.div_ceil(PAGE).min(self.pages.len() as u64);
        for page in first..end {
            if !units
                .iter()
                .any(|units| by(&self.pages[page as usize], units))
            {
                continue;
            }
            let start = (page * PAGE).max(within.start);
            let end = ((page + 1) * PAGE).min(within.end).min(self.places);
            match ranges.last_mut() {
                Some(last) if start - last.end <= GAP => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        ranges
    }
}

/// For each page, the first and the last of these units that reads it.
fn read_by(spmv: &Spmv, places: u64, units: Range<u64>) -> Vec<Span> {
    let mut pages = vec![NOBODY; places.div_ceil(PAGE) as usize];
    let mut columns = Vec::new();
    for unit in units {
        let entries = spmv.arrangement().entries(&(unit..unit + 1));
        columns.resize((entries.end - entries.start) as usize, 0);
        spmv.write_columns(unit..unit + 1, &mut columns);
        for column in &columns {
            let page = &mut pages[(u64::from(*column) / PAGE) as usize];
            *page = (page.0.min(unit as u32), page.1.max(unit as u32));
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Options;
    use super::*;
    use crate::matrices::awkward;

    #[test]
    fn all_pages_that_are_read_are_found_and_no_others_for_the_first_or_last_units() {
        for (name, matrix) in awkward() {
            let options = Options {
                unit_weight: Some(64),
                ..Options::default()
            };
            let spmv = Spmv::new(name, Arc::new(matrix), options).unwrap();
            let (units, places) = (
                spmv.arrangement().units(),
                u64::from(spmv.matrix().columns()),
            );
            let readers = Readers::of(&spmv);
            for range in [
                0..units,
                0..units / 3,
                units / 3..units,
                units / 4..units / 2,
            ] {
                let entries = spmv.arrangement().entries(&range);
                let mut columns = vec![0; (entries.end - entries.start) as usize];
                spmv.write_columns(range.clone(), &mut columns);
                let within = places / 5..places;
                let found = readers.read(std::slice::from_ref(&range), &within);
                for column in columns.iter().map(|c| u64::from(*c)) {
                    let named = found.iter().any(|range| range.contains(&column));
                    assert_eq!(named, within.contains(&column), "{name} {range:?} {column}");
                }
                if range.start == 0 || range.end == units {
                    let page =
                        |place: u64| columns.iter().any(|c| u64::from(*c) / PAGE == place / PAGE);
                    for range in found {
                        assert!(page(range.start) && page(range.end - 1), "{name}");
                    }
                }
            }
            assert!(readers.read(&[], &(0..places)).is_empty());
        }
    }
}
