//! What the devices of a context can do: copies, memory bandwidth and arithmetic.
//!
//! MultiCL's device profiler (section 5.1.1) measures "data bandwidth and instruction
//! throughput" once and keeps them. Here each measurement is a kernel of a program of our
//! own in the kernel profiles, so that it is kept as those are.

use std::ffi::CStr;
use std::ptr;
use std::time::Instant;

use opencl_sys::*;
use pdawl::policy::auto_fit::{DeviceRates, TransferCosts};
use pdawl::profile::kernels::{KernelKey, Program};

use crate::call::OwnQueue;
use crate::context::{Context, Place};
use crate::domain::{Domain, Own, set_argument};
use crate::records;
use crate::shape::Shape;
use crate::status::Fallible;

/// The kernels whose rates are measured. `fma` does 256 fused multiplications and
/// additions a work-item; `copy` reads and writes 4 bytes a work-item.
const SOURCE: &CStr = c"
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
    domain: &'a Domain,
    device: cl_device_id,
    queue: OwnQueue,
    buffer: Own,
    program: Option<Own>,
}

impl<'a> Bench<'a> {
    fn open(context: &'a Context, place: usize) -> Fallible<Self> {
        let (domain, device) = (context.domain(place), context.places[place].real.id);
        let size = LARGE.max(ITEMS * 8);
        Ok(Self {
            domain,
            device,
            queue: OwnQueue::new(domain, device)?,
            buffer: domain.buffer(CL_MEM_READ_WRITE, size, ptr::null_mut())?,
            program: None,
        })
    }

    /// Builds the program, if it is not built yet.
    fn build(&mut self) -> Fallible<cl_program> {
        if self.program.is_none() {
            let program = self.domain.program(SOURCE.to_bytes())?;
            (self.domain).build(program.handle(), &[self.device], c"")?;
            self.program = Some(program);
        }
        let program = self.program.as_ref().map(Own::handle);
        program.ok_or(CL_INVALID_PROGRAM)
    }

    fn seconds(&mut self, what: Measured) -> Fallible<f64> {
        let (call, buffer) = (self.queue.now(), self.buffer.handle());
        match what {
            Measured::ToDevice(bytes) | Measured::ToHost(bytes) => {
                let mut memory = vec![1_u8; bytes];
                let address = memory.as_mut_ptr().cast();
                let began = Instant::now();
                match what {
                    Measured::ToDevice(_) => call.write(buffer, 0, bytes, address)?,
                    _ => call.read(buffer, 0, bytes, address)?,
                }
                Ok(began.elapsed().as_secs_f64())
            }
            Measured::Arithmetic => self.kernel(c"fma_rate"),
            Measured::Memory => self.kernel(c"copy_rate"),
        }
    }

    fn kernel(&mut self, name: &CStr) -> Fallible<f64> {
        let program = self.build()?;
        let kernel = self.domain.kernel(program, name)?;
        let buffer = self.buffer.handle();
        let value = (size_of::<cl_mem>(), (&raw const buffer).cast());
        set_argument(self.domain.table, kernel.handle(), 0, value)?;
        let shape = Shape {
            offset: None,
            global: vec![ITEMS],
            local: None,
        };
        let began = Instant::now();
        self.queue.now().launch(kernel.handle(), &shape)?;
        self.queue.finish()?;
        Ok(began.elapsed().as_secs_f64())
    }
}
