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

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::equal_writes;
use super::slices::SliceTrial;
use super::trial::{Contents, KernelTrial};
use crate::corun::CorunError;
use crate::residency::difference::{merge, unchanged_outside};
use crate::runtime::Runtime;
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
