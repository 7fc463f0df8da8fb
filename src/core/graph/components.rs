//! Task components: the kernels that run on one device together.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::task_graph::topological_order;
use super::{DatumId, GraphError, KernelId, TaskGraph};
use crate::machine::DeviceKind;

/// A component: kernels that run on one device (PySchedCL, section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    /// In topological order.
    pub kernels: Vec<KernelId>,
    /// FRONT: kernels that read what another component makes, or that wait for no
    /// kernel of their component. The paper's definition 1 asks it of *every* input,
    /// but a kernel with inputs of both kinds needs its copies, too.
    pub front: Vec<KernelId>,
    /// END: kernels that make what another component reads, or for which no kernel
    /// of their component waits (definition 2, extended likewise).
    pub end: Vec<KernelId>,
    /// IN: the others (definition 3).
    pub inner: Vec<KernelId>,
    /// Components that it waits for, sorted.
    pub predecessors: Vec<usize>,
    /// Components that wait for it, sorted.
    pub successors: Vec<usize>,
    /// The longest path of components to it: 0 for one that waits for none.
    /// Components of one level are independent and make up a layer.
    pub level: usize,
    /// The kind of device that its kernels are to run on.
    pub prefers: Option<DeviceKind>,
}

/// A division of a graph's kernels into components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Components {
    pub(super) list: Vec<Component>,
    /// By kernel: its component, and its index in that.
    pub(super) of: Vec<usize>,
    pub(super) indices: Vec<usize>,
    /// By datum: the other components that read it.
    pub(super) readers: Vec<Vec<usize>>,
}

impl Components {
    /// Divides the kernels into these components.
    ///
    /// # Errors
    /// A [`GraphError`] when a kernel is in no component or in two, when a component
    /// is empty or mixes kernels for different kinds of device, and when components
    /// wait for one another in a cycle.
    pub fn new(graph: &TaskGraph, kernels: &[Vec<KernelId>]) -> Result<Self, GraphError> {
        let of = owners(graph, kernels)?;
        let mut list = vec![Component::default(); kernels.len()];
        for kernel in graph.order() {
            list[of[kernel.0]].kernels.push(*kernel);
        }
        for (index, component) in list.iter_mut().enumerate() {
            if component.kernels.is_empty() {
                return Err(GraphError::EmptyComponent { component: index });
            }
            component.prefers = preference(graph, index, &component.kernels)?;
            classify(graph, &of, index, component);
        }
        let mut indices = vec![0; of.len()];
        for component in &list {
            for (place, kernel) in component.kernels.iter().enumerate() {
                indices[kernel.0] = place;
            }
        }
        let readers = graph.datum_ids().map(|datum| others(graph, &of, datum));
        let mut all = Self {
            readers: readers.collect(),
            list,
            of,
            indices,
        };
        all.connect(graph)?;
        Ok(all)
    }

    /// Divides the kernels by keys. Components are in the order of their first
    /// kernels.
    ///
    /// # Errors
    /// As [`Components::new`].
    pub fn by<K: Eq + Hash>(
        graph: &TaskGraph,
        key: impl Fn(KernelId) -> K,
    ) -> Result<Self, GraphError> {
        let mut groups: Vec<Vec<KernelId>> = Vec::new();
        let mut of_key = HashMap::new();
        for kernel in graph.kernel_ids() {
            let group = *of_key.entry(key(kernel)).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(kernel);
        }
        Self::new(graph, &groups)
    }

    /// A component for each kernel, as eager and heft schedule.
    pub fn single_kernels(graph: &TaskGraph) -> Self {
        let kernels: Vec<_> = graph.kernel_ids().map(|kernel| vec![kernel]).collect();
        // Each kernel is in one component, each component has one kernel, and the
        // graph has no cycle, so no check can fail.
        Self::new(graph, &kernels).unwrap_or_else(|_| Self {
            list: Vec::new(),
            of: Vec::new(),
            indices: Vec::new(),
            readers: Vec::new(),
        })
    }

