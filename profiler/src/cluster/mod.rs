//! Which features a model gets: of hundreds that say nearly the same, a few
//! that say different things (the paper's section 3.2, step 4).
//!
//! [`Features`] keeps what varies and correlates with the time;
//! [`Dendrogram`] groups what correlates with each other by hierarchical
//! agglomerative clustering; [`Selection`] has one feature a cluster.

mod dendrogram;
mod features;
mod pearson;
mod selection;

pub use dendrogram::{Dendrogram, Merge};
pub use features::{Feature, Features};
pub use selection::Selection;
