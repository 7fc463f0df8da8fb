//! Memory that the user of a runtime allocated, for use as host memory.

use std::any::{Any, TypeId};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use bytemuck::Pod;
use thiserror::Error;

use super::RuntimeError;

/// Alignment in bytes that adopted memory must have: that of every plain number, and of
/// vectors of four `float` or two `double`. Common allocators provide it.
pub const LEAST_ALIGNMENT: usize = 16;

/// Bytes with their owner, which [`Runtime::adopt_host`](super::Runtime::adopt_host)
/// makes host memory without a copy.
///
/// The owner is boxed. It is not moved, called or dropped until it is returned, so its
/// bytes stay where they are, and nobody else reaches them.
pub struct AdoptedMemory {
    /// A leaked box; `bytes` borrows from what is in it.
    owner: NonNull<dyn Any + Send>,
    /// The owner's type.
    kind: TypeId,
    bytes: NonNull<[u8]>,
}

// SAFETY: the owner can be sent, and nobody else uses its bytes.
unsafe impl Send for AdoptedMemory {}
// SAFETY: no method of a shared reference reaches the owner or its bytes.
unsafe impl Sync for AdoptedMemory {}

impl AdoptedMemory {
    /// Takes an owner of bytes, such as a [`memmap2::MmapMut`]. Its bytes are those that
    /// `as_mut` returns now. For vectors and boxed slices of numbers there is `From`.
    pub fn new<O: AsMut<[u8]> + Send + 'static>(owner: O) -> Self {
        Self::of(owner, AsMut::as_mut)
    }

    fn of<O: Send + 'static>(owner: O, bytes: impl FnOnce(&mut O) -> &mut [u8]) -> Self {
        let mut owner = NonNull::from(Box::leak(Box::new(owner)));
        Self {
            // SAFETY: the box was leaked just now, and nothing else refers to it. The
            // borrow that `bytes` stands for ends before the owner is used again.
            bytes: NonNull::from(bytes(unsafe { owner.as_mut() })),
            owner,
            kind: TypeId::of::<O>(),
        }
    }

    /// Bytes that an owner keeps, and that nobody writes: commands only read them.
    ///
    /// # Safety
    /// The bytes must stay at their place and keep their values until the owner is dropped. No
    /// command may write them, and nobody may ask for them as a mutable slice.
    pub unsafe fn read_only<O: Send + 'static>(owner: O, bytes: NonNull<[u8]>) -> Self {
        Self {
            owner: NonNull::from(Box::leak(Box::new(owner))),
            kind: TypeId::of::<O>(),
            bytes,
        }
    }

    /// The owner: what was given to [`Self::new`], or the vector or boxed slice.
    ///
    /// # Errors
    /// `self`, if the owner has another type.
    pub fn into_owner<O: 'static>(self) -> Result<O, Self> {
        if self.kind != TypeId::of::<O>() {
            return Err(self);
        }
        let owner = ManuallyDrop::new(self).owner.cast::<O>();
        // SAFETY: `of` leaked this box of an `O`, and `self`, which is not dropped, was
        // its only user.
        Ok(*unsafe { Box::from_raw(owner.as_ptr()) })
    }

    /// The bytes.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the owner lent them exclusively until it is returned, and this
        // reference is exclusive, too.
        unsafe { self.bytes.as_mut() }
    }

    /// The first byte.
    pub(super) fn address(&self) -> NonNull<u8> {
        self.bytes.cast()
    }

    /// Length in bytes.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Refuses memory without bytes, and memory whose address is no multiple of
    /// `alignment` bytes.
    pub(super) fn check(self, alignment: usize) -> Result<Self, NotAdopted> {
        let address = self.address().addr().get();
        let why = if self.bytes.is_empty() {
            "it has no bytes; use memory that has some".to_owned()
        } else if !address.is_multiple_of(alignment) {
            format!(
                "its address {address:#x} is aligned to {} bytes, and the devices need \
                 {alignment}; allocate it so aligned, or copy its bytes to memory of `alloc_host`",
                1u64 << address.trailing_zeros()
            )
        } else {
            return Ok(self);
        };
        Err(NotAdopted {
            memory: self,
            error: RuntimeError::Call {
                device: "host".to_owned(),
                call: "adopting memory",
                why,
            },
        })
    }
}

