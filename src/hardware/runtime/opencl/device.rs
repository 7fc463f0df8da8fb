//! An open device: its identity, its limits and its memory.

use std::ffi::c_void;
use std::sync::Arc;

use cl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_write_buffer, flush,
};
use cl3::event::wait_for_events;
use cl3::memory::{CL_MEM_READ_WRITE, create_buffer};
use cl3::types::{CL_TRUE, cl_int};
use opencl3::device::Device as ClId;

use super::events::stamps;
use super::failure::{Failure, silently};
use super::handle::{Context, Event, Mem, Queue};
use super::open::Division;
use super::warnings::is_pocl;
use crate::machine::Device;
use crate::runtime::RuntimeError;
use crate::runtime::device_clock::Clock;
use crate::runtime::driven;

/// Tiny writes that calibrate a device's clock.
const CALIBRATION_SAMPLES: usize = 16;

/// An open device. It has no stamps where its driver stamps all commands alike, as Mesa's rusticl
/// (22.3) does.
pub(super) type OpenDevice = driven::OpenDevice<ClDevice>;

/// What OpenCL has of a device.
pub(super) struct ClDevice {
    pub id: ClId,
    /// Index of its context.
    pub context: usize,
    /// Most work-items a group, along each dimension.
    pub group_limits: Vec<usize>,
    /// Whether its commands' events are polled; see [`needs_polling`].
    pub polled: bool,
    /// Whether every queue needs its own program; see [`super::queue_program`].
    pub program_per_queue: bool,
    /// A queue for the backend's own commands.
    pub service: Arc<Queue>,
    /// The division that a sub-device is of, in use until the queues are released.
    _division: Option<Arc<Division>>,
}

/// Whether a driver's callbacks are better avoided, and its events polled.
///
/// NVIDIA's driver calls back from a thread that spins on one core all the time (580.159 on an
/// H200), and notifies 53 us late. Where the system preempts only at timer ticks (100 a second
/// there), a thread that wakes on that core waits for the next tick: steps of 3 ms took 10 or 20.
fn needs_polling(driver: &str) -> bool {
    driver.starts_with("NVIDIA")
}

/// An in-order queue, with or without profiling.
pub(super) fn new_queue(
    context: &Context,
    device: ClId,
    profiling: bool,
) -> Result<Queue, Failure> {
    let properties = match profiling {
        true => CL_QUEUE_PROFILING_ENABLE,
        false => 0,
    };
    let call = "clCreateCommandQueue";
    // SAFETY: context and device are alive; the properties are plain bits.
    let raw = unsafe { create_command_queue(context.raw(), device.id(), properties) };
    raw.map(Queue::new).map_err(|code| Failure { call, code })
}

impl OpenDevice {
    /// Opens a device of a context and calibrates its clock.
    pub(super) fn open(
        info: Device,
        id: ClId,
        division: Option<Arc<Division>>,
        (index, context): (usize, &Context),
        clock: Clock,
    ) -> Result<Self, RuntimeError> {
        let service = new_queue(context, id, true).map_err(|failure| failure.on(&info.name))?;
        let own = ClDevice {
            id,
            context: index,
            group_limits: id.max_work_item_sizes().unwrap_or_default(),
            polled: needs_polling(&info.driver),
            program_per_queue: is_pocl(&info.driver),
            service: Arc::new(service),
            _division: division,
        };
        let mut device = Self::new(info, clock, own);
        device.has_stamps = device.calibrate(context)?;
        Ok(device)
    }

    /// The error of a call that failed with this code; records a loss.
    pub(super) fn failed_at(&self, call: &'static str, code: cl_int) -> RuntimeError {
        self.failed(Failure { call, code })
    }

    /// Queries the device; one that does not answer is lost.
    pub(super) fn probe(&self) {
        if let Ok(false) = self.id.available() {
            self.mark_lost("its driver no longer offers it");
        }
        if let Err(code) = flush(self.service.raw()) {
            self.mark_lost(&silently("clFlush", code));
        }
    }

    /// Calibrates its clock. `false` if that stands still.
    fn calibrate(&self, context: &Context) -> Result<bool, RuntimeError> {
        let scratch = self.create(context, 64)?;
        let mut samples = Vec::with_capacity(CALIBRATION_SAMPLES);
        for _ in 0..CALIBRATION_SAMPLES {
            let before = self.clock.now();
            let event = self.touch(&scratch)?;
            let after = self.clock.now();
            if let Some(stamped) = stamps(&event, &event) {
                samples.push((before, stamped, after));
            }
        }
        self.clock.calibrate(&samples);
        let begins = samples.iter().map(|(_, stamped, _)| stamped.started);
        Ok(begins.clone().min() < begins.max())
    }

    /// Allocates a buffer, and touches it, since drivers may defer the allocation
    /// until the first use.
    pub(super) fn alloc(&self, context: &Context, bytes: u64) -> Result<Mem, RuntimeError> {
        let mem = self.create(context, bytes)?;
        self.touch(&mem).map_err(|error| match error {
            RuntimeError::Call { why, .. } => self.out_of_memory(bytes, &why),
            other => other,
        })?;
        Ok(mem)
    }

    /// Flushes a queue. A device that cannot do that is lost, and the next call says
    /// so.
    pub(super) fn flush(&self, queue: &Queue) {
        if let Err(code) = flush(queue.raw()) {
            let _ = self.failed_at("clFlush", code);
        }
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
        let call = "clCreateBuffer";
        self.no_memory(bytes, Failure { call, code })
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
            .map_err(|code| self.failed_at("clEnqueueWriteBuffer", code))?;
        // Some drivers return before the event is marked complete, and its
        // times can be read only then.
        wait_for_events(&[event.raw()]).map_err(|code| self.failed_at("clWaitForEvents", code))?;
        Ok(event)
    }
}
