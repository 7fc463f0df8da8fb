//! The interface for programs: a [`session`] owns devices and runs work on them, a [`report`] says
//! what a run was. The other modules are those of the parts below; the library `pdawl` names what
//! programs of users need of all.

pub use pdawl_base::{executable, installed, quantity, time};
pub use pdawl_codelet as codelet;
pub use pdawl_core::{
    balance, cluster, expression, graph, matrix, policy, residency, spread, trace, verify, workload,
};
pub use pdawl_engine as engine;
pub use pdawl_hardware::{machine, runtime};
#[cfg(feature = "models")]
pub use pdawl_modelling::model;
pub use pdawl_modelling::profile;

use pdawl_base::parallel;

#[cfg(feature = "matrix-files")]
pub mod catalogue;
pub mod report;
pub mod session;

#[cfg(test)]
#[allow(dead_code, reason = "tests of several crates share it")]
#[path = "../../tests/fixtures/graphs.rs"]
mod graphs;
#[cfg(test)]
#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;
#[cfg(test)]
#[path = "../../tests/fixtures/spans.rs"]
mod spans;
