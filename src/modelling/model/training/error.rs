//! The errors of a training.

use pdawl_profiler::train::TrainError;
use thiserror::Error;

use crate::model::RecordError;
use crate::model::command::profile;

/// An error of training.
#[derive(Debug, Error)]
pub enum TrainingError {
    #[error("there are no runs to learn from; {} makes some", profile(.codelet, .machine))]
    NoRuns { machine: String, codelet: String },

    #[error(
        "no run of {codelet} on {kind} is among the {runs} runs; {} makes some",
        profile(.codelet, .machine)
    )]
    NoGroup {
        kind: String,
        codelet: String,
        machine: String,
        runs: usize,
    },

    #[error(
        "a run of `{found}` stands among those of `{machine}`; \
         a model is of one machine, so give a dataset with runs of that one"
    )]
    OtherMachine { machine: String, found: String },

    #[error("{kind}, {codelet}: {source}")]
    Record {
        kind: String,
        codelet: String,
        source: RecordError,
    },

    #[error(
        "no model of {codelet} on {kind}: {source}. {} adds runs",
        profile(.codelet, .machine)
    )]
    Train {
        kind: String,
        codelet: String,
        machine: String,
        source: Box<TrainError>,
    },

    #[error("training was interrupted; no model was written")]
    Interrupted,
}
