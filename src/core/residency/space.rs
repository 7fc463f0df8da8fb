//! A device's own memory: its buffers, and which of them can be taken away.

use std::collections::BTreeMap;

/// What a device's memory can offer for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room<B> {
    /// The slot has a buffer now, and is pinned.
    Held,
    /// There is room for a new buffer of this many bytes; see [`Space::give`].
    Allocate(u64),
    /// There will be room when these buffers, which are in use no more, are freed.
    Free(Vec<B>),
    /// Another slot must be evicted first.
    Full,
}

/// A slot's buffer.
#[derive(Clone, Copy, Debug)]
struct Held<B> {
    buffer: B,
    /// Components that need it there.
    pins: u32,
}

/// A device's own memory. `B` names a buffer.
#[derive(Clone, Debug)]
pub struct Space<B> {
    capacity: u64,
    /// Bytes of all buffers, those without a slot among them.
    allocated: u64,
    /// Bytes of the buffers that slots have.
    held_bytes: u64,
    /// By slot: its length.
    bytes: Vec<u64>,
    /// By slot.
    held: Vec<Option<Held<B>>>,
    /// Buffers without a slot, by their length.
    free: BTreeMap<u64, Vec<B>>,
    /// Slots without a pin, the least recently used first.
    unpinned: Recency,
    /// See [`Space::generation`].
    generation: u64,
}

impl<B: Copy> Space<B> {
    pub(super) fn new(capacity: u64, bytes: &[u64]) -> Self {
        Self {
            capacity,
            allocated: 0,
            held_bytes: 0,
            held: vec![None; bytes.len()],
            bytes: bytes.to_vec(),
            free: BTreeMap::new(),
            unpinned: Recency::new(bytes.len()),
            generation: 0,
        }
    }

