//! The physics of a step: what a case should take by a machine's descriptors.
//!
//! Every part of a step is a lower bound. The step takes the greatest of them, plus
//! what overlaps with none:
//!
//! * `host`: a pool computes at the rate of its cores or at the bandwidth
//!   that they reach, chunk after chunk;
//! * `discrete`: a device with memory of its own computes what it holds, window
//!   after window, while others flow through it in a `pipeline` of writes,
//!   kernels and reads over several queues;
//! * products: the same, whose matrix is streamed while the vector stays,
//!   and which have neither halos nor windows.
//!
//! Some terms are no bounds, and no machine file gives them: a product's entries, rows
//! and jumps, the growth of bandwidth with cores, caches, and the cost of chunks.
//! [`ProductTerms`] and [`GridTerms`] have what processors usually need, and a model
//! learns the weight of each.
//!
//! The figures are a machine file's, so the prior knows neither caches nor what
//! a particular driver does; a learned correction multiplies it.

mod discrete;
mod host;
mod pipeline;

#[cfg(test)]
mod tests;

use super::case::{Case, DevicePart};
use super::descriptors::Descriptors;

pub use discrete::ProductTerms;
pub use host::{GridTerms, LANES};

/// A step's time and what it is made of, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Operations at their greatest rate.
    pub compute: f64,
    /// Memory traffic of the device, at the bandwidth that it reaches.
    pub memory: f64,
    /// Transfers over the link, both ways at once where that can be.
    pub link: f64,
    /// The time that does not overlap with the greatest of these: starting, enqueueing,
    /// filling and draining, and completions.
    pub overhead: f64,
    /// The driver's time for the launches on held units, and for the writes, kernels
    /// and reads of streamed ones. Both count as far as they do not overlap with other
    /// terms.
    pub held_enqueue: f64,
    pub streamed_enqueue: f64,
    /// The whole step.
    pub total: f64,
}

/// Seconds of a step of `case` by itself.
pub fn seconds(case: &Case, descriptors: &Descriptors) -> f64 {
    terms(case, descriptors).total
}

/// The terms of a step of `case` by itself.
pub fn terms(case: &Case, descriptors: &Descriptors) -> Terms {
    beside(case, descriptors, 1.0)
}

/// The terms of a step of `case` while other devices use the host's memory as well: its
/// host kernels or transfers run at `flow` of their rate alone, above 0 and at most 1.
pub fn beside(case: &Case, descriptors: &Descriptors, flow: f64) -> Terms {
    let (compute, memory, link, total) = parts(case, descriptors, flow);
    // The overlap of kernels changes in steps with `flow`, but less bandwidth never
    // helps.
    let total = match flow < 1.0 {
        true => total.max(parts(case, descriptors, 1.0).3),
        false => total,
    };
    let (held_enqueue, streamed_enqueue) = match case.part {
        DevicePart::Host { .. } => (0.0, 0.0),
        DevicePart::Discrete { .. } => {
            discrete::enqueues(case, &descriptors.device.unwrap_or_default())
        }
    };
    Terms {
        compute,
        memory,
        link,
        overhead: (total - compute.max(memory).max(link)).max(0.0),
        held_enqueue,
        streamed_enqueue,
        total,
    }
}

/// Compute, memory, link, and total seconds.
fn parts(case: &Case, descriptors: &Descriptors, flow: f64) -> (f64, f64, f64, f64) {
    match (case.part, &descriptors.device) {
        (DevicePart::Host { workers, .. }, None) => {
            host::pool(case, workers, &descriptors.host, flow)
        }
        (DevicePart::Host { .. }, Some(device)) => {
            host::shared(case, device, &descriptors.host, flow)
        }
        (DevicePart::Discrete { .. }, Some(device)) if case.work.matrix.is_some() => {
            discrete::product_step(case, device, &descriptors.host, flow)
        }
        (DevicePart::Discrete { .. }, device) => {
            let device = device.unwrap_or_default();
            discrete::step(case, &device, &descriptors.host, flow)
        }
    }
}
