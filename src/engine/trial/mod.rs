//! Compares the variants of one codelet on one device. Each is checked before it is
//! timed, and they take turns.
//!
//! * [`case`] describes the computation and its right results;
//! * `bench` holds the device's memory and queues, and launches.
//!
//! Launches wait behind a transfer until all are enqueued, so that the device is
//! timed and not the enqueueing.

mod bench;
pub mod case;

use thiserror::Error;

pub use case::Case;

use crate::runtime::{DeviceId, Runtime, RuntimeError};
use bench::Bench;

/// Why nothing could be tried.
#[derive(Debug, Error)]
pub enum TrialError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error("the machine is simulated, and numbers are not computed there; try a real device")]
    Simulated,
}

/// How to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Queues that launches go to at once, each with memory of its own.
    pub queues: usize,
    /// Launches of each queue that are timed together.
    pub launches: usize,
    /// Times that each variant is timed.
    pub repeats: u32,
    /// Of the random numbers.
    pub seed: u64,
}

/// The result of a variant's check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Right; the largest error of the numbers checked, relative to their root mean
    /// square.
    Right { error: f64 },
    /// Wrong by so much.
    Wrong { error: f64 },
    /// It does not run on this device, and why.
    Refused(String),
}

/// A variant's check and times.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    pub name: String,
    pub chosen: bool,
    pub verdict: Verdict,
    /// Seconds of a launch, by turn: from the first start to the last end, over
    /// the number of launches of all queues.
    pub seconds: Vec<f64>,
}

/// Tries a case's variants on a device. `progress` is called after every turn;
/// when it answers false, no more follow.
///
/// # Errors
/// What the runtime refuses, and commands that fail other than by a kernel that
/// the device cannot build or launch.
pub fn compare(
    runtime: &mut dyn Runtime,
    device: DeviceId,
    case: &Case,
    options: Options,
    progress: &mut dyn FnMut() -> bool,
) -> Result<Vec<Tried>, TrialError> {
    if runtime.simulated() {
        return Err(TrialError::Simulated);
    }
    let mut bench = Bench::open(runtime, device, case, options)?;
    let mut tried = Vec::new();
    for variant in &case.variants {
        tried.push(Tried {
            name: variant.name.clone(),
            chosen: variant.chosen,
            verdict: bench.check(case, variant)?,
            seconds: Vec::new(),
        });
        if !progress() {
            return Ok(tried);
        }
    }
    'turns: for _ in 0..options.repeats {
        for (variant, tried) in case.variants.iter().zip(&mut tried) {
            if matches!(tried.verdict, Verdict::Right { .. }) {
                tried.seconds.push(bench.time(case, variant, options)?);
            }
            if !progress() {
                break 'turns;
            }
        }
    }
    Ok(tried)
}
