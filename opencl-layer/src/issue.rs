//! Gives commands to drivers, where their data are.
//!
//! A context of one device has nothing to move: its commands go straight through. In
//! others each command says which bytes of which memory objects it reads and writes. What
//! the command's place does not have is copied there first, by hidden commands that wait
//! for what the command itself waits for. That suffices: whoever wrote the bytes was
//! ordered before this command by the program.

use std::ptr;
use std::sync::Arc;

use crate::command::{Command, Use};
use crate::host_view;
use crate::native::Native;
use crate::order;
use crate::own_queue::Lane;
use crate::own_time;
use crate::queue::{Queue, State};
use crate::report;
use crate::settings::settings;
use crate::status::Fallible;

/// Gives a command to the driver of a place, after the copies that it needs.
pub fn issue(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    lane: Lane,
    with_event: bool,
) -> Fallible<Option<Arc<Native>>> {
    let (context, place) = (&queue.context, lane.place);
    let mut before = order::listed(command, lane.domain)?;
    if !context.is_single() {
        host_view::before(command);
        let lacks = |used: &Use| {
            let to = used.place(context, place);
            used.mem.missing_bytes(&used.range, to) > 0
        };
        before.extend(match command.reads().any(lacks) {
            true => order::before_copies(queue, state, command, &lane)?,
            false => order::before(queue, state, command, &lane)?,
        });
        let mut copies = order::bring(queue, state, command, place, &before)?;
        // What another thread had shown may still be on its way to bytes that the host writes.
        let host = context.places.len();
        let uses = command.uses.iter();
        for used in uses.filter(|used| used.by_host && !used.reads) {
            copies.extend(used.mem.arriving(&used.range, host));
        }
        if !copies.is_empty() {
            // A command of another queue may need the same bytes. The program does not know
            // that it waits for this one, and need not flush it.
            state.flush()?;
        }
        before.extend(copies);
    }
    let waits = context.waits(lane.domain, before)?;
    let mut event = ptr::null_mut();
    let seen = order::needs_event(queue, command) || host_view::needs_event(command);
    let out = match with_event || seen || settings().traces() {
        true => &raw mut event,
        false => ptr::null_mut(),
    };
    own_time::driver(|| command.give(&lane, &waits, out))?;
    if !context.is_single() {
        for used in command.writes() {
            used.mem.written(&used.range, used.place(context, place));
        }
    }
    let native = (!event.is_null()).then(|| lane.native(event));
    host_view::after(command, native.as_ref());
    order::after(queue, state, command, lane, native.as_ref());
    report::issued(state, command, &lane, native.as_ref());
    Ok(native)
}
