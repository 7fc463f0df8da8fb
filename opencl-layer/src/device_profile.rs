//! What the devices of a context can do: copies, memory bandwidth and arithmetic.
//!
//! MultiCL's device profiler (section 5.1.1) measures "data bandwidth and instruction
//! throughput" once and keeps them. Here each measurement is a kernel of a program of our
//! own in the kernel profiles, so that it is kept as those are.

use std::ptr;
use std::time::Instant;

use opencl_sys::*;
use pdawl::policy::auto_fit::{DeviceRates, TransferCosts};
use pdawl::profile::kernels::{KernelKey, Program};

use crate::context::{Context, Place};
use crate::records;
use crate::status::{Fallible, check, driver, driver_object};

/// The kernels whose rates are measured. `fma` does 256 fused multiplications and
/// additions a work-item; `copy` reads and writes 4 bytes a work-item.
const SOURCE: &std::ffi::CStr = c"
kernel void fma_rate(global float *to) {
  float a = get_global_id(0), b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < 64; i++) {
    a = fma(a, 0.5f, 1.0f); b = fma(b, 0.5f, 1.0f);
    c = fma(c, 0.5f, 1.0f); d = fma(d, 0.5f, 1.0f);
  }
  to[get_global_id(0)] = a + b + c + d;
}
kernel void copy_rate(global float *to) {
  size_t i = get_global_id(0), n = get_global_size(0);
  to[i + n] = to[i];
}";

const FMAS: f64 = 512.0;
/// Work-items of a measurement, and bytes of a copy.
const ITEMS: usize = 1 << 20;
const SMALL: usize = 4 << 10;
const LARGE: usize = 8 << 20;
/// Measurements of each kind; the fastest counts.
const REPEATS: usize = 3;

/// What is measured at a place.
#[derive(Clone, Copy)]
enum Measured {
    ToDevice(usize),
    ToHost(usize),
    Arithmetic,
    Memory,
}

impl Measured {
    fn key(self) -> KernelKey {
        let (name, size) = match self {
            Self::ToDevice(bytes) => ("to device", bytes),
            Self::ToHost(bytes) => ("to host", bytes),
            Self::Arithmetic => ("fma_rate", ITEMS),
            Self::Memory => ("copy_rate", ITEMS),
        };
        KernelKey::new(
            Program::new(SOURCE.to_bytes(), "profile"),
            name,
            &[size],
            None,
            &[],
        )
    }
}

const COPIES: [Measured; 4] = [
    Measured::ToDevice(SMALL),
    Measured::ToDevice(LARGE),
    Measured::ToHost(SMALL),
    Measured::ToHost(LARGE),
];

/// What needs a compiler, which takes some drivers a third of a second.
const KERNELS: [Measured; 2] = [Measured::Arithmetic, Measured::Memory];

/// The times of copies between the places of a context. Where queues may be mapped, they are
/// measured when the context is made, as no enqueue may wait.
pub fn costs(context: &Context) -> &TransferCosts {
    context.costs.get_or_init(|| transfer_costs(context))
}

/// The times of copies between the places of a context, measured where they are unknown.
fn transfer_costs(context: &Context) -> TransferCosts {
    let host = context.places.len();
    let mut costs = TransferCosts::new(host);
    for place in 0..host {
        if measure(context, place, &COPIES).is_err() {
            continue;
        }
        let ways = [
            (
                host,
                place,
                Measured::ToDevice(SMALL),
                Measured::ToDevice(LARGE),
            ),
            (
                place,
                host,
                Measured::ToHost(SMALL),
                Measured::ToHost(LARGE),
            ),
        ];
        for (from, to, small, large) in ways {
            let seconds = |what: Measured| seconds(&context.places[place], what);
            if let (Some(latency), Some(long)) = (seconds(small), seconds(large)) {
                let bandwidth = (LARGE - SMALL) as f64 / (long - latency).max(1e-9);
                costs.set(from, to, latency, bandwidth);
            }
        }
    }
    costs
}

/// The rates of the places of a context, measured where they are unknown.
pub fn rates(context: &Context) -> Vec<DeviceRates> {
    let of = |place: usize| {
        // What cannot be measured counts as unknown.
        let _ = measure(context, place, &COPIES).and_then(|()| measure(context, place, &KERNELS));
        let seconds = |what: Measured| seconds(&context.places[place], what);
        let rate = |what: Measured, work: f64| seconds(what).map_or(0.0, |s| work / s.max(1e-9));
        DeviceRates {
            flops: rate(Measured::Arithmetic, ITEMS as f64 * FMAS),
            memory: rate(Measured::Memory, ITEMS as f64 * 8.0),
            h2d: rate(Measured::ToDevice(LARGE), LARGE as f64),
            d2h: rate(Measured::ToHost(LARGE), LARGE as f64),
        }
    };
    (0..context.places.len()).map(of).collect()
}

