//! A graph of kernels as a drawing: kernels as ellipses, buffers as rectangles,
//! components as frames, in the paper's manner (Figures 1, 3 and 6).
//!
//! `layout` says where everything is, and is pure arithmetic; `svg` writes it.

mod layout;
mod svg;

use crate::graph::spec::{Argument, DagSpec, Kernel};
use crate::machine::DeviceKind;

pub use svg::write;

/// What a drawing shows.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    pub title: String,
    pub kernels: Vec<Shown>,
    /// Kernels and outputs that others read: who, its output's position, who
    /// reads, at which position.
    pub edges: Vec<((usize, u64), (usize, u64))>,
    /// Order without data.
    pub order: Vec<(usize, usize)>,
    /// Kernels of one component; empty: none are shown.
    pub components: Vec<Vec<usize>>,
}

/// A kernel in a drawing.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its id and name.
    pub name: String,
    /// `cpu` or `gpu`, where the file wants it.
    pub device: Option<&'static str>,
    /// Buffers that no other kernel makes: positions, and what they are.
    pub inputs: Vec<(u64, String)>,
    /// Buffers that it writes.
    pub outputs: Vec<(u64, String)>,
}

impl Drawing {
    /// A graph with its kernels, one for each of `dag`'s in their order.
    pub fn of(dag: &DagSpec, kernels: &[Kernel]) -> Self {
        let shown = |(index, kernel): (usize, &Kernel)| {
            let node = &dag.kernels[index];
            let made = |position: u64| dag.edges.iter().any(|e| e.to == (index, position));
            let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
            for (position, argument) in (0u64..).zip(&kernel.arguments) {
                let Argument::Buffer(buffer) = argument else {
                    continue;
                };
                let what = format!("{} {}", buffer.elements, buffer.element);
                if buffer.direction.reads() && !made(position) {
                    inputs.push((position, what.clone()));
                }
                if buffer.direction.writes() {
                    outputs.push((position, what));
                }
            }
            Shown {
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
