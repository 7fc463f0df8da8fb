//! What was found out about dividing a kernel's launches over several devices.

use serde::{Deserialize, Serialize};

/// Whether and how the launches of a kernel are divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", deny_unknown_fields)]
pub enum Division {
    /// They are not.
    Refused { reason: String },
    /// Along an axis. Each part writes only its slices of the buffers.
    Sliced { axis: usize },
    /// Along an axis. The parts' results are merged by the bytes that have changed.
    Merged { axis: usize, reason: String },
}
