//! Task graphs for tests.

use std::sync::Arc;

use super::{Argument, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph};
use crate::codelet::{Codelet, Cost, HostCode, Name};

/// A kernel that does nothing, over these arguments.
pub fn kernel(name: impl Into<Name>, arguments: Vec<Argument>) -> Kernel {
    Kernel {
        name: name.into(),
        codelet: Arc::new(Codelet {
            name: "nothing".into(),
            host: Some(HostCode::Kernel(|_, _, _| {})),
            opencl: None,
            library: None,
        }),
        units: 0..1,
        arguments,
        cost: Cost::default(),
        prefers: None,
    }
}

/// Adds a kernel with these inputs and one output of 8 bytes.
pub fn step(graph: &mut GraphBuilder, name: &str, inputs: &[DatumId]) -> (KernelId, DatumId) {
    let out = graph.datum(Datum::new(format!("{name}.out"), 8));
    let mut arguments: Vec<_> = inputs.iter().copied().map(Argument::Input).collect();
    arguments.push(Argument::FullOutput(out));
    (graph.kernel(kernel(name.to_owned(), arguments)), out)
}

/// Adds a datum that the host gives.
pub fn given(graph: &mut GraphBuilder, name: &str) -> DatumId {
    graph.datum(Datum::new(name.to_owned(), 8).with(Contents::zeros()))
}

/// The example of the PySchedCL paper's Figures 6 and 9: `k0` to `k4` are the
/// component in the middle, `before` makes what `k0` reads, and `after` reads
/// what `k3` and `k4` make. Kernels are numbered from `before`, 0, to `after`, 6.
pub fn figure_6() -> TaskGraph {
    let mut graph = GraphBuilder::default();
    let (b0, b1) = (
        graph.datum(Datum::new("b0-b2", 8)),
        graph.datum(Datum::new("b1-b3", 8)),
    );
    let outputs = [b0, b1].map(Argument::FullOutput).to_vec();
    graph.kernel(kernel("before", outputs));
    let (_, b4) = step(&mut graph, "k0", &[b0, b1]);
    let b5 = given(&mut graph, "b5");
    let (_, b9) = step(&mut graph, "k1", &[b5, b4]);
    let b8 = given(&mut graph, "b8");
    let (_, b10) = step(&mut graph, "k2", &[b4, b8]);
    let (_, b13) = step(&mut graph, "k3", &[b9]);
    let (_, b14) = step(&mut graph, "k4", &[b10]);
    step(&mut graph, "after", &[b13, b14]);
    graph.build().expect("a graph")
}
