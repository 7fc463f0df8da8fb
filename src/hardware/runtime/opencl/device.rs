//! An open device: its identity, its limits and its memory.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_write_buffer, flush,
};
use cl3::event::wait_for_events;
use cl3::memory::{CL_MEM_READ_WRITE, create_buffer};
use cl3::types::{CL_TRUE, cl_int};
use opencl3::device::Device as ClDevice;

use super::failure::{call_error, describe, is_out_of_memory};
use super::handle::{Context, Event, Mem, Queue};
use super::partition::Division;
use super::pocl_cache::is_pocl;
use super::polling::needs_polling;
use super::stamps;
use crate::machine::Device;
use crate::runtime::RuntimeError;
use crate::runtime::device_clock::Clock;

/// Tiny writes that calibrate a device's clock.
const CALIBRATION_SAMPLES: usize = 16;

/// The state of a device that its commands share with the driver's threads.
#[derive(Debug)]
pub(super) struct Shared {
    pub name: String,
    pub clock: Clock,
    lost: OnceLock<String>,
}

impl Shared {
    pub(super) fn new(name: String, clock: Clock) -> Self {
        Self {
            name,
            clock,
            lost: OnceLock::new(),
        }
    }

    /// Records that the device is lost; the first reason is kept, and returned.
    pub(super) fn mark_lost(&self, why: &str) -> &str {
        self.lost.get_or_init(|| why.to_owned())
    }

    /// Refuses a lost device.
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        match self.lost.get() {
            None => Ok(()),
            Some(why) => Err(RuntimeError::DeviceLost {
                device: self.name.clone(),
                why: why.clone(),
            }),
        }
    }

    /// The error of a failed call; records a loss.
    pub(super) fn failed(&self, call: &'static str, code: cl_int) -> RuntimeError {
        let error = call_error(&self.name, call, code);
        if let RuntimeError::DeviceLost { why, .. } = &error {
            self.mark_lost(why);
        }
        error
    }
}

/// An open device.
pub(super) struct OpenDevice {
    pub shared: Arc<Shared>,
    pub info: Device,
    pub id: ClDevice,
    /// Index of its context.
    pub context: usize,
    /// Whether its driver stamps commands with their times. Mesa's rusticl (22.3) offers it,
    /// and stamps all of them alike.
    pub has_stamps: bool,
    /// Most work-items a group, along each dimension.
    pub group_limits: Vec<usize>,
    /// Whether its commands' events are polled; see [`super::polling`].
    pub polled: bool,
    /// Whether every queue needs its own program; see [`super::queue_program`].
    pub program_per_queue: bool,
    /// A queue for the backend's own commands.
    pub service: Arc<Queue>,
    /// Bytes allocated here.
    allocated: u64,
    /// The division that a sub-device is of, in use until the queues are released.
    _division: Option<Arc<Division>>,
}

/// An in-order queue, with or without profiling.
pub(super) fn new_queue(
    context: &Context,
    device: ClDevice,
    shared: &Shared,
    profiling: bool,
) -> Result<Queue, RuntimeError> {
    let properties = if profiling {
        CL_QUEUE_PROFILING_ENABLE
    } else {
        0
    };
    // SAFETY: context and device are alive; the properties are plain bits.
    let raw = unsafe { create_command_queue(context.raw(), device.id(), properties) };
    raw.map(Queue::new)
        .map_err(|code| shared.failed("clCreateCommandQueue", code))
}

impl OpenDevice {
    /// Opens a device of a context and calibrates its clock.
    pub(super) fn open(
        info: Device,
        id: ClDevice,
        division: Option<Arc<Division>>,
        context: (usize, &Context),
        clock: Clock,
    ) -> Result<Self, RuntimeError> {
        let shared = Arc::new(Shared::new(info.name.clone(), clock));
        let service = Arc::new(new_queue(context.1, id, &shared, true)?);
        let mut device = Self {
            shared,
            has_stamps: true,
            polled: needs_polling(&info.driver),
            program_per_queue: is_pocl(&info.driver),
            info,
            id,
            context: context.0,
            group_limits: id.max_work_item_sizes().unwrap_or_default(),
            service,
            allocated: 0,
            _division: division,
        };
        device.has_stamps = device.calibrate(context.1)?;
        Ok(device)
    }

