//! Undivided steps: a step whose parts clash runs again, from the base that the host has, and the
//! reference of a kernel is the same steps on one device.

use std::fmt;
use std::sync::atomic::AtomicBool;

use pdawl_core::graph::spec::Argument;

use super::KernelForm;
use super::examine::KernelTrial;
use crate::corun::context::{Context, Purpose};
use crate::corun::layout::length;
use crate::corun::{CHUNK, CorunError};
use crate::runtime::{Memory, Runtime};
use crate::verify::Compared;
use crate::workload::Divisible;
use crate::workload::kernel::UserKernel;
use crate::workload::kernel::compare::compare;

/// A byte to which two devices wrote unlike values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clash {
    pub step: u32,
    /// The buffer's position among the kernel's arguments.
    pub argument: usize,
    pub byte: usize,
}

/// The steps that ran again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clashes {
    first: Clash,
    steps: u32,
}

impl fmt::Display for Clashes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Clash {
            step,
            argument,
            byte,
        } = self.first;
        write!(
            f,
            "parts of the kernel depend on one another: two devices wrote unlike values to byte \
             {byte} of argument {argument} in step {step}; {} of the steps ran again undivided; \
             --strategy gpu, or --devices with one name, spares that",
            self.steps
        )
    }
}

impl KernelForm<'_> {
    /// Runs a step again, whole, at the device that has computed most of it.
    pub(super) fn run_again(
        &mut self,
        context: &mut Context,
        clash: Clash,
    ) -> Result<(), CorunError> {
        let clashes = self.clashes.get_or_insert(Clashes {
            first: clash,
            steps: 0,
        });
        clashes.steps += 1;
        self.reset_results(context)?;
        let computed = |device: &usize| -> u64 {
            let jobs = context.jobs.all.iter();
            let own = jobs.filter(|job| job.device == *device && !job.failed);
            own.map(|job| length(&job.units)).sum()
        };
        let Some(device) = context.alive().max_by_key(computed) else {
            return Ok(());
        };
        let purpose = Purpose::new(device, 0, clash.step, CHUNK);
        let units = 0..self.user.units();
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        let memories: Vec<Memory> = match self.images.find(device) {
            None => (self.buffers.iter())
                .map(|buffer| Memory::Host(buffer.result))
                .collect(),
            Some(images) => {
                for (index, buffer) in self.buffers.iter().enumerate() {
                    let all = 0..buffer.bytes;
                    let write = images.write(index, buffer.base, all.clone());
                    writes.push((units.clone(), write));
                    if buffer.direction.writes() {
                        reads.push((units.clone(), images.read(index, buffer.result, all)));
                    }
                }
                let images = images.buffers.iter();
                images.map(|buffer| Memory::Device(*buffer)).collect()
            }
        };
        context.submit_each(purpose, writes, &[])?;
        for part in self.user.launches(&units) {
            context.submit_launch(purpose, part, self.user.args(&memories), &[])?;
        }
        context.submit_each(purpose, reads, &[])?;
        context.drain()?;
        // No image has this step's result.
        for (_, images) in self.images.iter_mut() {
            images.fresh.fill(false);
        }
        Ok(())
    }
}

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
