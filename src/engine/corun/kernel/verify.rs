//! The reference of a user's kernel: the same steps, undivided, on one device.

use std::sync::atomic::AtomicBool;

use super::super::CorunError;
use super::super::drive::{Drive, Kept};
use super::bench::Bench;
use crate::graph::spec::Argument;
use crate::workload::kernel::compare::compare;

impl Drive<'_> {
    /// Hands the results to whoever wants them.
    pub(in super::super) fn deliver_kernel(&mut self) -> Result<(), CorunError> {
        let Kept::Kernel(whole) = &self.kept else {
            return Ok(());
        };
        let user = whole.user;
        for buffer in whole.buffers.iter().filter(|b| b.direction.writes()) {
            let bytes = self.runtime.host_bytes(buffer.final_version())?;
            user.deliver(buffer.position, &bytes[..buffer.bytes as usize]);
        }
        Ok(())
    }

    /// Compares the results of `steps` steps with those of the undivided
    /// kernel. Returns the largest difference, and whether it is allowed:
    /// between devices of one model none is; `None` if it was interrupted.
    ///
    /// The run has ended: its images go, and make room for the reference's.
    pub(in super::super) fn verify_kernel(
        &mut self,
        steps: u32,
        stop: &AtomicBool,
    ) -> Result<Option<(f64, bool)>, CorunError> {
        let Kept::Kernel(whole) = &self.kept else {
            return Ok(Some((0.0, true)));
        };
        let (user, buffers) = (whole.user, whole.buffers.clone());
        let devices = self.runtime.devices();
        let alike = devices
            .iter()
            .all(|device| device.model == devices[0].model);
        // The fastest, most likely: one with memory of its own.
        let alive = |d: &usize| self.alive[*d];
        let all = || (0..devices.len()).filter(alive);
        let own = all().find(|d| !devices[*d].shares_host_memory);
        let alive = own.or_else(|| all().next()).unwrap_or(0);
        self.runtime.free_buffers();
        let reference = {
            let mut bench = Bench::open(&mut *self.runtime, alive, user, stop)?;
            match bench.steps(user, steps) {
                Err(CorunError::Interrupted) => return Ok(None),
                reference => reference?,
            }
        };
        let (mut largest, mut right) = (0.0f64, true);
        let mut reference = reference.into_iter();
        for buffer in buffers.iter().filter(|b| b.direction.writes()) {
            let Some(wanted) = reference.next() else {
                break;
            };
            let ours = &self.runtime.host_bytes(buffer.final_version())?;
            let ours = &ours[..buffer.bytes as usize];
            let base = match &user.kernel().arguments[buffer.position] {
                Argument::Buffer(buffer) => buffer.element.base,
                Argument::Scalar { element, .. } | Argument::Local { element, .. } => element.base,
            };
            let difference = compare(base, ours, &wanted, alike);
            largest = largest.max(difference.largest);
            right &= difference.right;
        }
        Ok(Some((largest, right)))
    }
}
