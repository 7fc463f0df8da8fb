//! Reports: what a command prints, as JSON and as text. Everything here is pure.
//!
//! * [`mod@run`] is the report of a run of any kind, `pdawl-report/2`.
//! * [`mod@bench`] is the report of a comparison of strategies, `pdawl-bench/1`;
//!   [`bench_text`] writes it as text.
//! * [`transformer`] has the experiments on transformers.
//! * [`scaling`] is that of simulated runs on growing numbers of nodes, `pdawl-scaling/2`.
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
pub mod drawing;
pub mod exec;
pub mod instruments;
pub mod matrix;
pub mod model;
pub mod prediction;
pub mod profile;
pub mod run;
pub mod scaling;
pub mod spec;
mod style;
pub mod table;
pub mod tasks;
pub mod training;
pub mod transformer;
pub mod trial;

pub use bench::Bench;
pub use run::{Context, HostInfo, Machine, Parameters, Report, Throughput, Workload};
