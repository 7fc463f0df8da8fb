//! An order of slots by their last use, in constant time.

/// Stands for no slot.
const NONE: usize = usize::MAX;

/// Slots in the order in which they were added: a doubly linked list in two arrays.
#[derive(Clone, Debug)]
pub(super) struct Recency {
    /// By slot; the last entry links the list's ends. A slot that is not in the list has
    /// [`NONE`] in both.
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Recency {
    pub fn new(slots: usize) -> Self {
        let mut links = vec![NONE; slots + 1];
        links[slots] = slots;
        Self {
            before: links.clone(),
            after: links,
        }
    }

    fn ends(&self) -> usize {
        self.before.len() - 1
    }

    /// Adds a slot at the end, or moves it there.
    pub fn push(&mut self, slot: usize) {
        self.remove(slot);
        let ends = self.ends();
        let last = self.before[ends];
        self.after[last] = slot;
        self.before[slot] = last;
        self.after[slot] = ends;
        self.before[ends] = slot;
    }

    /// Takes a slot out, if it is in the list.
    pub fn remove(&mut self, slot: usize) {
        let (before, after) = (self.before[slot], self.after[slot]);
        if before != NONE {
            self.after[before] = after;
            self.before[after] = before;
            (self.before[slot], self.after[slot]) = (NONE, NONE);
        }
    }

    /// The slots, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let ends = self.ends();
        std::iter::successors(Some(self.after[ends]), |slot| Some(self.after[*slot]))
            .take_while(move |slot| *slot != ends)
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.ends());
    }
}
