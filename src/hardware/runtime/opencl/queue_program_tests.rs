//! Queues share no program on a driver that confuses the launches of one.

use cl3::event::{CL_COMPLETE, set_user_event_status};
use cl3::kernel::{CL_KERNEL_PROGRAM, get_kernel_info};

use super::tests::{add, cpu, gate, launched, next, submit};
use super::*;
use crate::codelet::Memory;
use crate::runtime::opencl::warnings::is_pocl;
use crate::runtime::{Devices, QueueId};

/// The driver's program of the one kernel that a queue has.
fn program(backend: &OpenClMachine, queue: QueueId) -> isize {
    let kernels = &backend.queues[&queue].own.kernels;
    assert_eq!(kernels.len(), 1);
    let kernel = kernels.values().next().expect("a kernel").kernel.raw();
    get_kernel_info(kernel, CL_KERNEL_PROGRAM)
        .expect("it tells")
        .into()
}

#[test]
fn queues_whose_launches_may_overlap_share_no_program() {
    let (mut backend, completions) = cpu();
    assert!(
        is_pocl(&backend.devices()[0].driver),
        "this test is of PoCL"
    );
    let device = DeviceId(0);
    let memory = Memory::Device(backend.alloc(device, 256).expect("a buffer"));
    let first = backend.queue(device).expect("a queue");
    let second = backend.queue(device).expect("a queue");

    // The first queue's launch waits at a gate, so it outlives its queue.
    let (id, closed) = (EventId::fresh(), gate(&backend));
    launched(&mut backend, id, &closed, 0);
    let waiting = submit(&mut backend, first, memory, &[id]);
    let Command::Launch(launch) = add(memory, 1) else {
        panic!("a launch");
    };
    backend.load(second, &launch.codelet).expect("it compiles");
    assert_ne!(program(&backend, first), program(&backend, second));
    let held = program(&backend, first);
    backend.free_queue(first);

    let third = backend.queue(device).expect("a queue");
    backend.load(third, &launch.codelet).expect("it compiles");
    assert_ne!(program(&backend, third), held);
    assert_ne!(program(&backend, third), program(&backend, second));

    set_user_event_status(closed.raw(), CL_COMPLETE).expect("set");
    while next(&mut backend, &completions).event != waiting {}
}
