//! Commands of programs: what they use, what they wait for and what a driver is asked to do.

use std::ops::Range;

use opencl_sys::{
    CL_INVALID_CONTEXT, CL_INVALID_EVENT_WAIT_LIST, cl_command_type, cl_event, cl_uint,
};

use crate::context::Context;
use crate::event::Event;
use crate::handle::{self, Ref};
use crate::lane::{Lane, Waits};
use crate::launch::Launch;
use crate::mem::Mem;
use crate::queue::Queue;
use crate::status::Fallible;

/// Bytes of a memory object that a command uses.
#[derive(Clone)]
pub struct Use {
    pub mem: Ref<Mem>,
    pub range: Range<usize>,
    pub reads: bool,
    pub writes: bool,
    /// The host uses the bytes, not the command's place.
    pub by_host: bool,
}

impl Use {
    /// Where a command at a place has its bytes. The place after the last is the host.
    pub fn place(&self, context: &Context, place: usize) -> usize {
        match self.by_host {
            true => context.places.len(),
            false => place,
        }
    }

    pub fn read(mem: &Ref<Mem>, range: Range<usize>) -> Self {
        Self {
            mem: mem.clone(),
            range,
            reads: true,
            writes: false,
            by_host: false,
        }
    }

    pub fn write(mem: &Ref<Mem>, range: Range<usize>) -> Self {
        Self {
            mem: mem.clone(),
            range,
            reads: false,
            writes: true,
            by_host: false,
        }
    }
}

/// What a driver is asked to do.
pub trait Action: Send {
    /// Calls the driver. With `event`, it gets the driver's event.
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()>;

    /// Whether any place can do it, so that it goes where its data are.
    fn follows_data(&self) -> bool {
        false
    }

    /// Whether the program needs the driver's answer at once, so that the command cannot
    /// be recorded.
    fn answers(&self) -> bool {
        false
    }

    /// The launch, if it is one.
    fn launch(&self) -> Option<&Launch> {
        None
    }
}

/// A command of a program.
pub struct Command {
    pub kind: cl_command_type,
    pub uses: Vec<Use>,
    pub waits: Vec<Ref<Event>>,
    pub action: Box<dyn Action>,
}

impl Command {
    /// A command with the wait list that a program gave.
    ///
    /// # Safety
    /// `events` is null or valid for `count` reads.
    pub unsafe fn new(
        queue: &Ref<Queue>,
        kind: cl_command_type,
        (count, events): (cl_uint, *const cl_event),
        uses: Vec<Use>,
        action: impl Action + 'static,
    ) -> Fallible<Self> {
        if (count == 0) != events.is_null() {
            return Err(CL_INVALID_EVENT_WAIT_LIST);
        }
        // SAFETY: promised by the caller.
        let waits = unsafe { handle::list::<Event>(count, events) };
        let waits = waits.map_err(|_| CL_INVALID_EVENT_WAIT_LIST)?;
        let foreign = |context: &Ref<_>| *context != queue.context;
        if waits.iter().any(|event| foreign(&event.context))
            || uses.iter().any(|used| foreign(&used.mem.context))
        {
            return Err(CL_INVALID_CONTEXT);
        }
        Ok(Self {
            kind,
            uses,
            waits,
            action: Box::new(action),
        })
    }
}
