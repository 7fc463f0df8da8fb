//! Layers one after the other, as a task graph and its natural components.

use std::sync::Arc;

use super::numbers::Matrix;
use super::{Form, Stage, Transformer, TransformerError, batch, heads};
use crate::codelet::add_norm::AddNorm;
use crate::codelet::{Codelet, Cost, Value};
use crate::graph::{
    Argument, Components, Contents, Datum, DatumId, GraphBuilder, GraphError, Kernel, TaskGraph,
};

/// Where a kernel belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    pub layer: u32,
    /// The heads, from the first to before the last; `None` for their sum.
    pub heads: Option<(u32, u32)>,
    pub stage: Stage,
}

/// A transformer as a graph.
#[derive(Clone, Debug)]
pub struct Layers {
    pub graph: TaskGraph,
    /// By kernel.
    pub parts: Vec<Part>,
    /// The results, and what made them: of every group of heads of the last layer
    /// its Z, one behind the other; a group is a head where heads are by
    /// themselves.
    pub outputs: Vec<(Part, DatumId)>,
}

impl Layers {
    /// A component for each group of heads, and for each sum.
    ///
    /// # Errors
    /// None that a transformer's graph can have.
    pub fn components(&self) -> Result<Components, GraphError> {
        Components::by(&self.graph, |kernel| {
            let part = self.parts[kernel.0];
            (part.layer, part.heads)
        })
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
    /// [`TransformerError`] for sizes that cannot be.
    pub fn layers(&self) -> Result<Layers, TransformerError> {
        self.check()?;
        let groups = self.groups();
        let mut made = Maker::new(self);
        let mut x = made.input();
        let mut outputs = Vec::new();
        for layer in 0..self.layers {
            let last = layer + 1 == self.layers;
            made.begin(layer, last);
            let add = |heads: &(u32, u32)| match self.form {
                Form::Heads => heads::add(&mut made, *heads, x),
                Form::Batches(_) => batch::add(&mut made, *heads, x),
            };
            outputs = groups.iter().map(add).collect();
            if !last {
                let stacks = groups.iter().map(|(first, end)| end - first).collect();
                x = made.sum(x, &outputs, stacks);
            }
        }
        made.finish(outputs)
    }

    /// The heads of each group, from the first to before the last.
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

/// A kernel's work.
pub(super) struct Work {
    pub(super) codelet: Arc<Codelet>,
    pub(super) units: u64,
    pub(super) inputs: Vec<DatumId>,
    /// Matrices that it makes.
    pub(super) matrices: u32,
    /// The arguments after the memories.
    pub(super) values: Vec<Value>,
    pub(super) cost: Cost,
}

/// A graph in the making.
pub(super) struct Maker<'a> {
    pub(super) of: &'a Transformer,
    graph: GraphBuilder,
    parts: Vec<Part>,
    layer: u32,
    /// Whether the layer's heads are the result.
    last: bool,
}

impl<'a> Maker<'a> {
    fn new(of: &'a Transformer) -> Self {
        Self {
            of,
            graph: GraphBuilder::default(),
            parts: Vec::new(),
            layer: 0,
            last: false,
        }
    }

    fn begin(&mut self, layer: u32, last: bool) {
        self.layer = layer;
        self.last = last;
    }

    /// The first layer's input.
    fn input(&mut self) -> DatumId {
        let contents = self.contents(vec![Matrix::Input]);
        let datum = Datum::new("X", self.of.bytes()).with(contents);
        self.graph.datum(datum)
    }

    /// Weights of the heads from `first` to before `end`: all the first of
    /// `which`, then all the second.
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

    /// These matrices, one behind the other.
    fn contents(&self, matrices: Vec<Matrix>) -> Contents {
        let (seed, beta, bytes) = (self.of.seed, self.of.beta, self.of.bytes() as usize);
        Contents::filled(move |to| {
            for (matrix, to) in matrices.iter().zip(to.chunks_exact_mut(bytes)) {
                matrix.write(seed, beta, bytemuck::cast_slice_mut(to));
            }
        })
    }

    /// A kernel of some heads, and what it makes: so many matrices.
    pub(super) fn kernel(&mut self, stage: Stage, heads: (u32, u32), work: Work) -> DatumId {
        let name = self.label(stage.name(), heads);
        let mut datum = Datum::new(name.clone(), u64::from(work.matrices) * self.of.bytes());
        datum.wanted = self.last && stage == Stage::Output;
        let to = self.graph.datum(datum);
        let inputs = work.inputs.into_iter().map(Argument::Input);
        let values = work.values.into_iter().map(Argument::Value);
        self.graph.kernel(Kernel {
            name: name.into(),
            codelet: work.codelet,
            units: 0..work.units,
            arguments: inputs.chain([Argument::Output(to)]).chain(values).collect(),
            cost: work.cost,
            prefers: None,
        });
        self.parts.push(Part {
            layer: self.layer,
            heads: Some(heads),
            stage,
        });
        to
    }

    /// The next layer's input; `stacks`: the heads of each group.
    fn sum(&mut self, x: DatumId, z: &[DatumId], stacks: Vec<u32>) -> DatumId {
        let (beta, layer) = (self.of.beta, self.layer);
        let add_norm = AddNorm {
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
            arguments: [Argument::Input(x), Argument::Output(to)]
                .into_iter()
                .chain(values)
                .chain(summands)
                .chain(counts)
                .collect(),
            cost: add_norm.cost(),
            prefers: None,
        });
        self.parts.push(Part {
            layer,
            heads: None,
            stage: Stage::Sum,
        });
        to
    }

    fn finish(self, outputs: Vec<DatumId>) -> Result<Layers, TransformerError> {
        let graph = self.graph.build()?;
        let part = |datum| {
            graph
                .producer(datum)
                .map(|kernel| (self.parts[kernel.0], datum))
        };
        Ok(Layers {
            outputs: outputs.into_iter().filter_map(part).collect(),
            parts: self.parts,
            graph,
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
