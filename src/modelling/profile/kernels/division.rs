//! What was found out about dividing a kernel's launches over several devices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the examination (`opencl-layer/src/divide/examine.rs`) and of what a text
/// tells before it. What another version found out is not used.
pub(super) const EXAMINATION: u32 = 2;

/// Whether and how the launches of a kernel are divided.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", deny_unknown_fields)]
pub enum Division {
    /// They are not.
    Refused { reason: String },
    /// Along an axis. Each part writes only its slices of the buffers.
    Sliced {
        axis: usize,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agreeing: Agreeing,
    },
    /// Along an axis. The parts' results are merged by the bytes that have changed.
    Merged {
        axis: usize,
        reason: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agreeing: Agreeing,
    },
}

/// By device that was compared: whether its results are bit for bit those of the device at
/// which the kernel was examined.
pub type Agreeing = BTreeMap<String, bool>;

impl Division {
    /// The comparison of devices, if launches are divided.
    pub fn agreeing(&self) -> Option<&Agreeing> {
        match self {
            Self::Refused { .. } => None,
            Self::Sliced { agreeing, .. } | Self::Merged { agreeing, .. } => Some(agreeing),
        }
    }
}
