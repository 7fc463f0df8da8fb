//! An order of slots by their last use, in constant time.

/// Stands for no slot.
const NONE: usize = usize::MAX;

/// Slots in the order in which they were added: a doubly linked list in two arrays.
#[derive(Clone, Debug)]
pub(super) struct Recency {
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
