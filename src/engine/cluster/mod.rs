//! Runs tasks over the nodes of a cluster.
mod encode;
mod store;
