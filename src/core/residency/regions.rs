//! Which bytes of one buffer are valid in which places.
//!
//! A buffer that several devices use in parts has a copy in each place. A write to a
//! range makes the other copies of that range invalid; a copy makes one of them valid
//! again. This file notes the result and moves nothing.

use std::ops::Range;

use super::Places;

/// The valid places of every byte of a buffer. Bytes that nothing wrote have undefined
/// contents: they are valid in no place.
///
/// Ranges are bytes. The part of a range beyond the buffer is ignored. Places are
/// numbers below [`Places::MOST`]; a method panics if it is given another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    bytes: u64,
    /// By begin. The first begins at 0, each ends where the next begins, and neighbours
    /// differ in their places. Empty for a buffer of no bytes.
    regions: Vec<Region>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    begin: u64,
    places: Places,
}

impl Regions {
    /// A buffer of so many bytes, none of which is valid anywhere.
    pub fn new(bytes: u64) -> Self {
        let whole = Region {
            begin: 0,
            places: Places::NONE,
        };
        Self {
            bytes,
            regions: if bytes == 0 { Vec::new() } else { vec![whole] },
        }
    }

    /// The length of the buffer.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a place has every byte of a range. It has every byte of an empty range.
    pub fn valid(&self, range: Range<u64>, place: usize) -> bool {
        self.parts(range).all(|(_, places)| places.has(place))
    }

