//! Which buffers are divided as the work is: sets of units run by themselves. See
//! [`super::examine`].

use std::ops::Range;

use super::examine::{Contents, KernelTrial};
use crate::corun::CorunError;
use crate::corun::memory::memory_limit;
use crate::machine::Device;
use crate::residency::difference::unchanged_outside;
use crate::runtime::{BufferId, Command, DeviceId, EventId, HostMemoryId};
use crate::scope::RuntimeScope;
use crate::workload::Divisible;
use crate::workload::kernel::{Slices, UserKernel};

/// A trial of which buffers are divided with the work.
pub(super) struct SliceTrial<'a, 'b> {
    pub trial: &'a mut KernelTrial<'b>,
    pub base: &'a Contents,
    pub whole: &'a Contents,
    /// Whether there may be many runs.
    pub patient: bool,
}

impl SliceTrial<'_, '_> {
    /// The buffers that are divided with the work, and what the user should know.
    pub fn slices(
        &mut self,
        user: &UserKernel,
        written: Vec<usize>,
        pure: bool,
    ) -> Result<(Slices, Vec<String>), CorunError> {
        let buffers: Vec<_> = user.buffers().map(|(p, b)| (p, b.clone())).collect();
        let none = Slices {
            pure,
            ..Slices::default()
        };
        if !self.patient {
            let note = "a run takes long, so it was not found out which buffers are divided with \
                        it; they are whole on every device";
            return Ok((none, vec![note.to_owned()]));
        }
        if user.moves() {
            let note = "data that the kernel changes decide where it reads or writes, so its \
                        buffers are whole on every device";
            return Ok((none, vec![note.to_owned()]));
        }
        let declared = |index: &usize| buffers[*index].1.divided;
        let fits = |index: &usize| user.slice(&buffers[*index].1, &(0..1)).is_some();
        // What was seen holds for these data. Where they change from step to
        // step, the file must say so as well.
        let iterates = user.iterates();
        let written: Vec<usize> = (written.into_iter())
            .filter(|index| !iterates || declared(index))
            .collect();
        let mut read: Vec<usize> = (self.trial.only_read().into_iter())
            .filter(|index| declared(index) && fits(index))
            .collect();
        let mut notes = Vec::new();
        if written.is_empty() {
            return Ok((none, notes));
        }
        // One by one first, so that a wrong `break` costs no other its own.
        let halves = [0..user.units() / 2, user.units() / 2..user.units()];
        let mut right = Vec::new();
        for index in read {
            let mut holds = true;
            for half in &halves {
                holds &= self.agrees(user, &written, &[index], std::slice::from_ref(half))?;
            }
            match holds {
                true => right.push(index),
                false => notes.push(format!(
                    "argument {} is not divided as its `break` says; every device gets all of it",
                    buffers[index].0
                )),
            }
        }
        read = right;
        let proven = self.holds_for_all(user, &written, &read)?;
        let (holds, read) = match proven || read.is_empty() {
            true => (proven, read),
            false => (self.holds_for_all(user, &written, &[])?, Vec::new()),
        };
        if !holds {
            return Ok((none, notes));
        }
        let both: Vec<usize> = (written.iter().copied())
            .filter(|index| self.trial.reads(*index))
            .collect();
        let positions = |indices: &[usize]| indices.iter().map(|i| buffers[*i].0).collect();
        let read = [read, both].concat();
        Ok((
            Slices {
                read: positions(&read),
                written: positions(&written),
                pure,
            },
            notes,
        ))
    }

