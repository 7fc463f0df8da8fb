//! Locks with ranks. A thread takes a lock only if its rank is above those of all that it holds,
//! so that no two threads wait for each other. The table of all locks is in `lib.rs`.
//!
//! Builds with debug assertions check each lock when it is taken. A thread that panicked with a
//! lock does not keep others from it: what locks guard is valid between any two statements.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError};
use std::time::Duration;

/// Defines ranks, with a list of their names.
macro_rules! ranks {
    ($($name:ident = $rank:literal,)*) => {
        $(pub const $name: u8 = $rank;)*

        /// The names and ranks of all locks.
        const RANKS: &[(&str, u8)] = &[$((stringify!($name), $rank)),*];
    };
}

ranks! {
    ISSUING = 1,
    QUEUE = 2,
    EVENT = 3,
    TRANSIT = 4,
    COUNTS = 5,
    REPORT = 6,
    KERNEL_RECORDS = 7,
    NATIVE_KERNEL = 8,
    KERNEL = 9,
    ARGUMENTS = 10,
    SHAPES = 11,
    PROGRAM = 12,
    SEPARATE_GROUPS = 13,
    COPIES = 14,
    VIEW = 15,
    MAPS = 16,
    SHOWN = 17,
    VARIANTS = 18,
    RECORDS = 19,
    RECORD = 20,
    ENTRIES = 21,
    ENTRY = 22,
    STORE = 23,
    BRIDGES = 24,
    OWN = 25,
    ENDING = 26,
    ONCE_ALL_ENDED = 27,
    HANDLES = 28,
    REGISTRY = 29,
}

thread_local! {
    /// By rank, a bit: whether this thread holds a lock of it.
    static HELD: Cell<u64> = const { Cell::new(0) };
}

fn name(rank: u8) -> &'static str {
    let known = RANKS.iter().find(|(_, other)| *other == rank);
    known.map_or("a lock without a name", |(name, _)| name)
}

/// That this thread holds a lock, until it is dropped.
struct Held {
    rank: u8,
    /// Whether it held another one of the rank before, or nobody looks.
    before: bool,
}

impl Held {
    /// Notes that this thread takes a lock.
    ///
    /// # Panics
    /// If it holds one that is to be taken later.
    fn take(rank: u8) -> Self {
        Self::checked(rank, |held| match held >> rank {
            0 => Ok(()),
            _ => Err(format!("after {}", name(highest(held)))),
        })
    }

    /// As [`Self::take`], for another lock of a rank. Whoever takes several holds one of the rank
    /// `under`, so that no two threads do so at once.
    fn take_another(rank: u8, under: u8) -> Self {
        Self::checked(rank, |held| match held >> rank {
            0 | 1 if held >> under & 1 == 1 => Ok(()),
            0 | 1 => Err(format!("twice without {}", name(under))),
            _ => Err(format!("after {}", name(highest(held)))),
        })
    }

    fn checked(rank: u8, check: impl FnOnce(u64) -> Result<(), String>) -> Self {
        let mut before = true;
        if cfg!(debug_assertions) {
            let held = HELD.get();
            match check(held) {
                Err(how) if !std::thread::panicking() => {
                    panic!("order of locks: {} is taken {how}", name(rank));
                }
                _ => {}
            }
            before = held >> rank & 1 == 1;
            HELD.set(held | 1 << rank);
        }
        Self { rank, before }
    }
}

/// The rank of the last lock among those that are held.
fn highest(held: u64) -> u8 {
    63 - (held | 1).leading_zeros() as u8
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.before {
            HELD.set(HELD.get() & !(1 << self.rank));
        }
    }
}

/// A mutex with a rank.
#[derive(Default)]
pub struct Mutex<T, const RANK: u8>(sync::Mutex<T>);

impl<T, const RANK: u8> Mutex<T, RANK> {
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> Guard<'_, T, RANK> {
        self.with(Held::take(RANK))
    }

    /// Takes another lock of the same rank, by a thread that holds a lock of the rank `UNDER`,
    /// as every thread does that takes several.
    pub fn lock_another<const UNDER: u8>(&self) -> Guard<'_, T, RANK> {
        self.with(Held::take_another(RANK, UNDER))
    }

    fn with(&self, held: Held) -> Guard<'_, T, RANK> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { guard, _held: held }
    }

    /// The value, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A mutex that this thread holds.
pub struct Guard<'a, T, const RANK: u8> {
    guard: sync::MutexGuard<'a, T>,
    _held: Held,
}

