//! Commands of programs. All are one kind of command, which says as data what it uses, what it
//! waits for and what a driver is called with; what is done with it is the same for all.

use std::ops::Range;

use libc::c_void;
use opencl_sys::*;

use crate::call::{Call, Waits};
use crate::context::Context;
use crate::event::Event;
use crate::form::Form;
use crate::handle::{self, Ref};
use crate::launch::Launch;
use crate::mem::Mem;
use crate::own_queue::Lane;
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
    pub fn new(mem: &Ref<Mem>, range: Range<usize>, (reads, writes): (bool, bool)) -> Self {
        Self {
            mem: mem.clone(),
            range,
            reads,
            writes,
            by_host: false,
        }
    }

    pub fn read(mem: &Ref<Mem>, range: Range<usize>) -> Self {
        Self::new(mem, range, (true, false))
    }

    pub fn write(mem: &Ref<Mem>, range: Range<usize>) -> Self {
        Self::new(mem, range, (false, true))
    }

    /// An image is used as a whole: its bytes are where it lives and nowhere else.
    pub fn whole(mem: &Ref<Mem>, writes: bool) -> Self {
        Self::new(mem, 0..mem.size, (true, writes))
    }

    /// Where a command at a place has its bytes. The place after the last is the host.
    pub fn place(&self, context: &Context, place: usize) -> usize {
        match self.by_host {
            true => context.places.len(),
            false => place,
        }
    }
}

/// Memory of a program, which keeps it until the command has ended.
#[derive(Clone, Copy)]
pub struct Pointer(*mut c_void);

// SAFETY: as the program promises.
unsafe impl Send for Pointer {}

impl Pointer {
    pub fn new(address: *const c_void) -> Fallible<Self> {
        match address.is_null() {
            true => Err(CL_INVALID_VALUE),
            false => Ok(Self(address.cast_mut())),
        }
    }

    pub fn address(&self) -> *mut c_void {
        self.0
    }
}

/// The driver's memory objects of a command's uses, by their positions.
pub type Mems<'a> = dyn Fn(usize) -> Fallible<cl_mem> + 'a;

/// What a driver is asked to do.
enum Action {
    Launch(Box<Launch>),
    Call(Box<GiveCall>),
}

type GiveCall = dyn Fn(&Call, &Mems) -> Fallible<()> + Send;

/// What a command does with what it uses.
pub struct Work {
    uses: Vec<Use>,
    action: Action,
}

impl Work {
    /// A call of a driver.
    pub fn new(
        uses: impl Into<Vec<Use>>,
        call: impl Fn(&Call, &Mems) -> Fallible<()> + Send + 'static,
    ) -> Fallible<Self> {
        let (uses, action) = (uses.into(), Action::Call(Box::new(call)));
        Ok(Self { uses, action })
    }

    /// Nothing but that what it reads is brought, and what it waits for has ended.
    pub fn nothing(uses: impl Into<Vec<Use>>) -> Fallible<Self> {
        Self::new(uses, |call, _| call.marker())
    }

    pub fn launch(uses: Vec<Use>, launch: Launch) -> Self {
        let action = Action::Launch(Box::new(launch));
        Self { uses, action }
    }
}

/// A command of a program.
pub struct Command {
    pub kind: cl_command_type,
    pub uses: Vec<Use>,
    pub waits: Vec<Ref<Event>>,
    action: Action,
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
        Work { uses, action }: Work,
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
            action,
        })
    }

    /// Calls the driver of a queue. With `event`, it gets the driver's event.
    pub fn give(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let call = lane.call(waits, event);
        match &self.action {
            Action::Launch(launch) => {
                let shape = launch.shape_at(lane.place)?;
                launch.range(lane, Form::Whole, &shape, &[], &call)
            }
            Action::Call(give) => give(&call, &|index| self.uses[index].mem.at(lane.place)),
        }
    }

    /// The launch, if it is one.
    pub fn launch(&self) -> Option<&Launch> {
        match &self.action {
            Action::Launch(launch) => Some(launch),
            Action::Call(_) => None,
        }
    }

    /// Whether any place can do it, so that it goes where its data are.
    pub fn follows_data(&self) -> bool {
        matches!(
            self.kind,
            CL_COMMAND_READ_BUFFER
                | CL_COMMAND_READ_BUFFER_RECT
                | CL_COMMAND_COPY_BUFFER
                | CL_COMMAND_COPY_BUFFER_RECT
        )
    }

    /// Whether the program needs the driver's answer at once, so that the command cannot be
    /// recorded. Buffers are mapped by drivers in contexts of one device only, where nothing is
    /// recorded.
    pub fn answers(&self) -> bool {
        self.kind == CL_COMMAND_MAP_IMAGE
    }

    /// The only place that can run it, if there is one: an image lives at one place of its
    /// context, because drivers lay images out as they like, and whatever uses it goes there.
    pub fn fixed_place(&self) -> Option<usize> {
        self.uses.iter().find_map(|used| used.mem.only_place)
    }

    /// What it reads.
    pub fn reads(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|used| used.reads)
    }

    /// What it writes.
    pub fn writes(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|used| used.writes)
    }

    /// The bytes that it reads and a place does not have.
    pub fn missing_bytes(&self, place: usize) -> u64 {
        self.reads()
            .map(|used| used.mem.missing_bytes(&used.range, place))
            .sum()
    }
}
