//! What a node asks other nodes for: each block once, however many subtasks read it. What it
//! has got it may have to send on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::copies::Relayed;
use super::{Action, Message, RequestId};
use crate::cluster::NodeId;
use crate::cluster::space::{Directory, Holder, Part, Rectangles, SpaceId, Spaces};
use crate::cluster::task::{Task, TaskId};
use crate::spread::Network;

/// A request, and who needs what it brings.
struct Request {
    holder: NodeId,
    parts: Vec<Part>,
    bytes: u64,
    here: bool,
    /// Subtasks that wait or run here and read what it brings.
    users: u64,
    /// When it lost the last one.
    unused: Option<u64>,
    /// The requests of other nodes that it answers when it is here.
    relays: Vec<(NodeId, RequestId)>,
}

/// The requests of a task.
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
    brings: HashMap<SpaceId, Directory>,
    /// The requests that each subtask needs.
    needs: HashMap<u64, BTreeSet<u64>>,
    /// Requests without users, by when they lost the last one.
    unused: BTreeMap<u64, u64>,
    unused_bytes: u64,
    clock: u64,
    /// Who answers for lost nodes.
    heirs: HashMap<NodeId, NodeId>,
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
        heirs: HashMap<NodeId, NodeId>,
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
            heirs,
        }
    }

    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Whether a node is lost, as far as this one was told.
    pub fn is_lost(&self, node: NodeId) -> bool {
        self.heirs.contains_key(&node)
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
        while let Some(&heir) = self.heirs.get(&node) {
            node = heir;
        }
        node
    }

    /// Asks for what a subtask reads and this node neither has nor has asked for. The
    /// result is whether it reads what other nodes have.
    pub fn fetch(
        &mut self,
        subtask: u64,
        task: &Arc<dyn Task>,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) -> bool {
        let mut needs = BTreeSet::new();
        let mut lacks: BTreeMap<NodeId, Vec<Part>> = BTreeMap::new();
        // The same by space, as blocks that the subtask reads may have elements in common.
        let mut lacked: HashMap<SpaceId, Rectangles<()>> = HashMap::new();
        let parts = task.reads(subtask).into_iter();
        for part in parts.filter(|part| !spaces.is_made(part.space)) {
            let directory = spaces.directory(part.space);
            // A directory's blocks have no elements in common.
            let mut found = Vec::new();
            for (block, holder) in directory.holders(&part.block) {
                let holder = self.holder(holder.node);
                if holder == self.me {
                    continue;
                }
                let brings = self.brings.entry(part.space).or_default();
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
                let before = lacked.get(&part.space).into_iter();
                for (known, ..) in before.flat_map(|before| before.overlapping(&block)) {
                    rest = rest.iter().flat_map(|piece| piece.without(known)).collect();
                }
                let space = part.space;
                let rest = rest.into_iter().map(|block| Part { space, block });
                found.extend(rest.map(|part| (holder, part)));
            }
            for (holder, part) in found {
                let lacked = lacked.entry(part.space).or_default();
                // No two blocks begin at the same element.
                lacked.insert(part.block.clone(), 0, ());
                lacks.entry(holder).or_default().push(part);
            }
        }
        for (holder, parts) in lacks {
            let alone = |part: &Part| travels_alone(spaces.bytes(part), self.network);
            let (large, small): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(alone);
            let large = large.into_iter().map(|part| vec![part]);
            for parts in large.chain((!small.is_empty()).then_some(small)) {
                needs.insert(self.ask(holder, parts, spaces, actions));
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
        parts: Vec<Part>,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        for part in &parts {
            let brings = self.brings.entry(part.space).or_default();
            let node = NodeId(number as u32);
            let initial = false;
            brings.set(&part.block, Holder { node, initial });
        }
        actions.push(Action::Send {
            to: holder,
            message: Message::Fetch {
                task: self.task,
                request: RequestId(number),
                parts: parts.clone(),
            },
        });
        let bytes = parts.iter().map(|part| spaces.bytes(part)).sum();
        let request = Request {
            holder,
            parts,
            bytes,
            here: false,
            users: 0,
            unused: None,
            relays: Vec::new(),
        };
        self.requests.insert(number, request);
        self.open += 1;
        self.open_bytes += bytes;
        number
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
                self.open -= 1;
                self.open_bytes -= asked.bytes;
                for (to, request) in std::mem::take(&mut asked.relays) {
                    let parts = asked.parts.clone();
                    actions.push(Action::Serve { to, request, parts });
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
        let Relayed { to, request, part } = relayed;
        let brings = self.brings.entry(part.space).or_default();
        let numbers = brings.holders(&part.block);
        let numbers: Vec<u64> = numbers.map(|(_, of)| u64::from(of.node.0)).collect();
        let [number] = numbers[..] else { return false };
        let asked = self.requests.get_mut(&number);
        let Some(asked) = asked.filter(|asked| asked.parts[..] == [part.clone()]) else {
            return false;
        };
        match asked.here {
            true => actions.push(Action::Serve {
                to: *to,
                request: *request,
                parts: asked.parts.clone(),
            }),
            false => asked.relays.push((*to, *request)),
        }
        true
    }

    /// A subtask reads more than before: what is missing of it is asked for.
    pub fn fetch_again(
        &mut self,
        subtask: u64,
        task: &Arc<dyn Task>,
        spaces: &Spaces,
        actions: &mut Vec<Action>,
    ) {
        let before = self.needs.remove(&subtask).unwrap_or_default();
        self.fetch(subtask, task, spaces, actions);
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

    /// Keeps what nobody needs now, and forgets what was not used for longest if that is
    /// too much.
    fn keep_unused(&mut self, number: u64, actions: &mut Vec<Action>) {
        let Some(request) = self.requests.get_mut(&number) else {
            return;
        };
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
        for part in request.parts {
            let brings = self.brings.entry(part.space).or_default();
            let initial = false;
            brings.set(
                &part.block,
                Holder {
                    node: GONE,
                    initial,
                },
            );
        }
    }

    /// Another node answers for what a lost one has, so what was asked of it and has not
    /// come is asked again.
    pub fn lost(&mut self, lost: NodeId, heir: NodeId, spaces: &Spaces, actions: &mut Vec<Action>) {
        self.heirs.insert(lost, heir);
        let open = |(number, request): (&u64, &Request)| {
            (request.holder == lost && !request.here).then_some(*number)
        };
        let open: Vec<u64> = self.requests.iter().filter_map(open).collect();
        for number in open {
            let Some(request) = self.requests.get(&number) else {
                continue;
            };
            let (parts, users) = (request.parts.clone(), request.users);
            self.forget(number);
            let holder = self.holder(lost);
            let again = (holder != self.me).then(|| self.ask(holder, parts, spaces, actions));
            for needs in self.needs.values_mut() {
                if needs.remove(&number) {
                    needs.extend(again);
                }
            }
            if let Some(request) = again.and_then(|again| self.requests.get_mut(&again)) {
                request.users = users;
            }
        }
    }
}
