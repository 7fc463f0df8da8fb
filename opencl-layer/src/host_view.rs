//! Buffers in a program's own memory, as programs on CPUs see them.
//!
//! A CPU's driver computes in the memory of `CL_MEM_USE_HOST_PTR` itself, and many
//! programs for CPUs rely on it: they read results there after they have waited, and
//! change inputs there before a launch, without mapping. Where all devices of a context
//! say that they are CPUs, this is so for several places as well: what commands have
//! written is brought to the program's memory when the program has waited, and what the
//! host has is taken as changed whenever a command uses it.

use std::ops::Range;
use std::sync::Arc;

use crate::command::{Command, Use};
use crate::mem::{HostView, Mem};
use crate::native::Native;
use crate::queue::Queue;
use crate::status::Fallible;

/// The buffer in a program's memory that a use belongs to, with the range in it.
fn viewed(used: &Use) -> Option<(&Mem, &HostView, Range<usize>)> {
    let (root, range) = used.mem.in_root(&used.range);
    let view = root.view.as_ref().filter(|_| !used.by_host)?;
    Some((root, view, range))
}

/// Whether what a command writes must be found again.
pub fn needs_event(command: &Command) -> bool {
    command.writes().any(|used| viewed(used).is_some())
}

/// Takes what the host has of a command's buffers as changed by the host.
pub fn before(command: &Command) {
    for (root, _, range) in command.reads().filter_map(viewed) {
        root.host_may_have_written(&range);
    }
}

/// Notes what a command writes.
pub fn after(command: &Command, native: Option<&Arc<Native>>) {
    let Some(native) = native else { return };
    for (_, view, range) in command.writes().filter_map(viewed) {
        view.written(range, native);
    }
}

/// Brings what commands have written to the program's memory, once they have ended. The
/// program has just waited on this queue, or for an event of it.
pub fn show(queue: &Queue) -> Fallible<()> {
    let context = &queue.context;
    let mems = context.viewed();
    if mems.is_empty() {
        return Ok(());
    }
    let host = context.places.len();
    let mut arriving = Vec::new();
    {
        let _issuing = context.issuing();
        let mut state = queue.state();
        for mem in &mems {
            let ended = mem.view.as_ref().map(HostView::take_ended);
            for range in ended.unwrap_or_default() {
                arriving.extend(mem.bring(queue, &mut state, &range, host, &[])?);
            }
        }
    }
    arriving.iter().try_for_each(|native| native.wait())
}
