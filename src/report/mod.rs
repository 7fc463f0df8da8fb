//! Reports: what a command prints, as JSON and as text. Everything here is pure.
//!
//! * [`schema`] is the report of a run, `pdawl-report/1`. [`build`] fills it in from an
//!   [`Outcome`](crate::engine::Outcome), and [`text`] writes it as text.
//! * [`mod@bench`] is the report of a comparison of strategies, `pdawl-bench/1`;
//!   [`bench_text`] writes it as text.
//! * [`mod@graph`] is the report of a graph's runs, `pdawl-graph/1`, and
//!   [`transformer`] has the experiments on transformers.
//! * [`dense`] is that of a dense product or factorisation, `pdawl-dense/1`.
//! * [`mod@cluster`] is that of a run over nodes, `pdawl-cluster/1`, and [`scaling`] is
//!   that of simulated runs on growing numbers of nodes, `pdawl-scaling/1`.
//! * [`tasks`] compares policies on sets of tasks that share data, `pdawl-tasks/1`.
//! * [`exec`] is what a program did under `pdawl exec`, `pdawl-exec/1`.
//! * [`profile`], [`training`] and [`mod@model`] are the reports on cost models, and
//!   [`prediction`] is what a model predicts, `pdawl-predict/1`.
//! * [`mod@matrix`] describes a sparse matrix, `pdawl-matrix/1`.
//! * [`mod@spec`] describes a specification, `pdawl-spec/1`, and [`drawing`] draws a
//!   graph.
//! * [`trial`] compares variants of a codelet, `pdawl-trial/1`.
//! * [`mod@instruments`] lists the counters and sensors of a machine.
//! * `bars`, [`table`] and `style` format text.
//!
//! docs/report.md describes all fields, and docs/predict.md the prediction. Text has
//! ANSI styles, which the command line drops where they are not wanted.

mod bars;
pub mod bench;
pub mod bench_text;
pub mod build;
pub mod cluster;
pub mod dense;
pub mod drawing;
pub mod exec;
pub mod graph;
pub mod instruments;
pub mod matrix;
pub mod model;
pub mod prediction;
pub mod profile;
pub mod scaling;
pub mod schema;
pub mod spec;
mod style;
pub mod table;
pub mod tasks;
pub mod text;
pub mod training;
pub mod transformer;
pub mod trial;

#[cfg(test)]
mod fixtures;

pub use bench::Bench;
pub use build::{Context, report};
pub use schema::Report;
