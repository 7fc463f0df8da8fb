//! Building a task graph: data and kernels are collected and checked, also those that arrive
//! while others of the graph run.

use std::collections::BTreeSet;

use super::task_graph::topological_order;
use super::{
    Argument, Component, Components, Datum, DatumId, GraphError, HostSpace, HostSpaceId, Kernel,
    KernelId, TaskGraph,
};
use crate::codelet::Value;

/// Collects data and kernels; [`GraphBuilder::build`] checks them.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    spaces: Vec<HostSpace>,
    data: Vec<Datum>,
    kernels: Vec<Kernel>,
    /// Order without data: the first runs before the second.
    order: Vec<(KernelId, KernelId)>,
}

impl GraphBuilder {
    /// Adds host memory in which data have places.
    pub fn space(&mut self, space: HostSpace) -> HostSpaceId {
        self.spaces.push(space);
        HostSpaceId(self.spaces.len() - 1)
    }

    /// Adds a datum.
    pub fn datum(&mut self, datum: Datum) -> DatumId {
        self.data.push(datum);
        DatumId(self.data.len() - 1)
    }

    /// Adds a kernel.
    pub fn kernel(&mut self, kernel: Kernel) -> KernelId {
        self.kernels.push(kernel);
        KernelId(self.kernels.len() - 1)
    }

    /// Lets one kernel end before another begins, whatever data they exchange.
    pub fn order(&mut self, before: KernelId, after: KernelId) {
        self.order.push((before, after));
    }

    /// The data so far.
    pub fn data(&self) -> &[Datum] {
        &self.data
    }

    /// A datum, for changing it; `None` for an unknown id.
    pub fn datum_mut(&mut self, id: DatumId) -> Option<&mut Datum> {
        self.data.get_mut(id.0)
    }

    /// Checks everything.
    ///
    /// # Errors
    /// A [`GraphError`] that names the datum, kernel and argument: a datum that is
    /// read but never made, made twice, overwritten twice or of another length, and
    /// kernels that wait for one another in a cycle.
    pub fn build(self) -> Result<TaskGraph, GraphError> {
        if self.kernels.is_empty() {
            return Err(GraphError::Empty);
        }
        self.check_data()?;
        let producers = self.producers()?;
        let (readers, overwriters) = self.readers(&producers)?;
        for (datum, producer) in self.data.iter().zip(&producers) {
            if datum.wanted && producer.is_none() && datum.contents.is_none() {
                return Err(GraphError::NeverMade(datum.name.to_string()));
            }
        }
        let predecessors = self.predecessors(&producers, &readers, &overwriters)?;
        let order = topological_order(&predecessors).map_err(|cycle| {
            let name = |kernel: &usize| self.kernels[*kernel].name.to_string();
            GraphError::Cycle(cycle.iter().map(name).collect())
        })?;
        let ids = |kernels: Vec<usize>| kernels.into_iter().map(KernelId).collect();
        let mut successors = vec![Vec::new(); self.kernels.len()];
        for (after, list) in predecessors.iter().enumerate() {
            for before in list {
                successors[*before].push(KernelId(after));
            }
        }
        let mut first_versions: Vec<DatumId> = (0..self.data.len()).map(DatumId).collect();
        for kernel in &order {
            for argument in &self.kernels[*kernel].arguments {
                if let Argument::InOut { from, to } = argument {
                    first_versions[to.0] = first_versions[from.0];
                }
            }
        }
        Ok(TaskGraph {
            first_versions,
            spaces: self.spaces,
            data: self.data,
            kernels: self.kernels,
            producers,
            readers,
            overwriters,
            predecessors: (predecessors.into_iter())
                .map(|before| ids(before.into_iter().collect()))
                .collect(),
            successors,
            order: ids(order),
        })
    }

