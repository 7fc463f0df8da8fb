//! What the devices of a context can do: copies, memory bandwidth and arithmetic.
//!
//! MultiCL's device profiler (section 5.1.1) measures "data bandwidth and instruction
//! throughput" once and keeps them. Here each measurement is a kernel of a program of our
//! own in the kernel profiles, so that it is kept as those are.

use std::ffi::CStr;
use std::time::Instant;

use pdawl_api::policy::auto_fit::{DeviceRates, TransferCosts};
use pdawl_api::profile::kernels::{KernelKey, Program};

use crate::context::{Context, Place};
use crate::own_queue::{Built, OwnQueue};
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

    /// The bytes that are copied.
    fn bytes(self) -> usize {
        match self {
            Self::ToDevice(bytes) | Self::ToHost(bytes) => bytes,
            Self::Arithmetic | Self::Memory => 0,
        }
    }

    /// The kernel that runs.
    fn kernel(self) -> Option<&'static CStr> {
        match self {
            Self::ToDevice(_) | Self::ToHost(_) => None,
            Self::Arithmetic => Some(c"fma_rate"),
            Self::Memory => Some(c"copy_rate"),
        }
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
    let queue = OwnQueue::new(context.site(place))?;
    let buffer = queue.memory(LARGE.max(ITEMS * 8))?;
    let shape = Shape {
        offset: None,
        global: vec![ITEMS],
        local: None,
    };
    let mut program: Option<Built> = None;
    for what in unknown {
        let mut bytes = vec![1_u8; what.bytes()];
        let (mem, address, size) = (buffer.mem(), bytes.as_mut_ptr().cast(), bytes.len());
        let kernel = match (what.kernel(), &program) {
            (None, _) => None,
            (Some(name), Some(program)) => Some(program.other(name)?),
            (Some(name), None) => Some(queue.program(SOURCE.to_bytes(), c"", name)?),
        };
        let run = || match (what, &kernel) {
            (_, Some(kernel)) => kernel.launch(&shape).and_then(|()| queue.finish()),
            (Measured::ToDevice(_), None) => queue.now().write(mem, 0, size, address),
            (_, None) => queue.now().read(mem, 0, size, address),
        };
        if let Some(kernel) = &kernel {
            kernel.set_memory(0, &buffer)?;
        }
        // The first time includes what the driver does once.
        run()?;
        let mut least = f64::INFINITY;
        for _ in 0..REPEATS {
            let began = Instant::now();
            run()?;
            least = least.min(began.elapsed().as_secs_f64());
        }
        records::of(what.key()).took(&context.places[place].profile, least);
        program = kernel.or(program);
    }
    Ok(())
}
