//! Arguments, sizes and offsets of kernels; series and repetitions of launches.

use std::sync::Arc;

use pdawl_api::codelet::{
    Codelet, KernelSeries, KernelSource, NdRange, OpenClKernel, Shape, Value,
};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{BufferId, Command, Devices, Memory, QueueId, Status, cuda, opencl};

use crate::library::fake;
use crate::machine::{
    ONE, PTX, add, codelet, enqueue, finish, host, launch, machine, next, numbers, slow,
};

/// A machine with a buffer of zeros and a queue.
fn prepared(count: usize) -> (Union, QueueId, BufferId) {
    let mut machine = machine("cuda0");
    let buffer = machine.alloc(ONE, 4 * count as u64).expect("a buffer");
    let queue = machine.queue(ONE).expect("a queue");
    let zeros = host(&mut machine, &vec![0; count]);
    let write = Command::write(zeros, 0..4 * count as u64, buffer, 0);
    enqueue(&mut machine, queue, write, &[]);
    finish(&mut machine);
    (machine, queue, buffer)
}

/// What a buffer has when a command has run.
fn after(
    machine: &mut Union,
    queue: QueueId,
    command: Command,
    buffer: BufferId,
    count: usize,
) -> Vec<u32> {
    let memory = host(machine, &vec![0; count]);
    enqueue(machine, queue, command, &[]);
    let read = Command::read(buffer, 0, memory, 0..4 * count as u64);
    enqueue(machine, queue, read, &[]);
    finish(machine);
    numbers(machine, memory)
}

fn memory(buffer: BufferId) -> Value {
    Value::Memory(Memory::Device(buffer))
}

#[test]
fn a_global_offset_moves_a_launch() {
    let _fake = fake();
    let (mut machine, queue, buffer) = prepared(100);
    for (offset, sizes) in [
        (0, NdRange::new(vec![7])),
        (9, NdRange::new(vec![7]).near(vec![256])),
        (50, NdRange::new(vec![48]).exactly(vec![16])),
    ] {
        let codelet = codelet(PTX, "add", sizes.starting_at(vec![offset]));
        let command = Command::Launch(launch(&codelet, vec![memory(buffer), Value::U32(3)]));
        enqueue(&mut machine, queue, command, &[]);
    }
    let got = after(&mut machine, queue, add(buffer, 0), buffer, 100);
    let is_inside = |i: &usize| *i < 7 || (9..16).contains(i) || (50..98).contains(i);
    let expected: Vec<u32> = (0..100).map(|i| 3 * u32::from(is_inside(&i))).collect();
    assert_eq!(got, expected);
}

