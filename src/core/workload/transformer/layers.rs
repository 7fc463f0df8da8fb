//! A transformer's layers as a task graph: its weights, kernels and results, and its components.

use std::sync::Arc;

use super::numbers::Matrix;
use super::{Form, Transformer, TransformerError};
use crate::codelet::add_norm::AddNorm;
use crate::codelet::gemm::Gemm;
use crate::codelet::softmax::{self, Softmax};
use crate::codelet::transpose::{self, Transpose};
use crate::codelet::{Codelet, Cost, Element, Value};
use crate::graph::{
    Argument, Components, Contents, Datum, DatumId, GraphBuilder, GraphError, Kernel, TaskGraph,
};
use crate::verify::numbers;

/// The part of a transformer that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelPart {
    pub layer: u32,
    /// The heads, from the first to before the second number; `None` for their sum.
    pub heads: Option<(u32, u32)>,
    pub role: KernelRole,
}

/// A transformer as a graph.
#[derive(Clone, Debug)]
pub struct Layers {
    pub graph: Arc<TaskGraph>,
    /// The part of each kernel, by its index.
    pub parts: Vec<KernelPart>,
    /// The results with their parts: the Z of every group of heads of the last layer,
    /// one after the other. Without batches each head is a group.
    pub outputs: Vec<(KernelPart, DatumId)>,
    /// How the numbers of all data are stored.
    pub element: Element,
}

impl Layers {
    /// A component for each group of heads, and for each sum.
    ///
    /// # Errors
    /// Never for the graph of a transformer.
    pub fn components(&self) -> Result<Components, GraphError> {
        Components::by(&self.graph, |kernel| {
            let part = self.parts[kernel.0];
            (part.layer, part.heads)
        })
    }

    /// The results, whose contents `bytes` returns.
    ///
    /// # Errors
    /// The first error of `bytes`.
    pub fn results<E>(
        &self,
        mut bytes: impl FnMut(DatumId) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<(KernelPart, Vec<f64>)>, E> {
        let outputs = self.outputs.iter();
        let read = |(part, datum): &(KernelPart, DatumId)| {
            Ok((*part, numbers(&bytes(*datum)?, self.element)))
        };
        outputs.map(read).collect()
    }

    /// Operations of all kernels.
    pub fn flops(&self) -> f64 {
        self.graph
            .kernels()
            .iter()
            .map(|kernel| kernel.cost.flops)
            .sum()
    }
}

impl Transformer {
    /// The graph.
    ///
    /// # Errors
    /// [`TransformerError`] for sizes that are not possible.
    pub fn layers(&self) -> Result<Layers, TransformerError> {
        self.check()?;
        let groups = self.groups();
        let mut builder = LayerBuilder::new(self);
        let mut x = builder.input();
        let mut outputs = Vec::new();
        for layer in 0..self.layers {
            let last = layer + 1 == self.layers;
            builder.begin(layer, last);
            let add = |heads: &(u32, u32)| match self.form {
                Form::Heads => add_head(&mut builder, *heads, x),
                Form::Batches(_) => add_batch(&mut builder, *heads, x),
            };
            outputs = groups.iter().map(add).collect();
            if !last {
                let stacks = groups.iter().map(|(first, end)| end - first).collect();
                x = builder.sum(x, &outputs, stacks);
            }
        }
        builder.finish(outputs)
    }

    /// The heads of each group, from the first to before the second number.
    fn groups(&self) -> Vec<(u32, u32)> {
        match &self.form {
            Form::Heads => (0..self.heads).map(|head| (head, head + 1)).collect(),
            Form::Batches(sizes) => {
                let ends = sizes.iter().scan(0, |end, size| {
                    *end += size;
                    Some(*end)
                });
                ends.zip(sizes)
                    .map(|(end, size)| (end - size, end))
                    .collect()
            }
        }
    }
}

/// Adds a head with the input `x`, and returns its Z.
fn add_head(builder: &mut LayerBuilder, head: (u32, u32), x: DatumId) -> DatumId {
    let beta = builder.of.beta;
    let names = ["W_Q", "W_K", "W_V", "W"];
    let [w_q, w_k, w_v, w] =
        [0, 1, 2, 3].map(|which| builder.weights(names[which as usize], head, &[which]));
    let gemm = Gemm::square(beta).format(builder.of.format);
    let q = builder.product(KernelRole::Q, head, &gemm, [x, w_q]);
    let k = builder.product(KernelRole::K, head, &gemm, [x, w_k]);
    let v = builder.product(KernelRole::V, head, &gemm, [x, w_v]);
    let t = transposed(builder, head, k);
    let a = builder.product(KernelRole::Scores, head, &gemm, [q, t]);
    let b = weights(builder, head, a);
    let c = builder.product(KernelRole::Context, head, &gemm, [b, v]);
    builder.product(KernelRole::Output, head, &gemm, [c, w])
}

/// Adds the softmax of some heads' matrices, with the factor of attention.
fn weights(builder: &mut LayerBuilder, heads: (u32, u32), scores: DatumId) -> DatumId {
    let beta = builder.of.beta;
    let matrices = heads.1 - heads.0;
    let softmax = Softmax {
        format: builder.of.format,
        rows: u64::from(beta) * u64::from(matrices),
        width: beta,
        factor: factor(beta) as f32,
    };
    let work = Work {
        codelet: Arc::clone(&builder.codelets.softmax),
        units: softmax.units(),
        inputs: vec![scores],
        matrices,
        values: softmax.sizes().to_vec(),
        cost: softmax.cost(),
    };
    builder.kernel(KernelRole::Weights, heads, work)
}

/// `1 / sqrt(beta)`
pub(super) fn factor(beta: u32) -> f64 {
    1.0 / f64::from(beta).sqrt()
}

fn transposed(builder: &mut LayerBuilder, head: (u32, u32), of: DatumId) -> DatumId {
    let transpose = Transpose {
        format: builder.of.format,
        rows: builder.of.beta,
        columns: builder.of.beta,
        batch: 1,
    };
    let work = Work {
        codelet: Arc::clone(&builder.codelets.transpose),
        units: transpose.units(),
        inputs: vec![of],
        matrices: 1,
        values: transpose.sizes().to_vec(),
        cost: transpose.cost(),
    };
    builder.kernel(KernelRole::Transposed, head, work)
}

/// Adds these heads with the input `x`, and returns their Z, one after the other.
fn add_batch(builder: &mut LayerBuilder, heads: (u32, u32), x: DatumId) -> DatumId {
    let beta = builder.of.beta;
    let count = heads.1 - heads.0;
    let projections = builder.weights("W_QKV", heads, &[0, 1, 2]);
    let w = builder.weights("W", heads, &[3]);
    let square = Gemm::square(beta).format(builder.of.format);
    let gemm = square.batch(count);

    // All Q, then all K, then all V.
    let all = square.batch(3 * count).common_a();
    let qkv = builder.product(KernelRole::Projections, heads, &all, [x, projections]);
    let scores = gemm.transposed().after(0, count);
    let a = builder.product(KernelRole::Scores, heads, &scores, [qkv, qkv]);
    let b = weights(builder, heads, a);
    let context = gemm.after(0, 2 * count);
    let c = builder.product(KernelRole::Context, heads, &context, [b, qkv]);
    builder.product(KernelRole::Output, heads, &gemm, [c, w])
}

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
struct LayerBuilder<'a> {
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
