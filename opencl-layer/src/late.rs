//! Writes that a driver gets once their bytes are there and what must end before them has
//! ended.
//!
//! They go to a queue of their own at their device, where no command of the program is in
//! front of them. Commands wait for an event that ends with the write.

use std::sync::Arc;

use libc::c_void;
use opencl_sys::{CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, cl_int, cl_mem};

use crate::call::Waits;
use crate::context::Context;
use crate::native::{Native, UserEvent, when_all_ended};
use crate::own_queue::Lane;
use crate::own_queue::OwnQueue;
use crate::process_end::WRITES;
use crate::process_end::while_alive;
use crate::status::Fallible;

/// A write from host memory, which stays until the write has ended.
pub struct LateWrite {
    pub mem: cl_mem,
    pub at: usize,
    pub size: usize,
    pub from: *const c_void,
}

// SAFETY: drivers' handles may be used by every thread, and events order the uses of the
// bytes.
unsafe impl Send for LateWrite {}

/// Has a write enqueued when all of `before` have ended. The result ends with the write.
pub fn write(
    context: &Context,
    place: usize,
    write: LateWrite,
    before: &[Arc<Native>],
) -> Fallible<Arc<Native>> {
    let mut lane = context.lane_for_questions(place);
    lane.queue = match context.places[place].late.get() {
        Some(queue) => queue.handle(),
        None => {
            // Only one command at a time is given to drivers, so nobody else makes it.
            let made = OwnQueue::new(context.site(place))?;
            context.places[place].late.get_or_init(|| made).handle()
        }
    };
    let user = UserEvent::new(context.domain(place))?;
    let end = Native::of_user(&user, lane.domain);
    let (failed, waited) = (Arc::clone(&end), before.to_vec());
    when_all_ended(before, move || {
        WRITES.run(move || {
            while_alive(|| match write.enqueue(&lane, &waited) {
                Ok(native) => {
                    let finish = move |code: cl_int| {
                        if code < 0 {
                            failed.fail(code);
                        }
                        user.complete();
                    };
                    native.then(finish);
                }
                Err(code) => {
                    failed.fail(code);
                    user.complete();
                }
            });
        });
    });
    Ok(end)
}

impl LateWrite {
    fn enqueue(&self, lane: &Lane, waited: &[Arc<Native>]) -> Fallible<Arc<Native>> {
        let failed = |native: &Arc<Native>| native.execution_status().is_ok_and(|code| code < 0);
        if waited.iter().any(failed) {
            return Err(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        }
        let native = lane.given(&Waits::default(), |call| {
            call.write(self.mem, self.at, self.size, self.from)
        })?;
        lane.flush()?;
        Ok(native)
    }
}
