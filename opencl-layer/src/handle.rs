//! Objects that programs hold by pointer.
//!
//! A handle points to an [`Object`], which begins with the table that the loader
//! dispatches through. A registry of each kind knows the objects that are alive, so that
//! an invalid handle gives an error code and is never read. An object lives while the
//! program has references or other objects use it.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{CL_INVALID_VALUE, cl_int};

use crate::boundary::status;
use crate::dispatch;
use crate::lock::{HANDLES, Mutex, REGISTRY};
use crate::status::Fallible;

/// A kind of object: what its handle points to, and where handles are looked up.
pub trait Kind: Send + Sync + Sized + 'static {
    /// The code for a handle that is not one of this kind.
    const INVALID: cl_int;

    /// The objects of this kind that are alive.
    fn registry() -> &'static Registry<Self>;
}

/// Defines a kind with its registry.
macro_rules! kind {
    ($body:ty, $invalid:expr) => {
        impl $crate::handle::Kind for $body {
            const INVALID: opencl_sys::cl_int = $invalid;

            fn registry() -> &'static $crate::handle::Registry<Self> {
                static ALIVE: $crate::handle::Registry<$body> = $crate::handle::Registry::new();
                &ALIVE
            }
        }
    };
}
pub(crate) use kind;

/// What a handle points to.
#[repr(C)]
pub struct Object<T: Kind> {
    /// Read by the loader.
    dispatch: *const cl_icd_dispatch,
    /// References that the program has.
    users: AtomicU32,
    body: T,
}

// SAFETY: the table is never changed, and the body may be sent and shared.
unsafe impl<T: Kind> Send for Object<T> {}
// SAFETY: as above.
unsafe impl<T: Kind> Sync for Object<T> {}

impl<T: Kind> Drop for Object<T> {
    fn drop(&mut self) {
        T::registry().remove(ptr::from_ref(self) as usize);
    }
}

/// A counted reference to an object.
pub struct Ref<T: Kind>(Arc<Object<T>>);

impl<T: Kind> Clone for Ref<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Kind> Deref for Ref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.body
    }
}

impl<T: Kind> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Kind> Ref<T> {
    /// Makes an object to which the program has no reference yet.
    pub fn new(body: T) -> Self {
        let object = Arc::new(Object {
            dispatch: dispatch::table(),
            users: AtomicU32::new(0),
            body,
        });
        T::registry().insert(Arc::as_ptr(&object) as usize, Arc::downgrade(&object));
        Self(object)
    }

    /// The handle, without a reference for the program.
    pub fn handle(&self) -> *mut c_void {
        Arc::as_ptr(&self.0).cast_mut().cast()
    }

    /// The handle, with one more reference for the program.
    pub fn give(&self) -> *mut c_void {
        if self.0.users.fetch_add(1, Ordering::AcqRel) == 0 {
            // The program's references together keep one of the object's.
            std::mem::forget(Arc::clone(&self.0));
        }
        self.handle()
    }

    /// Remembers the object without keeping it alive.
    pub fn remember(&self) -> Remembered<T> {
        Remembered(Arc::downgrade(&self.0))
    }

    /// How many references the program has.
    pub fn users(&self) -> u32 {
        self.0.users.load(Ordering::Acquire)
    }

    /// Looks a handle up.
    pub fn of(handle: *mut c_void) -> Fallible<Self> {
        T::registry()
            .get(handle as usize)
            .map(Self)
            .ok_or(T::INVALID)
    }

    /// All objects of this kind that are alive.
    pub fn all() -> Vec<Self> {
        let registry = &T::registry().0;
        let alive = registry.lock();
        alive.values().filter_map(Weak::upgrade).map(Self).collect()
    }

    /// Gives the program one more reference.
    pub fn retain(handle: *mut c_void) -> Fallible<()> {
        Self::of(handle)?.give();
        Ok(())
    }

    /// Takes one of the program's references away.
    pub fn release(handle: *mut c_void) -> Fallible<()> {
        let object = Self::of(handle)?;
        let one_less = |users: u32| users.checked_sub(1);
        let before = object
            .0
            .users
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less)
            .map_err(|_| T::INVALID)?;
        if before == 1 {
            // SAFETY: `give` kept one reference for the program's first, and this was
            // its last.
            unsafe { Arc::decrement_strong_count(Arc::as_ptr(&object.0)) };
        }
        Ok(())
    }
}

/// The function that gives the program one more reference to an object.
pub unsafe extern "C" fn retain<T: Kind>(handle: *mut c_void) -> cl_int {
    status(|| Ref::<T>::retain(handle))
}

/// The function that takes one of the program's references away.
pub unsafe extern "C" fn release<T: Kind>(handle: *mut c_void) -> cl_int {
    status(|| Ref::<T>::release(handle))
}

/// A reference that does not keep its object alive.
pub struct Remembered<T: Kind>(Weak<Object<T>>);

impl<T: Kind> Clone for Remembered<T> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<T: Kind> Remembered<T> {
    /// The object, if it is still alive.
    pub fn get(&self) -> Option<Ref<T>> {
        self.0.upgrade().map(Ref)
    }
}

