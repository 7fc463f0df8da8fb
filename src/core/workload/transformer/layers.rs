//! A transformer's layers as a task graph, and its components.

use std::sync::Arc;

use super::builder::LayerBuilder;
use super::{Form, KernelRole, Transformer, TransformerError, batch, heads};
use crate::codelet::Element;
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
                Form::Heads => heads::add(&mut builder, *heads, x),
                Form::Batches(_) => batch::add(&mut builder, *heads, x),
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
