//! What must hold of a graph before anything runs: every edge joins an output
//! to an input of the same size, nothing waits for itself, and a component is
//! of one device. Pure.

use super::dag::{DagSpec, Edge, Place};
use super::error::SpecError;
use super::resolve::{Argument, Buffer, Kernel};

impl DagSpec {
    /// Checks the graph of these kernels, one for each of its own in their
    /// order.
    ///
    /// # Errors
    /// The first fault, with the file, the line or field, and the kernels.
    pub fn check(&self, kernels: &[Kernel]) -> Result<(), SpecError> {
        for (index, edge) in self.edges.iter().enumerate() {
            self.check_edge(edge, kernels)?;
            let twice = |other: &&Edge| other.to == edge.to;
            if let Some(other) = self.edges[..index].iter().find(twice) {
                let why = format!(
                    "argument {} of kernel {} comes from kernel {} already; one kernel must \
                     write it",
                    edge.to.1, self.kernels[edge.to.0].id, self.kernels[other.from.0].id
                );
                return Err(self.fault(&edge.place, why));
            }
        }
        let kernels: Vec<usize> = (0..self.kernels.len()).collect();
        if let Some(cycle) = self.cycle(&kernels) {
            let why = format!(
                "kernels {} wait for one another in a circle; take one of their edges out",
                self.ids(&cycle)
            );
            return Err(self.fault(&self.place_between(&cycle), why));
        }
        self.check_components()
    }

    fn check_edge(&self, edge: &Edge, kernels: &[Kernel]) -> Result<(), SpecError> {
        let fault = |why: String| Err(self.fault(&edge.place, why));
        let id = |place: usize| self.kernels[place].id;
        let buffer = |(kernel, position): (usize, u64)| -> Option<&Buffer> {
            match kernels.get(kernel)?.arguments.get(position as usize)? {
                Argument::Buffer(buffer) => Some(buffer),
                Argument::Scalar { .. } | Argument::Local { .. } => None,
            }
        };
        let Some(from) = buffer(edge.from).filter(|buffer| buffer.direction.writes()) else {
            return fault(format!(
                "kernel {} writes no argument {}; an edge begins at one of its outputs",
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
                 are the same data and need the same size",
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
        let field = |name: String| Place {
            line: None,
            field: Some(name),
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
                     the other; a component is of one device",
                    self.kernels[first].id, self.kernels[other].id
                );
                return Err(self.fault(&field(format!("tc[{index}]")), why));
            }
            for kernel in component {
                of[*kernel] = index;
            }
        }
        if let Some(cycle) = self.cycle(&of) {
            let names: Vec<String> = cycle.iter().map(ToString::to_string).collect();
            let why = format!(
                "components {} wait for one another in a circle, so that none can begin; put \
                 their kernels into one, or divide them otherwise",
                names.join(", ")
            );
            return Err(self.fault(&field("tc".to_owned()), why));
        }
        Ok(())
    }

    /// A circle of groups, of which each waits for the one before and the first
    /// for the last; `of` tells each kernel's group. Edges within a group are
    /// none, except where every kernel is its own.
    fn cycle(&self, of: &[usize]) -> Option<Vec<usize>> {
        let groups = of.iter().max()? + 1;
        let alone = groups == of.len();
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); groups];
        for (from, to) in self.pairs() {
            if of[from] != of[to] || alone {
                next[of[from]].push(of[to]);
            }
        }
        // 0: not seen, 1: on the way, 2: leads into no circle.
        let mut state = vec![0u8; groups];
        for root in 0..groups {
            let mut way: Vec<(usize, usize)> = vec![(root, 0)];
            if state[root] != 0 {
                continue;
            }
            state[root] = 1;
            while let Some((group, taken)) = way.last_mut() {
                let Some(follower) = next[*group].get(*taken).copied() else {
                    state[*group] = 2;
                    way.pop();
                    continue;
                };
                *taken += 1;
                match state[follower] {
                    0 => {
                        state[follower] = 1;
                        way.push((follower, 0));
                    }
                    1 => {
                        let groups = way.iter().map(|(group, _)| *group);
                        return Some(groups.skip_while(|group| *group != follower).collect());
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Who must end before whom: edges, and what `depends` says.
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

    /// Where an edge between two kernels of a circle stands.
    fn place_between(&self, cycle: &[usize]) -> Place {
        let within = |edge: &&Edge| cycle.contains(&edge.from.0) && cycle.contains(&edge.to.0);
        let last = self.edges.iter().rfind(within);
        last.map_or_else(Place::default, |edge| edge.place.clone())
    }
}