/// Looks a list of handles up.
///
/// # Safety
/// `handles` is null or valid for `count` reads.
pub unsafe fn list<T: Kind>(count: u32, handles: *const *mut c_void) -> Fallible<Vec<Ref<T>>> {
    if count == 0 || handles.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the caller promises so many handles.
    let handles = unsafe { std::slice::from_raw_parts(handles, count as usize) };
    handles.iter().map(|handle| Ref::of(*handle)).collect()
}

/// The pairs of a list that ends in 0.
///
/// # Safety
/// `list` is null or ends in 0.
pub unsafe fn pairs<T: Copy + PartialEq + From<bool>>(list: *const T) -> Vec<(T, T)> {
    let mut pairs = Vec::new();
    if list.is_null() {
        return pairs;
    }
    let (mut at, end) = (list, T::from(false));
    // SAFETY: the list has not ended yet, and a value follows each key.
    while unsafe { *at } != end {
        // SAFETY: as above.
        unsafe {
            pairs.push((*at, *at.add(1)));
            at = at.add(2);
        }
    }
    pairs
}

/// Gives a program objects in a list of its own, if it wants them, and their number.
///
/// # Safety
/// `list` is null or has room for `entries` handles; `count` is null or valid.
pub unsafe fn give_all<T: Kind>(
    number: usize,
    (entries, list, count): (u32, *mut *mut c_void, *mut u32),
    make: impl FnOnce() -> Fallible<Vec<Ref<T>>>,
) -> Fallible<()> {
    if !list.is_null() {
        if (entries as usize) < number {
            return Err(CL_INVALID_VALUE);
        }
        for (index, object) in make()?.iter().enumerate() {
            // SAFETY: promised by the caller.
            unsafe { *list.add(index) = object.give() };
        }
    }
    if !count.is_null() {
        // SAFETY: promised by the caller.
        unsafe { *count = number as u32 };
    }
    Ok(())
}

/// The handles of some objects of one kind, which the list does not keep alive.
#[derive(Default)]
pub struct Handles(Mutex<Vec<usize>, HANDLES>);

impl Handles {
    /// Adds an object, and forgets those that are gone.
    pub fn add<T: Kind>(&self, object: &Ref<T>) {
        let mut handles = self.0.lock();
        handles.retain(|handle| T::registry().has(*handle));
        handles.push(object.handle() as usize);
    }

    /// Those that are alive. A handle may be that of a later object.
    pub fn alive<T: Kind>(&self) -> Vec<Ref<T>> {
        let handles = self.0.lock().clone();
        let alive = handles.into_iter();
        alive
            .filter_map(|handle| Ref::of(handle as *mut c_void).ok())
            .collect()
    }
}

/// The objects of one kind that are alive, by address.
pub struct Registry<T: Kind>(LazyLock<Mutex<Alive<T>, REGISTRY>>);

type Alive<T> = HashMap<usize, Weak<Object<T>>, BuildHasherDefault<AddressHasher>>;

impl<T: Kind> Registry<T> {
    pub const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    fn insert(&self, address: usize, object: Weak<Object<T>>) {
        let mut alive = self.0.lock();
        alive.insert(address, object);
    }

    fn remove(&self, address: usize) {
        let mut alive = self.0.lock();
        let removed = alive.remove(&address);
        // The last weak reference frees the object's memory; not under the lock.
        drop(alive);
        drop(removed);
    }

    fn get(&self, address: usize) -> Option<Arc<Object<T>>> {
        let alive = self.0.lock();
        alive.get(&address)?.upgrade()
    }

    /// Whether an object is alive. It is not kept so, as its end takes locks.
    fn has(&self, address: usize) -> bool {
        let alive = self.0.lock();
        alive
            .get(&address)
            .is_some_and(|object| object.strong_count() > 0)
    }

    /// How many objects are alive.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }
}

/// Spreads addresses, whose low bits are alike, and short lists of numbers.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(size_of::<usize>()) {
            let mut word = [0; size_of::<usize>()];
            word[..part.len()].copy_from_slice(part);
            self.write_usize(usize::from_ne_bytes(word));
        }
    }

    fn write_usize(&mut self, address: usize) {
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

// What parts above an object keep in it.
//
// A queue keeps what the scheduler and the report know of it, so that it is found without a
// look-up and goes with the queue. The queue does not know what it is.

/// At most one value of each type.
#[derive(Default)]
pub struct Kept(Vec<Box<dyn Any + Send>>);

impl Kept {
    /// The value of a type, which begins as its default.
    pub fn of<T: Any + Send + Default>(&mut self) -> &mut T {
        let known = self.0.iter().position(|value| value.is::<T>());
        let index = known.unwrap_or_else(|| {
            self.0.push(Box::new(T::default()));
            self.0.len() - 1
        });
        self.0[index]
            .downcast_mut()
            .expect("the value has the type for which it was found")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_type() {
        let mut kept = Kept::default();
        *kept.of::<u8>() = 3;
        kept.of::<Vec<u8>>().push(5);
        assert_eq!(*kept.of::<u8>(), 3);
        assert_eq!(*kept.of::<Vec<u8>>(), [5]);
        assert_eq!(*kept.of::<u64>(), 0);
    }
}
