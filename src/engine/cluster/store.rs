//! The blocks of spaces that a node has, as data of the open graph that computes on them.
//! They are where they were made or have arrived: in host memory, or on a device.

mod made;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use self::made::{Places, filled, given, made};
use super::ClusterError;
pub(super) use super::copying::Received;
use super::copying::{Arriving, Copying};
use crate::codelet::rows::Lines;
use crate::graph::OpenGraph;
use crate::runtime::{Runtime, RuntimeError};
use crate::workload::cluster::Fill;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::RequestId;
use pdawl_core::cluster::space::{Block, Rectangles, SpaceBlock, SpaceId, Spaces};
use pdawl_core::cluster::task::ReadArgument;
use pdawl_core::cluster::task::chain::Source;
use pdawl_core::graph::{Datum, DatumId, Piece};

/// What a node has of all spaces.
pub(super) struct Store {
    me: NodeId,
    copying: Arc<Copying>,
    /// How to make what no node sends.
    makes: BTreeMap<SpaceId, Fill>,
    /// The node's own blocks, by the tasks that wrote them. Newer ones have greater numbers;
    /// first contents have 0.
    own: BTreeMap<SpaceId, Rectangles<Kept>>,
    /// The number of the present chain's first task, and of the next chain's.
    first: u64,
    next: u64,
    /// What others have sent, for the present chain, by the numbers of requests.
    fetched: BTreeMap<SpaceId, Rectangles<Kept>>,
    requests: BTreeMap<RequestId, Vec<(Source, DatumId)>>,
    /// Answers of which a part has come.
    arriving: BTreeMap<RequestId, Arriving>,
    /// By what they are made of.
    inputs: HashMap<(ReadArgument, Vec<Source>), Input>,
    /// Bytes of what was put together or made for inputs, and how many are kept at most.
    input_bytes: u64,
    most: u64,
    clock: u64,
}

/// The rows of a block, without gaps, in a datum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub datum: DatumId,
    /// The bytes of the datum before them.
    pub first: u64,
    /// The subtask of the present chain that has written them.
    pub writer: Option<u64>,
}

impl Kept {
    /// What was there before the present chain.
    fn before(datum: DatumId) -> Self {
        Self {
            datum,
            first: 0,
            writer: None,
        }
    }
}

/// Finds when the elements of a part were written.
pub(super) type Resolve<'a> = &'a dyn Fn(&SpaceBlock) -> Vec<Source>;

/// A datum that was put together or made for subtasks that read it.
#[derive(Clone, Copy, Debug)]
struct Input {
    datum: DatumId,
    bytes: u64,
    used: u64,
}

impl Store {
    /// The store of a node, which keeps so many bytes for inputs that no subtask reads now.
    pub fn new(me: NodeId, copying: Arc<Copying>, most: u64) -> Self {
        Self {
            me,
            copying,
            makes: BTreeMap::new(),
            own: BTreeMap::new(),
            first: 1,
            next: 1,
            fetched: BTreeMap::new(),
            requests: BTreeMap::new(),
            arriving: BTreeMap::new(),
            inputs: HashMap::new(),
            input_bytes: 0,
            most,
            clock: 0,
        }
    }

    /// The threads that copy in host memory.
    pub fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Has nothing any more; the graph of its data is gone.
    pub fn clear(&mut self) {
        *self = Self::new(self.me, Arc::clone(&self.copying), self.most);
    }

    /// Makes the contents of a space whenever they are asked for.
    pub fn make(&mut self, space: SpaceId, fill: Fill) {
        self.makes.insert(space, fill);
    }

    /// A chain of so many tasks begins.
    pub fn begin(&mut self, tasks: usize) {
        self.first = self.next;
        self.next += tasks as u64;
    }

    /// The present chain has ended: what it has written is there before the next one.
    pub fn end(&mut self) {
        for kept in self.own.values_mut().flat_map(Rectangles::values_mut) {
            kept.writer = None;
        }
    }

    /// Takes a block that a kernel of the chain's task of an index has made.
    pub fn insert(&mut self, part: SpaceBlock, kept: Kept, task: usize) {
        let own = self.own.entry(part.space).or_default();
        own.insert(part.block, self.first + task as u64, kept);
    }

    /// Forgets a block that was [inserted](Self::insert).
    pub fn discard(&mut self, graph: &mut OpenGraph, part: &SpaceBlock, kept: Kept, task: usize) {
        if let Some(own) = self.own.get_mut(&part.space) {
            own.remove(&part.block, self.first + task as u64);
        }
        graph.forget(kept.datum);
    }