    /// Calibrates its clock. `false` if that stands still.
    fn calibrate(&self, context: &Context) -> Result<bool, RuntimeError> {
        let scratch = self.create(context, 64)?;
        let mut samples = Vec::with_capacity(CALIBRATION_SAMPLES);
        for _ in 0..CALIBRATION_SAMPLES {
            let before = self.shared.clock.now();
            let event = self.touch(&scratch)?;
            let after = self.shared.clock.now();
            if let Some(stamped) = stamps::of(&event) {
                samples.push((before, stamped, after));
            }
        }
        self.shared.clock.calibrate(&samples);
        let begins = samples.iter().map(|(_, stamped, _)| stamped.started);
        Ok(begins.clone().min() < begins.max())
    }

    /// Allocates a buffer, and touches it, since drivers may defer the allocation
    /// until the first use.
    pub(super) fn alloc(&mut self, context: &Context, bytes: u64) -> Result<Mem, RuntimeError> {
        self.shared.check()?;
        let free = self.info.memory.saturating_sub(self.allocated);
        if bytes > free {
            return Err(self.out_of_memory(bytes, "more than the device has left"));
        }
        let mem = self.create(context, bytes)?;
        self.touch(&mem).map_err(|error| match error {
            RuntimeError::Call { why, .. } => self.out_of_memory(bytes, &why),
            other => other,
        })?;
        self.allocated += bytes;
        Ok(mem)
    }

    /// Flushes a queue. A device that cannot do that is lost, and the next call says
    /// so.
    pub(super) fn flush(&self, queue: &Queue) {
        if let Err(code) = flush(queue.raw()) {
            let _ = self.shared.failed("clFlush", code);
        }
    }

    /// Records that so many bytes were freed.
    pub(super) fn freed(&mut self, bytes: u64) {
        self.allocated = self.allocated.saturating_sub(bytes);
    }

    /// A buffer that is not touched.
    pub(super) fn create(&self, context: &Context, bytes: u64) -> Result<Mem, RuntimeError> {
        let size = usize::try_from(bytes.max(1))
            .map_err(|_| self.out_of_memory(bytes, "more than can be addressed"))?;
        // SAFETY: no host pointer is given.
        let raw =
            unsafe { create_buffer(context.raw(), CL_MEM_READ_WRITE, size, std::ptr::null_mut()) };
        raw.map(Mem::new)
            .map_err(|code| self.no_buffer(bytes, code))
    }

    /// The error of a buffer of `bytes` bytes that could not be created.
    pub(super) fn no_buffer(&self, bytes: u64, code: cl_int) -> RuntimeError {
        if is_out_of_memory(code) {
            self.out_of_memory(bytes, &describe(code))
        } else {
            self.shared.failed("clCreateBuffer", code)
        }
    }

    /// Writes a buffer's first byte and waits for that.
    fn touch(&self, mem: &Mem) -> Result<Event, RuntimeError> {
        let zero = [0u8; 1];
        // SAFETY: the buffer has a byte, and the write blocks until it has
        // read `zero`.
        let raw = unsafe {
            enqueue_write_buffer(
                self.service.raw(),
                mem.raw(),
                CL_TRUE,
                0,
                zero.len(),
                zero.as_ptr().cast::<c_void>(),
                0,
                std::ptr::null(),
            )
        };
        let event = raw
            .map(Event::new)
            .map_err(|code| self.shared.failed("clEnqueueWriteBuffer", code))?;
        // Some drivers return before the event is marked complete, and its
        // times can be read only then.
        wait_for_events(&[event.raw()])
            .map_err(|code| self.shared.failed("clWaitForEvents", code))?;
        Ok(event)
    }

    fn out_of_memory(&self, requested: u64, why: &str) -> RuntimeError {
        RuntimeError::OutOfMemory {
            device: self.info.name.clone(),
            requested,
            why: format!(
                "{why}; of its {} bytes {} are allocated here, and one allocation may have \
                 {}; choose a smaller size or limit the memory that is used",
                self.info.memory, self.allocated, self.info.max_allocation
            ),
        }
    }
}
