//! Buffers, and host memory that kernels use in place.

use std::sync::Arc;

use pdawl_api::codelet::{HostMemoryId, Memory, Value};
use pdawl_api::runtime::{Command, DeviceId, HostRegion, Location, Rows, RuntimeError};

use super::harness::{Bench, codelet, contents, launch, read, write};
use crate::pocl::cpu_device;

#[test]
fn more_memory_than_there_is_is_refused() {
    let mut bench = Bench::cpu();
    let memory = cpu_device().info.memory;
    for bytes in [u64::MAX, 1 << 50, memory + 1] {
        let error = bench
            .backend
            .alloc(DeviceId(0), bytes)
            .expect_err("too much");
        let text = error.to_string();
        assert!(matches!(error, RuntimeError::OutOfMemory { .. }), "{text}");
        assert!(
            text.contains("opencl") && text.contains(&bytes.to_string()),
            "{text}"
        );
    }
    let error = bench.backend.alloc_host(u64::MAX).err().expect("too much");
    assert!(matches!(error, RuntimeError::OutOfMemory { .. }), "{error}");
    // The device can be used after a refusal.
    bench.buffer(1 << 20);
}

#[test]
fn what_is_freed_can_be_had_again() {
    let mut bench = Bench::cpu();
    let info = cpu_device().info;
    let piece = info.max_allocation.min(info.memory / 2);
    // More rounds than fit into memory at the same time.
    for _ in 0..6 {
        let buffer = bench.buffer(piece);
        bench.backend.free(buffer);
    }
}

#[test]
fn spans_outside_their_memory_are_refused() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let region = bench.host(&[0u8; 64]);
    let small = bench.buffer(32);
    let error = bench.try_submit(queue, write(&region, small), &[]);
    let text = error.expect_err("64 bytes into 32").to_string();
    assert!(text.contains("buffer of 32 bytes"), "{text}");
    let beyond = Command::Copy {
        from: Location::device(small, 0),
        to: Location::host(region.id, u64::MAX),
        rows: Rows::one(16),
    };
    let error = bench.try_submit(queue, beyond, &[]);
    let text = error.expect_err("an offset that overflows").to_string();
    assert!(text.contains("host memory of 64 bytes"), "{text}");
}

#[test]
fn memory_released_while_in_use_stays_until_then() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let contents_before: Vec<u32> = (0..1 << 20).collect();
    let input = bench.host(&contents_before);
    let output = bench.host(&vec![0u32; 1 << 20]);
    let buffer = bench.buffer(input.bytes);
    bench.submit(queue, write(&input, buffer), &[]);
    let back = bench.submit(queue, read(buffer, &output), &[]);
    bench.backend.free(buffer);
    bench.backend.forget_host(input.id);
    drop(input);
    bench.done(back);
    assert_eq!(contents::<u32>(&output), contents_before);
}

#[test]
fn memory_of_another_backend_is_adopted() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let mut foreign = memmap2::MmapMut::map_anon(4096).expect("a page");
    let region = HostRegion {
        id: HostMemoryId::fresh(),
        address: std::ptr::NonNull::new(foreign.as_mut_ptr()).expect("an address"),
        bytes: 4096,
        keeper: Arc::new(foreign),
    };
    bench.backend.adopt_host(region.clone()).expect("adopted");
    let count = codelet(
        "__kernel void count(__global uint *a) { a[get_global_id(0)] += get_global_id(0); }",
        "count",
    );
    let args = vec![Value::Memory(Memory::Host(region.id))];
    bench.submit(queue, launch(&count, 1024, args.clone()), &[]);
    // Two queues use one region, one after the other. Only the engine lets them
    // use halves of it at the same time.
    let again = bench.queue();
    let last = bench.submit(queue, launch(&count, 1024, args.clone()), &[]);
    let event = bench.submit(again, launch(&count, 1024, args), &[last]);
    bench.done(event);
    let expected: Vec<u32> = (0..1024).map(|i| 3 * i).collect();
    assert_eq!(contents::<u32>(&region), expected);
}

#[test]
fn a_cpu_needs_no_pinned_memory() {
    assert!(!Bench::cpu().backend.pins_host_memory());
}
