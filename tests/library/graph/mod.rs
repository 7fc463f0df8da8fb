//! Task graphs on every kind of device.
//!
//! `random` generates graphs whose kernels mix integers, so that a result depends
//! on every kernel and every version that it is made of, and computes them
//! sequentially; `run` executes them and compares. `simulated` and `devices` test
//! properties in the simulator and on real devices, `task_sets` those of sets of
//! tasks, `rehearsed` what policies expect of runs, `paper_tasks` such sets on the paper's machine, `transformers` policies on transformers, `losses` and `dense_losses` lost devices, and `limits` copies, errors and
//! interruptions. `command_graphs` has components that are one command each, `figure_16`
//! maps command queues to devices.

mod adaptive;
mod command_graphs;
mod dense_losses;
mod devices;
mod figure_16;
mod limits;
mod losses;
#[path = "../../fixtures/mix_reference.rs"]
mod mix_reference;
mod open;
mod paper_tasks;
mod random;
mod rehearsed;
mod run;
mod simulated;
mod task_sets;
mod transformers;

use pdawl_api::codelet::Value;
use pdawl_api::codelet::mix::Digest;
use pdawl_api::graph::{Argument, TaskGraph};

pub use simulated::machine as two_gpus;
