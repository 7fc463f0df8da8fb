//! What goes wrong: devices that are lost, kernels that do not compile, full memory.

use std::time::Duration;

use pdawl_api::codelet::{NdRange, Value};
use pdawl_api::runtime::{Command, Devices, EventId, Memory, Runtime, RuntimeError, Status};

use crate::library::fake;
use crate::machine::{
    ONE, OTHER, PTX, add, codelet, enqueue, finish, host, launch, machine, next, numbers, slow,
};

const OUT_OF_MEMORY: i32 = 2;
const ILLEGAL_ADDRESS: i32 = 700;

#[test]
fn a_lost_device_ends_its_commands_and_those_that_wait_for_them() {
    let fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let buffers = [ONE, OTHER].map(|device| machine.alloc(device, 256).expect("a buffer"));
    let queues = [ONE, OTHER].map(|device| machine.queue(device).expect("a queue"));
    let free = machine.queue(OTHER).expect("a queue");
    let lost = [
        enqueue(&mut machine, queues[0], slow(buffers[0]), &[]),
        enqueue(&mut machine, queues[0], add(buffers[0], 1), &[]),
    ];
    let waiting = enqueue(&mut machine, queues[1], add(buffers[1], 1), &[lost[1]]);
    let behind = enqueue(&mut machine, queues[1], add(buffers[1], 1), &[]);
    let independent = enqueue(&mut machine, free, add(buffers[1], 1), &[]);
    fake.lose(0, ILLEGAL_ADDRESS);
    let mut ends: Vec<(EventId, Status)> = Vec::new();
    for _ in 0..5 {
        let completion = next(&mut machine);
        ends.push((completion.event, completion.status));
    }
    let end = |event| &ends.iter().find(|(e, _)| *e == event).expect("reported").1;
    for event in lost {
        let Status::DeviceLost(why) = end(event) else {
            panic!("{:?}", end(event));
        };
        assert!(why.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{why}");
    }
    assert_eq!(
        [end(waiting), end(behind)],
        [&Status::Skipped, &Status::Skipped]
    );
    assert_eq!(*end(independent), Status::Done);
    let nothing = machine.wait(Some(Duration::ZERO)).expect("no error");
    assert!(nothing.is_none(), "each is reported once");
    // The device refuses from then on, the other one works.
    for refused in [
        machine.alloc(ONE, 4).map(|_| ()),
        machine.queue(ONE).map(|_| ()),
    ] {
        let error = refused.expect_err("it is lost");
        assert!(matches!(error, RuntimeError::DeviceLost { .. }), "{error}");
    }
    enqueue(&mut machine, free, add(buffers[1], 1), &[]);
    finish(&mut machine);
}

#[test]
fn who_waits_for_a_lost_device_is_not_lost_with_it() {
    let fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let buffers = [ONE, OTHER].map(|device| machine.alloc(device, 256).expect("a buffer"));
    let queues = [ONE, OTHER].map(|device| machine.queue(device).expect("a queue"));
    let free = machine.queue(OTHER).expect("a queue");
    let lost = enqueue(&mut machine, queues[0], slow(buffers[0]), &[]);
    fake.lose(0, ILLEGAL_ADDRESS);
    let waiting = enqueue(&mut machine, queues[1], add(buffers[1], 1), &[lost]);
    let independent = enqueue(&mut machine, free, add(buffers[1], 1), &[]);
    for _ in 0..3 {
        let completion = next(&mut machine);
        let is_as_expected = match completion.status {
            Status::DeviceLost(_) => completion.event == lost,
            Status::Skipped => completion.event == waiting,
            Status::Done => completion.event == independent,
            Status::Failed(_) => false,
        };
        assert!(is_as_expected, "{completion:?}");
    }
}

#[test]
fn a_kernel_outside_of_its_memory_loses_the_device() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    let queue = machine.queue(ONE).expect("a queue");
    let far = codelet(
        PTX,
        "add",
        NdRange::new(vec![64]).starting_at(vec![1 << 20]),
    );
    let args = vec![Value::Memory(Memory::Device(buffer)), Value::U32(1)];
    let event = enqueue(
        &mut machine,
        queue,
        Command::Launch(launch(&far, args)),
        &[],
    );
    let completion = next(&mut machine);
    assert_eq!(completion.event, event);
    let Status::DeviceLost(why) = completion.status else {
        panic!("{:?}", completion.status);
    };
    assert!(
        why.contains("a kernel reached outside of its memory"),
        "{why}"
    );
    drop(machine);
    // A new context has no errors.
    let mut machine = crate::machine::machine("cuda0");
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    let queue = machine.queue(ONE).expect("a queue");
    enqueue(&mut machine, queue, add(buffer, 1), &[]);
    finish(&mut machine);
}

