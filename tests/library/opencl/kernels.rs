//! Kernels of users: values, local memory, sizes and arguments.

use std::sync::Arc;

use pdawl_api::codelet::{
    AddressSpace, Codelet, KernelSource, NdRange, OpenClKernel, RawValue, Shape, Value,
};
use pdawl_api::runtime::{DeviceId, Memory, QueueKind, RuntimeError};

use super::harness::{Bench, contents, launch, read};

/// Each group reverses its part through local memory, and adds two values.
const TURN: &str = "
__kernel void turn(__global long *out, __constant int *in, __local long *part,
                   const char small, const float4 four) {
    size_t i = get_local_id(0), n = get_local_size(0);
    part[i] = get_global_id(0) + in[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = part[n - 1 - i] + small + (long)(four.x + four.w);
}";

fn turn(ndrange: NdRange) -> Arc<Codelet> {
    Arc::new(Codelet {
        name: format!("turn of {:?}", ndrange.global).into(),
        host: None,
        opencl: Some(OpenClKernel {
            source: KernelSource::new(TURN.to_owned(), "turn.cl".to_owned(), "turn", ""),
            fp64: false,
            shape: Shape::with(move |_, _| ndrange.clone()),
        }),
        library: None,
    })
}

fn raw(bytes: &[u8]) -> Value {
    Value::Raw(RawValue::new(bytes).expect("at most 16 bytes"))
}

#[test]
fn local_memory_small_values_exact_groups_and_offsets_arrive() {
    let mut bench = Bench::cpu();
    let queue = bench
        .backend
        .open_queue(DeviceId(0), QueueKind::Plain)
        .expect("a queue");
    let out = bench.host(&[-1i64; 24]);
    let buffer = bench.buffer(24 * 8);
    let constant = bench.host(&[1000i32]);
    let input = bench.buffer(4);
    let written = bench.submit(queue, super::harness::write(&constant, input), &[]);
    let args = vec![
        Value::Memory(Memory::Device(buffer)),
        Value::Memory(Memory::Device(input)),
        Value::Local(6 * 8),
        raw(&(-3i8).to_ne_bytes()),
        raw(bytemuck::cast_slice(&[20.0f32, 7.0, 7.0, 22.0])),
    ];
    // Two halves with different offsets, in groups of six.
    for first in [0, 12] {
        let sizes = NdRange::new(vec![12])
            .exactly(vec![6])
            .starting_at(vec![first]);
        bench.submit(queue, launch(&turn(sizes), 1, args.clone()), &[written]);
    }
    let back = bench.submit(queue, read(buffer, &out), &[]);
    bench.done(back);
    let expected: Vec<i64> = (0..24).map(|i| i / 6 * 6 + 5 - i % 6 + 1039).collect();
    assert_eq!(contents::<i64>(&out), expected);
}

#[test]
fn an_exact_group_that_cannot_be_is_an_error() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let buffer = bench.buffer(24 * 8);
    let args = vec![
        Value::Memory(Memory::Device(buffer)),
        Value::Memory(Memory::Device(buffer)),
        Value::Local(64),
        raw(&[0]),
        raw(&[0; 16]),
    ];
    let sizes = NdRange::new(vec![24]).exactly(vec![7]);
    let error = bench
        .try_submit(queue, launch(&turn(sizes), 1, args), &[])
        .expect_err("24 is no multiple of 7");
    let text = error.to_string();
    for part in ["opencl", "`turn` (turn.cl)", "24", "no multiple", "7"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_compiled_kernel_tells_its_arguments() {
    let mut bench = Bench::cpu();
    let codelet = turn(NdRange::new(vec![1]));
    let kernel = codelet.opencl.as_ref().expect("an OpenCL kernel");
    let arguments = bench
        .backend
        .arguments(DeviceId(0), kernel)
        .expect("reported");
    let described: Vec<_> = arguments
        .iter()
        .map(|a| {
            (
                a.name.as_str(),
                a.address,
                a.type_name.as_str(),
                a.read_only,
            )
        })
        .collect();
    assert_eq!(
        described,
        [
            ("out", AddressSpace::Global, "long*", false),
            ("in", AddressSpace::Constant, "int*", true),
            ("part", AddressSpace::Local, "long*", false),
            ("small", AddressSpace::Private, "char", false),
            ("four", AddressSpace::Private, "float4", false),
        ]
    );
    let misnamed = OpenClKernel {
        source: KernelSource::new(TURN, "turn.cl", "twist", ""),
        ..kernel.clone()
    };
    let error = bench.backend.arguments(DeviceId(0), &misnamed);
    assert!(
        matches!(&error, Err(RuntimeError::Build { log, .. }) if log.contains("twist")),
        "{error:?}"
    );
}
