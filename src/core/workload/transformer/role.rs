//! The kinds of kernels in a transformer's layer, named by their results.

/// The result of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelRole {
    Q,
    K,
    V,
    /// Q, K and V of a batch in one kernel.
    Projections,
    /// K transposed.
    Transposed,
    /// `A = Q K^T`
    Scores,
    /// `B = softmax(A / sqrt(beta))`
    Weights,
    /// `C = B V`
    Context,
    /// `Z = C W`
    Output,
    /// The next layer's input.
    Sum,
}

impl KernelRole {
    /// The name in traces and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q => "Q",
            Self::K => "K",
            Self::V => "V",
            Self::Projections => "QKV",
            Self::Transposed => "T",
            Self::Scores => "A",
            Self::Weights => "B",
            Self::Context => "C",
            Self::Output => "Z",
            Self::Sum => "X",
        }
    }
}
