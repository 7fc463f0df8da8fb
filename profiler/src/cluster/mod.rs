//! The choice of a model's features: of hundreds of correlated features a few distinct
//! ones (the paper's section 3.2, step 4).
//!
//! [`Features`] keeps what varies and correlates with the time;
//! [`Dendrogram`] groups what correlates with each other by hierarchical
//! agglomerative clustering; [`Selection`] has one feature a cluster.

mod dendrogram;
mod features;
mod selection;

pub use dendrogram::Dendrogram;
pub use features::{Feature, Features};
pub use selection::Selection;
