//! Runs workloads over the nodes of a cluster.
//!
//! A [`Node`] is one process of the cluster. It drives a wire and a runtime together, in one
//! loop: the protocol ([`crate::cluster::protocol`]) decides, `node` and `act` tell it what
//! happened and do what it answers. `store` has the node's blocks of spaces, which threads
//! of `copying` copy, `executor` its devices with the data that they compute on (`inputs`,
//! `device_memory`), `encode` makes bytes of messages, `run` takes a workload from its
//! spaces to its report, `common` gives all nodes what one has computed, `ending` ends its
//! tasks early, `alone` computes on one machine without messages, `abandon` ends a run before it begins, `traced` notes what a trace shows, and `gather` brings its result to the
//! first node. [`measure`] measures a cluster for its cluster file, and [`simulate`] drives
//! the same protocol in a simulated cluster.

mod abandon;
mod act;
mod alone;
mod common;
mod copying;
mod device_memory;
mod encode;
mod ending;
mod error;
mod executor;
mod expected;
mod gather;
mod inputs;
pub mod measure;
mod node;
mod run;
pub mod simulate;
mod store;
mod traced;

pub use abandon::{abandon, heard};
pub use alone::{Alone, AloneOptions};
pub use error::ClusterError;
pub use executor::DEPTH;
pub use expected::expected;
pub use node::{Node, Options};

pub use run::{Control, Sink};
