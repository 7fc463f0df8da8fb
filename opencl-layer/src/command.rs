//! Gives commands to drivers, where their data are.
//!
//! A context of one device has nothing to move: its commands go straight through. In
//! others each command says which bytes of which memory objects it reads and writes. What
//! the command's place does not have is copied there first, by hidden commands that wait
//! for what the command itself waits for. That suffices: whoever wrote the bytes was
//! ordered before this command by the program.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use opencl_sys::{
    CL_INVALID_CONTEXT, CL_INVALID_EVENT_WAIT_LIST, CL_OUT_OF_RESOURCES, cl_command_type, cl_event,
    cl_uint,
};

use crate::context::Context;
use crate::event::Event;
use crate::handle::{self, Ref};
use crate::host_view;
use crate::launch::Launch;
use crate::mem::Mem;
use crate::native::Native;
use crate::order;
use crate::queue::{Lane, Queue, Recorded, State};
use crate::report;
use crate::schedule;
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
    fn place(&self, context: &Context, place: usize) -> usize {
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

/// A wait list for a driver.
pub struct Waits(Vec<cl_event>);

impl Waits {
    pub fn count(&self) -> cl_uint {
        self.0.len() as cl_uint
    }

    /// The events, or null if there are none.
    pub fn events(&self) -> *const cl_event {
        match self.0.is_empty() {
            true => ptr::null(),
            false => self.0.as_ptr(),
        }
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

/// Gives a command to a driver, or records it while the scheduler does not know yet where
/// it should go.
///
/// # Safety
/// `event` is null or valid for a write.
pub unsafe fn submit(
    queue: &Ref<Queue>,
    command: Command,
    event: *mut cl_event,
    blocking: bool,
) -> Fallible<()> {
    let own = report::own::begin();
    for before in &command.waits {
        schedule::force_before(queue, before);
    }
    let (native, made, command, done) = {
        let _issuing = queue.context.issuing();
        let mut state = queue.state();
        schedule::advance_locked(queue, &mut state);
        if command.action.answers() {
            schedule::force_locked(queue, &mut state);
        }
        let done = std::mem::take(&mut state.done);
        if schedule::must_record(queue, &mut state, &command) {
            let made = Event::recorded(queue, command.kind);
            let event = made.clone();
            state.recorded.push_back(Recorded { command, event });
            (None, Some(made), None, done)
        } else {
            let with_event = blocking || !event.is_null();
            let native = schedule::place_and_issue(queue, &mut state, &command, with_event)?;
            let made = native.as_ref().filter(|_| !event.is_null()).map(|native| {
                let made = Event::recorded(queue, command.kind);
                Event::issued(&made, Arc::clone(native));
                made
            });
            (native, made, Some(command), done)
        }
    };
    // What commands kept alive may end now, which takes locks.
    drop((command, done));
    if let Some(made) = made.as_ref().filter(|_| !event.is_null()) {
        // SAFETY: promised by the caller.
        unsafe { *event = made.give() };
    }
    drop(own);
    if blocking {
        // A driver that waits for the event flushes only the queue of its own that has it.
        Queue::flush(queue)?;
        match (native, made) {
            (Some(native), _) => native.wait()?,
            (None, Some(made)) if Event::wait(&made)? < 0 => {
                return Err(CL_OUT_OF_RESOURCES);
            }
            _ => {}
        }
        schedule::synchronised(queue);
        host_view::show(queue)?;
    }
    Ok(())
}

/// Gives a command to the driver of a place, after the copies that it needs.
pub fn issue(
    queue: &Queue,
    state: &mut State,
    command: &Command,
    lane: Lane,
    with_event: bool,
) -> Fallible<Option<Arc<Native>>> {
    let (context, place) = (&queue.context, lane.place);
    let mut before = Vec::new();
    for event in &command.waits {
        before.extend(Event::native(event, lane.domain)?);
    }
    if !context.is_single() {
        host_view::before(command);
        let lacks = |used: &Use| {
            let to = used.place(context, place);
            used.reads && used.mem.missing_bytes(&used.range, to) > 0
        };
        before.extend(match command.uses.iter().any(lacks) {
            true => order::before_copies(queue, state, command, &lane)?,
            false => order::before(queue, state, command, &lane)?,
        });
        let mut copies = Vec::new();
        for used in command.uses.iter().filter(|used| used.reads) {
            let to = used.place(context, place);
            copies.extend(used.mem.bring(queue, state, &used.range, to, &before)?);
        }
        // What another thread had shown may still be on its way to bytes that the host writes.
        let host = context.places.len();
        for used in command
            .uses
            .iter()
            .filter(|used| used.by_host && !used.reads)
        {
            copies.extend(used.mem.arriving(&used.range, host));
        }
        if !copies.is_empty() {
            // A command of another queue may need the same bytes. The program does not know
            // that it waits for this one, and need not flush it.
            state.flush()?;
        }
        before.extend(copies);
    }
    let events = before
        .iter()
        .map(|native| native.within(context, lane.domain));
    let waits = Waits(events.collect::<Fallible<_>>()?);
    let mut event = ptr::null_mut();
    let seen = order::needs_event(queue, command) || host_view::needs_event(command);
    let out = match with_event || seen || report::traces() {
        true => &raw mut event,
        false => ptr::null_mut(),
    };
    report::own::driver(|| command.action.enqueue(&lane, &waits, out))?;
    if !context.is_single() {
        for used in command.uses.iter().filter(|used| used.writes) {
            used.mem.written(&used.range, used.place(context, place));
        }
    }
    let native = (!event.is_null()).then(|| lane.native(event));
    host_view::after(command, native.as_ref());
    order::after(queue, state, command, lane, native.as_ref());
    report::issued(state, command, &lane, native.as_ref());
    Ok(native)
}

/// The events of a list as a wait list of one domain.
pub fn waits(context: &Context, domain: usize, natives: &[Arc<Native>]) -> Fallible<Waits> {
    let events = natives.iter().map(|native| native.within(context, domain));
    Ok(Waits(events.collect::<Fallible<_>>()?))
}
