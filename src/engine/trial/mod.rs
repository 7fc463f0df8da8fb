//! Codelets by themselves: the variants of one computation in turns on one
//! device, each checked before it is timed.
//!
//! * [`case`] says what is computed and what is right;
//! * `bench` has the device's memory and queues, and launches;
//! * here variants take turns.
//!
//! Launches are enqueued behind a transfer that holds them up, so that what is
//! timed is the device and not the enqueueing.

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

    #[error("{device}: a {what} failed: {why}")]
    Failed {
        device: String,
        what: &'static str,
        why: String,
    },

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

/// What came of a variant.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Right; the largest error of the numbers looked at, of their root mean
    /// square.
    Right { error: f64 },
    /// Wrong by so much.
    Wrong { error: f64 },
    /// It does not run here, and why.
    Refused(String),
}

/// A variant's turns.
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
    let mut bench = Bench::new(runtime, device);
    let result = turns(&mut bench, case, options, progress);
    bench.free();
    result
}

fn turns(
    bench: &mut Bench,
    case: &Case,
    options: Options,
    progress: &mut dyn FnMut() -> bool,
) -> Result<Vec<Tried>, TrialError> {
    bench.prepare(case, options)?;
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
