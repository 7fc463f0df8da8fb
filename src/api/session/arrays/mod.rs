//! Operations on dense matrices and vectors: products, factorisations, transforms and sorts.
//!
//! * A [`DenseMatrix`] is what they take and return, and [`ArrayRun`] an operation that is
//!   about to run.
//! * `operations` are those of a session, which `alone` runs as one task graph, and [`NodeRun`]
//!   those over the nodes of a cluster.

mod alone;
mod matrix;
mod nodes;
mod operations;
mod run;

pub use alone::OperationOptions;
pub use matrix::{Complex, DenseMatrix};
pub use nodes::NodeRun;
pub use operations::{Factors, stopped};
pub use run::{ArrayResult, ArrayRun};