/// What was measured at a place, in seconds.
fn seconds(place: &Place, what: Measured) -> Option<f64> {
    records::of(what.key()).seconds(&place.profile)
}

/// Measures what is unknown of a place among `wanted`.
fn measure(context: &Context, place: usize, wanted: &[Measured]) -> Fallible<()> {
    let unknown = |what: &Measured| seconds(&context.places[place], *what).is_none();
    let unknown: Vec<Measured> = wanted.iter().copied().filter(unknown).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let mut bench = Bench::open(context, place)?;
    for what in unknown {
        // The first time includes what the driver does once.
        bench.seconds(what)?;
        let mut least = f64::INFINITY;
        for _ in 0..REPEATS {
            least = least.min(bench.seconds(what)?);
        }
        records::of(what.key()).took(&context.places[place].profile, least);
    }
    Ok(())
}

/// A queue, a buffer and a program of one place.
struct Bench<'a> {
    context: &'a Context,
    place: usize,
    queue: cl_command_queue,
    buffer: cl_mem,
    program: cl_program,
}

impl<'a> Bench<'a> {
    fn open(context: &'a Context, place: usize) -> Fallible<Self> {
        let domain = context.domain(place);
        let (table, inner, id) = (domain.table, domain.context, context.places[place].real.id);
        let mut bench = Self {
            context,
            place,
            queue: driver_object!(table, clCreateCommandQueue(inner, id, 0))?,
            buffer: ptr::null_mut(),
            program: ptr::null_mut(),
        };
        let (size, none) = (LARGE.max(ITEMS * 8), ptr::null_mut());
        bench.buffer = driver_object!(table, clCreateBuffer(inner, CL_MEM_READ_WRITE, size, none))?;
        Ok(bench)
    }

    /// Builds the program, if it is not built yet.
    fn build(&mut self) -> Fallible<()> {
        if !self.program.is_null() {
            return Ok(());
        }
        let domain = self.context.domain(self.place);
        let (table, inner) = (domain.table, domain.context);
        let id = self.context.places[self.place].real.id;
        let (mut text, length) = (SOURCE.as_ptr(), SOURCE.to_bytes().len());
        self.program = driver_object!(
            table,
            clCreateProgramWithSource(inner, 1, &raw mut text, &raw const length)
        )?;
        let (program, none) = (self.program, ptr::null_mut());
        check(driver!(
            table,
            clBuildProgram(program, 1, &id, c"".as_ptr(), None, none)
        ))
    }

    fn seconds(&mut self, what: Measured) -> Fallible<f64> {
        let table = self.context.domain(self.place).table;
        let (queue, buffer) = (self.queue, self.buffer);
        let (none, no_event) = (ptr::null(), ptr::null_mut());
        match what {
            Measured::ToDevice(bytes) | Measured::ToHost(bytes) => {
                let mut memory = vec![1_u8; bytes];
                let address = memory.as_mut_ptr().cast();
                let began = Instant::now();
                check(match what {
                    Measured::ToDevice(_) => driver!(
                        table,
                        clEnqueueWriteBuffer(
                            queue, buffer, CL_TRUE, 0, bytes, address, 0, none, no_event
                        )
                    ),
                    _ => driver!(
                        table,
                        clEnqueueReadBuffer(
                            queue, buffer, CL_TRUE, 0, bytes, address, 0, none, no_event
                        )
                    ),
                })?;
                Ok(began.elapsed().as_secs_f64())
            }
            Measured::Arithmetic => self.kernel(c"fma_rate"),
            Measured::Memory => self.kernel(c"copy_rate"),
        }
    }

    fn kernel(&mut self, name: &std::ffi::CStr) -> Fallible<f64> {
        self.build()?;
        let table = self.context.domain(self.place).table;
        let kernel = driver_object!(table, clCreateKernel(self.program, name.as_ptr()))?;
        let run = || {
            let (size, value) = (size_of::<cl_mem>(), (&raw const self.buffer).cast());
            check(driver!(table, clSetKernelArg(kernel, 0, size, value)))?;
            let (none, events, event) = (ptr::null(), ptr::null(), ptr::null_mut());
            let began = Instant::now();
            check(driver!(
                table,
                clEnqueueNDRangeKernel(self.queue, kernel, 1, none, &ITEMS, none, 0, events, event)
            ))?;
            check(driver!(table, clFinish(self.queue)))?;
            Ok(began.elapsed().as_secs_f64())
        };
        let seconds = run();
        let _ = driver!(table, clReleaseKernel(kernel));
        seconds
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        let table = self.context.domain(self.place).table;
        if !self.program.is_null() {
            let _ = driver!(table, clReleaseProgram(self.program));
        }
        if !self.buffer.is_null() {
            let _ = driver!(table, clReleaseMemObject(self.buffer));
        }
        let _ = driver!(table, clReleaseCommandQueue(self.queue));
    }
}
