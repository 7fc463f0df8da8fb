//! Which process has started a driver. One that is forked from it has neither the driver's threads
//! nor its connection to the devices: calls fail there, or never return.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that has started a driver; 0 before.
pub(super) struct StartedIn(AtomicU32);

impl StartedIn {
    pub const fn nobody() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Notes that this process starts the driver, or says why it cannot.
    pub fn start(&self, driver: &str) -> Result<(), String> {
        let here = process::id();
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(0, here, set, get) {
            Err(there) if there != here => Err(format!(
                "{driver} was started in process {there}, and does not work in this one, which was \
                 forked from it; fork before devices are opened, or start processes anew (in \
                 Python by multiprocessing's method `spawn`)"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_works_in_the_process_that_has_started_it() {
        let driver = StartedIn::nobody();
        assert_eq!([driver.start("D"), driver.start("D")], [Ok(()), Ok(())]);
        let forked = StartedIn(AtomicU32::new(process::id() + 1));
        assert!(forked.start("D").unwrap_err().starts_with("D was started"));
    }
}
