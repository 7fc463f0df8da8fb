//! The entries of launches with one key, by what else decides which bytes they write.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::verdict::Entry;
use crate::argument::Argument;
use crate::handle::AddressHasher;
use crate::launch::Launch;
use crate::program::Apart;
use crate::schedule::KernelRecord;

/// What of a launch decides which bytes it writes, beside its key, by argument: a value, or
/// that there is none. A null pointer is told so from a buffer of as many bytes as a pointer.
type Deciding = Vec<(usize, Option<Arc<[u8]>>)>;

/// Entries of launches with one key.
#[derive(Default)]
pub struct Entries(Mutex<ByDeciding>);

type ByDeciding = HashMap<Deciding, Arc<Entry>, BuildHasherDefault<AddressHasher>>;

impl Entries {
    fn lock(&self) -> MutexGuard<'_, ByDeciding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of a launch.
    pub fn of(&self, launch: &Launch) -> Arc<Entry> {
        let deciding = deciding(launch, launch.kernel.apart());
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&deciding) {
            return Arc::clone(entry);
        }
        let key = begin(launch.record()) + &text(&deciding);
        let entry = Arc::new(Entry::new(key, launch));
        entries.insert(deciding, Arc::clone(&entry));
        entry
    }

    /// All entries, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<Arc<Entry>> = self.lock().values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }
}

/// What the keys of all entries of a record begin with.
pub fn begin(record: &KernelRecord) -> String {
    format!("{} :", record.key)
}

fn deciding(launch: &Launch, apart: &Apart) -> Deciding {
    let Ok(division) = &apart.division else {
        return Deciding::new();
    };
    let iterates = launch.iterates();
    let decides = |index: &usize| {
        division.scalars.contains(index) || (iterates && division.fixed.contains(index))
    };
    let arguments = launch.arguments.iter().enumerate();
    let deciding = arguments.filter_map(|(index, set)| match &set.argument {
        Argument::Bytes(bytes) if decides(&index) => Some((index, Some(Arc::clone(bytes)))),
        Argument::Local(_) => Some((index, None)),
        _ => None,
    });
    deciding.collect()
}

/// What decides, as files have it.
fn text(deciding: &Deciding) -> String {
    let mut text = String::new();
    for (index, bytes) in deciding {
        // Writing to a string does not fail.
        let _ = match bytes {
            Some(_) => write!(text, " {index}="),
            None => write!(text, " {index}!"),
        };
        for byte in bytes.iter().flat_map(|bytes| bytes.iter()) {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_values_and_their_absence() {
        let value: Arc<[u8]> = [1, 0xab].as_slice().into();
        let deciding = vec![(2, None), (10, Some(value))];
        assert_eq!(text(&deciding), " 2! 10=01ab");
        assert_eq!(text(&Deciding::new()), "");
    }
}