impl Drop for AdoptedMemory {
    fn drop(&mut self) {
        // SAFETY: `of` leaked this box, which is returned by nothing else: `into_owner`
        // does not drop `self`.
        drop(unsafe { Box::from_raw(self.owner.as_ptr()) });
    }
}

impl<T: Pod + Send> From<Vec<T>> for AdoptedMemory {
    /// The elements of a vector; `into_owner::<Vec<T>>()` returns it.
    fn from(numbers: Vec<T>) -> Self {
        Self::of(numbers, |numbers| bytemuck::cast_slice_mut(numbers))
    }
}

impl<T: Pod + Send> From<Box<[T]>> for AdoptedMemory {
    /// The elements of a boxed slice; `into_owner::<Box<[T]>>()` returns it.
    fn from(numbers: Box<[T]>) -> Self {
        Self::of(numbers, |numbers| bytemuck::cast_slice_mut(numbers))
    }
}

impl fmt::Debug for AdoptedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdoptedMemory").field(&self.bytes).finish()
    }
}

/// Memory that a runtime refuses to adopt, and why.
#[derive(Debug, Error)]
#[error("{error}")]
pub struct NotAdopted {
    /// The memory, unchanged.
    pub memory: AdoptedMemory,
    pub error: RuntimeError,
}

impl From<NotAdopted> for RuntimeError {
    /// The reason; drops the memory.
    fn from(refused: NotAdopted) -> Self {
        refused.error
    }
}

/// The error of taking back what was allocated by the runtime.
pub(super) fn not_adopted() -> RuntimeError {
    RuntimeError::Call {
        device: "host".to_owned(),
        call: "taking memory back",
        why: "the runtime allocated it; copy its bytes, and release it with `free_host`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Bytes whose owner counts its drops.
    struct Counted(Arc<AtomicUsize>, [u8; 3]);

    impl AsMut<[u8]> for Counted {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.1
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn owners_return_with_their_bytes_changed() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut memory = AdoptedMemory::new(Counted(Arc::clone(&drops), [1, 2, 3]));
        memory.as_mut_slice()[2] = 7;
        let memory = memory.into_owner::<[u8; 3]>().expect_err("another type");
        let owner = memory.into_owner::<Counted>().expect("its type");
        assert_eq!(owner.1, [1, 2, 7]);
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(owner);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn owners_are_dropped_once_with_their_memory() {
        let drops = Arc::new(AtomicUsize::new(0));
        let memory = AdoptedMemory::new(Counted(Arc::clone(&drops), [0; 3]));
        assert_eq!(memory.length(), 3);
        std::thread::spawn(move || drop(memory)).join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn vectors_and_slices_are_not_copied() {
        let mut numbers = Vec::with_capacity(100);
        numbers.extend([1.0f64, 2.0, 3.0]);
        let first = numbers.as_ptr();
        let memory = AdoptedMemory::from(numbers);
        assert_eq!(memory.address().as_ptr().cast_const(), first.cast());
        assert_eq!(memory.length(), 24);
        let numbers: Vec<f64> = memory.into_owner().expect("a vector");
        assert_eq!(numbers, [1.0, 2.0, 3.0]);
        assert_eq!((numbers.as_ptr(), numbers.capacity()), (first, 100));
        let memory = AdoptedMemory::from(numbers.into_boxed_slice());
        let numbers: Box<[f64]> = memory.into_owner().expect("a slice");
        assert_eq!(*numbers, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn refused_memory_is_returned_with_the_reason() {
        let refused = AdoptedMemory::from(Vec::<f32>::new()).check(1).unwrap_err();
        assert!(refused.to_string().contains("no bytes"), "{refused}");
        let memory = AdoptedMemory::from(vec![5u64; 9]);
        let address = memory.address().addr().get();
        let more = 2 << address.trailing_zeros();
        let refused = memory.check(more).unwrap_err();
        let text = refused.to_string();
        for part in [format!("{address:#x}"), format!("need {more};")] {
            assert!(text.contains(&part), "{text}");
        }
        let numbers: Vec<u64> = refused.memory.into_owner().expect("a vector");
        assert_eq!(numbers, [5; 9]);
    }
}
