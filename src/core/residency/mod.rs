//! Which datum is where, what a device's memory holds, and how room is made there.
//!
//! This folder is pure: it calls no device and reads no clock. It outlives a run, so
//! that graphs can follow one another on the same memory.
//!
//! * [`Residency`] knows for every memory space and every datum a [`State`]: in the
//!   host's memory, and in the own memory of each device.
//! * `space` is one device's memory: buffers, which of them are pinned, and which
//!   was used last. Buffers are reused by size, so that a run which follows another
//!   allocates nothing.
//! * [`Regions`] knows for every byte of one buffer in which [`Places`] it is valid.
//!
//! [`difference`] brings together what several wrote into copies of one buffer.
//!
//! Versions of a datum that kernels make in place share a *slot*. A device holds one
//! version of a slot at a time.

pub mod difference;
mod space;

pub use space::{Room, Space};

use std::fmt;
use std::ops::Range;

/// Where a datum is in its way through a memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<A> {
    Absent,
    /// A copy into the space is in flight.
    Arriving(A),
    Valid,
    /// A copy out of the space is in flight, after which it leaves.
    Leaving,
}

/// The version of a slot in a memory space, and its state, which is never
/// [`State::Absent`].
type Version<A> = Option<(usize, State<A>)>;

/// The states of all data in all memory spaces. `B` names a buffer, `A` an arrival.
#[derive(Clone, Debug)]
pub struct Residency<B, A> {
    /// By datum: its slot.
    slots: Vec<usize>,
    /// By datum: whether the host's memory has it.
    in_host: Vec<bool>,
    /// By device; `None` for one that computes in the host's memory.
    spaces: Vec<Option<Space<B>>>,
    /// By device and slot.
    versions: Vec<Vec<Version<A>>>,
}

impl<B: Copy, A: Copy> Residency<B, A> {
    /// No datum is anywhere. `slots` has the slot of each datum, `bytes` the length of
    /// each slot, `capacities` the bytes of each device's own memory, if it has any.
    pub fn new(slots: Vec<usize>, bytes: &[u64], capacities: &[Option<u64>]) -> Self {
        let spaces = capacities.iter();
        Self {
            in_host: vec![false; slots.len()],
            slots,
            spaces: spaces
                .map(|capacity| Some(Space::new((*capacity)?, bytes)))
                .collect(),
            versions: vec![vec![None; bytes.len()]; capacities.len()],
        }
    }

    /// There is one datum more, which is nowhere: the next number. It has the slot of the
    /// datum of which it is a version, or one of its own, of so many bytes.
    pub fn grow(&mut self, version_of: Option<usize>, bytes: u64) {
        let own = self.slots.len();
        self.slots
            .push(version_of.map_or(own, |datum| self.slots[datum]));
        self.in_host.push(false);
        for space in self.spaces.iter_mut().flatten() {
            space.grow(bytes);
        }
        for versions in &mut self.versions {
            versions.push(None);
        }
    }

    /// Keeps these data, which get the numbers from 0 on, and forgets all others. Nothing is
    /// in flight, and no component needs anything. Buffers without a datum are free.
    pub fn keep(&mut self, data: &[(usize, u64)]) {
        let slots: Vec<usize> = data.iter().map(|(datum, _)| self.slots[*datum]).collect();
        let bytes: Vec<u64> = data.iter().map(|(_, bytes)| *bytes).collect();
        for (versions, space) in self.versions.iter_mut().zip(&mut self.spaces) {
            let there = |number: usize| {
                let version = versions[slots[number]];
                matches!(version, Some((version, State::Valid)) if version == data[number].0)
            };
            let kept: Vec<Option<usize>> = (0..data.len())
                .map(|number| there(number).then_some(slots[number]))
                .collect();
            *versions = (kept.iter().enumerate())
                .map(|(number, slot)| slot.map(|_| (number, State::Valid)))
                .collect();
            if let Some(space) = space {
                space.keep(&kept, bytes.clone());
            }
        }
        self.in_host = data.iter().map(|(datum, _)| self.in_host[*datum]).collect();
        self.slots = (0..data.len()).collect();
    }

    /// A datum's slot.
    pub fn slot(&self, datum: usize) -> usize {
        self.slots[datum]
    }

    /// A device's own memory.
    pub fn space(&self, device: usize) -> Option<&Space<B>> {
        self.spaces[device].as_ref()
    }

    /// A device's own memory.
    pub fn space_mut(&mut self, device: usize) -> Option<&mut Space<B>> {
        self.spaces[device].as_mut()
    }

    /// Whether the host's memory has a datum.
    pub fn in_host(&self, datum: usize) -> bool {
        self.in_host[datum]
    }

    pub fn set_in_host(&mut self, datum: usize, present: bool) {
        self.in_host[datum] = present;
    }

