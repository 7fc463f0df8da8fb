//! Codelets by CUDA's libraries, against fakes that store matrices by columns and compute in
//! double precision (`fake/cublas.c` and others).
//!
//! `products`, `factors` and `transforms` compare results with references, `choice` has which
//! implementation serves, and what happens without a library or when it fails, and `graphs`
//! calls within command graphs.

mod choice;
mod factors;
mod graphs;
mod products;
mod transforms;

use std::ops::Range;
use std::sync::Arc;

use pdawl_api::codelet::{Codelet, Cost, Element, KernelSource, Precision, Value};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{
    Command, Comparison, Devices, HostMemoryId, Implementation, Launch, Memory, QueueId, Runtime,
    RuntimeError,
};

use crate::machine::{ONE, enqueue, finish, machine};

pub const BLAS: &str = "cublas-130002";
pub const SOLVER: &str = "cusolver-12000";
pub const FFT: &str = "cufft-12000";

pub const BOTH: [Precision; 2] = [Precision::F32, Precision::F64];

/// Reproducible random numbers from -1 to 1.
pub fn random(seed: u64, count: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    // Singles, so that both precisions have the same numbers.
    let mut one = || f64::from(2.0 * random.f32() - 1.0);
    (0..count).map(|_| one()).collect()
}

/// Numbers as a device has them.
pub fn bytes(element: impl Into<Element>, numbers: &[f64]) -> Vec<u8> {
    let element = element.into();
    let mut bytes = vec![0; numbers.len() * element.bytes() as usize];
    element.store(numbers.iter().copied(), &mut bytes);
    bytes
}

/// The reverse.
pub fn numbers(element: impl Into<Element>, bytes: &[u8]) -> Vec<f64> {
    pdawl_api::verify::numbers(bytes, element)
}

/// What may differ of numbers near 1.
pub fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2e-5,
        Precision::F64 => 1e-12,
    }
}

/// A matrix in a memory, by rows.
#[derive(Clone, Copy)]
pub struct At {
    pub first: usize,
    pub stride: usize,
}

impl At {
    pub fn index(&self, row: usize, column: usize) -> usize {
        self.first + row * self.stride + column
    }

    /// Numbers of a memory that has so many rows, and some more behind them.
    pub fn room(&self, rows: usize) -> usize {
        self.first + rows * self.stride + 5
    }
}

/// The kernels of `fake/kernels.c` that go with libraries, as NVIDIA's compiler would make them.
fn ptx(suffix: &str) -> String {
    let panel = "p p 4 4 4 8 4 8 p";
    let number = if suffix == "f32" { "4" } else { "8" };
    let product = format!("p p p 4 4 4 4 4 4 8 8 8 {number} {number}");
    let entries = [
        ("product", product.as_str()),
        ("potrf_unfinished", "p 4 4 8 p"),
        ("lu_to_columns", panel),
        ("lu_from_columns", panel),
        ("lu_pivots", panel),
        ("lu_row_exchange", "p p p 4 4 4 4 8 4 8 8 4"),
    ];
    let mut text =
        ".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n".to_owned();
    for (name, parameters) in entries {
        let parameters = parameters.split(' ').enumerate().map(|(index, kind)| {
            let of = match kind {
                "p" => ".u64 .ptr .global .align 4",
                "8" => ".u64",
                _ => ".u32",
            };
            format!("\t.param {of} {name}_{suffix}_param_{index}")
        });
        let parameters: Vec<String> = parameters.collect();
        text += &format!(
            ".entry {name}_{suffix}(\n{}\n)\n{{\n}}\n",
            parameters.join(",\n")
        );
    }
    text
}

/// A kernel of `fake/kernels.c`.
pub fn fake_kernel(entry: &str, precision: Precision) -> KernelSource {
    let suffix = precision.name();
    KernelSource::new(ptx(suffix), "kernels.ptx", format!("{entry}_{suffix}"), "")
}

/// The codelet with the fake driver's kernels in the places of those that its library calls
/// need. Ours cannot be compiled here.
pub fn with_fake_kernels(mut codelet: Codelet, precision: Precision) -> Arc<Codelet> {
    if let Some(library) = &mut codelet.library {
        let kernels = library.kernels.iter();
        library.kernels = kernels.map(|k| fake_kernel(k.entry(), precision)).collect();
    }
    Arc::new(codelet)
}

/// What an earlier run would have found: that the library is faster.
pub fn faster_library(codelet: &Codelet, sizes: &[u64], library: &str) -> Comparison {
    Comparison {
        device: "cuda0".to_owned(),
        codelet: codelet.name.to_string(),
        sizes: sizes.iter().map(|size| size.next_power_of_two()).collect(),
        library: Some(library.to_owned()),
        own_seconds: Some(2.0),
        library_seconds: Some(1.0),
        serves: None,
        refusal: None,
    }
}

