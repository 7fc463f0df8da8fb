//! A step whose parts clash runs again, undivided, from the base that the host has.

use std::fmt;

use super::KernelForm;
use crate::corun::context::{Context, Purpose};
use crate::corun::layout::length;
use crate::corun::{CHUNK, CorunError};
use crate::runtime::Memory;
use crate::workload::Divisible;

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
