//! What a node asks other nodes for: each block once, however many subtasks read it. What it
//! has got it may have to send on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::copies::Relayed;
use super::{Action, Message, RequestId};
use crate::cluster::NodeId;
use crate::cluster::space::{Block, Directory, Holder, Rectangles, SpaceBlock, SpaceId, Spaces};
use crate::cluster::task::TaskId;
use crate::cluster::task::chain::{Chain, Source};
use crate::spread::Network;

/// A request, and who needs what it brings.
struct Request {
    holder: NodeId,
    sources: Vec<Source>,
    bytes: u64,
    here: bool,
    /// Subtasks that wait or run here and read what it brings.
    users: u64,
    /// When it lost the last one.
    unused: Option<u64>,
    /// Whether no subtask that is to come reads it, here or elsewhere.
    is_over: bool,
    /// The requests of other nodes that it answers when it is here.
    relays: Vec<(NodeId, RequestId)>,
}

/// Parts of a space that a subtask of the chain has written, or nobody in it.
type Written = (SpaceId, Option<u64>);

/// The requests of a task, or of a chain of them.
pub(super) struct Fetches {
    me: NodeId,
    task: TaskId,
    /// Bytes of fetched blocks that no subtask here needs now and that are kept for later.
    cache: u64,
    network: Network,
    next: u64,
    requests: BTreeMap<u64, Request>,
    /// The number of those whose data are not here, and their bytes.
    open: u64,
    open_bytes: u64,
    /// The requests that bring each block. The directory's holders are numbers of requests
    /// here; [`GONE`] brings nothing.
    brings: HashMap<Written, Directory>,
    /// The requests that each subtask needs.
    needs: HashMap<u64, BTreeSet<u64>>,
    /// Requests without users, by when they lost the last one.
    unused: BTreeMap<u64, u64>,
    unused_bytes: u64,
    clock: u64,
    /// How often something has come.
    pub arrivals: u64,
    /// Who answers for lost nodes.
    successors: HashMap<NodeId, NodeId>,
}

/// Whether a block is asked for by itself, so that others may send it on: where it travels
/// for longer than a message and its answer. Smaller ones share a message.
pub(super) fn travels_alone(bytes: u64, network: Network) -> bool {
    bytes as f64 > network.bandwidth * network.round_trip as f64 * 1e-9
}

/// A block is short if it comes in less than so many times the time of an answer. The next one
/// is then asked for before it is here.
const SHORT: u64 = 8;

/// The request of blocks that were fetched and forgotten.
const GONE: NodeId = NodeId(u32::MAX);