/// A machine whose library serves launches of these sizes, and a queue.
pub fn served(codelet: &Codelet, sizes: &[u64], library: &str) -> (Union, QueueId) {
    let mut machine = machine("cuda0");
    machine.know_implementations(&[faster_library(codelet, sizes, library)]);
    let queue = machine.queue(ONE).expect("a queue");
    (machine, queue)
}

/// Memories on the device with these contents, as arguments, and what they have in the end.
pub struct Memories {
    sizes: Vec<usize>,
    hosts: Vec<HostMemoryId>,
    pub args: Vec<Value>,
}

impl Memories {
    pub fn new(machine: &mut Union, queue: QueueId, contents: &[Vec<u8>]) -> Self {
        let mut memories = Self {
            sizes: contents.iter().map(Vec::len).collect(),
            hosts: Vec::new(),
            args: Vec::new(),
        };
        for bytes in contents {
            let size = bytes.len() as u64;
            let host = machine.alloc_host(size).expect("host memory");
            machine
                .host_bytes(host)
                .expect("free")
                .copy_from_slice(bytes);
            let buffer = machine.alloc(ONE, size).expect("a buffer");
            enqueue(
                machine,
                queue,
                Command::write(host, 0..size, buffer, 0),
                &[],
            );
            memories.hosts.push(host);
            memories.args.push(Value::Memory(Memory::Device(buffer)));
        }
        finish(machine);
        memories
    }

    /// Writes other contents of the same size.
    pub fn write(&self, machine: &mut Union, queue: QueueId, place: usize, contents: &[u8]) {
        let (host, bytes) = (self.hosts[place], contents.len() as u64);
        let to = machine.host_bytes(host).expect("free");
        to.copy_from_slice(contents);
        let Some(Memory::Device(buffer)) = self.args[place].memory() else {
            panic!("a buffer");
        };
        enqueue(
            machine,
            queue,
            Command::write(host, 0..bytes, buffer, 0),
            &[],
        );
    }

    pub fn read(&self, machine: &mut Union, queue: QueueId) -> Vec<Vec<u8>> {
        let args = self.args.iter().zip(&self.hosts).zip(&self.sizes);
        for ((arg, host), size) in args {
            let Some(Memory::Device(buffer)) = arg.memory() else {
                panic!("a buffer");
            };
            let read = Command::read(buffer, 0, *host, 0..*size as u64);
            enqueue(machine, queue, read, &[]);
        }
        finish(machine);
        let hosts = self.hosts.iter();
        hosts
            .map(|host| machine.host_bytes(*host).expect("free").to_vec())
            .collect()
    }
}

/// A launch with these arguments.
pub fn launch(codelet: &Arc<Codelet>, units: Range<u64>, args: Vec<Value>) -> Launch {
    Launch {
        codelet: Arc::clone(codelet),
        units,
        args,
        cost: Cost::default(),
    }
}

/// What memories have after a launch by the library.
pub fn by_library(
    codelet: &Arc<Codelet>,
    (sizes, library): (&[u64], &str),
    units: Range<u64>,
    contents: &[Vec<u8>],
    values: &[Value],
) -> Vec<Vec<u8>> {
    let (mut machine, queue) = served(codelet, sizes, library);
    let memories = Memories::new(&mut machine, queue, contents);
    let args = [memories.args.clone(), values.to_vec()].concat();
    let command = Command::Launch(launch(codelet, units, args));
    enqueue(&mut machine, queue, command, &[]);
    let got = memories.read(&mut machine, queue);
    let completion = machine.implementations();
    match codelet.opencl {
        Some(_) => {
            assert_eq!(completion.len(), 1, "{completion:?}");
            let serves = (completion[0].serves, &completion[0].refusal);
            assert_eq!(
                serves,
                (Some(Implementation::Library), &None),
                "{completion:?}"
            );
        }
        // There was nothing to choose.
        None => assert!(completion.is_empty(), "{completion:?}"),
    }
    got
}

/// An argument of either precision.
pub fn real(precision: Precision, number: f64) -> Value {
    match precision {
        Precision::F32 => Value::F32(number as f32),
        Precision::F64 => Value::F64(number),
    }
}

/// Sizes and strides as arguments.
pub fn sizes<const N: usize>(numbers: [usize; N]) -> [Value; N] {
    numbers.map(|number| Value::U32(number as u32))
}

/// Places as arguments.
pub fn places<const N: usize>(numbers: [usize; N]) -> [Value; N] {
    numbers.map(|number| Value::U64(number as u64))
}

/// Launches a command that is refused; the error.
pub fn refused(machine: &mut Union, queue: QueueId, command: Command) -> RuntimeError {
    machine
        .submit(queue, command, &[], None)
        .expect_err("it is refused")
}
