//! Queues for writes that `late` gives to drivers.

use std::sync::OnceLock;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{cl_command_queue, cl_device_id};

use crate::domain::Domain;
use crate::status::{Fallible, driver, driver_object};

/// The queue of a place's late writes, made for the first one.
#[derive(Default)]
pub struct LateQueue(OnceLock<cl_command_queue>);

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for LateQueue {}
// SAFETY: as above.
unsafe impl Sync for LateQueue {}

impl LateQueue {
    /// The driver's queue at a device of a domain.
    pub fn get(&self, domain: &Domain, device: cl_device_id) -> Fallible<cl_command_queue> {
        if let Some(queue) = self.0.get() {
            return Ok(*queue);
        }
        // Only one command at a time is given to drivers, so nobody else makes it.
        let made = driver_object!(
            domain.table,
            clCreateCommandQueue(domain.context, device, 0)
        )?;
        Ok(*self.0.get_or_init(|| made))
    }

    /// Gives the queue back.
    pub fn release(&mut self, table: &cl_icd_dispatch) {
        if let Some(queue) = self.0.take() {
            let _ = driver!(table, clReleaseCommandQueue(queue));
        }
    }
}
