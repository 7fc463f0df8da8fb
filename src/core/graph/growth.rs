//! Growth: data and kernels that arrive while others of the graph run.

use super::{Argument, Component, Components, Datum, DatumId, Kernel, KernelId, TaskGraph};

impl TaskGraph {
    /// A graph without kernels, to which they are added as they arrive.
    pub fn empty() -> Self {
        Self {
            spaces: Vec::new(),
            data: Vec::new(),
            kernels: Vec::new(),
            producers: Vec::new(),
            readers: Vec::new(),
            overwriters: Vec::new(),
            predecessors: Vec::new(),
            successors: Vec::new(),
            order: Vec::new(),
            first_versions: Vec::new(),
        }
    }

    /// Adds a datum, which has no place. It comes from outside, unless a kernel is added that
    /// makes it.
    pub fn grow(&mut self, datum: Datum) -> DatumId {
        let id = DatumId(self.data.len());
        self.data.push(datum);
        self.producers.push(None);
        self.readers.push(Vec::new());
        self.overwriters.push(None);
        self.first_versions.push(id);
        id
    }

    /// Adds what a kernel that is yet to be added makes of a datum in place.
    pub fn grow_version(&mut self, of: DatumId, datum: Datum) -> DatumId {
        let id = self.grow(datum);
        self.first_versions[id.0] = self.first_versions[of.0];
        id
    }

    /// Adds a kernel, which reads only what exists or what the kernels before it make. So
    /// there is no cycle.
    ///
    /// # Panics
    /// For a datum of another graph, one that has a producer, and what it makes in place of a
    /// datum of which that is [no version](Self::grow_version).
    pub fn grow_kernel(&mut self, kernel: Kernel) -> KernelId {
        let id = KernelId(self.kernels.len());
        let mut before = Vec::new();
        for read in kernel.inputs() {
            let pieces = self.pieces(&read).to_vec();
            for datum in pieces.iter().chain([&read]) {
                before.extend(self.producers[datum.0]);
                before.extend(self.overwriters[datum.0]);
                let readers = &mut self.readers[datum.0];
                if readers.last() != Some(&id) {
                    readers.push(id);
                }
            }
        }
        for argument in &kernel.arguments {
            if let Argument::InOut { from, to } = argument {
                let readers = self.readers[from.0].iter();
                before.extend(readers.filter(|reader| **reader != id));
                self.overwriters[from.0] = Some(id);
                let (first, same) = (self.first_versions[from.0], self.first_versions[to.0]);
                assert_eq!(first, same, "{to:?} is a version of {from:?}");
            }
        }
        for made in kernel.outputs() {
            let other = self.producers[made.0].replace(id);
            assert_eq!(other, None, "{made:?} is made once");
        }
        before.sort_unstable();
        before.dedup();
        for other in &before {
            self.successors[other.0].push(id);
        }
        self.predecessors.push(before);
        self.successors.push(Vec::new());
        self.order.push(id);
        self.kernels.push(kernel);
        id
    }
}

impl Components {
    /// No components, for an [empty](TaskGraph::empty) graph.
    pub fn none() -> Self {
        Self {
            list: Vec::new(),
            of: Vec::new(),
            indices: Vec::new(),
            readers: Vec::new(),
        }
    }

    /// Adds a component for each kernel that the graph has got. All of them are of one level.
    pub fn grow(&mut self, graph: &TaskGraph, level: usize) {
        self.readers.resize(graph.data().len(), Vec::new());
        for kernel in graph.kernel_ids().skip(self.of.len()) {
            let own = self.list.len();
            let what = graph.kernel(kernel);
            for read in what.inputs() {
                for datum in graph.pieces(&read).iter().chain([&read]) {
                    let readers = &mut self.readers[datum.0];
                    let is_made_here = graph.producer(*datum) == Some(kernel);
                    if !is_made_here && readers.last() != Some(&own) {
                        readers.push(own);
                    }
                }
            }
            let predecessors: Vec<usize> = (graph.predecessors(kernel).iter())
                .map(|before| self.of[before.0])
                .collect();
            for before in &predecessors {
                self.list[*before].successors.push(own);
            }
            self.list.push(Component {
                kernels: vec![kernel],
                front: vec![kernel],
                end: vec![kernel],
                inner: Vec::new(),
                predecessors,
                successors: Vec::new(),
                level,
                prefers: what.prefers,
            });
            self.of.push(own);
            self.indices.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::fixtures::figure_6;

    /// A graph that grows kernel by kernel is the one that was built at once.
    #[test]
    fn a_grown_graph_is_the_built_one() {
        let built = figure_6();
        let (mut grown, mut components) = (TaskGraph::empty(), Components::none());
        for (id, datum) in built.datum_ids().zip(built.data()) {
            match built.first_version(id) {
                first if first == id => grown.grow(datum.clone()),
                first => grown.grow_version(first, datum.clone()),
            };
        }
        for kernel in built.order() {
            grown.grow_kernel(built.kernel(*kernel).clone());
            components.grow(&grown, 0);
        }
        assert_eq!(built.order(), &built.kernel_ids().collect::<Vec<_>>()[..]);
        for kernel in built.kernel_ids() {
            assert_eq!(grown.predecessors(kernel), built.predecessors(kernel));
            assert_eq!(grown.successors(kernel), built.successors(kernel));
        }
        let singles = Components::single_kernels(&built);
        for datum in built.datum_ids() {
            assert_eq!(grown.producer(datum), built.producer(datum));
            assert_eq!(grown.readers(datum), built.readers(datum));
            assert_eq!(grown.first_version(datum), built.first_version(datum));
            assert_eq!(components.readers(datum), singles.readers(datum));
        }
        for (one, other) in components.list().iter().zip(singles.list()) {
            assert_eq!(one.predecessors, other.predecessors);
            assert_eq!(one.successors, other.successors);
        }
    }
}
