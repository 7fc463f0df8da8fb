//! The errors of a profile.

use std::fmt;
use std::time::Duration;

use pdawl_profiler::dataset::DatasetError;
use thiserror::Error;

use crate::engine::corun::CorunError;
use crate::quantity::Seconds;
use crate::runtime::RuntimeError;
use crate::workload::stencil::StencilError;

/// An error of a profile.
#[derive(Debug, Error)]
pub enum ProfileError {
    #[error("{device}: {source}")]
    Open {
        device: String,
        source: RuntimeError,
    },

    #[error("{configuration}: {source}")]
    Run {
        configuration: String,
        source: CorunError,
    },

    #[error("{configuration}: {source}")]
    Grid {
        configuration: String,
        source: StencilError,
    },

    #[error(transparent)]
    Dataset(#[from] DatasetError),

    #[error(
        "a budget of {} is too small: {}; give more time, or smaller sizes",
        Seconds(.budget.as_secs_f64()), Shortest(*.shortest)
    )]
    Budget { budget: Duration, shortest: f64 },
}

/// What the shortest run is expected to take, or 0 if the time was over before
/// that could be known.
struct Shortest(f64);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 > 0.0 {
            true => write!(
                f,
                "the shortest run is expected to take {}",
                Seconds(self.0)
            ),
            false => f.write_str("it was over before the first run could begin"),
        }
    }
}
