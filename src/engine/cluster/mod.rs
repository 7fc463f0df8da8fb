//! Runs tasks over the nodes of a cluster.
mod device_memory;
mod encode;
mod error;
mod executor;
mod inputs;
mod record;
mod store;

pub use error::ClusterError;
pub use record::{ClusterOutcome, DevicePart, NodeRecord};
