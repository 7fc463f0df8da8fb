//! MultiCL's interface (section 4), for programs that know this platform:
//! `include/CL/cl_pdawl.h` has the same numbers.

use opencl_sys::*;

use crate::settings::Mapping;

pub mod calls;

pub const CONTEXT_SCHEDULER: cl_context_properties = 0x5044A0;
const ROUND_ROBIN: cl_context_properties = 1;
const AUTO_FIT: cl_context_properties = 2;

pub const OFF: u64 = 1 << 32;
pub const AUTO_STATIC: u64 = 1 << 33;
pub const AUTO_DYNAMIC: u64 = 1 << 34;
pub const KERNEL_EPOCH: u64 = 1 << 35;
pub const EXPLICIT_REGION: u64 = 1 << 36;
pub const ITERATIVE: u64 = 1 << 37;
pub const COMPUTE_BOUND: u64 = 1 << 38;
pub const IO_BOUND: u64 = 1 << 39;
pub const MEMORY_BOUND: u64 = 1 << 40;

/// Properties of queues that are about scheduling.
pub const QUEUE_PROPERTIES: u64 = OFF
    | AUTO_STATIC
    | AUTO_DYNAMIC
    | KERNEL_EPOCH
    | EXPLICIT_REGION
    | ITERATIVE
    | COMPUTE_BOUND
    | IO_BOUND
    | MEMORY_BOUND;

/// Properties of queues that may leave their device.
pub const MAPPED: u64 = AUTO_STATIC | AUTO_DYNAMIC | KERNEL_EPOCH | EXPLICIT_REGION;

/// Whether a value of [`CONTEXT_SCHEDULER`] is known.
pub fn is_scheduler(value: cl_context_properties) -> bool {
    value == ROUND_ROBIN || value == AUTO_FIT
}

/// The scheduler in a context's properties.
pub fn context_scheduler(properties: &[cl_context_properties]) -> Option<Mapping> {
    let mut pairs = properties.chunks_exact(2);
    let pair = pairs.find(|pair| pair[0] == CONTEXT_SCHEDULER)?;
    match pair[1] {
        ROUND_ROBIN => Some(Mapping::RoundRobin),
        _ => Some(Mapping::AutoFit),
    }
}

/// The properties of a queue with what they imply. A trigger alone means that the queue is
/// mapped dynamically; a queue with an explicit region is not before it begins.
pub fn meant(properties: u64) -> u64 {
    let is_said = properties & (OFF | AUTO_STATIC | AUTO_DYNAMIC) != 0;
    properties
        | match () {
            () if is_said => 0,
            () if properties & EXPLICIT_REGION != 0 => OFF,
            () if properties & KERNEL_EPOCH != 0 => AUTO_DYNAMIC,
            () => 0,
        }
}

/// Whether properties of a queue do not contradict one another.
pub fn is_consistent(properties: u64) -> bool {
    let one_of = |set: u64| (properties & set).count_ones() <= 1;
    one_of(OFF | AUTO_STATIC | AUTO_DYNAMIC)
        && one_of(KERNEL_EPOCH | EXPLICIT_REGION)
        && one_of(COMPUTE_BOUND | IO_BOUND | MEMORY_BOUND)
}
