//! Determines whether a kernel can be divided, along which dimension, and which
//! buffers are divided with it. It runs the kernel on one device, whole and in parts.
//!
//! 1. It runs the kernel twice undivided. If the results differ, no comparison is
//!    possible.
//! 2. It runs the kernel on other contents of the output buffers, to see whether the
//!    results depend on them.
//! 3. It runs three parts separately. If two parts change the same bytes to unlike
//!    values, or the parts together have another result, work-groups of different parts depend on
//!    one another (for example by an atomic counter), and the kernel runs on one
//!    device.
//! 4. It runs sets of units: of every two units, a set has the first and lacks the second, so a
//!    write to another unit's slice is detected. Buffers without such writes are read back slice
//!    by slice.
//!    Input buffers that the file divides are zero outside of the slices in these
//!    runs. If the results stay the same, devices get only their slices.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::equal_writes;
use super::slices::SliceTrial;
use crate::corun::CorunError;
use crate::residency::difference::{merge, unchanged_outside};
use crate::runtime::{
    Command, DeviceId, HostMemoryId, Launch, Memory, QueueId, Runtime, RuntimeError,
};
use crate::scope::{DeviceArray, RuntimeScope};
use crate::workload::Divisible;
use crate::workload::kernel::{Slices, UserKernel};

/// The approximate duration of a trial of slices, in runs of the kernel.
const SLICE_TRIAL: u32 = 24;
/// The longest trial of slices that is short.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of the examination.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The kernel, divided if it can be.
    pub user: UserKernel,
    /// Why it cannot be divided.
    pub refusal: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// When the trial of slices is made, which takes about two dozen runs of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceTrials {
    /// Where it takes seconds. Without it, devices keep whole buffers.
    IfShort,
    /// Always, for what cannot do with whole buffers.
    Always,
    /// Never, and no other either, but for whether it stays in its buffers: one device has all.
    None,
}

/// Determines on one device of a runtime how a kernel can be divided, unless `stop`
/// is set meanwhile.
///
/// # Errors
/// When the device's memory is too small, or the kernel does not compile or run
/// there; [`CorunError::Interrupted`] on request.
pub fn examine(
    runtime: &mut dyn Runtime,
    device: usize,
    user: UserKernel,
    slice_trials: SliceTrials,
    stop: &AtomicBool,
) -> Result<Examined, CorunError> {
    let mut trial = KernelTrial::open(runtime, device, &user, stop)?;
    let base = trial.begin(&user)?;
    // The first run compiles.
    trial.whole(&user, &base)?;
    trial.check_inputs()?;
    if slice_trials == SliceTrials::None {
        return Ok(Examined {
            refusal: Some("no other device takes part".to_owned()),
            user,
            notes: Vec::new(),
        });
    }
    let began = Instant::now();
    let whole = trial.whole(&user, &base)?;
    let took = began.elapsed();
    let refused = |user: UserKernel, why: String| Examined {
        user,
        refusal: Some(why),
        notes: Vec::new(),
    };
    if trial.whole(&user, &base)? != whole {
        let why = "its results differ from run to run even on one device, so the results of \
                   parts cannot be verified";
        return Ok(refused(user, why.to_owned()));
    }
    let independent = is_independent(&mut trial, &user, &base, &whole)?;
    let axes = user.axes();
    if axes.is_empty() {
        let why = "it has a single work-group along every dimension";
        return Ok(refused(user, why.to_owned()));
    }
    let (mut best, mut reason): (Option<(UserKernel, Vec<usize>)>, _) = (None, String::new());
    for axis in axes {
        let divided = user.clone().divided(axis, Slices::default());
        match parts(&mut trial, &divided, &base, &whole)? {
            Err(why) => reason = why,
            Ok(written) => {
                let more = best
                    .as_ref()
                    .is_none_or(|(_, most)| written.len() > most.len());
                let done = written.len() == trial.written().len();
                if more {
                    best = Some((divided, written));
                }
                if done {
                    break;
                }
            }
        }
    }
    let Some((divided, written)) = best else {
        return Ok(refused(user, reason));
    };
    let mut trial = SliceTrial {
        trial: &mut trial,
        base: &base,
        whole: &whole,
        patient: slice_trials == SliceTrials::Always || took * SLICE_TRIAL < PATIENCE,
    };
    let (slices, notes) = trial.slices(&divided, written, independent)?;
    Ok(Examined {
        user: divided.clone().divided(divided.axis(), slices),
        refusal: None,
        notes,
    })
}

