//! Launches by kernel and shape.
//!
//! A kernel's key takes a microsecond to make, so it is made once for each kernel object
//! and shape, and found again by a hash of both.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pdawl::profile::kernels::KernelKey;

use crate::argument::Argument;
use crate::handle::AddressHasher;
use crate::launch::Launch;

/// The launches of a queue.
#[derive(Default)]
pub struct Launches(HashMap<u64, Counted, BuildHasherDefault<AddressHasher>>);

/// A kernel of one shape.
pub struct Counted {
    pub name: String,
    pub key: KernelKey,
    /// Launches by place.
    pub at: Vec<u64>,
}

impl Launches {
    pub fn count(&mut self, launch: &Launch, place: usize) {
        let counted = self.0.entry(shape(launch)).or_insert_with(|| Counted {
            name: launch.kernel.name.to_string_lossy().into_owned(),
            key: launch.key().clone(),
            at: vec![0; launch.kernel.program.context.places.len()],
        });
        counted.at[place] += 1;
    }

    pub fn all(&self) -> impl Iterator<Item = &Counted> {
        self.0.values()
    }
}

/// A hash of all that makes the key. Handles may name another object later, so the name
/// is in it as well.
fn shape(launch: &Launch) -> u64 {
    let mut hash = AddressHasher::default();
    hash.write_usize(launch.kernel.handle() as usize);
    hash.write_usize(launch.kernel.program.handle() as usize);
    for part in launch.kernel.name.as_bytes().chunks(size_of::<usize>()) {
        let mut word = [0; size_of::<usize>()];
        word[..part.len()].copy_from_slice(part);
        hash.write_usize(usize::from_ne_bytes(word));
    }
    for size in launch
        .shape
        .global
        .iter()
        .chain(launch.shape.local.iter().flatten())
    {
        hash.write_usize(*size);
    }
    for set in &launch.arguments {
        hash.write_usize(match &set.argument {
            Argument::Mem(mem) => mem.size,
            Argument::Local(bytes) => *bytes,
            Argument::Bytes(bytes) => bytes.len(),
            Argument::Sampler(_) => 0,
        });
    }
    hash.finish()
}
