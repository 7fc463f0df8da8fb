//! The time of this library's own code in functions that enqueue.
//!
//! Reading a clock takes as long as much of what is to be measured, so one command of
//! eight is timed, chosen at random: programs repeat themselves, and every eighth could
//! always be the same. The driver's time for the program's command is taken off; copies
//! that the program did not ask for count as this library's.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pdawl_api::report::exec::OwnTime;

use crate::settings::settings;

static TIMED: AtomicU64 = AtomicU64::new(0);
static NANOS: AtomicU64 = AtomicU64::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(1) };
    /// Nanoseconds of the driver in the command that is timed; `None` while none is.
    static DRIVER: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A command that is timed; until it is dropped.
pub struct Timed(Option<Instant>);

/// A command begins.
pub fn begin() -> Timed {
    if !settings().reports() {
        return Timed(None);
    }
    let random = RANDOM
        .get()
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    RANDOM.set(random);
    if random >> 61 != 0 {
        return Timed(None);
    }
    DRIVER.set(Some(0));
    Timed(Some(Instant::now()))
}

impl Drop for Timed {
    fn drop(&mut self) {
        if let Some(began) = self.0 {
            let driver = DRIVER.take().unwrap_or_default();
            let own = nanos(began).saturating_sub(driver);
            NANOS.fetch_add(own, Ordering::Relaxed);
            TIMED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Calls a driver, whose time is not this library's.
pub fn driver<T>(call: impl FnOnce() -> T) -> T {
    let Some(before) = DRIVER.get() else {
        return call();
    };
    let began = Instant::now();
    let result = call();
    DRIVER.set(Some(before + nanos(began)));
    result
}

/// Waits for a sample.
pub fn waits<T>(call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = call();
    WAITED.fetch_add(nanos(began), Ordering::Relaxed);
    result
}

fn nanos(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The time for this number of commands.
pub fn of(commands: u64) -> OwnTime {
    let timed = TIMED.load(Ordering::Relaxed);
    let each = NANOS.load(Ordering::Relaxed) as f64 / timed.max(1) as f64;
    OwnTime {
        commands,
        timed,
        seconds: each * commands as f64 * 1e-9,
        waited_seconds: WAITED.load(Ordering::Relaxed) as f64 * 1e-9,
    }
}