    /// The components.
    pub fn list(&self) -> &[Component] {
        &self.list
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none; never so, since a graph has kernels.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The component of a kernel.
    pub fn of(&self, kernel: KernelId) -> usize {
        self.of[kernel.0]
    }

    /// A kernel's index in its component.
    pub fn index_in(&self, kernel: KernelId) -> usize {
        self.indices[kernel.0]
    }

    /// The components that read a datum, except the one that makes it; sorted.
    pub fn readers(&self, datum: DatumId) -> &[usize] {
        &self.readers[datum.0]
    }

    /// Finds the precedences of components, and their levels.
    fn connect(&mut self, graph: &TaskGraph) -> Result<(), GraphError> {
        let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.list.len()];
        for kernel in graph.kernel_ids() {
            let own = self.of(kernel);
            let others = graph.predecessors(kernel).iter().map(|p| self.of(*p));
            before[own].extend(others.filter(|other| *other != own));
        }
        for (index, set) in before.iter().enumerate() {
            self.list[index].predecessors = set.iter().copied().collect();
            for other in set {
                self.list[*other].successors.push(index);
            }
        }
        let order = topological_order(&before).map_err(GraphError::ComponentCycle)?;
        for index in order {
            let levels = before[index].iter().map(|b| self.list[*b].level + 1);
            self.list[index].level = levels.max().unwrap_or(0);
        }
        Ok(())
    }
}

/// The components that read a datum, except the one that makes it.
fn others(graph: &TaskGraph, of: &[usize], datum: DatumId) -> Vec<usize> {
    let own = graph.producer(datum).map(|producer| of[producer.0]);
    let readers = graph.readers(datum).iter().map(|reader| of[reader.0]);
    let others: BTreeSet<usize> = readers.filter(|reader| Some(*reader) != own).collect();
    others.into_iter().collect()
}

/// The component of each kernel.
fn owners(graph: &TaskGraph, kernels: &[Vec<KernelId>]) -> Result<Vec<usize>, GraphError> {
    let mut of: Vec<Option<usize>> = vec![None; graph.kernels().len()];
    let name = |kernel: KernelId| graph.kernel(kernel).name.to_string();
    for (index, group) in kernels.iter().enumerate() {
        for kernel in group {
            let place = of.get_mut(kernel.0);
            let place = place.ok_or(GraphError::NoKernel(kernel.0))?;
            if let Some(first) = place.replace(index) {
                return Err(GraphError::TwoComponents {
                    kernel: name(*kernel),
                    first,
                    second: index,
                });
            }
        }
    }
    let owned = of.into_iter().zip(graph.kernel_ids());
    owned
        .map(|(owner, kernel)| {
            owner.ok_or_else(|| GraphError::NoComponent {
                kernel: name(kernel),
            })
        })
        .collect()
}

/// The kind of device that these kernels are to run on, if any of them has one.
fn preference(
    graph: &TaskGraph,
    component: usize,
    kernels: &[KernelId],
) -> Result<Option<DeviceKind>, GraphError> {
    let kinds = kernels.iter().map(|k| graph.kernel(*k));
    let mut kinds = kinds.filter_map(|k| Some((&k.name, k.prefers?)));
    let Some((first, first_kind)) = kinds.next() else {
        return Ok(None);
    };
    match kinds.find(|(_, kind)| *kind != first_kind) {
        None => Ok(Some(first_kind)),
        Some((second, second_kind)) => Err(GraphError::MixedComponent {
            component,
            first: first.to_string(),
            first_kind: kind_name(first_kind),
            second: second.to_string(),
            second_kind: kind_name(second_kind),
        }),
    }
}

fn kind_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
        DeviceKind::Accelerator => "accelerator",
    }
}

/// Sorts a component's kernels into FRONT, IN and END.
fn classify(graph: &TaskGraph, of: &[usize], index: usize, component: &mut Component) {
    let own = |kernel: &KernelId| of[kernel.0] == index;
    for kernel in component.kernels.clone() {
        let what = graph.kernel(kernel);
        let from_others = what
            .inputs()
            .filter_map(|datum| graph.producer(datum))
            .any(|producer| !own(&producer));
        let to_others = what
            .outputs()
            .flat_map(|datum| graph.readers(datum))
            .any(|reader| !own(reader));
        let front = from_others || !graph.predecessors(kernel).iter().any(own);
        let end = to_others || !graph.successors(kernel).iter().any(own);
        if front {
            component.front.push(kernel);
        }
        if end {
            component.end.push(kernel);
        }
        if !front && !end {
            component.inner.push(kernel);
        }
    }
}

#[cfg(test)]
mod tests;
