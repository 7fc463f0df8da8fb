//! A transformer's layers as a task graph: the workload of the PySchedCL paper
//! (section 2.1, Figure 3, and section 5), all matrices `beta x beta`, f32.
//!
//! Every head `h` of a layer computes, of the layer's input X,
//!
//! ```text
//! Q = X W_Q,  K = X W_K,  V = X W_V,  T = K^T,  A = Q T,
//! B = softmax(A / sqrt(beta)),  C = B V,  Z = C W
//! ```
//!
//! with weights of its own: six products, a transposition and a softmax, eight
//! kernels. A layer's output is `norm(X + sum of all Z)`, the next layer's
//! input: concatenating the heads' C and multiplying by the stacked W, as the
//! paper and Vaswani et al. have it, is the sum of their Z, and adding X and
//! normalising rows keeps numbers of the size of 1 however many layers there
//! are. After the last layer that is left to the host: the result is every Z,
//! so that one layer is the paper's graph and nothing else.
//!
//! * [`numbers`] are the random input and weights;
//! * `heads` makes the eight kernels of a head, `batch` five kernels of many
//!   heads at once (heads along a dimension of the NDRange, T read from K as it
//!   lies), `maker` is the
//!   graph in the making, and `layers` puts them together;
//! * `reference` computes the same in double, one after the other, and
//!   [`Transformer::verify`] compares.

mod batch;
mod heads;
mod layers;
mod maker;
pub mod numbers;
mod reference;
mod stage;
mod verify;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use layers::{Layers, Part};
pub use stage::Stage;
pub use verify::{Reference, Verification};

use crate::codelet::add_norm;
use crate::graph::GraphError;

/// Most heads of a layer, each a memory of the sum.
pub const MOST_HEADS: u32 = add_norm::MOST_PARTS as u32;

/// Most rows of a matrix: its numbers are counted in 31 bits.
pub const MOST_ROWS: u32 = 32_768;

/// Why a transformer cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransformerError {
    #[error("{what} are {given}; take {least} to {most}")]
    Range {
        what: &'static str,
        given: u32,
        least: u32,
        most: u32,
    },

    #[error(transparent)]
    Graph(#[from] GraphError),

    #[error("the groups have {given} heads and the layer {heads}; make them add up")]
    Groups { given: u64, heads: u32 },
}

/// A transformer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformer {
    /// H, at most [`MOST_HEADS`].
    pub heads: u32,
    /// Rows and columns of every matrix, at most [`MOST_ROWS`].
    pub beta: u32,
    pub layers: u32,
    /// Of the numbers.
    pub seed: u64,
    /// How heads become kernels.
    pub form: Form,
    /// Whether the host gets the results; else they are left where they were
    /// made.
    pub read_back: bool,
}

/// How heads become kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Eight kernels each, as in the paper.
    #[default]
    Heads,
    /// In each layer groups of so many heads, five kernels a group.
    Batches(Vec<u32>),
}

impl Transformer {
    /// Checks the sizes.
    ///
    /// # Errors
    /// [`TransformerError`], with what is allowed.
    pub fn check(&self) -> Result<(), TransformerError> {
        for (what, given, most) in [
            ("heads", self.heads, MOST_HEADS),
            ("rows", self.beta, MOST_ROWS),
            ("layers", self.layers, u32::from(u16::MAX)),
        ] {
            if !(1..=most).contains(&given) {
                return Err(TransformerError::Range {
                    what,
                    given,
                    least: 1,
                    most,
                });
            }
        }
        if let Form::Batches(groups) = &self.form {
            let given = groups.iter().map(|group| u64::from(*group)).sum();
            if given != u64::from(self.heads) || groups.contains(&0) {
                let heads = self.heads;
                return Err(TransformerError::Groups { given, heads });
            }
        }
        Ok(())
    }

    /// Numbers of a matrix.
    pub fn numbers(&self) -> u64 {
        u64::from(self.beta) * u64::from(self.beta)
    }

    /// Bytes of a matrix.
    pub fn bytes(&self) -> u64 {
        self.numbers() * size_of::<f32>() as u64
    }

    /// Bytes of all data of a graph: what host memory it takes.
    pub fn memory(&self) -> u64 {
        // The input, and a layer's output; four weights and up to eight results
        // a head.
        let matrices = 1 + u64::from(self.layers) * (1 + 12 * u64::from(self.heads));
        matrices.saturating_mul(self.bytes())
    }
}