#[test]
fn a_refused_command_leaves_its_queue_in_order() {
    let fake = fake();
    let mut machine = machine("cuda0");
    let memory = host(&mut machine, &[1; 64]);
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    let queue = machine.queue(ONE).expect("a queue");
    let write = Command::write(memory, 0..256, buffer, 0);
    enqueue(&mut machine, queue, write, &[]);
    for call in ["cuLaunchKernel", "cuEventRecord"] {
        // 801: CUDA_ERROR_NOT_SUPPORTED
        fake.fail(call, 801, 1);
        let error = machine
            .enqueue(queue, add(buffer, 1), &[])
            .expect_err("it fails");
        let text = error.to_string();
        assert!(text.starts_with(&format!("cuda0: {call} failed")), "{text}");
    }
    let read = Command::read(buffer, 0, memory, 0..256);
    enqueue(&mut machine, queue, read, &[]);
    assert_eq!(finish(&mut machine).len(), 2);
    assert_eq!(numbers(&mut machine, memory), vec![1; 64]);
}

#[test]
fn full_memory_is_reported_with_figures_and_freed_memory_serves() {
    let fake = fake();
    let mut machine = machine("cuda0");
    let most = machine.devices()[0].memory;
    let error = machine
        .alloc(ONE, most + 1)
        .expect_err("more than there is");
    assert!(
        error.to_string().contains("more than the device has left"),
        "{error}"
    );
    let half = machine.alloc(ONE, most / 2).expect("half of it");
    let error = machine
        .alloc(ONE, most / 2 + 1)
        .expect_err("more than is left");
    assert!(matches!(error, RuntimeError::OutOfMemory { .. }), "{error}");
    // Others use the GPU, too.
    fake.fail("cuMemAlloc", OUT_OF_MEMORY, 1);
    let error = machine.alloc(ONE, 4096).expect_err("the driver refuses");
    let text = error.to_string();
    assert!(
        text.contains("4096 bytes") && text.contains("OUT_OF_MEMORY"),
        "{text}"
    );
    // What was freed is returned to the driver only when that is needed.
    machine.free(half);
    for _ in 0..5 {
        let all = machine.alloc(ONE, most).expect("it is free again");
        machine.free(all);
    }
    fake.fail("cuMemHostAlloc", OUT_OF_MEMORY, 1);
    let error = machine.alloc_host(4096).expect_err("the driver refuses");
    assert!(error.to_string().contains("pinned host memory"), "{error}");
}

#[test]
fn kernels_that_cannot_run_through_cuda_are_reported_with_the_reason() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    let queue = machine.queue(ONE).expect("a queue");
    for (ptx, entry, part) in [
        (
            PTX.to_owned(),
            "prints",
            "it prints (printf); run it through OpenCL (--runtime opencl)",
        ),
        (
            PTX.to_owned(),
            "missing",
            "it has no kernel named `missing`",
        ),
        (PTX.replace("%envreg7", "%envreg20"), "place", "%envreg20"),
        (
            format!("{PTX}\nsyntax error"),
            "add",
            "ptxas fatal: unexpected syntax error",
        ),
        (".version 9.0\n".to_owned(), "add", "no kernels"),
    ] {
        let codelet = codelet(&ptx, entry, NdRange::new(vec![1]));
        let error = machine.load(queue, &codelet).expect_err(part);
        assert!(matches!(error, RuntimeError::Build { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("cuda0") && text.contains(part), "{text}");
        assert!(text.contains(&format!("{entry} (kernels.ptx)")), "{text}");
    }
    // The other kernels of the same program work.
    let codelet = codelet(PTX, "add", NdRange::new(vec![1]));
    machine.load(queue, &codelet).expect("it compiles");
    // No OpenCL offers the fake GPU. NVRTC, where it is found, does not compile this either.
    let text = "kernel void k() { nowhere(); }";
    let codelet = crate::machine::codelet(text, "k", NdRange::new(vec![1]));
    let error = machine
        .load(queue, &codelet)
        .expect_err("nothing compiles it");
    let text = error.to_string();
    assert!(
        text.contains("cuda0") && text.contains("libnvidia-opencl.so.1"),
        "{text}"
    );
}

#[test]
fn what_does_not_open_is_reported() {
    let fake = fake();
    fake.fail("cuDevicePrimaryCtxRetain", OUT_OF_MEMORY, 1);
    let open = |text: &str| {
        let selection = text.parse().expect("a selection");
        let opened = pdawl_api::runtime::select::open(Some(&selection), true);
        opened.err().expect("it does not open").to_string()
    };
    let text = open("cuda0");
    assert!(
        text.starts_with("cuda0: cuDevicePrimaryCtxRetain failed"),
        "{text}"
    );
    let text = open("host,cuda2");
    assert_eq!(
        text,
        "there is no cuda2; CUDA has cuda0 (A fake GPU); CUDA has cuda1 (A fake GPU)"
    );
    assert!(open("cuda0:3").contains("cannot be divided"));
    assert!(open("cuda0=own").contains("memory of its own anyway"));
    assert!(open("cuda0,cuda0").contains("named twice"));
    let (machine, _) =
        pdawl_api::runtime::select::open(Some(&"cuda1:8".parse().expect("one")), true)
            .expect("all of its units");
    assert_eq!(machine.devices()[0].name, "cuda1");
}
