//! Reports: what a command prints, as JSON and as text. Everything here is pure.
//!
//! * [`mod@run`] is the report of a run of any kind, `pdawl-report/2`.
//! * [`mod@bench`] is the report of a comparison of runs, `pdawl-bench/2`.
//! * [`exec`] is what a program did under `pdawl exec`, `pdawl-exec/1`.
//! * [`profile`], [`training`] and [`mod@model`] are the reports on cost models, and
//!   [`prediction`] is what a model predicts, `pdawl-predict/1`.
//! * [`mod@matrix`] describes a sparse matrix, `pdawl-matrix/1`.
//! * [`mod@spec`] describes a specification, `pdawl-spec/1`, and [`drawing`] draws a
//!   graph.
//! * [`mod@instruments`] lists the counters and sensors of a machine.
//! * `bars`, [`table`] and `style` format text.
//!
//! Without the crate's feature `text` there are [`mod@run`] and [`exec`], and neither as text.
//!
//! docs/report.md describes all fields, and docs/predict.md the prediction. Text has
//! ANSI styles, which the command line drops where they are not wanted.

#[cfg(feature = "text")]
pub mod bench;
#[cfg(feature = "text")]
pub mod drawing;
pub mod exec;
#[cfg(feature = "text")]
pub mod instruments;
#[cfg(feature = "text")]
pub mod matrix;
#[cfg(feature = "text")]
pub mod model;
#[cfg(feature = "text")]
pub mod prediction;
#[cfg(feature = "text")]
pub mod profile;
pub mod run;
#[cfg(feature = "text")]
pub mod spec;
#[cfg(feature = "text")]
mod style;
#[cfg(feature = "text")]
pub mod table;
#[cfg(feature = "text")]
pub mod training;

use schemars::JsonSchema;
use serde::Serialize;

#[cfg(feature = "text")]
pub use bench::{Bench, BenchRun};
pub use run::{Context, DenseAsked, HostInfo, Machine, Parameters, Report, Throughput, Workload};

/// A report with a schema.
pub trait Schematic: JsonSchema + Serialize {
    /// The schema's name and version. A version may gain members; none may be removed or change
    /// its meaning.
    const SCHEMA: &'static str;
    /// The version of the program; `None` for a report that has another one's `version`.
    const VERSION: Option<&'static str> = Some(env!("CARGO_PKG_VERSION"));
}

/// Names the schemas of types.
macro_rules! schemas {
    ($($report:ty => $name:literal,)*) => {
        $(impl Schematic for $report {
            const SCHEMA: &'static str = $name;
        })*
    };
}

schemas! {
    Report => "pdawl-report/2",
}

#[cfg(feature = "text")]
schemas! {
    Bench => "pdawl-bench/2",
    prediction::PredictionReport => "pdawl-predict/1",
    profile::ProfileReport => "pdawl-profile/1",
    training::TrainingReport => "pdawl-train/2",
    model::ListReport => "pdawl-models/1",
    model::AdaptReport => "pdawl-model-adapt/1",
    matrix::MatrixReport => "pdawl-matrix/1",
    spec::SpecReport => "pdawl-spec/1",
}

#[cfg(feature = "text")]
impl Schematic for model::CheckReport {
    const SCHEMA: &'static str = "pdawl-model-check/1";
    const VERSION: Option<&'static str> = None;
}

/// A report as it is printed in JSON.
#[derive(JsonSchema, Serialize)]
pub struct Printed<'a, T> {
    /// Name and version of the schema.
    schema: &'static str,
    /// Version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    version: Option<&'static str>,
    #[serde(flatten)]
    report: &'a T,
}

impl<'a, T: Schematic> From<&'a T> for Printed<'a, T> {
    fn from(report: &'a T) -> Self {
        Self {
            schema: T::SCHEMA,
            version: T::VERSION,
            report,
        }
    }
}
