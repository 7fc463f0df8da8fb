//! Draws a graph of kernels: kernels as ellipses, buffers as rectangles, components as
//! frames, as in the PySchedCL paper (Figures 1, 3 and 6).
//!
//! `layout` computes the positions, and `svg` writes the drawing.

mod layout;
mod svg;

use std::collections::HashSet;

use crate::graph::spec::{Argument, DagSpec, Kernel};
use crate::machine::DeviceKind;

pub use svg::write;

/// The content of a drawing.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    pub title: String,
    pub kernels: Vec<DrawnKernel>,
    /// Edges: the producer and the position of its output, and the reader and the
    /// position of its input.
    pub edges: Vec<((usize, u64), (usize, u64))>,
    /// Edges without data, which only order kernels.
    pub order: Vec<(usize, usize)>,
    /// The kernels of each component; empty if components are not shown.
    pub components: Vec<Vec<usize>>,
}

/// A kernel in a drawing.
#[derive(Clone, Debug)]
pub struct DrawnKernel {
    /// Its id and name.
    pub name: String,
    /// `cpu` or `gpu`, if the file assigns the kernel to a kind of device.
    pub device: Option<&'static str>,
    /// Buffers that no other kernel writes: positions and descriptions.
    pub inputs: Vec<(u64, String)>,
    /// Buffers that it writes.
    pub outputs: Vec<(u64, String)>,
}

impl Drawing {
    /// The drawing of a graph and its kernels, in the order of `dag`.
    pub fn of(dag: &DagSpec, kernels: &[Kernel]) -> Self {
        let made: HashSet<(usize, u64)> = dag.edges.iter().map(|edge| edge.to).collect();
        let shown = |(index, kernel): (usize, &Kernel)| {
            let node = &dag.kernels[index];
            let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
            for (position, argument) in (0u64..).zip(&kernel.arguments) {
                let Argument::Buffer(buffer) = argument else {
                    continue;
                };
                let what = format!("{} {}", buffer.elements, buffer.element);
                if buffer.direction.reads() && !made.contains(&(index, position)) {
                    inputs.push((position, what.clone()));
                }
                if buffer.direction.writes() {
                    outputs.push((position, what));
                }
            }
            DrawnKernel {
                name: format!("{} {}", node.id, kernel.name),
                device: node.device.map(|kind| match kind {
                    DeviceKind::Cpu => "cpu",
                    _ => "gpu",
                }),
                inputs,
                outputs,
            }
        };
        Self {
            title: dag.file.display().to_string(),
            kernels: kernels.iter().enumerate().map(shown).collect(),
            edges: (dag.edges.iter())
                .map(|edge| (edge.from, edge.to))
                .collect(),
            order: dag.order.clone(),
            components: dag.components.clone().unwrap_or_default(),
        }
    }
}
