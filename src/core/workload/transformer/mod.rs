//! A transformer's layers as a task graph: the workload of the PySchedCL paper
//! (section 2.1, Figure 3, and section 5), all matrices `beta x beta`, of one format.
//!
//! Every head of a layer computes from the layer's input X
//!
//! ```text
//! Q = X W_Q,  K = X W_K,  V = X W_V,  T = K^T,  A = Q T,
//! B = softmax(A / sqrt(beta)),  C = B V,  Z = C W
//! ```
//!
//! with weights of its own, in eight kernels: six products, a transposition and a
//! softmax. A layer's output, the next layer's input, is `norm(X + sum of all Z)`.
//! The sum of all Z equals the concatenated C of the heads times the stacked W, as in
//! the paper and in Vaswani et al. Adding X and normalising rows keeps numbers near 1
//! over any number of layers, and scores within the range of every format. The result is every Z of the last layer, so that one
//! layer is exactly the paper's graph.
//!
//! * [`numbers`] has the random input and weights.
//! * `layers` adds the kernels, layer by layer: eight of a head, or five of
//!   many heads at once (heads along a dimension of the NDRange, K read transposed).
//! * `verify` computes the same in double precision, sequentially, with what rounding may
//!   change (`uncertain`), and [`Transformer::verify`] compares.
//!
//! Every kernel computes in single precision, and rounds its result once, when it stores it.

mod layers;
pub mod numbers;
mod uncertain;
mod verify;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use layers::{KernelPart, KernelRole, Layers};
pub use verify::{Reference, Verification};

use crate::codelet::{NumberFormat, add_norm};
use crate::graph::GraphError;

/// Most heads of a layer: each is an argument of the sum's kernel.
pub const MOST_HEADS: u32 = add_norm::MOST_PARTS as u32;

/// Most rows of a matrix: the count of its numbers must fit 31 bits.
pub const MOST_ROWS: u32 = 32_768;

/// Why a transformer is not possible.
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

    #[error(
        "the groups have {given} heads, and a layer has {heads}; give groups of at least 1 head \
         that add up to the layer"
    )]
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
    /// Of all matrices.
    pub format: NumberFormat,
    /// Seeds the input and the weights.
    pub seed: u64,
    /// How heads become kernels.
    pub form: Form,
    /// Whether the results are read back to the host; otherwise they stay on the
    /// devices.
    pub read_back: bool,
}

/// How heads become kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Eight kernels for each head, as in the paper.
    #[default]
    Heads,
    /// Groups of heads, with these sizes in each layer, and five kernels per group.
    Batches(Vec<u32>),
}

impl Transformer {
    /// Checks the sizes.
    ///
    /// # Errors
    /// [`TransformerError`], with the allowed values.
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

    /// The count of numbers of a matrix.
    pub fn numbers(&self) -> u64 {
        u64::from(self.beta) * u64::from(self.beta)
    }

    /// Bytes of a matrix.
    pub fn bytes(&self) -> u64 {
        self.numbers() * self.format.element().bytes()
    }
}
