//! What a run's user reads: reports as JSON and as text.
//!
//! * [`schema`] is the report of a run, `pdawl-report/1`, and [`mod@bench`] that of
//!   a comparison of strategies, `pdawl-bench/1`.
//! * [`profile`] is the report of a profile, [`training`] that of a training,
//!   and [`mod@model`] has those of models.
//! * [`build`] makes the former from an [`Outcome`](crate::engine::Outcome) and
//!   what the engine does not know.
//! * [`text`] and [`bench_text`] write them for people, with `bars`,
//!   [`table`] and `style`.
//! * [`mod@graph`] is the report of a graph's runs, `pdawl-graph/1`;
//! * [`prediction`] is what a cost model expects, `pdawl-predict/1`;
//! * [`mod@matrix`] is what a sparse matrix is like, `pdawl-matrix/1`;
//! * [`mod@spec`] is what a specification describes, `pdawl-spec/1`, and
//!   [`drawing`] draws a graph;
//! * [`transformer`] has the experiments on transformers;
//! * [`trial`] is codelets by themselves, `pdawl-trial/1`;
//! * [`mod@instruments`] tells what runs on a machine can be observed with.
//!
//! docs/report.md describes all of them field by field, and docs/predict.md the
//! prediction.
//!
//! Everything here is pure. Text carries ANSI styles; whoever prints it strips
//! them where they are not wanted.

mod bars;
pub mod bench;
pub mod bench_text;
pub mod build;
pub mod drawing;
pub mod graph;
pub mod instruments;
pub mod matrix;
pub mod model;
pub mod prediction;
pub mod profile;
pub mod schema;
pub mod spec;
mod style;
pub mod table;
pub mod text;
pub mod training;
pub mod transformer;
pub mod trial;

#[cfg(test)]
mod samples;

pub use bench::Bench;
pub use build::{Context, report};
pub use schema::Report;
