//! The order of one queue's commands when they go to several places.
//!
//! In order, each command waits for the one before it wherever that was. Out of order, a
//! command waits for its own list and for the last barrier. A marker or a barrier without
//! a list waits for all that its queue has got, at all places.

use std::sync::Arc;

use opencl_sys::{CL_COMMAND_BARRIER, CL_COMMAND_MARKER, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};

use crate::call::Waits;
use crate::command::Command;
use crate::event::Event;
use crate::native::Native;
use crate::own_queue::Lane;
use crate::queue::{Queue, State};
use crate::status::Fallible;

impl Queue {
    /// Whether a command may start before the one before it has ended.
    pub fn is_unordered(&self) -> bool {
        self.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0
    }
}

fn is_barrier(command: &Command) -> bool {
    command.kind == CL_COMMAND_BARRIER
}

/// What must end before a command of a driver's queue, beside its own wait list.
pub fn before(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    lane: &Lane,
) -> Fallible<Vec<Arc<Native>>> {
    let mut before = Vec::new();
    if !queue.is_unordered() {
        if let Some(last) = state.last_to_use().filter(|last| last.queue != lane.queue) {
            before.push(last.marker()?);
        }
        return Ok(before);
    }
    before.extend(state.barrier.clone());
    let joins = is_barrier(command) || command.kind == CL_COMMAND_MARKER;
    if joins && command.waits.is_empty() {
        for lane in state.lanes_to_use() {
            before.push(lane.marker()?);
        }
    }
    Ok(before)
}

/// What must end before a command that a program's wait list names, for the queues of a domain.
pub fn listed(command: &Command, domain: usize) -> Fallible<Vec<Arc<Native>>> {
    let natives = command.waits.iter();
    let natives = natives.map(|event| Event::native(event, domain));
    natives.filter_map(Result::transpose).collect()
}

/// Brings what a command reads to a place, for work that it does not ask for and that goes to
/// another queue of the drivers than itself. The result is what that work waits for.
pub fn brought(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    lane: &Lane,
    mut before: Vec<Arc<Native>>,
) -> Fallible<Waits> {
    before.extend(bring(queue, state, command, lane.place, &before)?);
    queue.context.waits(lane.domain, before)
}

/// Brings what a command at a place reads to where it has its bytes, after `before`. The result
/// is what must end before they are there.
pub fn bring(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    place: usize,
    before: &[Arc<Native>],
) -> Fallible<Vec<Arc<Native>>> {
    let mut copies = Vec::new();
    for used in command.reads() {
        let to = used.place(&queue.context, place);
        copies.extend(used.mem.bring(queue, state, &used.range, to, before)?);
    }
    Ok(copies)
}

/// What must end before the hidden copies of a command. They go to other queues of the
/// drivers than the command itself, so they wait for the command before it wherever that
/// was.
pub fn before_copies(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    lane: &Lane,
) -> Fallible<Vec<Arc<Native>>> {
    let mut before = before(queue, state, command, lane)?;
    let last = state.last_to_use().filter(|last| last.queue == lane.queue);
    if let Some(last) = last.filter(|_| !queue.is_unordered()) {
        before.push(last.marker()?);
    }
    Ok(before)
}

/// Whether commands that follow will wait for this one's event.
pub fn needs_event(queue: &Queue, command: &Command) -> bool {
    !queue.context.is_single() && queue.is_unordered() && is_barrier(command)
}

/// Notes that a command has been given to a driver's queue.
pub fn after(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    lane: Lane,
    native: Option<&Arc<Native>>,
) {
    state.last = Some(lane);
    if needs_event(queue, command) {
        state.barrier = native.cloned();
    }
}