    fn check_data(&self) -> Result<(), GraphError> {
        for datum in &self.data {
            if datum.bytes == 0 {
                return Err(GraphError::NoBytes(datum.name.to_string()));
            }
            self.check_place(datum)?;
            if let Some(super::Contents::Bytes(bytes)) = &datum.contents
                && bytes.len() as u64 != datum.bytes
            {
                return Err(GraphError::Contents {
                    datum: datum.name.to_string(),
                    wanted: datum.bytes,
                    given: bytes.len() as u64,
                });
            }
        }
        Ok(())
    }

    /// A place lies within its space and has the datum's bytes; the pieces of a view cover
    /// it, and none of them is a view.
    fn check_place(&self, datum: &Datum) -> Result<(), GraphError> {
        let misplaced = |why| GraphError::Place {
            datum: datum.name.to_string(),
            why,
        };
        let Some(place) = &datum.place else {
            return match (datum.pieces.is_empty(), &datum.contents) {
                (true, Some(super::Contents::OfSpace)) => Err(misplaced("is in no space")),
                (true, _) => Ok(()),
                (false, _) => Err(misplaced("is a view of no space")),
            };
        };
        let space = self.spaces.get(place.space.0);
        let is_within = space
            .is_some_and(|space| place.rows.end <= space.rows && place.columns.end <= space.pitch);
        if !is_within || place.bytes() != datum.bytes {
            return Err(misplaced(
                "lies outside its space, or has other bytes than its place",
            ));
        }
        let mut covered = 0;
        for old in &datum.overwrites {
            if self
                .at(*old)?
                .place
                .as_ref()
                .and_then(|old| old.common(place))
                .is_none()
            {
                return Err(misplaced("lies on a datum that is elsewhere"));
            }
        }
        for piece in &datum.pieces {
            let piece = self.at(*piece)?;
            let common = piece.place.as_ref().and_then(|other| other.common(place));
            let Some(common) = common.filter(|_| piece.pieces.is_empty()) else {
                return Err(misplaced("has a piece elsewhere, or one that is a view"));
            };
            covered += common.bytes();
        }
        match datum.pieces.is_empty() || covered == datum.bytes {
            true => Ok(()),
            false => Err(misplaced("is not covered by its pieces")),
        }
    }

    fn at(&self, id: DatumId) -> Result<&Datum, GraphError> {
        self.data.get(id.0).ok_or(GraphError::NoDatum(id.0))
    }

    /// By datum: the kernel that makes it.
    fn producers(&self) -> Result<Vec<Option<KernelId>>, GraphError> {
        let mut producers: Vec<Option<KernelId>> = vec![None; self.data.len()];
        for (id, kernel) in self.kernels.iter().enumerate() {
            for (argument, what) in kernel.arguments.iter().enumerate() {
                let Some(written) = what.writes() else {
                    continue;
                };
                let datum = self.at(written)?;
                if !datum.pieces.is_empty() {
                    return Err(GraphError::Place {
                        datum: datum.name.to_string(),
                        why: "is a view, which no kernel makes",
                    });
                }
                if datum.place.is_some() && matches!(what, Argument::Output(_)) {
                    return Err(GraphError::Place {
                        datum: datum.name.to_string(),
                        why: "has a place, so that its kernel must write all of it",
                    });
                }
                if datum.contents.is_some() {
                    return Err(GraphError::Overwritten {
                        datum: datum.name.to_string(),
                        kernel: kernel.name.to_string(),
                        argument,
                    });
                }
                if let Some(first) = producers[written.0].replace(KernelId(id)) {
                    return Err(GraphError::TwoProducers {
                        datum: datum.name.to_string(),
                        first: self.kernels[first.0].name.to_string(),
                        second: kernel.name.to_string(),
                        argument,
                    });
                }
            }
        }
        Ok(producers)
    }