/// Whether results do not depend on the contents of the output buffers. Buffers that
/// are read as well keep their contents, which may be indices.
fn is_independent(
    trial: &mut KernelTrial,
    user: &UserKernel,
    base: &Contents,
    whole: &Contents,
) -> Result<bool, CorunError> {
    let written = trial.written();
    let other: Contents = (written.iter().zip(base))
        .map(|(index, contents)| match trial.reads(*index) {
            true => contents.clone(),
            false => contents.iter().map(|byte| !byte).collect(),
        })
        .collect();
    let again = trial.whole(user, &other)?;
    let mut same = true;
    for (which, index) in written.iter().enumerate() {
        let bytes = whole[which]
            .iter()
            .zip(&again[which])
            .zip(base[which].iter().zip(&other[which]));
        for ((one, two), (before, otherwise)) in bytes {
            let untouched = one == before && two == otherwise;
            same &= one == two || (untouched && !trial.reads(*index));
        }
    }
    let iterates = written.iter().any(|index| trial.reads(*index));
    Ok(same && !iterates)
}

/// Runs three parts of unequal size separately. Returns the written buffers (as
/// indices among all) in which each part writes only its slices, or why the parts
/// together do not have the result of the whole.
fn parts(
    trial: &mut KernelTrial,
    user: &UserKernel,
    base: &Contents,
    whole: &Contents,
) -> Result<Result<Vec<usize>, String>, CorunError> {
    let written = trial.written();
    let positions: Vec<usize> = user.buffers().map(|(position, _)| position).collect();
    let mut together = base.clone();
    let mut sliced: Vec<usize> = written.clone();
    for part in user.axis().thirds() {
        let results = trial.run(user, base, std::slice::from_ref(&part))?;
        for (which, index) in written.iter().enumerate() {
            let all = &mut together[which];
            if let Err(byte) = merge(&base[which], &results[which], all, equal_writes(user)) {
                return Ok(Err(format!(
                    "work-groups of different parts write the same bytes of argument {} (the \
                     first at byte {byte})",
                    positions[*index]
                )));
            }
            let bytes = whole[which].len() as u64;
            let inside = user.axis().slice(bytes, &part);
            let stays = inside.is_some_and(|inside| {
                unchanged_outside(&base[which], &results[which], std::slice::from_ref(&inside))
            });
            if !stays {
                sliced.retain(|one| one != index);
            }
        }
    }
    if let Some(which) = (0..whole.len()).find(|which| together[*which] != whole[*which]) {
        return Ok(Err(format!(
            "its parts together have another result in argument {} than the whole: work-groups \
             depend on one another",
            positions[written[which]]
        )));
    }
    Ok(Ok(sliced))
}

// Trials of a user's kernel on one device: buffers set, parts run, contents
// looked at.
//
// In a device's own memory a zone with a pattern lies behind each buffer, so a kernel that
// writes past the end of one is found. Kernels in host memory were tried before.

/// Bytes of the zone behind a buffer.
const ZONE: u64 = 4096;

/// What zones have.
const PATTERN: u8 = 0xa5;

/// A buffer on the device.
struct TrialBuffer {
    /// With its zone.
    array: DeviceArray,
    /// Without it.
    bytes: u64,
    position: usize,
    name: String,
    reads: bool,
    writes: bool,
}

/// One device with a kernel's buffers, to run parts of it on.
pub struct KernelTrial<'a> {
    runtime: RuntimeScope<'a>,
    device: usize,
    queue: QueueId,
    kernel: String,
    buffers: Vec<TrialBuffer>,
    stop: &'a AtomicBool,
}

