//! Why a profile fails.

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
        "a budget of {} is too small: the shortest run is expected to take {}; give more time, \
         or smaller sizes",
        Seconds(.budget.as_secs_f64()), Seconds(*.shortest)
    )]
    Budget { budget: Duration, shortest: f64 },
}