    /// Takes a block's bytes, which the chain's first task has made.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn insert_bytes(
        &mut self,
        graph: &mut OpenGraph,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        part: SpaceBlock,
        data: &[u8],
    ) -> Result<(), RuntimeError> {
        let extent = spaces.extent(part.space);
        let datum = given(graph, runtime, extent, &part.block, |to| {
            self.copying.copy(data, to);
            Ok::<(), RuntimeError>(())
        })?;
        self.insert(part, Kept::before(datum), 0);
        Ok(())
    }

    /// Computes the first contents of a block.
    ///
    /// # Errors
    /// What the runtime or the contents refuse.
    pub fn fill(
        &mut self,
        graph: &mut OpenGraph,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        part: SpaceBlock,
        fill: &Fill,
    ) -> Result<(), ClusterError> {
        let extent = spaces.extent(part.space);
        let datum = given(graph, runtime, extent, &part.block, |to| {
            filled(fill, extent, &part.block, to)
        })?;
        let own = self.own.entry(part.space).or_default();
        own.insert(part.block, 0, Kept::before(datum));
        Ok(())
    }

    /// Takes some of the bytes of an answer to a request: of its parts, one after the other,
    /// those from a byte on. They come in order, and from the first one on again where another
    /// node answers.
    ///
    /// # Errors
    /// What the runtime refuses.
    pub fn receive(
        &mut self,
        graph: &mut OpenGraph,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        (request, sources): (RequestId, &[Source]),
        (first, data): (u64, &[u8]),
    ) -> Result<Received, RuntimeError> {
        let mut arriving = match self.arriving.remove(&request) {
            Some(arriving) => arriving,
            None => Arriving::new(graph, spaces, sources),
        };
        let received = arriving.take(graph, runtime, &self.copying, (first, data));
        if !matches!(received, Ok(Received::All)) {
            self.arriving.insert(request, arriving);
            return received;
        }
        let mut all = Vec::with_capacity(sources.len());
        for (source, datum) in sources.iter().zip(arriving.data()) {
            graph.given(datum);
            let fetched = self.fetched.entry(source.part.space).or_default();
            let kept = Kept {
                writer: source.writer,
                ..Kept::before(datum)
            };
            fetched.insert(source.part.block.clone(), request.0, kept);
            all.push((source.clone(), datum));
        }
        self.requests.insert(request, all);
        received
    }

    /// Forgets an answer.
    pub fn release(&mut self, graph: &mut OpenGraph, request: RequestId) {
        if let Some(arriving) = self.arriving.remove(&request) {
            arriving.data().for_each(|datum| graph.forget(datum));
        }
        for (source, datum) in self.requests.remove(&request).into_iter().flatten() {
            let Source { part, writer } = source;
            if let Some(fetched) = self.fetched.get_mut(&part.space) {
                fetched.remove(&part.block, request.0);
            }
            self.forget_inputs(graph, |read| {
                let is_same = (read.part.space, read.writer) == (part.space, writer);
                is_same && read.part.block.common(&part.block).is_some()
            });
            graph.forget(datum);
        }
    }

    /// Forgets all answers, which belong to a chain that has ended.
    pub fn release_all(&mut self, graph: &mut OpenGraph) {
        for arriving in std::mem::take(&mut self.arriving).into_values() {
            arriving.data().for_each(|datum| graph.forget(datum));
        }
        let fetched = std::mem::take(&mut self.fetched);
        self.forget_inputs(graph, |read| fetched.contains_key(&read.part.space));
        for (_, datum) in std::mem::take(&mut self.requests).into_values().flatten() {
            graph.forget(datum);
        }
    }

    /// The chain's task of an index, which has ended as those before it have, has written a
    /// part: forgets the own blocks with elements of it that nobody reads any longer, as newer
    /// ones have them, or another node has, where `is_own` is false.
    pub fn forget_overwritten(
        &mut self,
        graph: &mut OpenGraph,
        (part, task): (&SpaceBlock, usize),
        is_own: impl Fn(&Block) -> bool,
    ) {
        let Some(own) = self.own.get_mut(&part.space) else {
            return;
        };
        let last = self.first + task as u64;
        let has_ended = |(block, number, kept): (&Block, u64, &Kept)| {
            (number <= last).then(|| (block.clone(), number, kept.datum))
        };
        let there: Vec<_> = (own.overlapping(&part.block))
            .filter_map(has_ended)
            .collect();
        for (block, number, datum) in there {
            let mut rest = vec![block.clone()];
            let newer = own.overlapping(&block);
            for (newer, ..) in newer.filter(|(_, other, _)| (number + 1..=last).contains(other)) {
                rest = rest.iter().flat_map(|piece| piece.without(newer)).collect();
            }
            if !rest.iter().any(&is_own) {
                own.remove(&block, number);
                graph.forget(datum);
            }
        }
    }

    /// Forgets what was put together for inputs of what `is_old` is true.
    pub fn forget_inputs(&mut self, graph: &mut OpenGraph, is_old: impl Fn(&Source) -> bool) {
        let bytes = &mut self.input_bytes;
        self.inputs.retain(|(_, sources), input| {
            let stays = !sources.iter().any(&is_old);
            if !stays {
                *bytes -= input.bytes;
                graph.forget(input.datum);
            }
            stays
        });
    }

    /// What a subtask reads as one argument. A part that a datum has whole is that datum.
    ///
    /// # Errors
    /// Elements that are not here, and contents that cannot be made.
    pub fn input(
        &mut self,
        graph: &mut OpenGraph,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        read: &ReadArgument,
        resolve: Resolve,
    ) -> Result<DatumId, ClusterError> {
        self.clock += 1;
        let key = (read.clone(), read.parts.iter().flat_map(resolve).collect());
        if let Some(input) = self.inputs.get_mut(&key) {
            input.used = self.clock;
            return Ok(input.datum);
        }
        let parts = &read.parts;
        let whole = |part: &SpaceBlock| part.block == spaces.extent(part.space).whole();
        if let [part] = &parts[..]
            && (!read.keeps_places || whole(part))
            && !self.makes.contains_key(&part.space)
            && let [(block, from, kept)] = &self.found(spaces, part, &resolve(part))?[..]
            && (block, from) == (&part.block, &part.block)
            && kept.first == 0
        {
            return Ok(kept.datum);
        }
        let places = Places::new(spaces, read);
        let bytes = places.bytes;
        while self.input_bytes + bytes > self.most {
            let oldest = self.inputs.iter().min_by_key(|(_, input)| input.used);
            let Some(oldest) = oldest.map(|(read, _)| read.clone()) else {
                break;
            };
            if let Some(input) = self.inputs.remove(&oldest) {
                self.input_bytes -= input.bytes;
                graph.forget(input.datum);
            }
        }
        let datum = match parts.iter().find_map(|part| self.makes.get(&part.space)) {
            Some(fill) => made(graph, runtime, spaces, parts, &places, fill)?,
            None => self.view(graph, spaces, (parts, read.keeps_places), resolve)?,
        };
        self.input_bytes += bytes;
        let used = self.clock;
        self.inputs.insert(key, Input { datum, bytes, used });
        Ok(datum)
    }

    /// A datum that is made of parts of what is here: one after the other, or at their places
    /// in memory as long as their space.
    ///
    /// # Errors
    /// Elements that are not here.
    pub fn view(
        &self,
        graph: &mut OpenGraph,
        spaces: &Spaces,
        (parts, keeps_places): (&[SpaceBlock], bool),
        resolve: Resolve,
    ) -> Result<DatumId, ClusterError> {
        let places = Places::of(spaces, parts, keeps_places);
        let mut copies = Vec::new();
        let mut row = 0;
        for (part, at) in parts.iter().zip(&places.lines) {
            let element = spaces.extent(part.space).element;
            for (block, from, kept) in self.found(spaces, part, &resolve(part))? {
                copies.push(Piece {
                    datum: kept.datum,
                    rows: block.height(),
                    row: block.width() * element,
                    from: Lines {
                        first: kept.first + from.offset_of(&block) * element,
                        pitch: from.width() * element,
                    },
                    to: Lines {
                        first: at.first
                            + (block.rows.start - part.block.rows.start) * at.pitch
                            + (block.columns.start - part.block.columns.start) * element,
                        pitch: at.pitch,
                    },
                });
            }
            row = part.block.width() * element;
        }
        let mut view = Datum::gathered("view", places.bytes, copies).by_rows(row);
        view.used = keeps_places.then_some(places.used);
        Ok(graph.datum(view))
    }

    /// Where the elements of a part are, of which it is known when they were written: blocks
    /// of it, which have none in common; the block of which each was kept; and where that is.
    ///
    /// # Errors
    /// Elements that are not here.
    fn found(
        &self,
        spaces: &Spaces,
        part: &SpaceBlock,
        sources: &[Source],
    ) -> Result<Vec<(Block, Block, Kept)>, ClusterError> {
        let (space, mut found, mut all) = (part.space, 0, Vec::new());
        for source in sources {
            found += source.part.block.elements();
            self.find(spaces, source, &mut all)?;
        }
        match found == part.block.elements() {
            true => Ok(all),
            false => Err(ClusterError::Missing {
                space,
                block: part.block.clone(),
            }),
        }
    }

    /// Adds where the elements of a source are.
    fn find(
        &self,
        spaces: &Spaces,
        source: &Source,
        all: &mut Vec<(Block, Block, Kept)>,
    ) -> Result<(), ClusterError> {
        let Source { part, writer } = source;
        let space = part.space;
        let missing = |block: &Block| ClusterError::Missing {
            space,
            block: block.clone(),
        };
        let mut found = 0;
        // Who has what was there before the chain is known; what was written in it is the same
        // wherever it is.
        let holders: Vec<(Block, bool, bool)> = match writer {
            Some(_) => vec![(part.block.clone(), true, true)],
            None => {
                let holders = spaces.directory(space).holders(&part.block);
                let is_own = |node| node == self.me;
                holders
                    .map(|(block, of)| (block, is_own(of.node), !is_own(of.node)))
                    .collect()
            }
        };
        for (block, own, fetched) in holders {
            found += block.elements();
            let own = self.own.get(&space).filter(|_| own);
            let fetched = self.fetched.get(&space).filter(|_| fetched);
            let kept = own.into_iter().chain(fetched);
            let kept = kept.flat_map(|kept| kept.overlapping(&block));
            let mut kept: Vec<(&Block, u64, &Kept)> =
                kept.filter(|(_, _, kept)| kept.writer == *writer).collect();
            kept.sort_unstable_by_key(|(_, number, _)| std::cmp::Reverse(*number));
            let mut rest = vec![block.clone()];
            for (from, _, kept) in kept {
                if rest.is_empty() {
                    break;
                }
                let mut left = Vec::with_capacity(rest.len());
                for wanted in rest {
                    if let Some(common) = wanted.common(from) {
                        all.push((common, from.clone(), *kept));
                    }
                    left.extend(wanted.without(from));
                }
                rest = left;
            }
            if let Some(block) = rest.first() {
                return Err(missing(block));
            }
        }
        match found == part.block.elements() {
            true => Ok(()),
            // Nobody has written these elements.
            false => Err(missing(&part.block)),
        }
    }

    fn sources(
        &self,
        spaces: &Spaces,
        source: &Source,
    ) -> Result<Vec<(Block, Block, Kept)>, ClusterError> {
        let mut all = Vec::new();
        self.find(spaces, source, &mut all)?;
        Ok(all)
    }

    /// Has a part copied to host memory. The result is whether it is there, and whether
    /// anything was asked for that was not asked for before.
    ///
    /// # Errors
    /// Elements that are not here.
    pub fn want(
        &self,
        graph: &mut OpenGraph,
        spaces: &Spaces,
        source: &Source,
    ) -> Result<(bool, bool), ClusterError> {
        if self.makes.contains_key(&source.part.space) {
            return Ok((true, false));
        }
        let (mut is_there, mut is_asked) = (true, false);
        for (_, _, kept) in self.sources(spaces, source)? {
            is_there &= graph.in_host(kept.datum);
            is_asked |= graph.want(kept.datum);
        }
        Ok((is_there, is_asked))
    }

    /// Writes a part to `to`, which has its length. Host memory [has it](Self::want).
    ///
    /// # Errors
    /// Elements that are not here, and contents that cannot be made.
    pub fn copy(
        &self,
        graph: &OpenGraph,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        source: &Source,
        to: &mut [u8],
    ) -> Result<(), ClusterError> {
        let part = &source.part;
        if let Some(fill) = self.makes.get(&part.space) {
            return filled(fill, spaces.extent(part.space), &part.block, to);
        }
        let element = spaces.extent(part.space).element as usize;
        for (block, from, kept) in self.sources(spaces, source)? {
            let bytes = graph.bytes(runtime, kept.datum)?;
            let of = (&from, bytes);
            (self.copying).rows(element, &block, of, (&part.block, &mut *to));
        }
        Ok(())
    }

    /// Copies parts, one after the other, into memory as long as all of them. Host memory has
    /// them.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub fn copy_all(
        &self,
        graph: &OpenGraph,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        sources: &[Source],
        mut to: &mut [u8],
    ) -> Result<(), ClusterError> {
        for source in sources {
            let (own, behind) = to.split_at_mut(spaces.bytes(&source.part) as usize);
            self.copy(graph, runtime, spaces, source, own)?;
            to = behind;
        }
        Ok(())
    }

    /// The graph has other ids for its data, and has no views any more.
    pub fn renumber(&mut self, ids: &HashMap<DatumId, DatumId>) {
        for blocks in self.own.values_mut().chain(self.fetched.values_mut()) {
            for kept in blocks.values_mut() {
                if let Some(id) = ids.get(&kept.datum) {
                    kept.datum = *id;
                }
            }
        }
        for (_, datum) in self.requests.values_mut().flatten() {
            if let Some(id) = ids.get(datum) {
                *datum = *id;
            }
        }
        let bytes = &mut self.input_bytes;
        self.inputs.retain(|_, input| match ids.get(&input.datum) {
            Some(id) => {
                input.datum = *id;
                true
            }
            None => {
                *bytes -= input.bytes;
                false
            }
        });
    }
}

#[cfg(test)]
mod tests;
