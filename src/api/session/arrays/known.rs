//! What a session has measured of the tasks of its last operation.

use crate::engine::graph::kernel_seconds::KernelSeconds;

/// The tasks of an operation. Equal ones take equally long.
#[derive(PartialEq)]
pub struct Tasks {
    pub workload: &'static str,
    /// Its sizes and those of its parts, in words.
    pub size: String,
}

/// The tasks of the operation that ran last, with their seconds.
pub struct KnownTasks {
    pub(super) tasks: Tasks,
    pub(super) seconds: KernelSeconds,
}