impl<T, const RANK: u8> Deref for Guard<'_, T, RANK> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T, const RANK: u8> DerefMut for Guard<'_, T, RANK> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A condition, whose waits give a mutex back for a while.
#[derive(Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    pub fn wait<'a, T, const RANK: u8>(&self, held: Guard<'a, T, RANK>) -> Guard<'a, T, RANK> {
        let Guard { guard, _held } = held;
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        Guard { guard, _held }
    }

    /// As [`Self::wait`], for so long at most.
    pub fn wait_for<'a, T, const RANK: u8>(
        &self,
        held: Guard<'a, T, RANK>,
        most: Duration,
    ) -> Guard<'a, T, RANK> {
        let Guard { guard, _held } = held;
        let waited = self.0.wait_timeout(guard, most);
        let guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        Guard { guard, _held }
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// What a panic of `work` says.
    #[cfg(debug_assertions)]
    fn complaint(work: impl FnOnce()) -> Option<String> {
        let work = std::panic::AssertUnwindSafe(work);
        let panicked = std::panic::catch_unwind(work).err()?;
        Some(*panicked.downcast::<String>().expect("a text"))
    }

    #[test]
    fn the_table_has_all_locks_with_their_ranks() {
        let rows: Vec<(&str, u8)> = include_str!("lib.rs")
            .lines()
            .skip_while(|line| !line.starts_with("//! | lock |"))
            .skip(2)
            .map_while(|line| line.strip_prefix("//! | `"))
            .map(|row| {
                let (name, rest) = row.split_once('`').expect("a name");
                let rank = rest.rsplit('|').nth(1).expect("a rank");
                (name, rank.trim().parse().expect("a number"))
            })
            .collect();
        assert_eq!(rows, RANKS);
        assert!(RANKS.is_sorted_by(|(_, one), (_, next)| one < next));
        assert!(RANKS.iter().all(|(_, rank)| *rank < 64));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_wrong_order_is_found() {
        let (queue, copies) = (Mutex::<u8, QUEUE>::new(1), Mutex::<u8, COPIES>::new(2));
        let alive = Mutex::<u8, REGISTRY>::default();
        {
            let first = queue.lock();
            let second = copies.lock();
            assert_eq!(*first + *second + *alive.lock(), 3);
        }
        let wrong = || drop((copies.lock(), queue.lock()));
        let said = "order of locks: QUEUE is taken after COPIES";
        assert_eq!(complaint(wrong).as_deref(), Some(said));
        let wrong = || drop((alive.lock(), copies.lock()));
        let said = "order of locks: COPIES is taken after REGISTRY";
        assert_eq!(complaint(wrong).as_deref(), Some(said));
        // What was held is not held any more.
        drop((queue.lock(), copies.lock()));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn several_locks_of_a_rank_need_another_one() {
        let (one, two) = (Mutex::<u8, QUEUE>::new(1), Mutex::<u8, QUEUE>::new(2));
        let (issuing, event) = (Mutex::<(), ISSUING>::new(()), Mutex::<u8, EVENT>::new(0));
        let said = "order of locks: QUEUE is taken after QUEUE";
        let wrong = || drop((one.lock(), two.lock()));
        assert_eq!(complaint(wrong).as_deref(), Some(said));
        let said = "order of locks: QUEUE is taken twice without ISSUING";
        let wrong = || drop((one.lock(), two.lock_another::<ISSUING>()));
        assert_eq!(complaint(wrong).as_deref(), Some(said));
        let issuing = issuing.lock();
        let first = one.lock();
        drop(two.lock_another::<ISSUING>());
        // The first one is still held.
        let said = "order of locks: QUEUE is taken after QUEUE";
        assert_eq!(complaint(|| drop(two.lock())).as_deref(), Some(said));
        let said = "order of locks: QUEUE is taken after EVENT";
        let wrong = || drop((event.lock(), two.lock_another::<ISSUING>()));
        assert_eq!(complaint(wrong).as_deref(), Some(said));
        drop((first, issuing));
    }

    #[test]
    fn a_wait_gives_the_lock_back() {
        let (ready, changed) = (Mutex::<bool, QUEUE>::new(false), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                *ready.lock() = true;
                changed.notify_all();
            });
            let mut is_ready = ready.lock();
            while !*is_ready {
                is_ready = changed.wait(is_ready);
            }
            let is_ready = changed.wait_for(is_ready, Duration::ZERO);
            assert!(*is_ready);
        });
    }
}
