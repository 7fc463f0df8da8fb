//! A step of a user's kernel: what is written before it, its chunks, and its
//! results.

use std::ops::Range;

use super::super::drive::{Drive, For, Kept};
use super::super::place::Place;
use super::super::step::Piece;
use super::super::{CorunError, GATHER};
use super::{merge, runs};
use crate::runtime::{EventId, Memory};

impl Drive<'_> {
    /// Before a step: results as they begin, and images that have the present
    /// version.
    pub(in super::super) fn begin_kernel(&mut self, step: u32) -> Result<(), CorunError> {
        let Kept::Kernel(whole) = &mut self.kept else {
            return Ok(());
        };
        let tried = std::mem::take(&mut whole.tried);
        let repeatable = whole.is_repeatable();
        self.entrusted.fill(!repeatable);
        if repeatable {
            return Ok(());
        }
        for place in &mut self.places {
            if let (Place::Images(images), true) = (place, tried) {
                // Trials have computed there what the first step reads.
                images.fresh.fill(false);
                images.worked = false;
            }
        }
        self.reset_results()?;
        for device in 0..self.places.len() {
            if self.alive[device] {
                self.write_whole(device, step, false)?;
            }
        }
        Ok(())
    }

    /// The commands of a chunk: a launch in place, or writes of what an image
    /// lacks, a launch, and reads of what it wrote.
    pub(in super::super) fn kernel_chunk(
        &mut self,
        piece: Piece,
        units: Range<u64>,
        wait: &[EventId],
    ) -> Result<(), CorunError> {
        let Piece { device, lane, .. } = piece;
        let Kept::Kernel(whole) = &self.kept else {
            return Ok(());
        };
        let user = whole.user;
        let buffers = whole.buffers.clone();
        let whose = |lane| For {
            device,
            lane,
            job: piece.job,
            step: piece.step,
            label: piece.label,
        };
        let images = match &mut self.places[device] {
            Place::Host { lanes } => {
                let whose = whose(lanes[lane]);
                let memories: Vec<Memory> = buffers
                    .iter()
                    .map(|buffer| Memory::Host(buffer.result))
                    .collect();
                for part in user.launches(&units) {
                    self.launch(whose, part, user.args(&memories), wait)?;
                }
                return Ok(());
            }
            Place::Images(images) => images,
            Place::Own(_) | Place::Store(_) => return Err(self.misplaced(device)),
        };
        let whose = whose(images.lanes[lane]);
        images.worked = true;
        let lacking = runs(&units, |unit| !images.has[unit as usize]);
        let stale = runs(&units, |unit| !images.fresh[unit as usize]);
        for unit in units.clone() {
            images.has[unit as usize] = true;
            images.fresh[unit as usize] = true;
        }
        let mut writes = Vec::new();
        let mut reads = Vec::new();
        for (index, buffer) in buffers.iter().enumerate() {
            let slice = |units: &Range<u64>| user.axis().slice(buffer.bytes, units);
            if buffer.read_sliced && buffer.direction.reads() {
                let missing = if buffer.direction.writes() {
                    &stale
                } else {
                    &lacking
                };
                for run in missing {
                    let bytes = slice(run).map(|bytes| images.write(index, buffer.base, bytes));
                    writes.extend(bytes.map(|command| (run.clone(), command)));
                }
            }
            if buffer.written_sliced {
                reads.extend(slice(&units).map(|b| images.read(index, buffer.result, b)));
            }
        }
        let memories: Vec<Memory> = images.buffers.iter().map(|b| Memory::Device(*b)).collect();
        let mut wait = wait.to_vec();
        wait.extend(self.images_ready(device));
        for (run, command) in writes {
            self.submit(whose, command, run, &[])?;
        }
        for part in user.launches(&units) {
            self.launch(whose, part, user.args(&memories), &wait)?;
        }
        for command in reads {
            self.submit(whose, command, units.clone(), &[])?;
        }
        Ok(())
    }

    /// After a step: what images have that is read whole is merged, and
    /// results become the next step's base.
    pub(in super::super) fn end_kernel(&mut self, step: u32) -> Result<(), CorunError> {
        if self.whole().is_none() {
            return Ok(());
        }
        for device in 0..self.places.len() {
            self.merge_images(device, step)?;
        }
        self.nothing_to_await();
        if self.spoiled {
            return Ok(());
        }
        let Kept::Kernel(whole) = &mut self.kept else {
            return Ok(());
        };
        let mut turned = false;
        for buffer in &mut whole.buffers {
            if buffer.direction.reads() && buffer.direction.writes() {
                std::mem::swap(&mut buffer.base, &mut buffer.result);
                turned = true;
            }
        }
        // The version that a device has of its own units is the present one;
        // that of others is not.
        for job in self.ledger.jobs.iter().filter(|job| turned && !job.failed) {
            for (device, place) in self.places.iter_mut().enumerate() {
                if let (Place::Images(images), true) = (place, device != job.device) {
                    images.fresh[job.units.start as usize..job.units.end as usize].fill(false);
                }
            }
        }
        Ok(())
    }

    /// Reads a device's images of buffers that are not divided, and takes what
    /// it changed.
    fn merge_images(&mut self, device: usize, step: u32) -> Result<(), CorunError> {
        let Kept::Kernel(whole) = &self.kept else {
            return Ok(());
        };
        let Place::Images(images) = &mut self.places[device] else {
            return Ok(());
        };
        if !std::mem::take(&mut images.worked) || !self.alive[device] {
            return Ok(());
        }
        let Some(scratch) = whole.scratch else {
            return Ok(());
        };
        let whose = For {
            device,
            lane: images.lanes[0],
            job: None,
            step,
            label: GATHER,
        };
        let reads: Vec<_> = (whole.buffers.iter().enumerate())
            .filter(|(_, buffer)| buffer.direction.writes() && !buffer.written_sliced)
            .map(|(index, buffer)| (buffer.clone(), images.read(index, scratch, 0..buffer.bytes)))
            .collect();
        let units = 0..self.workload.units();
        for (buffer, command) in reads {
            self.submit(whose, command, units.clone(), &[])?;
            self.drain()?;
            if self.spoiled || !self.alive[device] {
                return Ok(());
            }
            let length = buffer.bytes as usize;
            let base = self.runtime.host_bytes(buffer.base)?[..length].to_vec();
            let part = self.runtime.host_bytes(scratch)?[..length].to_vec();
            let all = &mut self.runtime.host_bytes(buffer.result)?[..length];
            merge::merge(&base, &part, all).map_err(|byte| CorunError::Overlap {
                argument: buffer.position,
                byte: byte as u64,
            })?;
        }
        Ok(())
    }
}
