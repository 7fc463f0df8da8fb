//! A transformer's layers as a task graph, and its components.

use std::sync::Arc;

use super::builder::{LayerBuilder, Work};
use super::{Form, KernelRole, Transformer, TransformerError};
use crate::codelet::Element;
use crate::codelet::gemm::Gemm;
use crate::codelet::softmax::Softmax;
use crate::codelet::transpose::Transpose;
use crate::graph::{Components, DatumId, GraphError, TaskGraph};
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
