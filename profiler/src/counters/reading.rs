//! The readings of the counters in a run.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the least fraction of time for which a counter ran: 1 unless
/// there were more events than the processor has counters.
pub const SCALED_RATIO: &str = "counter.scaled_ratio";

/// The best that figures of counters rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The processor's counters, and the kernel's.
    Hardware,
    /// The kernel's counters.
    Software,
    /// Nothing could be counted.
    #[default]
    None,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Hardware => "hardware",
            Source::Software => "software",
            Source::None => "none",
        })
    }
}

/// The counters of all watched threads between a start and a stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub source: Source,
    /// Sums over the threads, by feature name ([`super::Event::name`]), and
    /// [`SCALED_RATIO`]. What could not be counted is absent.
    pub values: BTreeMap<String, f64>,
}
