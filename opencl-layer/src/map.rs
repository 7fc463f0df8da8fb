//! Mapping buffers.
//!
//! A context of one device lets its driver map. In others a map shows the host's copy:
//! what it lacks is copied there first, and after a map for writing the host is where the
//! bytes are valid, until a command needs them elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::c_void;
use opencl_sys::*;

use crate::boundary::{object, status};
use crate::command::{Action, Command, Use};
use crate::handle::Ref;
use crate::image_transfer::whole;
use crate::lane::{Lane, Waits};
use crate::mem::{Mapped, Mem};
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};
use crate::submit::submit;
use crate::synchronize::Marker;

struct Map {
    mem: Ref<Mem>,
    blocking: cl_bool,
    flags: cl_map_flags,
    offset: usize,
    size: usize,
    address: Arc<AtomicUsize>,
}

impl Action for Map {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mem = self.mem.at(lane.place)?;
        let mut code = CL_SUCCESS;
        let Some(map) = lane.table.clEnqueueMapBuffer else {
            return Err(CL_INVALID_OPERATION);
        };
        // SAFETY: the handles are alive and of this driver.
        let address = unsafe {
            map(
                lane.queue,
                mem,
                self.blocking,
                self.flags,
                self.offset,
                self.size,
                waits.count(),
                waits.events(),
                event,
                &mut code,
            )
        };
        check(code)?;
        self.address.store(address as usize, Ordering::Release);
        Ok(())
    }

    fn answers(&self) -> bool {
        true
    }
}

/// `clEnqueueMapBuffer`.
pub unsafe extern "C" fn enqueue_map_buffer(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    flags: cl_map_flags,
    offset: usize,
    size: usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
    code: *mut cl_int,
) -> *mut c_void {
    let make = || {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = Ref::<Mem>::of(handle)?;
        if mem.kind != CL_MEM_OBJECT_BUFFER {
            return Err(CL_INVALID_MEM_OBJECT);
        }
        if mem.context != queue.context {
            return Err(CL_INVALID_CONTEXT);
        }
        let known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
        let alone = flags & CL_MAP_WRITE_INVALIDATE_REGION != 0
            && flags & (CL_MAP_READ | CL_MAP_WRITE) != 0;
        let end = offset.checked_add(size);
        if size == 0 || end.is_none_or(|end| end > mem.size) || flags & !known != 0 || alone {
            return Err(CL_INVALID_VALUE);
        }
        let reads = flags & CL_MAP_WRITE_INVALIDATE_REGION == 0;
        let writes = flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION) != 0;
        let forbidden = |flags: cl_mem_flags| mem.flags & (flags | CL_MEM_HOST_NO_ACCESS) != 0;
        if (flags & CL_MAP_READ != 0 && forbidden(CL_MEM_HOST_WRITE_ONLY))
            || (writes && forbidden(CL_MEM_HOST_READ_ONLY))
        {
            return Err(CL_INVALID_OPERATION);
        }
        let (range, list, kind) = (
            offset..offset + size,
            (count, events),
            CL_COMMAND_MAP_BUFFER,
        );
        let blocks = blocking != CL_FALSE;
        let (address, place) = if queue.context.is_single() {
            let address = Arc::new(AtomicUsize::new(0));
            let action = Map {
                mem: mem.clone(),
                blocking: CL_FALSE,
                flags,
                offset,
                size,
                address: Arc::clone(&address),
            };
            // SAFETY: OpenCL's promises about the events.
            unsafe {
                let command = Command::new(&queue, kind, list, Vec::new(), action)?;
                submit(&queue, command, event, blocks)?;
            }
            (address.load(Ordering::Acquire), Some(0))
        } else {
            let address = mem.host_address(&range)? as usize;
            // From the map on, what the host has counts, even if it is not what a place has
            // written: nothing is to be copied over what the program writes there.
            let uses = vec![Use {
                mem: mem.clone(),
                range: range.clone(),
                reads,
                writes: !reads,
                by_host: true,
            }];
            // SAFETY: OpenCL's promises about the events.
            unsafe {
                let command = Command::new(&queue, kind, list, uses, Marker)?;
                submit(&queue, command, event, blocks)?;
            }
            (address, None)
        };
        mem.maps.lock().push(Mapped {
            address,
            range,
            writes,
            place,
        });
        Ok(address as *mut c_void)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

struct Unmap {
    mem: Ref<Mem>,
    address: usize,
}

impl Action for Unmap {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mem = self.mem.at(lane.place)?;
        let address = self.address as *mut c_void;
        check(driver!(
            lane.table,
            clEnqueueUnmapMemObject(
                lane.queue,
                mem,
                address,
                waits.count(),
                waits.events(),
                event
            )
        ))
    }
}

/// `clEnqueueUnmapMemObject`.
pub unsafe extern "C" fn enqueue_unmap_mem_object(
    queue: cl_command_queue,
    handle: cl_mem,
    address: *mut c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = Ref::<Mem>::of(handle)?;
        if mem.context != queue.context {
            return Err(CL_INVALID_CONTEXT);
        }
        let mapped = {
            let mut maps = mem.maps.lock();
            let index = maps.iter().position(|map| map.address == address as usize);
            maps.swap_remove(index.ok_or(CL_INVALID_VALUE)?)
        };
        let (list, kind) = ((count, events), CL_COMMAND_UNMAP_MEM_OBJECT);
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = match mapped.place {
                Some(_) => {
                    let (address, uses) = (mapped.address, vec![whole(&mem, mapped.writes)]);
                    Command::new(&queue, kind, list, uses, Unmap { mem, address })?
                }
                None => {
                    let uses = vec![Use {
                        mem,
                        range: mapped.range,
                        reads: false,
                        writes: mapped.writes,
                        by_host: true,
                    }];
                    Command::new(&queue, kind, list, uses, Marker)?
                }
            };
            submit(&queue, command, event, false)
        }
    })
}
