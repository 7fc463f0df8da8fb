//! Runs workloads over the nodes of a cluster.
//!
//! A [`Node`] is one process of the cluster. It drives a wire and a runtime together, in one
//! loop: the protocol ([`pdawl_core::cluster::protocol`]) decides, `node` and `act` tell it what
//! happened and do what it answers. `store` has the node's blocks of spaces, as data of an
//! open graph (`crate::graph`), and `subtasks` makes kernels of it, several of one
//! subtask (`parts`) where `division` says so; threads of
//! `copying` copy what travels, `answers` are for other nodes, `encode` makes bytes of messages, `run` takes a workload from its
//! spaces to its report, `common` gives all nodes what one has computed, `deciding` says
//! how its tasks go on, `alone` computes on one machine without messages, `abandon` ends a run before it begins, `traced` notes what a trace shows, `turn` is what it does again and again, `gather` brings its result to the
//! first node. [`Cluster`] is all of this as one object, which owns a node (`handle`) in a
//! thread (`driver`) and gives `results` as values. [`measure`] measures a cluster for its cluster file, and [`simulate`] drives
//! the same protocol in a simulated cluster.

mod abandon;
mod act;
mod alike;
mod alone;
mod answers;
mod bands;
mod common;
mod copying;
mod deciding;
mod division;
mod driver;
mod encode;
mod error;
mod expected;
mod gather;
mod handle;
pub mod measure;
mod node;
mod parts;
mod results;
mod run;
pub mod simulate;
mod store;
mod subtasks;
mod traced;
mod turn;

pub use abandon::{abandon, heard};
pub use alone::{Alone, Finished};
pub use driver::{Brought, Job};
pub use error::ClusterError;
pub use expected::expected;
pub use handle::{Cluster, ClusterOptions, build_agreement};
pub use node::{Node, Options};
pub use results::{ResultError, Results};
pub use run::{Control, Sink};
pub use subtasks::DEPTH;
