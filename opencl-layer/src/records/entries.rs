//! The entries of launches with one key, by what else decides which bytes they write.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::entry::DivisionRecord;
use crate::handle::AddressHasher;
use crate::lock::{ENTRIES, Guard, Mutex};

/// What of a launch decides which bytes it writes, beside its key, by argument: a value, or
/// that there is none. A null pointer is thus distinguished from a buffer of as many
/// bytes as a pointer.
pub type Deciding = Vec<(usize, Option<Arc<[u8]>>)>;

/// Entries of launches with one key.
#[derive(Default)]
pub struct Entries(Mutex<ByDeciding, ENTRIES>);

type ByDeciding = HashMap<Deciding, Arc<DivisionRecord>, BuildHasherDefault<AddressHasher>>;

impl Entries {
    fn lock(&self) -> Guard<'_, ByDeciding, ENTRIES> {
        self.0.lock()
    }

    /// The entry of launches that this decides of, made with its key if it is the first one.
    pub fn of(
        &self,
        deciding: Deciding,
        make: impl FnOnce(&Deciding) -> DivisionRecord,
    ) -> Arc<DivisionRecord> {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&deciding) {
            return Arc::clone(entry);
        }
        let entry = Arc::new(make(&deciding));
        entries.insert(deciding, Arc::clone(&entry));
        entry
    }

    /// All entries, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<DivisionRecord>> {
        let mut all: Vec<Arc<DivisionRecord>> = self.lock().values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }
}