/// Contents of all written buffers, in the order of their positions.
pub type Contents = Vec<Vec<u8>>;

impl<'a> KernelTrial<'a> {
    /// Allocates everything on a device. When `stop` is set, no further run
    /// begins.
    pub fn open(
        runtime: &'a mut dyn Runtime,
        device: usize,
        user: &UserKernel,
        stop: &'a AtomicBool,
    ) -> Result<Self, CorunError> {
        let mut runtime = RuntimeScope::on(runtime);
        let queue = runtime.queue(DeviceId(device))?;
        let info = &runtime.devices()[device];
        let (shares, most) = (info.shares_host_memory, info.max_allocation);
        let zone = |bytes: u64| match !shares && bytes.saturating_add(ZONE) <= most {
            true => bytes + ZONE,
            false => bytes,
        };
        let sizes: Vec<u64> = user.buffers().map(|(_, buffer)| buffer.bytes()).collect();
        let zoned: Vec<u64> = sizes.iter().map(|bytes| zone(*bytes)).collect();
        let mut hosts = Vec::new();
        for (bytes, all) in sizes.iter().zip(&zoned) {
            let host = runtime.alloc_host((*all).max(1))?;
            runtime.host_bytes(host)?[*bytes as usize..*all as usize].fill(PATTERN);
            hosts.push(host);
        }
        let arrays = match arrays(&mut runtime, device, &hosts, &zoned) {
            // Zones need not fit.
            Err(RuntimeError::OutOfMemory { .. }) if zoned != sizes => {
                runtime.free_buffers();
                arrays(&mut runtime, device, &hosts, &sizes)
            }
            other => other,
        }?;
        let mut buffers = Vec::new();
        for ((position, buffer), array) in user.buffers().zip(arrays) {
            let parameter = user.info().parameters.get(position);
            buffers.push(TrialBuffer {
                array,
                bytes: buffer.bytes(),
                position,
                name: parameter.map_or_else(String::new, |parameter| parameter.name.clone()),
                reads: buffer.direction.reads(),
                writes: buffer.direction.writes(),
            });
        }
        Ok(Self {
            runtime,
            device,
            queue,
            kernel: user.kernel().name.clone(),
            buffers,
            stop,
        })
    }

    /// Indices of the buffers that are written.
    pub fn written(&self) -> Vec<usize> {
        let written = |index: &usize| self.buffers[*index].writes;
        (0..self.buffers.len()).filter(written).collect()
    }

    /// Indices of the buffers that are read, and not written.
    pub fn only_read(&self) -> Vec<usize> {
        let read = |index: &usize| !self.buffers[*index].writes;
        (0..self.buffers.len()).filter(read).collect()
    }

    /// Whether a buffer is read as well.
    pub fn reads(&self, index: usize) -> bool {
        self.buffers[index].reads
    }

    /// Sets a buffer.
    pub fn set(&mut self, index: usize, contents: &[u8]) -> Result<(), CorunError> {
        let array = &self.buffers[index].array;
        let set = self.runtime.fill(self.queue, array, contents);
        set.map_err(trial_error)
    }

    /// A buffer's contents.
    ///
    /// # Errors
    /// When its zone has changed, and what the runtime refuses.
    pub fn get(&mut self, index: usize) -> Result<Vec<u8>, CorunError> {
        let buffer = &self.buffers[index];
        let contents = self.runtime.contents(self.queue, &buffer.array);
        let (contents, zone) = contents
            .map_err(trial_error)?
            .split_at(buffer.bytes as usize);
        match zone.iter().all(|byte| *byte == PATTERN) {
            true => Ok(contents.to_vec()),
            false => Err(self.left(index)),
        }
    }

