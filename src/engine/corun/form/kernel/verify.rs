//! The reference of a user's kernel: the same steps, undivided, on one device.

use std::sync::atomic::AtomicBool;

use super::KernelForm;
use super::trial::KernelTrial;
use crate::corun::CorunError;
use crate::corun::context::Context;
use crate::runtime::Runtime;
use crate::verify::Compared;
use crate::workload::kernel::UserKernel;
use crate::workload::kernel::compare::compare;
use pdawl_core::graph::spec::Argument;

/// What the written buffers have after `steps` steps of the undivided kernel on a device of
/// a runtime, in the order of their positions.
///
/// # Errors
/// When the device's memory is too small, or the kernel does not run there;
/// [`CorunError::Interrupted`] on request.
pub fn undivided(
    runtime: &mut dyn Runtime,
    device: usize,
    user: &UserKernel,
    steps: u32,
    stop: &AtomicBool,
) -> Result<Vec<Vec<u8>>, CorunError> {
    KernelTrial::open(runtime, device, user, stop)?.steps(user, steps)
}

impl KernelForm<'_> {
    /// Compares the results of `steps` steps with those of the undivided
    /// kernel. Between devices of one model no difference is allowed. `None` if it was
    /// interrupted.
    ///
    /// The run has ended: its images go, and make room for the reference's.
    pub(super) fn compare(
        &self,
        context: &mut Context,
        steps: u32,
        stop: &AtomicBool,
    ) -> Result<Option<Compared>, CorunError> {
        let user = self.user;
        let devices = context.runtime.devices();
        let alike = devices
            .iter()
            .all(|device| device.model == devices[0].model);
        // The fastest, most likely: one with memory of its own.
        let own = (context.alive()).find(|d| !devices[*d].shares_host_memory);
        let device = own.or_else(|| context.alive().next()).unwrap_or(0);
        context.runtime.free_buffers();
        let reference = match undivided(&mut *context.runtime, device, user, steps, stop) {
            Err(CorunError::Interrupted) => return Ok(None),
            reference => reference?,
        };
        let mut compared = Compared {
            error: 0.0,
            right: true,
            numbers: 0,
            not_finite: 0,
        };
        let mut reference = reference.into_iter();
        for buffer in self.buffers.iter().filter(|b| b.direction.writes()) {
            let Some(wanted) = reference.next() else {
                break;
            };
            let ours = &context.runtime.host_bytes(buffer.final_version())?;
            let ours = &ours[..buffer.bytes as usize];
            let base = match &user.kernel().arguments[buffer.position] {
                Argument::Buffer(buffer) => buffer.element.base,
                Argument::Scalar { element, .. } | Argument::Local { element, .. } => element.base,
            };
            let difference = compare(base, ours, &wanted, alike);
            compared.error = compared.error.max(difference.largest);
            compared.right &= difference.right;
            compared.numbers += ours.len() as u64 / base.bytes();
        }
        Ok(Some(compared))
    }
}
