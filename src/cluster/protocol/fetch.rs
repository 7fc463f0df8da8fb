//! What a node asks other nodes for: each block once, however many subtasks read it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Action, Message, RequestId};
use crate::cluster::NodeId;
use crate::cluster::space::{Directory, Holder, Part, Rectangles, SpaceId, Spaces};
use crate::cluster::task::{Task, TaskId};

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
}

/// The requests of a task.
pub(super) struct Fetches {
    me: NodeId,
    task: TaskId,
    /// Bytes of fetched blocks that no subtask here needs now and that are kept for later.
    cache: u64,
    next: u64,
    requests: BTreeMap<u64, Request>,
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

/// The request of blocks that were fetched and forgotten.
const GONE: NodeId = NodeId(u32::MAX);

impl Fetches {
    /// No requests. Their numbers begin at `next`, as numbers of earlier tasks may still
    /// be answered.
    pub fn new(
        me: NodeId,
        task: TaskId,
        cache: u64,
        next: u64,
        heirs: HashMap<NodeId, NodeId>,
    ) -> Self {
        Self {
            me,
            task,
            cache,
            next,
            requests: BTreeMap::new(),
            brings: HashMap::new(),
            needs: HashMap::new(),
            unused: BTreeMap::new(),
            unused_bytes: 0,
            clock: 0,
            heirs,
        }
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
        for (holder, parts) in lacks.into_iter().filter(|(_, parts)| !parts.is_empty()) {
            needs.insert(self.ask(holder, parts, spaces, actions));
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
        };
        self.requests.insert(number, request);
        number
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
                if asked.users == 0 {
                    self.keep_unused(request.0, actions);
                }
            }
            Some(_) => {}
            // It was asked of a node that was lost, or for an earlier task.
            None => actions.push(Action::Release { request }),
        }
    }

    /// A subtask does not need its data any longer: it has ended here or went elsewhere.
    pub fn leave(&mut self, subtask: u64, actions: &mut Vec<Action>) {
        for number in self.needs.remove(&subtask).unwrap_or_default() {
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