    /// Looks at the zones of the buffers that are only read.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn check_inputs(&mut self) -> Result<(), CorunError> {
        for index in self.only_read() {
            let (array, bytes) = (self.buffers[index].array, self.buffers[index].bytes);
            let zone = bytes..array.bytes;
            let Some(from) = array.buffer.filter(|_| !zone.is_empty()) else {
                continue;
            };
            let read = Command::read(from, bytes, array.host, zone.clone());
            self.runtime.run(self.queue, read).map_err(trial_error)?;
            let all = self.runtime.host_bytes(array.host)?;
            let zone = &all[zone.start as usize..zone.end as usize];
            if zone.iter().any(|byte| *byte != PATTERN) {
                return Err(self.left(index));
            }
        }
        Ok(())
    }

    /// The error of a buffer that the kernel left.
    fn left(&self, index: usize) -> CorunError {
        let buffer = &self.buffers[index];
        CorunError::PastEnd {
            kernel: self.kernel.clone(),
            name: buffer.name.clone(),
            argument: buffer.position,
            bytes: buffer.bytes,
            device: self.runtime.devices()[self.device].name.clone(),
        }
    }

    /// Sets all written buffers, runs these units, one launch a range, and
    /// returns what the written buffers have then.
    ///
    /// # Errors
    /// [`CorunError::Interrupted`] on request, and what the runtime refuses.
    pub fn run(
        &mut self,
        user: &UserKernel,
        base: &Contents,
        parts: &[Range<u64>],
    ) -> Result<Contents, CorunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CorunError::Interrupted);
        }
        let written = self.written();
        for (index, contents) in written.iter().zip(base) {
            self.set(*index, contents)?;
        }
        let memories: Vec<Memory> = (self.buffers.iter())
            .map(|buffer| buffer.array.memory())
            .collect();
        let codelet = user.codelet();
        let parts = parts.iter().filter(|units| !units.is_empty());
        let launches: Vec<_> = parts.flat_map(|units| user.launches(units)).collect();
        for units in &launches {
            let launch = Command::Launch(Launch {
                codelet: Arc::clone(&codelet),
                args: user.args(&memories),
                cost: user.cost(units),
                units: units.clone(),
            });
            self.runtime.enqueue(self.queue, launch, &[])?;
        }
        let ended = self.runtime.completions(launches.len());
        ended.map_err(trial_error)?;
        written.into_iter().map(|index| self.get(index)).collect()
    }

    /// The same for all units at once.
    pub fn whole(&mut self, user: &UserKernel, base: &Contents) -> Result<Contents, CorunError> {
        let all = 0..user.units();
        self.run(user, base, std::slice::from_ref(&all))
    }

    /// What the written buffers have after these steps of the undivided
    /// kernel.
    pub fn steps(&mut self, user: &UserKernel, steps: u32) -> Result<Contents, CorunError> {
        let mut base = self.begin(user)?;
        let mut results = base.clone();
        for _ in 0..steps {
            results = self.whole(user, &base)?;
            let written = self.written();
            for ((index, base), result) in written.into_iter().zip(&mut base).zip(&results) {
                if self.reads(index) {
                    base.clone_from(result);
                }
            }
        }
        Ok(results)
    }

    /// Sets all buffers to what they begin with; returns that of the written
    /// ones.
    pub fn begin(&mut self, user: &UserKernel) -> Result<Contents, CorunError> {
        let mut base = Vec::new();
        let positions: Vec<usize> = user.buffers().map(|(position, _)| position).collect();
        for (index, position) in positions.into_iter().enumerate() {
            let mut contents = vec![0; self.buffers[index].bytes as usize];
            user.fill(position, &mut contents);
            self.set(index, &contents)?;
            if self.buffers[index].writes {
                base.push(contents);
            }
        }
        Ok(base)
    }
}

/// Memory of these sizes on a device, over memory of the host.
fn arrays(
    runtime: &mut RuntimeScope,
    device: usize,
    hosts: &[HostMemoryId],
    sizes: &[u64],
) -> Result<Vec<DeviceArray>, RuntimeError> {
    (hosts.iter().zip(sizes))
        .map(|(host, bytes)| runtime.array_over(*host, DeviceId(device), *bytes))
        .collect()
}

/// A failed command's error as a trial's.
fn trial_error(error: RuntimeError) -> CorunError {
    match error {
        RuntimeError::Failed { device, why, .. } => CorunError::Trial { device, why },
        other => other.into(),
    }
}
