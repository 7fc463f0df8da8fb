//! Arrays of a matrix: its own, or somebody else's.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// An array that is not changed. It owns its elements, or keeps whoever does.
#[derive(Clone)]
pub struct Shared<T> {
    elements: NonNull<[T]>,
    /// Keeps the elements where they are.
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the elements are only read, and the owner can be shared and sent.
unsafe impl<T: Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Elements that an owner keeps.
    ///
    /// # Safety
    /// The elements must stay at their place, and must not be written, as long as the owner
    /// is not dropped.
    pub unsafe fn new(elements: NonNull<[T]>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { elements, owner }
    }
}

impl<T: Clone + Send + Sync + 'static> Shared<T> {
    /// The elements as a vector: without a copy if nobody else has them, and they were made of
    /// a vector.
    pub fn into_vec(self) -> Vec<T> {
        match Arc::clone(&self.owner).downcast::<Vec<T>>() {
            Ok(vector) if vector.len() == self.len() => {
                drop(self);
                Arc::unwrap_or_clone(vector)
            }
            _ => self.to_vec(),
        }
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for Shared<T> {
    fn from(elements: Vec<T>) -> Self {
        let owner = Arc::new(elements);
        let elements = NonNull::from(owner.as_slice());
        // SAFETY: nobody can reach the vector within the `Arc` to change it.
        unsafe { Self::new(elements, owner) }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: of `new`.
        unsafe { self.elements.as_ref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