    /// A datum's state in a device's own memory.
    pub fn state(&self, device: usize, datum: usize) -> State<A> {
        match self.versions[device][self.slots[datum]] {
            Some((version, state)) if version == datum => state,
            _ => State::Absent,
        }
    }

    /// The version of a slot that a device's own memory has or gets.
    pub fn version(&self, device: usize, slot: usize) -> Option<usize> {
        self.versions[device][slot].map(|(version, _)| version)
    }

    /// Notes a datum's state in a device's own memory. It replaces the version that
    /// was there before.
    pub fn set(&mut self, device: usize, datum: usize, state: State<A>) {
        let version = &mut self.versions[device][self.slots[datum]];
        match state {
            State::Absent if version.is_some_and(|(other, _)| other != datum) => {}
            State::Absent => *version = None,
            state => *version = Some((datum, state)),
        }
    }

    /// A device whose own memory has a valid copy of a datum.
    pub fn holder(&self, datum: usize) -> Option<usize> {
        let valid = |state| matches!(state, State::Valid | State::Leaving);
        (0..self.spaces.len()).find(|device| valid(self.state(*device, datum)))
    }

    /// Whether a slot may be evicted from a device's own memory: it is there, no
    /// component needs it there, and no copy of it is in flight.
    pub fn is_evictable(&self, device: usize, slot: usize) -> bool {
        let unused = self.spaces[device]
            .as_ref()
            .is_some_and(|space| space.is_unpinned(slot));
        unused
            && !matches!(
                self.versions[device][slot],
                Some((_, State::Leaving | State::Arriving(_)))
            )
    }

    /// Takes a slot out of a device's own memory. Its buffer is free then.
    pub fn evict(&mut self, device: usize, slot: usize) {
        self.versions[device][slot] = None;
        if let Some(space) = &mut self.spaces[device] {
            space.evict(slot);
        }
    }

    /// A device was lost with what its memory had. Nothing is in flight anywhere, so
    /// what was arriving at other devices did not.
    pub fn lose(&mut self, lost: &[usize]) {
        for (device, versions) in self.versions.iter_mut().enumerate() {
            for version in versions.iter_mut() {
                match version {
                    _ if lost.contains(&device) => *version = None,
                    Some((_, State::Arriving(_))) => *version = None,
                    Some((_, state @ State::Leaving)) => *state = State::Valid,
                    _ => {}
                }
            }
        }
        for space in self.spaces.iter_mut().flatten() {
            space.unpin_all();
        }
    }

    /// A datum is nowhere any more. Buffers stay.
    pub fn remove(&mut self, datum: usize) {
        self.in_host[datum] = false;
        for device in 0..self.versions.len() {
            self.set(device, datum, State::Absent);
        }
    }

    /// Begins anew: no datum is anywhere, except the valid ones on devices that are to
    /// stay. Buffers stay.
    pub fn forget(&mut self, stays: impl Fn(usize) -> bool) {
        self.in_host.fill(false);
        for version in self.versions.iter_mut().flatten() {
            *version =
                version.filter(|(datum, state)| matches!(state, State::Valid) && stays(*datum));
        }
        for space in self.spaces.iter_mut().flatten() {
            space.unpin_all();
        }
    }
}

#[cfg(test)]
mod tests;

// Sets of places: memories in which data can be, such as those of the devices and the
// host.

/// A set of places, a bit each. A place is a number below [`Places::MOST`]; the user of a
/// set decides which place is which memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Places(u64);

impl Places {
    /// How many places there can be.
    pub const MOST: usize = 64;

    /// No place.
    pub const NONE: Self = Self(0);

    /// Every place.
    pub const ALL: Self = Self(u64::MAX);

    /// This place alone.
    ///
    /// # Panics
    /// When the place is not below [`Self::MOST`].
    pub fn only(place: usize) -> Self {
        assert!(place < Self::MOST, "place {place} of {}", Self::MOST);
        Self(1 << place)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a place belongs to it. A number that is no place belongs to no set.
    pub const fn has(self, place: usize) -> bool {
        place < Self::MOST && self.0 >> place & 1 == 1
    }

    /// The set and this place.
    ///
    /// # Panics
    /// As [`Self::only`].
    pub fn with(self, place: usize) -> Self {
        Self(self.0 | Self::only(place).0)
    }

    /// The set without this place.
    pub const fn without(self, place: usize) -> Self {
        match self.has(place) {
            true => Self(self.0 ^ 1 << place),
            false => self,
        }
    }

    /// Its places, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(place)
        })
    }
}

impl FromIterator<usize> for Places {
    /// # Panics
    /// As [`Places::only`].
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        places.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

// Which bytes of one buffer are valid in which places.
//
// A buffer that several devices use in parts has a copy in each place. A write to a
// range makes the other copies of that range invalid; a copy makes one of them valid
// again. This file notes the result and moves nothing.

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