    /// The parts of a range that a place does not have and others do, in their order, and
    /// the places that have them. Neighbours have unlike places. Bytes that no place has
    /// are left out, since there is nothing to copy.
    pub fn missing(
        &self,
        range: Range<u64>,
        place: usize,
    ) -> impl Iterator<Item = (Range<u64>, Places)> + '_ {
        let absent =
            move |(_, places): &(Range<u64>, Places)| !places.is_empty() && !places.has(place);
        self.parts(range).filter(absent)
    }

    /// The parts of a range with unlike places, in their order.
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, Places)> + '_ {
        let range = range.start..range.end.min(self.bytes);
        let first = self.regions.partition_point(|r| r.begin <= range.start);
        let first = first.saturating_sub(1);
        let count = match range.is_empty() {
            true => 0,
            false => usize::MAX,
        };
        (first..self.regions.len())
            .take(count)
            .take_while(move |index| self.regions[*index].begin < range.end)
            .map(move |index| {
                let next = self.regions.get(index + 1);
                let end = next.map_or(self.bytes, |next| next.begin);
                let Region { begin, places } = self.regions[index];
                (begin.max(range.start)..end.min(range.end), places)
            })
    }

    /// A place wrote a range: it alone has these bytes.
    pub fn written(&mut self, range: Range<u64>, place: usize) {
        let only = Places::only(place);
        self.change(range, |_| only);
    }

    /// A range was copied to a place: it has what other places have. Bytes that no place
    /// has stay undefined.
    pub fn copied(&mut self, range: Range<u64>, place: usize) {
        self.change(range, |places| match places.is_empty() {
            true => places,
            false => places.with(place),
        });
    }

    /// A place was lost with its contents. Returns the ranges that it alone had, whose
    /// contents are undefined now.
    pub fn lost(&mut self, place: usize) -> Vec<Range<u64>> {
        let only = Places::only(place);
        let parts = self.parts(0..self.bytes);
        let gone = parts.filter(|(_, places)| *places == only);
        let gone = gone.map(|(range, _)| range).collect();
        self.change(0..self.bytes, |places| places.without(place));
        gone
    }

    /// Changes the places of a range.
    fn change(&mut self, range: Range<u64>, change: impl Fn(Places) -> Places) {
        let range = range.start..range.end.min(self.bytes);
        if range.is_empty() {
            return;
        }
        let first = self.divide(range.start);
        let last = self.divide(range.end);
        for region in &mut self.regions[first..last] {
            region.places = change(region.places);
        }
        self.regions.dedup_by_key(|region| region.places);
    }

    /// Makes a region begin at a byte, and returns its index; the count of regions for the
    /// buffer's end.
    fn divide(&mut self, begin: u64) -> usize {
        let index = self.regions.partition_point(|r| r.begin < begin);
        let begins = self.regions.get(index).is_some_and(|r| r.begin == begin);
        if begin < self.bytes && !begins {
            let places = self.regions[index - 1].places;
            self.regions.insert(index, Region { begin, places });
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The places of each byte.
    type Naive = Vec<Places>;

    const BYTES: u64 = 24;
    const PLACES: usize = 4;

    #[derive(Clone, Debug)]
    enum Step {
        Written(Range<u64>, usize),
        Copied(Range<u64>, usize),
        Lost(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Some ranges are empty and some end behind the buffer.
        let range = || (0..BYTES + 2, 0..9_u64).prop_map(|(begin, length)| begin..begin + length);
        prop_oneof![
            4 => (range(), 0..PLACES).prop_map(|(range, place)| Step::Written(range, place)),
            4 => (range(), 0..PLACES).prop_map(|(range, place)| Step::Copied(range, place)),
            1 => (0..PLACES).prop_map(Step::Lost),
        ]
    }

    fn apply(step: &Step, regions: &mut Regions, naive: &mut Naive) {
        let within = |range: &Range<u64>| {
            let clip = |byte: u64| byte.min(BYTES) as usize;
            clip(range.start)..clip(range.end)
        };
        match step {
            Step::Written(range, place) => {
                regions.written(range.clone(), *place);
                naive[within(range)].fill(Places::only(*place));
            }
            Step::Copied(range, place) => {
                regions.copied(range.clone(), *place);
                let some = |places: &&mut Places| !places.is_empty();
                let bytes = naive[within(range)].iter_mut().filter(some);
                bytes.for_each(|places| *places = places.with(*place));
            }
            Step::Lost(place) => {
                let alone = |byte: &u64| naive[*byte as usize] == Places::only(*place);
                let expected: Vec<u64> = (0..BYTES).filter(alone).collect();
                let gone: Vec<u64> = regions.lost(*place).into_iter().flatten().collect();
                assert_eq!(gone, expected);
                naive.iter_mut().for_each(|p| *p = p.without(*place));
            }
        }
    }

    proptest! {
        #[test]
        fn regions_are_as_single_bytes(steps in prop::collection::vec(step(), 0..40)) {
            let mut regions = Regions::new(BYTES);
            let mut naive: Naive = vec![Places::NONE; BYTES as usize];
            for step in &steps {
                apply(step, &mut regions, &mut naive);
                for begin in 0..=BYTES {
                    for end in begin..=BYTES + 1 {
                        let bytes = || begin..end.min(BYTES).max(begin);
                        for place in 0..PLACES {
                            let has = |byte: u64| naive[byte as usize].has(place);
                            prop_assert_eq!(regions.valid(begin..end, place), bytes().all(has));
                            let missing = regions.missing(begin..end, place);
                            let reported: Vec<(u64, Places)> = missing
                                .flat_map(|(range, places)| range.map(move |byte| (byte, places)))
                                .collect();
                            let each = bytes().map(|byte| (byte, naive[byte as usize]));
                            let absent: Vec<(u64, Places)> =
                                each.filter(|(_, p)| !p.is_empty() && !p.has(place)).collect();
                            prop_assert_eq!(reported, absent);
                        }
                    }
                }
                let parts: Vec<Places> = regions.parts(0..BYTES).map(|(_, p)| p).collect();
                prop_assert!(parts.windows(2).all(|pair| pair[0] != pair[1]), "merged");
            }
        }
    }

    #[test]
    fn a_buffer_of_no_bytes_is_valid_everywhere() {
        let mut regions = Regions::new(0);
        regions.written(0..8, 1);
        regions.copied(0..8, 2);
        assert!(regions.lost(1).is_empty());
        assert!(regions.valid(0..8, 3));
        assert_eq!(regions.missing(0..8, 3).count(), 0);
    }

    #[test]
    fn an_undefined_part_is_neither_valid_nor_missing() {
        let mut regions = Regions::new(100);
        regions.written(20..40, 5);
        assert!(!regions.valid(0..40, 5));
        let missing: Vec<_> = regions.missing(0..100, 0).collect();
        assert_eq!(missing, [(20..40, Places::only(5))]);
        regions.copied(0..100, 0);
        assert!(regions.valid(20..40, 0) && !regions.valid(0..40, 0));
        assert_eq!(regions.lost(5), []);
    }
}
