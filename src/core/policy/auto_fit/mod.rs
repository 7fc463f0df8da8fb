//! AUTO_FIT: the map from command queues to devices with the least predicted time
//! (Aji, Peña, Balaji and Feng, "MultiCL: Enabling automatic scheduling for
//! task-parallel workloads in OpenCL", Parallel Computing 58, 2016).
//!
//! Section 4.1: "the autofit policy decides the most optimal queue-device mapping when
//! the scheduler is triggered". Section 5.1.3: the mapper uses "the per-queue aggregate
//! kernel profiles and \[applies\] a simple dynamic programming approach that guarantees
//! ideal queue-device mapping".
//!
//! * A [`Situation`] is what the decision depends on: the [`Epoch`] of each queue, the
//!   places of the data, the [`TransferCosts`] between places.
//! * [`fit`] finds the map; `iteration` computes the time of a given one.
//! * [`static_map()`] is SCHED_AUTO_STATIC (section 5.2), from the rates of devices alone.
//! * [`AutoFit`] applies [`fit`] to the components of a task graph.
//!
//! Places are numbered: place `d` is the memory of device `d`, and the host's is the one
//! after the last device. A device that computes in the host's memory has a place of its
//! own, from and to which copies cost nothing.
//!
//! # The predicted time
//!
//! Epochs begin in one order, that of the queues as far as `after` allows. An epoch begins
//! when its device has ended its earlier epochs and all epochs of `after` have ended. It
//! takes the copies of the data that it reads and that are elsewhere, one after another,
//! then its commands, then the copies to the host that it ends with. Devices work in
//! parallel. An iteration ends with its last epoch. Iterations do not overlap.
//!
//! The second iteration begins with the data where the first one leaves them, and every
//! later one is like it. It is the *steady* iteration.
//!
//! Section 8.2.1 compares kernel times on one device with those on two "in addition to
//! the data resolution time". Here, that time is the copies.

mod iteration;
mod policy;
mod search;

#[cfg(test)]
mod tests;

use crate::residency::Places;

pub use iteration::TransferCosts;
pub use policy::AutoFit;
pub use search::{Fit, MapSearch, fit};

/// The commands of one queue between two synchronisations.
///
/// Section 5.3.1: "We define a *kernel epoch* as a collection of kernels that have been
/// asynchronously enqueued to a command queue."
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Epoch {
    /// By device: the seconds of its commands there, alone, without copies between
    /// places; infinite where they cannot run.
    pub seconds: Vec<f64>,
    /// The data that the host writes before its kernels begin.
    pub uploads: Vec<usize>,
    /// The data that it reads, and those that it writes. What it writes only in part it
    /// also reads, since the other bytes stay.
    pub reads: Vec<usize>,
    pub writes: Vec<usize>,
    /// The data that the host reads after its kernels.
    pub downloads: Vec<usize>,
    /// The epochs of the same iteration that end before it begins.
    pub after: Vec<usize>,
    /// Seconds from now until it can begin in the first iteration, for what is not in
    /// the situation.
    pub earliest: f64,
    /// The device of a queue with SCHED_OFF, which stays there (section 4.2).
    pub pinned: Option<usize>,
    /// The device of the queue now, if it has one.
    pub present: Option<usize>,
}

/// Data that move together: a buffer, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDatum {
    pub bytes: u64,
    /// The places that have it now. If there is none, its contents are undefined, and
    /// whoever reads it first copies nothing.
    pub places: Places,
}

/// What a decision depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// By queue.
    pub epochs: Vec<Epoch>,
    pub data: Vec<QueueDatum>,
    pub costs: TransferCosts,
    /// By device: seconds from now until it has ended what it was given before.
    pub busy: Vec<f64>,
    /// How many iterations are expected, the next one included; at least 1, or infinite.
    /// The first one moves data to where the map needs them.
    pub iterations: f64,
}

/// The predicted times of a map, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Of the next iteration, with the data where they are now.
    pub first: f64,
    /// Of every later one.
    pub steady: f64,
}

impl Prediction {
    /// The mean of so many iterations.
    pub fn mean(&self, iterations: f64) -> f64 {
        match iterations {
            1.0 => self.first,
            f64::INFINITY => self.steady,
            iterations => self.first / iterations + self.steady * (1.0 - 1.0 / iterations),
        }
    }
}

/// What limits the kernels of a queue, as its user says (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// SCHED_COMPUTE_BOUND: the instruction rate.
    Compute,
    /// SCHED_MEM_BOUND: the bandwidth of the device's memory.
    Memory,
    /// SCHED_IO_BOUND: the bandwidth of the link to the host.
    Io,
}

/// The rates of a device: the static profile of section 5.1.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceRates {
    /// Single-precision operations a second; 0 if unknown.
    pub flops: f64,
    /// Bytes a second of a copy within its memory.
    pub memory: f64,
    /// Bytes a second from the host's memory, and to it. A device that computes there has
    /// the bandwidth of that memory.
    pub h2d: f64,
    pub d2h: f64,
}

impl DeviceRates {
    /// The rate that matters for a hint.
    pub fn rate(&self, hint: Hint) -> f64 {
        match hint {
            Hint::Compute => self.flops,
            Hint::Memory => self.memory,
            // As many bytes each way: the mean time decides.
            Hint::Io => 2.0 / (1.0 / self.h2d + 1.0 / self.d2h),
        }
    }
}

/// A queue with SCHED_AUTO_STATIC, or one with SCHED_OFF.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticQueue {
    pub hint: Hint,
    /// By device: whether it can run the queue's kernels.
    pub able: Vec<bool>,
    /// The device of a queue with SCHED_OFF.
    pub pinned: Option<usize>,
}

/// By queue: its device; `None` if no device can run it.
///
/// Section 5.2: "The MultiCL runtime uses the command queue properties (compute intensive,
/// memory intensive, or I/O intensive) as the selection criterion and chooses the best
/// available device for the given command queue." Queues count as equal work. Each goes,
/// in order, to the device on which it and the queues there end first by the rates, so
/// devices get queues in proportion to their rates. Pinned queues are counted first.
/// Where no device's rate is known, devices count as equally fast.
pub fn static_map(queues: &[StaticQueue], devices: &[DeviceRates]) -> Vec<Option<usize>> {
    let seconds = |queue: &StaticQueue, device: usize| {
        let best = devices
            .iter()
            .map(|d| d.rate(queue.hint))
            .fold(0.0, f64::max);
        match best > 0.0 {
            true => best / devices[device].rate(queue.hint),
            false => 1.0,
        }
    };
    let mut load = vec![0.0; devices.len()];
    for queue in queues {
        if let Some(device) = queue.pinned.filter(|device| *device < devices.len()) {
            load[device] += seconds(queue, device);
        }
    }
    let mut choose = |queue: &StaticQueue| {
        if queue.pinned.is_some() {
            return queue.pinned.filter(|device| *device < devices.len());
        }
        let able = (0..devices.len()).filter(|d| queue.able.get(*d).copied().unwrap_or(false));
        let ends = able.map(|device| (device, load[device] + seconds(queue, device)));
        let (device, end) = ends.min_by(|one, other| one.1.total_cmp(&other.1))?;
        load[device] = end;
        Some(device)
    };
    queues.iter().map(&mut choose).collect()
}
