//! Runs tasks over the nodes of a cluster.
mod device_memory;
mod encode;
mod error;
mod executor;
mod inputs;
mod store;

pub use error::ClusterError;
