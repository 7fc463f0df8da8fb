//! Launches by what is known of them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crate::handle::AddressHasher;
use crate::launch::Launch;
use crate::records::KernelRecord;

/// The launches of a queue, by their records' numbers.
#[derive(Default)]
pub struct Launches(HashMap<usize, Counted, BuildHasherDefault<AddressHasher>>);

/// Launches with one record.
pub struct Counted {
    pub name: String,
    pub record: Arc<KernelRecord>,
    /// Launches by place.
    pub at: Vec<u64>,
}

impl Launches {
    pub fn count(&mut self, launch: &Launch, place: usize) {
        let record = launch.record();
        let counted = self.0.entry(record.number).or_insert_with(|| Counted {
            name: launch.kernel.name.to_string_lossy().into_owned(),
            record: Arc::clone(record),
            at: vec![0; launch.kernel.program.context.places.len()],
        });
        counted.at[place] += 1;
    }

    pub fn all(&self) -> impl Iterator<Item = &Counted> {
        self.0.values()
    }
}
