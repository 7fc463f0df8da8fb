//! What is made once by key and then known.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};
use std::sync::Arc;

use crate::handle::AddressHasher;
use crate::lock::Mutex;

/// Values by key, each made when it is first wanted.
pub struct Known<K, V, const RANK: u8>(Mutex<ByKey<K, V>, RANK>);

type ByKey<K, V> = HashMap<K, Arc<V>, BuildHasherDefault<AddressHasher>>;

impl<K, V, const RANK: u8> Default for Known<K, V, RANK> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V, const RANK: u8> Known<K, V, RANK> {
    /// The value of a key. To make it, the key is told and how many are known.
    pub fn of(&self, key: K, make: impl FnOnce(&K, usize) -> Arc<V>) -> Arc<V> {
        let mut known = self.0.lock();
        if let Some(value) = known.get(&key) {
            return Arc::clone(value);
        }
        let value = make(&key, known.len());
        known.insert(key, Arc::clone(&value));
        value
    }

    /// All values, in no order.
    pub fn all(&self) -> Vec<Arc<V>> {
        self.0.lock().values().map(Arc::clone).collect()
    }
}
