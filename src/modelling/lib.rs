//! What is learned of a machine: a [`profile`] runs what cost models are trained on, and a
//! [`model`] predicts how long a plan's steps take.

use pdawl_base::file_store;
use pdawl_hardware::{machine, runtime};

#[cfg(feature = "models")]
use {
    pdawl_base::{parallel, quantity},
    pdawl_codelet as codelet,
    pdawl_core::{balance, matrix, trace, workload},
    pdawl_engine as engine,
};

#[cfg(feature = "models")]
pub mod model;
pub mod profile;

#[cfg(test)]
#[allow(dead_code, reason = "tests of several crates share it")]
#[path = "../../tests/fixtures/matrices.rs"]
mod matrices;
#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;
#[cfg(test)]
#[path = "../../tests/fixtures/spans.rs"]
mod spans;