    /// There is one slot more, of so many bytes.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.bytes.push(bytes);
        self.held.push(None);
        self.unpinned.grow();
    }

    /// Keeps the buffers of these slots, which get the numbers from 0 on, and these lengths.
    /// All others are free.
    pub(super) fn keep(&mut self, kept: &[Option<usize>], bytes: Vec<u64>) {
        self.generation += 1;
        let mut held = vec![None; kept.len()];
        for (number, slot) in kept.iter().enumerate() {
            held[number] = slot.and_then(|slot| self.held[slot].take());
        }
        for (slot, left) in std::mem::take(&mut self.held).into_iter().enumerate() {
            if let Some(left) = left {
                self.free
                    .entry(self.bytes[slot])
                    .or_default()
                    .push(left.buffer);
            }
        }
        self.unpinned = Recency::new(kept.len());
        for (number, held) in held.iter_mut().enumerate() {
            if let Some(held) = held {
                held.pins = 0;
                self.unpinned.push(number);
            }
        }
        (self.held, self.bytes) = (held, bytes);
        let held = self.held.iter().zip(&self.bytes);
        self.held_bytes = held
            .filter(|(held, _)| held.is_some())
            .map(|(_, bytes)| bytes)
            .sum();
    }

    /// Bytes that its buffers may have.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Changes the bytes that its buffers may have.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    /// Bytes of all its buffers.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// Bytes of the buffers that slots have.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// A number that changes when a slot gets or loses its buffer.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// A slot's buffer.
    pub fn buffer(&self, slot: usize) -> Option<B> {
        self.held[slot].map(|held| held.buffer)
    }

    /// Whether a slot has a buffer that no component needs.
    pub fn is_unpinned(&self, slot: usize) -> bool {
        self.held[slot].is_some_and(|held| held.pins == 0)
    }

    /// Whether it has a buffer that no component needs.
    pub fn has_unused(&self) -> bool {
        !self.free.is_empty() || self.unpinned().next().is_some()
    }

    /// Pins a slot, if it has a buffer or there is a free one of its length. Otherwise
    /// says what must happen first.
    pub fn pin(&mut self, slot: usize) -> Room<B> {
        let bytes = self.bytes[slot];
        if self.held[slot].is_none() {
            if let Some(buffer) = self.take_free(bytes) {
                self.hold(slot, buffer);
            } else if self.allocated.saturating_add(bytes) <= self.capacity {
                return Room::Allocate(bytes);
            } else {
                return match self.surplus(bytes) {
                    Some(buffers) => Room::Free(buffers),
                    None => Room::Full,
                };
            }
        }
        if let Some(held) = &mut self.held[slot] {
            if held.pins == 0 {
                self.unpinned.remove(slot);
            }
            held.pins += 1;
        }
        Room::Held
    }

    /// Gives a slot the buffer that was allocated for it.
    pub fn give(&mut self, slot: usize, buffer: B) {
        self.allocated += self.bytes[slot];
        self.hold(slot, buffer);
    }

    /// The lengths of those of these slots for which there is no buffer, as far as there is room
    /// for them.
    pub fn lacking(&self, slots: impl Iterator<Item = usize>) -> Vec<u64> {
        let mut spare: BTreeMap<u64, usize> = (self.free.iter())
            .map(|(bytes, buffers)| (*bytes, buffers.len()))
            .collect();
        let mut allocated = self.allocated;
        let mut lacking = Vec::new();
        for slot in slots.filter(|slot| self.held[*slot].is_none()) {
            let bytes = self.bytes[slot];
            let spare = spare.entry(bytes).or_default();
            if *spare > 0 {
                *spare -= 1;
            } else if allocated.saturating_add(bytes) <= self.capacity {
                allocated += bytes;
                lacking.push(bytes);
            }
        }
        lacking
    }

    /// Adds a buffer for any slot of this length.
    pub fn add(&mut self, bytes: u64, buffer: B) {
        self.allocated += bytes;
        self.free.entry(bytes).or_default().push(buffer);
    }

    fn hold(&mut self, slot: usize, buffer: B) {
        self.generation += 1;
        self.unpinned.push(slot);
        self.held_bytes += self.bytes[slot];
        self.held[slot] = Some(Held { buffer, pins: 0 });
    }

    /// A component needs a slot no more.
    pub fn unpin(&mut self, slot: usize) {
        let Some(held) = &mut self.held[slot] else {
            return;
        };
        held.pins = held.pins.saturating_sub(1);
        if held.pins == 0 {
            self.unpinned.push(slot);
        }
    }

    /// No component needs anything any more.
    pub(super) fn unpin_all(&mut self) {
        for (slot, held) in self.held.iter_mut().enumerate() {
            if let Some(held) = held.as_mut().filter(|held| held.pins > 0) {
                held.pins = 0;
                self.unpinned.push(slot);
            }
        }
    }

    /// The slots that no component needs, the least recently used first.
    pub fn unpinned(&self) -> impl Iterator<Item = usize> + '_ {
        self.unpinned.iter()
    }

    /// Takes a slot's buffer away. It is free then.
    pub(super) fn evict(&mut self, slot: usize) {
        if let Some(held) = self.held[slot].take() {
            self.generation += 1;
            self.held_bytes -= self.bytes[slot];
            self.unpinned.remove(slot);
            self.free
                .entry(self.bytes[slot])
                .or_default()
                .push(held.buffer);
        }
    }

    /// All its buffers, which it has no more.
    pub fn take_all(&mut self) -> Vec<B> {
        self.generation += 1;
        self.allocated = 0;
        self.held_bytes = 0;
        self.unpinned.clear();
        let held = self.held.iter_mut().filter_map(Option::take);
        let held = held.map(|held| held.buffer);
        let free = std::mem::take(&mut self.free).into_values().flatten();
        held.chain(free).collect()
    }

    fn take_free(&mut self, bytes: u64) -> Option<B> {
        let buffers = self.free.get_mut(&bytes)?;
        let buffer = buffers.pop();
        if buffers.is_empty() {
            self.free.remove(&bytes);
        }
        buffer
    }

    /// Takes free buffers out, the largest first, until `bytes` more fit. `None` if
    /// they are too few.
    fn surplus(&mut self, bytes: u64) -> Option<Vec<B>> {
        let all: u64 = (self.free.iter())
            .map(|(bytes, buffers)| bytes * buffers.len() as u64)
            .sum();
        if self.allocated - all + bytes > self.capacity {
            return None;
        }
        let mut taken = Vec::new();
        while self.allocated + bytes > self.capacity {
            let (length, _) = self.free.last_key_value()?;
            let length = *length;
            taken.extend(self.take_free(length));
            self.allocated -= length;
        }
        Some(taken)
    }
}

/// Stands for no slot.
const NONE: usize = usize::MAX;

/// Slots in the order in which they were added: a doubly linked list in two arrays.
#[derive(Clone, Debug)]
struct Recency {
    /// By slot, from the second entry on; the first entry links the list's ends. A slot that
    /// is not in the list has [`NONE`] in both.
    before: Vec<usize>,
    after: Vec<usize>,
}

/// The entry that links the list's ends.
const ENDS: usize = 0;

impl Recency {
    pub fn new(slots: usize) -> Self {
        let mut links = vec![NONE; slots + 1];
        links[ENDS] = ENDS;
        Self {
            before: links.clone(),
            after: links,
        }
    }

    /// There is one slot more, which is not in the list.
    pub fn grow(&mut self) {
        self.before.push(NONE);
        self.after.push(NONE);
    }

    /// Adds a slot at the end, or moves it there.
    pub fn push(&mut self, slot: usize) {
        self.remove(slot);
        let entry = slot + 1;
        let last = self.before[ENDS];
        self.after[last] = entry;
        self.before[entry] = last;
        self.after[entry] = ENDS;
        self.before[ENDS] = entry;
    }

    /// Takes a slot out, if it is in the list.
    pub fn remove(&mut self, slot: usize) {
        let entry = slot + 1;
        let (before, after) = (self.before[entry], self.after[entry]);
        if before != NONE {
            self.after[before] = after;
            self.before[after] = before;
            (self.before[entry], self.after[entry]) = (NONE, NONE);
        }
    }

    /// The slots, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(self.after[ENDS]), |entry| Some(self.after[*entry]))
            .take_while(|entry| *entry != ENDS)
            .map(|entry| entry - 1)
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.before.len() - 1);
    }
}