impl Fetches {
    /// No requests. Their numbers begin at `next`, as numbers of earlier tasks may still
    /// be answered.
    pub fn new(
        me: NodeId,
        task: TaskId,
        (cache, network): (u64, Network),
        next: u64,
        successors: HashMap<NodeId, NodeId>,
    ) -> Self {
        Self {
            me,
            task,
            cache,
            network,
            next,
            requests: BTreeMap::new(),
            open: 0,
            open_bytes: 0,
            brings: HashMap::new(),
            needs: HashMap::new(),
            unused: BTreeMap::new(),
            unused_bytes: 0,
            clock: 0,
            arrivals: 0,
            successors,
        }
    }

    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Whether a node is lost, as far as this one knows.
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.successors.contains_key(&node)
    }

    /// The number of the next request.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether all that a subtask reads is here.
    pub fn is_here(&self, subtask: u64) -> bool {
        let needs = self.needs.get(&subtask);
        needs.is_some_and(|needs| needs.iter().all(|number| self.requests[number].here))
    }

    fn holder(&self, mut node: NodeId) -> NodeId {
        while let Some(&successor) = self.successors.get(&node) {
            node = successor;
        }
        node
    }

    /// Whether all that a subtask reads is here, though it was not asked for it.
    pub fn has_all(
        &self,
        subtask: u64,
        (chain, written): (&Chain, &HashMap<u64, NodeId>),
        spaces: &Spaces,
    ) -> bool {
        let has = |source: &Source, block: &Block| {
            let brings = self.brings.get(&(source.part.space, source.writer));
            let brings = brings.into_iter().flat_map(|brings| brings.holders(block));
            let here = brings.filter(|(_, of)| {
                let request = self.requests.get(&u64::from(of.node.0));
                request.is_some_and(|request| request.here)
            });
            here.map(|(block, _)| block.elements()).sum::<u64>() == block.elements()
        };
        let is_here = |source: &Source| match source.writer {
            Some(writer) => {
                let node = written.get(&writer);
                node.is_some_and(|node| self.holder(*node) == self.me)
                    || has(source, &source.part.block)
            }
            None => {
                let directory = spaces.directory(source.part.space);
                let mut holders = directory.holders(&source.part.block);
                holders.all(|(block, holder)| {
                    self.holder(holder.node) == self.me || has(source, &block)
                })
            }
        };
        let sources = chain.sources(subtask);
        let mut travel = sources.iter().filter(|of| !spaces.is_made(of.part.space));
        travel.all(is_here)
    }

    /// Asks for what a subtask reads and this node neither has nor has asked for. `written`
    /// tells who has what was written in the chain. The result is whether it reads what other
    /// nodes have.
    pub fn fetch(
        &mut self,
        subtask: u64,
        (chain, written): (&Chain, &HashMap<u64, NodeId>),
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) -> bool {
        let mut needs = BTreeSet::new();
        let mut lacks: BTreeMap<NodeId, Vec<Source>> = BTreeMap::new();
        // The same by space, as blocks that the subtask reads may have elements in common.
        let mut lacked: HashMap<Written, Rectangles<()>> = HashMap::new();
        let sources = chain.sources(subtask).into_iter();
        for Source { part, writer } in sources.filter(|of| !spaces.is_made(of.part.space)) {
            let key = (part.space, writer);
            let directory = spaces.directory(part.space);
            let of_writer = writer.and_then(|writer| written.get(&writer));
            let of_writer = of_writer.map(|node| (part.block.clone(), *node));
            let before = writer.is_none().then(|| directory.holders(&part.block));
            let before = before.into_iter().flatten();
            let holders = of_writer
                .into_iter()
                .chain(before.map(|(block, holder)| (block, holder.node)));
            // A directory's blocks have no elements in common.
            let mut found = Vec::new();
            for (block, holder) in holders {
                let holder = self.holder(holder);
                if holder == self.me {
                    continue;
                }
                let brings = self.brings.entry(key).or_default();
                let mut rest = vec![block.clone()];
                for (known, request) in brings.holders(&block) {
                    if request.node != GONE {
                        needs.insert(u64::from(request.node.0));
                        rest = rest
                            .iter()
                            .flat_map(|piece| piece.without(&known))
                            .collect();
                    }
                }
                let before = lacked.get(&key).into_iter();
                for (known, ..) in before.flat_map(|before| before.overlapping(&block)) {
                    rest = rest.iter().flat_map(|piece| piece.without(known)).collect();
                }
                let space = part.space;
                let rest = rest.into_iter().map(|block| SpaceBlock { space, block });
                found.extend(rest.map(|part| (holder, Source { part, writer })));
            }
            for (holder, source) in found {
                let lacked = lacked.entry(key).or_default();
                // No two blocks begin at the same element.
                lacked.insert(source.part.block.clone(), 0, ());
                lacks.entry(holder).or_default().push(source);
            }
        }
        for (holder, sources) in lacks {
            let alone = |source: &Source| travels_alone(spaces.bytes(&source.part), self.network);
            let (large, small): (Vec<Source>, Vec<Source>) = sources.into_iter().partition(alone);
            let large = large.into_iter().map(|source| vec![source]);
            for sources in large.chain((!small.is_empty()).then_some(small)) {
                needs.insert(self.ask(holder, sources, spaces, actions));
            }
        }
        for number in &needs {
            self.used(*number);
        }
        let needed = !needs.is_empty();
        self.needs.insert(subtask, needs);
        needed
    }

    fn ask(
        &mut self,
        holder: NodeId,
        sources: Vec<Source>,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        for source in &sources {
            self.set_brings(source, NodeId(number as u32));
        }
        actions.push(Action::Send {
            to: holder,
            message: Message::Fetch {
                task: self.task,
                request: RequestId(number),
                sources: sources.clone(),
            },
        });
        let bytes = sources
            .iter()
            .map(|source| spaces.bytes(&source.part))
            .sum();
        let request = Request {
            holder,
            sources,
            bytes,
            here: false,
            users: 0,
            unused: None,
            is_over: false,
            relays: Vec::new(),
        };
        self.requests.insert(number, request);
        self.open += 1;
        self.open_bytes += bytes;
        number
    }

    /// Notes the request that brings a source.
    fn set_brings(&mut self, source: &Source, node: NodeId) {
        let key = (source.part.space, source.writer);
        let initial = false;
        let holder = Holder { node, initial };
        (self.brings.entry(key).or_default()).set(&source.part.block, holder);
    }

    /// Whether a further subtask's data should be asked for, where so many blocks may be on
    /// their way. Short ones count by their bytes.
    pub fn has_room(&self, prefetch: u32) -> bool {
        let most = u64::from(prefetch);
        let answered = |bytes| !travels_alone(bytes, self.network);
        self.open < most || answered(self.open_bytes / (most * SHORT))
    }

    fn used(&mut self, number: u64) {
        let Some(request) = self.requests.get_mut(&number) else {
            return;
        };
        request.users += 1;
        if let Some(since) = request.unused.take() {
            self.unused.remove(&since);
            self.unused_bytes -= request.bytes;
        }
    }

    /// A request's data are here.
    pub fn fetched(&mut self, request: RequestId, actions: &mut Vec<Action>) {
        match self.requests.get_mut(&request.0) {
            Some(asked) if !asked.here => {
                asked.here = true;
                self.arrivals += 1;
                self.open -= 1;
                self.open_bytes -= asked.bytes;
                for (to, request) in std::mem::take(&mut asked.relays) {
                    let sources = asked.sources.clone();
                    actions.push(Action::Serve {
                        to,
                        request,
                        sources,
                    });
                }
                if asked.users == 0 {
                    self.keep_unused(request.0, actions);
                }
            }
            Some(_) => {}
            // It was asked of a node that was lost, or for an earlier task.
            None => actions.push(Action::Release { request }),
        }
    }

    /// Answers a request of another node, now or when the block is here. The result is
    /// whether it is, or was asked for.
    pub fn relay(&mut self, relayed: &Relayed, actions: &mut Vec<Action>) -> bool {
        let Relayed {
            to,
            request,
            source,
        } = relayed;
        let brings = self.brings.entry((source.part.space, source.writer));
        let brings = brings.or_default();
        let numbers = brings.holders(&source.part.block);
        let numbers: Vec<u64> = numbers.map(|(_, of)| u64::from(of.node.0)).collect();
        let [number] = numbers[..] else { return false };
        let asked = self.requests.get_mut(&number);
        let Some(asked) = asked.filter(|asked| asked.sources[..] == [source.clone()]) else {
            return false;
        };
        match asked.here {
            true => actions.push(Action::Serve {
                to: *to,
                request: *request,
                sources: asked.sources.clone(),
            }),
            false => asked.relays.push((*to, *request)),
        }
        true
    }

    /// A subtask reads more than before: what is missing of it is asked for.
    pub fn fetch_again(
        &mut self,
        subtask: u64,
        chain: (&Chain, &HashMap<u64, NodeId>),
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        let before = self.needs.remove(&subtask).unwrap_or_default();
        self.fetch(subtask, chain, spaces, actions);
        self.leave_requests(before, actions);
    }

    /// A subtask does not need its data any longer: it has ended here or went elsewhere.
    pub fn leave(&mut self, subtask: u64, actions: &mut Vec<Action>) {
        let needs = self.needs.remove(&subtask).unwrap_or_default();
        self.leave_requests(needs, actions);
    }

    fn leave_requests(&mut self, numbers: BTreeSet<u64>, actions: &mut Vec<Action>) {
        for number in numbers {
            let Some(request) = self.requests.get_mut(&number) else {
                continue;
            };
            request.users -= 1;
            if request.users == 0 && request.here {
                self.keep_unused(number, actions);
            }
        }
    }

    /// The chain's task of an index has ended, as those before it have: what it overwrote and
    /// what was read by these tasks only is not needed any longer. A request for anything that
    /// was overwritten is not answered, so that what is left of it is asked for again.
    pub fn ended(
        &mut self,
        index: usize,
        chain: &Chain,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        let is_read = |source: &Source| match source.writer {
            Some(writer) => chain.last_reader(writer).is_some_and(|last| last > index),
            None => true,
        };
        let (mut over, mut unanswered) = (Vec::new(), Vec::new());
        for (number, request) in &mut self.requests {
            let sources = || request.sources.iter();
            let is_gone = sources().any(|source| chain.overwrites(index, source));
            request.is_over |= is_gone || !sources().any(is_read);
            match request.users {
                0 if is_gone || request.is_over && request.here => over.push(*number),
                1.. if is_gone && !request.here => unanswered.push(*number),
                _ => {}
            }
        }
        for number in over {
            self.release(number, actions);
        }
        for number in unanswered {
            let left = |source| chain.left_of(index, source);
            self.ask_again(number, left, spaces, actions);
        }
    }

    /// Asks again for what is `left` of a request's sources, of whoever answers for its holder
    /// now.
    fn ask_again(
        &mut self,
        number: u64,
        left: impl Fn(Source) -> Vec<Source>,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        let Some(request) = self.requests.get(&number) else {
            return;
        };
        let (sources, users) = (request.sources.clone(), request.users);
        let holder = self.holder(request.holder);
        self.forget(number);
        let sources: Vec<Source> = sources.into_iter().flat_map(left).collect();
        let is_needed = holder != self.me && !sources.is_empty();
        let again = is_needed.then(|| self.ask(holder, sources, spaces, actions));
        for needs in self.needs.values_mut() {
            if needs.remove(&number) {
                needs.extend(again);
            }
        }
        if let Some(request) = again.and_then(|again| self.requests.get_mut(&again)) {
            request.users = users;
        }
    }

    fn release(&mut self, number: u64, actions: &mut Vec<Action>) {
        if let Some(since) = self.requests.get(&number).and_then(|of| of.unused) {
            self.unused.remove(&since);
        }
        self.forget(number);
        let request = RequestId(number);
        actions.push(Action::Release { request });
    }

    /// Keeps what nobody needs now, and forgets what was not used for longest if that is
    /// too much.
    fn keep_unused(&mut self, number: u64, actions: &mut Vec<Action>) {
        let Some(request) = self.requests.get_mut(&number) else {
            return;
        };
        if request.is_over {
            return self.release(number, actions);
        }
        self.clock += 1;
        request.unused = Some(self.clock);
        self.unused.insert(self.clock, number);
        self.unused_bytes += request.bytes;
        while self.unused_bytes > self.cache {
            let Some((_, oldest)) = self.unused.pop_first() else {
                return;
            };
            self.forget(oldest);
            let request = RequestId(oldest);
            actions.push(Action::Release { request });
        }
    }

    fn forget(&mut self, number: u64) {
        let Some(request) = self.requests.remove(&number) else {
            return;
        };
        if request.unused.is_some() {
            self.unused_bytes -= request.bytes;
        }
        if !request.here {
            self.open -= 1;
            self.open_bytes -= request.bytes;
        }
        for source in &request.sources {
            self.set_brings(source, GONE);
        }
    }

    /// Another node answers for what a lost one has, so what was asked of it and has not
    /// come is asked again.
    pub fn lost(
        &mut self,
        lost: NodeId,
        successor: NodeId,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        self.successors.insert(lost, successor);
        let open = |(number, request): (&u64, &Request)| {
            (request.holder == lost && !request.here).then_some(*number)
        };
        let open: Vec<u64> = self.requests.iter().filter_map(open).collect();
        for number in open {
            self.ask_again(number, |source| vec![source], spaces, actions);
        }
    }
}