/// No OpenCL offers the fake GPU, so NVRTC compiles for it, where that is found.
#[test]
fn a_kernel_in_opencl_c_goes_through_nvrtc() {
    let _fake = fake();
    let gpu = &cuda::discover().devices[0];
    if cuda::compiler::name(gpu, &opencl::Discovery::default()).is_none() {
        eprintln!("nothing is tested: NVRTC is not found");
        return;
    }
    let (mut machine, queue, buffer) = prepared(100);
    let text = "kernel void add(global uint *x, uint n) { x[get_global_id(0)] += n; }";
    let sizes = NdRange::new(vec![7]).starting_at(vec![9]);
    let command =
        |text, entry, args| Command::Launch(launch(&codelet(text, entry, sizes.clone()), args));
    let args = || vec![memory(buffer), Value::U32(3)];
    let got = after(
        &mut machine,
        queue,
        command(text, "add", args()),
        buffer,
        100,
    );
    let expected: Vec<u32> = (0..100)
        .map(|i| 3 * u32::from((9..16).contains(&i)))
        .collect();
    assert_eq!(got, expected);
    for (text, entry, part) in [
        (text, "subtract", "it has no kernel named `subtract`"),
        (
            "kernel void add(global uint *x) { x[0] = y; }",
            "add",
            "\"y\" is undefined",
        ),
        (
            "kernel void add(local uint *x, uint n) { x[0] = n; }",
            "add",
            "is to be local memory",
        ),
    ] {
        let command = command(text, entry, args());
        let error = machine.submit(queue, command, &[], None).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn more_groups_than_a_launch_may_have_are_several_launches() {
    let _fake = fake();
    // The fake driver launches 5 groups along y at most, and here are 13.
    let (mut machine, queue, buffer) = prepared(6 * 30);
    let sizes = NdRange::new(vec![6, 26])
        .exactly(vec![3, 2])
        .starting_at(vec![0, 4]);
    let codelet = codelet(PTX, "place", sizes);
    let command = Command::Launch(launch(&codelet, vec![memory(buffer), Value::U32(6)]));
    let got = after(&mut machine, queue, command, buffer, 6 * 30);
    for (at, has) in got.into_iter().enumerate() {
        let row = at / 6;
        let expected = match row {
            0..4 => 0,
            _ => 1 + (((row - 4) / 2) << 8) + (13 << 20),
        };
        assert_eq!(has as usize, expected, "number {at}");
    }
}

#[test]
fn local_memory_is_offsets_into_what_a_launch_has() {
    let _fake = fake();
    let (mut machine, queue, buffer) = prepared(3);
    let codelet = codelet(PTX, "local", NdRange::new(vec![1]));
    let args = vec![memory(buffer), Value::Local(40), Value::Local(200)];
    let command = Command::Launch(launch(&codelet, args));
    let got = after(&mut machine, queue, command, buffer, 3);
    assert_eq!(got, [0, 128, 128 + 256]);
}

#[test]
fn kernels_of_a_series_have_memory_of_their_own() {
    let _fake = fake();
    let (mut machine, queue, buffer) = prepared(1);
    let source = KernelSource::new(PTX, "kernels.ptx", "scratch", "");
    let series = KernelSeries {
        kernels: vec![source.clone()],
        steps: |_, _| vec![(0, NdRange::new(vec![1])); 3],
        scratch: |_| 4,
    };
    let codelet = Arc::new(Codelet {
        name: "scratch".into(),
        host: None,
        opencl: Some(OpenClKernel {
            source,
            fp64: false,
            shape: Shape::Series(Arc::new(series)),
        }),
        library: None,
    });
    // Fresh memory is full of ones here, so it begins at 0 when it is counted up.
    let command = Command::Launch(launch(&codelet, vec![memory(buffer)]));
    let got = after(&mut machine, queue, command, buffer, 1);
    assert_eq!(got, [1 + 2]);
    let repeat = Arc::new(launch(&codelet, vec![memory(buffer)]));
    let got = after(&mut machine, queue, Command::Repeat(repeat), buffer, 1);
    assert_eq!(got, [3 + 3 + 4 + 5], "the queue's memory is used again");
}

#[test]
fn a_series_of_copies_and_launches_is_reported_once_with_its_kernels() {
    let _fake = fake();
    let (mut machine, queue, buffer) = prepared(64);
    let memory = host(&mut machine, &[7; 64]);
    let series = Command::Series(vec![
        Command::write(memory, 0..256, buffer, 0),
        slow(buffer),
        add(buffer, 5),
        Command::read(buffer, 0, memory, 0..256),
    ]);
    enqueue(&mut machine, queue, series, &[]);
    let completion = next(&mut machine);
    assert_eq!((completion.status, completion.bytes), (Status::Done, 512));
    let stages = completion.stages.expect("it is mixed");
    assert_eq!((stages.written, stages.read), (256, 256));
    let (begin, end) = stages.kernels;
    assert!(
        completion.started <= begin && end <= completion.ended,
        "{stages:?}"
    );
    assert!(end - begin >= 20_000_000, "{stages:?}");
    assert_eq!(numbers(&mut machine, memory), vec![13; 64]);
    assert!(finish(&mut machine).is_empty());
    for refused in [vec![], vec![Command::Series(vec![add(buffer, 1)])]] {
        assert!(
            machine
                .submit(queue, Command::Series(refused), &[], None)
                .is_err()
        );
    }
}

#[test]
fn a_repeated_launch_sees_what_changed_in_its_memory_and_is_forgotten_with_it() {
    let _fake = fake();
    let (mut machine, queue, buffer) = prepared(64);
    let Command::Launch(once) = add(buffer, 4) else {
        panic!("a launch");
    };
    let once = Arc::new(once);
    for _ in 0..3 {
        let repeat = Command::Repeat(Arc::clone(&once));
        machine.submit(queue, repeat, &[], None).expect("accepted");
    }
    let got = after(&mut machine, queue, add(buffer, 0), buffer, 64);
    assert_eq!(got, vec![12; 64]);
    machine.free(buffer);
    let repeat = Command::Repeat(Arc::clone(&once));
    assert!(
        machine.submit(queue, repeat, &[], None).is_err(),
        "its buffer is gone"
    );
}

#[test]
fn wrong_arguments_and_sizes_are_refused_by_name() {
    let _fake = fake();
    let (mut machine, queue, buffer) = prepared(64);
    let host = host(&mut machine, &[0]);
    let one = || NdRange::new(vec![64]);
    for (sizes, args, part) in [
        (one(), vec![memory(buffer)], "2 arguments, and 1 are given"),
        (
            one(),
            vec![memory(buffer), Value::U64(1)],
            "argument 1 has 4 bytes, and 8",
        ),
        (
            one(),
            vec![memory(buffer), Value::Local(1)],
            "argument 1 is to be a value",
        ),
        (
            one(),
            vec![Value::U32(1), Value::U32(1)],
            "argument 0 is to be a buffer",
        ),
        (
            one(),
            vec![Value::Memory(Memory::Host(host)), Value::U32(1)],
            "memory of its own",
        ),
        (
            one().exactly(vec![48]),
            vec![memory(buffer), Value::U32(1)],
            "no multiple",
        ),
        (
            one().exactly(vec![0]),
            vec![memory(buffer), Value::U32(1)],
            "within 1 to 1024",
        ),
        (
            NdRange::new(vec![1, 1, 1, 1]),
            vec![memory(buffer), Value::U32(1)],
            "more than three",
        ),
        (
            one().starting_at(vec![u32::MAX as usize]),
            vec![memory(buffer), Value::U32(1)],
            "behind 2^32",
        ),
    ] {
        let codelet = codelet(PTX, "add", sizes);
        let command = Command::Launch(launch(&codelet, args));
        let error = machine.submit(queue, command, &[], None).expect_err(part);
        let text = error.to_string();
        assert!(text.starts_with("cuda0: ") && text.contains(part), "{text}");
    }
    let nothing = codelet(PTX, "add", NdRange::new(vec![0]));
    let command = Command::Launch(launch(&nothing, vec![memory(buffer), Value::U32(1)]));
    let got = after(&mut machine, queue, command, buffer, 64);
    assert_eq!(got, vec![0; 64]);
}