    /// By datum: the kernels that read it, and the one that overwrites it.
    #[allow(clippy::type_complexity)]
    fn readers(
        &self,
        producers: &[Option<KernelId>],
    ) -> Result<(Vec<Vec<KernelId>>, Vec<Option<KernelId>>), GraphError> {
        let mut readers: Vec<Vec<KernelId>> = vec![Vec::new(); self.data.len()];
        let mut overwriters: Vec<Option<KernelId>> = vec![None; self.data.len()];
        for (id, kernel) in self.kernels.iter().enumerate() {
            for (argument, what) in kernel.arguments.iter().enumerate() {
                if let Argument::Value(Value::Memory(_) | Value::ReadOnly(_)) = what {
                    let kernel = kernel.name.to_string();
                    return Err(GraphError::MemoryValue { kernel, argument });
                }
                if let Argument::Stride { of, .. } | Argument::First { of, .. } = what
                    && self.at(*of)?.place.is_none()
                {
                    return Err(GraphError::Place {
                        datum: self.at(*of)?.name.to_string(),
                        why: "has no place, and its rows no stride",
                    });
                }
                let Some(read) = what.reads() else {
                    continue;
                };
                let datum = self.at(read)?;
                let exists =
                    |id: DatumId| producers[id.0].is_some() || self.data[id.0].contents.is_some();
                let exists = match &datum.pieces[..] {
                    [] => exists(read),
                    pieces => pieces.iter().all(|piece| exists(*piece)),
                };
                if !exists {
                    return Err(GraphError::NoProducer {
                        kernel: kernel.name.to_string(),
                        argument,
                        datum: datum.name.to_string(),
                    });
                }
                for read in datum.pieces.iter().chain([&read]) {
                    if readers[read.0].last() != Some(&KernelId(id)) {
                        readers[read.0].push(KernelId(id));
                    }
                }
                if let Argument::InOut { from, to } = what {
                    self.check_in_out(id, argument, *from, *to)?;
                    if let Some(first) = overwriters[from.0].replace(KernelId(id)) {
                        return Err(GraphError::TwoOverwriters {
                            datum: datum.name.to_string(),
                            first: self.kernels[first.0].name.to_string(),
                            second: kernel.name.to_string(),
                        });
                    }
                }
            }
        }
        Ok((readers, overwriters))
    }

    fn check_in_out(
        &self,
        kernel: usize,
        argument: usize,
        from: DatumId,
        to: DatumId,
    ) -> Result<(), GraphError> {
        let (from, to) = (self.at(from)?, self.at(to)?);
        if from.place != to.place {
            return Err(GraphError::Place {
                datum: to.name.to_string(),
                why: "is the other version of a datum that is elsewhere",
            });
        }
        if from.bytes == to.bytes {
            return Ok(());
        }
        Err(GraphError::Length {
            kernel: self.kernels[kernel].name.to_string(),
            argument,
            from: from.name.to_string(),
            from_bytes: from.bytes,
            to: to.name.to_string(),
            to_bytes: to.bytes,
        })
    }

    /// By kernel: the kernels that it waits for.
    fn predecessors(
        &self,
        producers: &[Option<KernelId>],
        readers: &[Vec<KernelId>],
        overwriters: &[Option<KernelId>],
    ) -> Result<Vec<BTreeSet<usize>>, GraphError> {
        let mut before = vec![BTreeSet::new(); self.kernels.len()];
        for datum in 0..self.data.len() {
            for reader in &readers[datum] {
                before[reader.0].extend(producers[datum].map(|producer| producer.0));
                if let Some(last) = overwriters[datum].filter(|last| last != reader) {
                    before[last.0].insert(reader.0);
                }
            }
        }
        for (datum, producer) in self.data.iter().zip(producers) {
            let Some(producer) = producer else { continue };
            for old in &datum.overwrites {
                let all = readers[old.0].iter().chain(&producers[old.0]);
                let others = all.filter(|other| *other != producer);
                before[producer.0].extend(others.map(|other| other.0));
            }
        }
        for (first, second) in &self.order {
            for kernel in [first, second] {
                if kernel.0 >= self.kernels.len() {
                    return Err(GraphError::NoKernel(kernel.0));
                }
            }
            before[second.0].insert(first.0);
        }
        Ok(before)
    }
}

#[cfg(test)]
mod tests;

impl TaskGraph {
    /// A graph without kernels, to which they are added as they arrive.
    pub fn empty() -> Self {
        Self::default()
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
