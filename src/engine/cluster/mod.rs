//! Tasks over the nodes of a cluster.
//!
//! [`simulate`] runs them in a simulated cluster.

pub mod simulate;
