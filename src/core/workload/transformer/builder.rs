//! Builds the task graph of a transformer: weights, kernels and their results.

use std::sync::Arc;

use super::layers::{KernelPart, Layers};
use super::numbers::Matrix;
use super::{Transformer, TransformerError};
use crate::codelet::add_norm::AddNorm;
use crate::codelet::gemm::Gemm;
use crate::codelet::{Codelet, Cost, Value, softmax, transpose};
use crate::graph::{Argument, Contents, Datum, DatumId, GraphBuilder, Kernel};

/// The work of a kernel.
pub(super) struct Work {
    pub(super) codelet: Arc<Codelet>,
    pub(super) units: u64,
    pub(super) inputs: Vec<DatumId>,
    /// The number of matrices that it computes.
    pub(super) matrices: u32,
    /// The arguments after the matrices.
    pub(super) values: Vec<Value>,
    pub(super) cost: Cost,
}

/// The codelets that kernels share, so that each is compiled and measured once.
pub(super) struct Codelets {
    pub(super) softmax: Arc<Codelet>,
    pub(super) transpose: Arc<Codelet>,
    gemm: Vec<(Gemm, Arc<Codelet>)>,
}

/// Builds the graph layer by layer.
pub(super) struct LayerBuilder<'a> {
    pub(super) of: &'a Transformer,
    pub(super) codelets: Codelets,
    graph: GraphBuilder,
    parts: Vec<KernelPart>,
    layer: u32,
    /// Whether the layer's heads are the result.
    last: bool,
}

impl<'a> LayerBuilder<'a> {
    pub(super) fn new(of: &'a Transformer) -> Self {
        Self {
            of,
            codelets: Codelets {
                softmax: Arc::new(softmax::codelet(of.format)),
                transpose: Arc::new(transpose::codelet(of.format)),
                gemm: Vec::new(),
            },
            graph: GraphBuilder::default(),
            parts: Vec::new(),
            layer: 0,
            last: false,
        }
    }

    pub(super) fn begin(&mut self, layer: u32, last: bool) {
        self.layer = layer;
        self.last = last;
    }

    /// Adds the first layer's input.
    pub(super) fn input(&mut self) -> DatumId {
        let contents = self.contents(vec![Matrix::Input]);
        let datum = Datum::new("X", self.of.bytes()).with(contents);
        self.graph.datum(datum)
    }

    /// Adds weights of the heads `heads.0..heads.1`: the first weight in `which` of all
    /// heads, then the second, and so on.
    pub(super) fn weights(&mut self, name: &str, heads: (u32, u32), which: &[u32]) -> DatumId {
        let layer = self.layer;
        let matrices: Vec<Matrix> = (which.iter())
            .flat_map(|which| {
                (heads.0..heads.1).map(move |head| Matrix::Weight {
                    layer,
                    head,
                    which: *which,
                })
            })
            .collect();
        let bytes = matrices.len() as u64 * self.of.bytes();
        let contents = self.contents(matrices);
        let datum = Datum::new(self.label(name, heads), bytes).with(contents);
        self.graph.datum(datum)
    }

    /// The contents of these matrices, one after the other.
    fn contents(&self, matrices: Vec<Matrix>) -> Contents {
        let (seed, beta, bytes) = (self.of.seed, self.of.beta, self.of.bytes() as usize);
        let element = self.of.format.element();
        Contents::filled(move |to| {
            for (matrix, to) in matrices.iter().zip(to.chunks_exact_mut(bytes)) {
                matrix.write(seed, beta, element, to);
            }
        })
    }

    /// Adds a product of two data, and returns its result.
    pub(super) fn product(
        &mut self,
        role: KernelRole,
        heads: (u32, u32),
        gemm: &Gemm,
        inputs: [DatumId; 2],
    ) -> DatumId {
        let known = self.codelets.gemm.iter().find(|(known, _)| known == gemm);
        let codelet = match known {
            Some((_, codelet)) => Arc::clone(codelet),
            None => {
                let codelet = Arc::new(gemm.codelet());
                self.codelets.gemm.push((*gemm, Arc::clone(&codelet)));
                codelet
            }
        };
        let work = Work {
            codelet,
            units: gemm.units(),
            inputs: inputs.to_vec(),
            matrices: gemm.batch,
            values: gemm.sizes().to_vec(),
            cost: gemm.cost(),
        };
        self.kernel(role, heads, work)
    }

    /// Adds a kernel of some heads, and returns its result.
    pub(super) fn kernel(&mut self, role: KernelRole, heads: (u32, u32), work: Work) -> DatumId {
        let name = self.label(role.name(), heads);
        let mut datum = Datum::new(name.clone(), u64::from(work.matrices) * self.of.bytes());
        datum.wanted = self.of.read_back && self.last && role == KernelRole::Output;
        let to = self.graph.datum(datum);
        let inputs = work.inputs.into_iter().map(Argument::Input);
        let values = work.values.into_iter().map(Argument::Value);
        self.graph.kernel(Kernel {
            name: name.into(),
            codelet: work.codelet,
            units: 0..work.units,
            arguments: inputs
                .chain([Argument::FullOutput(to)])
                .chain(values)
                .collect(),
            cost: work.cost,
            prefers: None,
        });
        self.parts.push(KernelPart {
            layer: self.layer,
            heads: Some(heads),
            role,
        });
        to
    }

    /// Adds the sum of a layer, and returns the next layer's input. `stacks` has the
    /// heads of each group.
    pub(super) fn sum(&mut self, x: DatumId, z: &[DatumId], stacks: Vec<u32>) -> DatumId {
        let (beta, layer) = (self.of.beta, self.layer);
        let add_norm = AddNorm {
            format: self.of.format,
            rows: beta,
            width: beta,
            stacks,
        };
        let to = self
            .graph
            .datum(Datum::new(format!("{layer}.X"), self.of.bytes()));
        let values = add_norm.sizes().map(Argument::Value);
        let summands = z.iter().copied().map(Argument::Input);
        let counts = add_norm.counts().map(Argument::Value);
        self.graph.kernel(Kernel {
            name: format!("{layer}.X").into(),
            codelet: Arc::new(add_norm.codelet()),
            units: 0..add_norm.units(),
            arguments: [Argument::Input(x), Argument::FullOutput(to)]
                .into_iter()
                .chain(values)
                .chain(summands)
                .chain(counts)
                .collect(),
            cost: add_norm.cost(),
            prefers: None,
        });
        self.parts.push(KernelPart {
            layer,
            heads: None,
            role: KernelRole::Sum,
        });
        to
    }

    pub(super) fn finish(self, outputs: Vec<DatumId>) -> Result<Layers, TransformerError> {
        let graph = self.graph.build()?;
        let part = |datum| {
            graph
                .producer(datum)
                .map(|kernel| (self.parts[kernel.0], datum))
        };
        Ok(Layers {
            outputs: outputs.into_iter().filter_map(part).collect(),
            parts: self.parts,
            element: self.of.format.element(),
            graph: Arc::new(graph),
        })
    }

    /// `layer.head.name`, or `layer.first-last.name`.
    fn label(&self, name: &str, (first, end): (u32, u32)) -> String {
        let layer = self.layer;
        match end - first {
            1 => format!("{layer}.{first}.{name}"),
            _ => format!("{layer}.{first}-{}.{name}", end - 1),
        }
    }
}

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