    /// Whether slices hold for every unit.
    fn holds_for_all(
        &mut self,
        user: &UserKernel,
        written: &[usize],
        read: &[usize],
    ) -> Result<bool, CorunError> {
        for parts in user.axis().sets_by_bits() {
            if !self.agrees(user, written, read, &parts)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs these units on inputs that are zero outside of their slices, and
    /// looks whether they write into their slices only, and there what the
    /// whole does.
    fn agrees(
        &mut self,
        user: &UserKernel,
        written: &[usize],
        read: &[usize],
        parts: &[Range<u64>],
    ) -> Result<bool, CorunError> {
        let buffers: Vec<_> = user.buffers().map(|(p, b)| (p, b.clone())).collect();
        let slices = |index: usize| -> Vec<Range<u64>> {
            let of = |part: &Range<u64>| user.slice(&buffers[index].1, part);
            parts.iter().filter_map(of).collect()
        };
        let mut originals = Vec::new();
        for index in read {
            let mut contents = vec![0; buffers[*index].1.bytes() as usize];
            user.fill(buffers[*index].0, &mut contents);
            let within = only(&contents, &slices(*index));
            self.trial.set(*index, &within)?;
            originals.push((*index, contents));
        }
        let all = self.trial.written();
        let base: Contents = (all.iter().zip(self.base))
            .map(
                |(index, contents)| match self.trial.reads(*index) && written.contains(index) {
                    true => only(contents, &slices(*index)),
                    false => contents.clone(),
                },
            )
            .collect();
        let results = self.trial.run(user, &base, parts)?;
        for (index, contents) in originals {
            self.trial.set(index, &contents)?;
        }
        Ok(all.iter().enumerate().all(|(which, index)| {
            if !written.contains(index) {
                return true;
            }
            let within = slices(*index);
            let same = |range: &Range<u64>| {
                let range = range.start as usize..range.end as usize;
                results[which][range.clone()] == self.whole[which][range]
            };
            unchanged_outside(&base[which], &results[which], &within) && within.iter().all(same)
        }))
    }
}

/// The contents within ranges, and zeros elsewhere.
fn only(contents: &[u8], ranges: &[Range<u64>]) -> Vec<u8> {
    let mut part = vec![0; contents.len()];
    for range in ranges {
        let range = range.start as usize..range.end as usize;
        part[range.clone()].copy_from_slice(&contents[range]);
    }
    part
}

// A device's own memory: an image of every buffer, and which units' slices the
// images have.

/// Images on one device.
#[derive(Clone, Debug)]
pub struct Images {
    /// One for each buffer, in the order of positions.
    pub(super) buffers: Vec<BufferId>,
    /// Units whose slices of what is only read are here.
    pub(super) has: Vec<bool>,
    /// Units whose slices of what is read and written are here in the present
    /// version.
    pub(super) fresh: Vec<bool>,
    /// What launches must wait for.
    pub(super) ready: Vec<EventId>,
    /// Whether it computed something in this step.
    pub(super) worked: bool,
}

impl Images {
    /// Allocates images.
    pub fn open(
        runtime: &mut RuntimeScope,
        id: DeviceId,
        user: &UserKernel,
    ) -> Result<Self, CorunError> {
        let buffers = (user.buffers())
            .map(|(_, buffer)| runtime.alloc(id, buffer.bytes()))
            .collect::<Result<_, _>>()?;
        let units = user.units() as usize;
        Ok(Self {
            buffers,
            has: vec![false; units],
            fresh: vec![false; units],
            ready: Vec::new(),
            worked: false,
        })
    }

    /// The images have no unit's slices.
    pub(super) fn forget(&mut self) {
        self.has.fill(false);
        self.fresh.fill(false);
        self.ready.clear();
        self.worked = false;
    }

    /// A write of part of a buffer into its image.
    pub(super) fn write(&self, index: usize, from: HostMemoryId, bytes: Range<u64>) -> Command {
        Command::write(from, bytes.clone(), self.buffers[index], bytes.start)
    }

    /// A read of part of an image into a host memory of the same form.
    pub(super) fn read(&self, index: usize, to: HostMemoryId, bytes: Range<u64>) -> Command {
        Command::read(self.buffers[index], bytes.start, to, bytes)
    }
}

/// The bytes of a device's memory that may be used, and those that a kernel's
/// images need, if the latter are more.
pub fn lacking(user: &UserKernel, device: &Device, limit: Option<u64>) -> Option<(u64, u64)> {
    if device.shares_host_memory {
        return None;
    }
    let limit = memory_limit(device.memory, limit);
    let longest = user.buffers().map(|(_, b)| b.bytes()).max().unwrap_or(0);
    let needed = user.bytes();
    let fits = needed <= limit && longest <= device.max_allocation;
    (!fits).then_some((limit.min(device.max_allocation), needed))
}
