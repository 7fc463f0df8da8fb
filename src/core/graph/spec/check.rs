//! The checks of a graph before anything runs: every edge connects an output to an
//! input of the same size, nothing waits for itself, and the kernels of a component
//! are for one device. This file is pure.

use std::collections::{BTreeSet, HashMap};

use super::SpecError;
use super::dag::{DagSpec, Edge, Location};
use super::resolve::{Argument, Buffer, Kernel};
use crate::graph::task_graph::topological_order;

impl DagSpec {
    /// Checks the graph with these kernels, in the order of its own.
    ///
    /// # Errors
    /// The first error, with the file, the line or field, and the kernels.
    pub fn check(&self, kernels: &[Kernel]) -> Result<(), SpecError> {
        let mut writers: HashMap<(usize, u64), &Edge> = HashMap::new();
        for edge in &self.edges {
            self.check_edge(edge, kernels)?;
            if let Some(other) = writers.insert(edge.to, edge) {
                let why = format!(
                    "argument {} of kernel {} comes from kernel {} already; one kernel must \
                     write it",
                    edge.to.1, self.kernels[edge.to.0].id, self.kernels[other.from.0].id
                );
                return Err(self.fault(&edge.location, why));
            }
        }
        let kernels: Vec<usize> = (0..self.kernels.len()).collect();
        if let Some(cycle) = self.cycle(&kernels) {
            let why = format!(
                "kernels {} wait for one another in a cycle; remove one of their edges",
                self.ids(&cycle)
            );
            return Err(self.fault(&self.location_between(&cycle), why));
        }
        self.check_components()
    }

    fn check_edge(&self, edge: &Edge, kernels: &[Kernel]) -> Result<(), SpecError> {
        let fault = |why: String| Err(self.fault(&edge.location, why));
        let id = |location: usize| self.kernels[location].id;
        let buffer = |(kernel, position): (usize, u64)| -> Option<&Buffer> {
            match kernels.get(kernel)?.arguments.get(position as usize)? {
                Argument::Buffer(buffer) => Some(buffer),
                Argument::Scalar { .. } | Argument::Local { .. } => None,
            }
        };
        let Some(from) = buffer(edge.from).filter(|buffer| buffer.direction.writes()) else {
            return fault(format!(
                "kernel {} writes no argument {}; an edge starts at one of its outputs",
                id(edge.from.0),
                edge.from.1
            ));
        };
        let Some(to) = buffer(edge.to).filter(|buffer| buffer.direction.reads()) else {
            return fault(format!(
                "kernel {} reads no argument {}; an edge ends at one of its inputs",
                id(edge.to.0),
                edge.to.1
            ));
        };
        if from.bytes() != to.bytes() {
            return fault(format!(
                "kernel {}'s argument {} is {} x {} and kernel {}'s argument {} is {} x {}; both \
                 are the same data and must have the same size",
                id(edge.from.0),
                edge.from.1,
                from.elements,
                from.element,
                id(edge.to.0),
                edge.to.1,
                to.elements,
                to.element
            ));
        }
        Ok(())
    }

    fn check_components(&self) -> Result<(), SpecError> {
        let Some(components) = &self.components else {
            return Ok(());
        };
        let mut of = vec![0; self.kernels.len()];
        for (index, component) in components.iter().enumerate() {
            let mut devices = component.iter().map(|k| (*k, self.kernels[*k].device));
            let wanted = devices.clone().find_map(|(k, device)| Some((k, device?)));
            let differs = |(_, device): &(usize, Option<_>)| {
                device.is_some_and(|device| wanted.is_some_and(|(_, first)| first != device))
            };
            if let (Some((first, _)), Some((other, _))) = (wanted, devices.find(differs)) {
                let why = format!(
                    "component {index} has kernel {} for one kind of device and kernel {} for \
                     the other; the kernels of a component are for one device",
                    self.kernels[first].id, self.kernels[other].id
                );
                return Err(self.fault(&Location::field(format!("tc[{index}]")), why));
            }
            for kernel in component {
                of[*kernel] = index;
            }
        }
        if let Some(cycle) = self.cycle(&of) {
            let names: Vec<String> = cycle.iter().map(ToString::to_string).collect();
            let why = format!(
                "components {} wait for one another in a cycle, so that none can begin; put \
                 their kernels into one, or divide them otherwise",
                names.join(", ")
            );
            return Err(self.fault(&Location::field("tc"), why));
        }
        Ok(())
    }

    /// A cycle of groups, each of which waits for the one before, and the first for
    /// the last. `of` has the group of each kernel. Edges within a group do not
    /// count, unless every kernel is its own group.
    fn cycle(&self, of: &[usize]) -> Option<Vec<usize>> {
        let groups = of.iter().max()? + 1;
        let alone = groups == of.len();
        let mut before = vec![BTreeSet::new(); groups];
        for (from, to) in self.pairs() {
            if of[from] != of[to] || alone {
                before[of[to]].insert(of[from]);
            }
        }
        let mut cycle = topological_order(&before).err()?;
        cycle.pop();
        Some(cycle)
    }

    /// Pairs of kernels, the first of which must end before the second begins: the
    /// edges, and the order without data.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let edges = self.edges.iter().map(|edge| (edge.from.0, edge.to.0));
        edges.chain(self.order.iter().copied())
    }

    fn ids(&self, kernels: &[usize]) -> String {
        let ids: Vec<String> = (kernels.iter())
            .map(|kernel| self.kernels[*kernel].id.to_string())
            .collect();
        ids.join(", ")
    }

    /// The location of an edge between two kernels of a cycle.
    fn location_between(&self, cycle: &[usize]) -> Location {
        let cycle: BTreeSet<&usize> = cycle.iter().collect();
        let within = |edge: &&Edge| cycle.contains(&edge.from.0) && cycle.contains(&edge.to.0);
        let last = self.edges.iter().rfind(within);
        last.map_or_else(Location::default, |edge| edge.location.clone())
    }
}
