//! Cases that only the backend's internals can cause: failures, and devices unlike
//! PoCL's.

use std::sync::Arc;
use std::time::Duration;

use cl3::error_codes::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
use cl3::event::{CL_COMPLETE, create_user_event, set_user_event_status};

use super::*;
use crate::codelet::{
    BufferId, Codelet, Cost, KernelSource, Memory, NdRange, OpenClKernel, Shape, Value,
};
use crate::machine::DeviceKind;
use crate::runtime::opencl::discover;
use crate::runtime::{CommandKind, Devices, Launch, QueueId, Status};

pub(super) fn cpu() -> (OpenClMachine, Receiver<Completion>) {
    let discovery = discover();
    let cpu = discovery
        .devices
        .iter()
        .find(|found| found.info.kind == DeviceKind::Cpu)
        .unwrap_or_else(|| {
            panic!(
                "this test needs an OpenCL CPU device: apt-get install pocl-opencl-icd \
                 (found none; {:?})",
                discovery.warnings
            )
        });
    let selected = Selected {
        platform: cpu.platform,
        device: cpu.device,
        units: None,
        own_memory: false,
    };
    let (sender, completions) = unbounded();
    let backend = open_machine(&[selected], sender, Instant::now()).expect("it opens");
    (backend, completions)
}

/// `a[i] += n` over 64 unsigned integers.
pub(super) fn add(memory: Memory, n: u32) -> Command {
    let kernel = OpenClKernel {
        source: KernelSource::new(
            "__kernel void add(__global uint *a, uint n) { a[get_global_id(0)] += n; }",
            "add.cl",
            "add",
            "",
        ),
        fp64: false,
        shape: Shape::Of(|_, _| NdRange::new(vec![64])),
    };
    Command::Launch(Launch {
        codelet: Arc::new(Codelet {
            name: "add".into(),
            host: None,
            opencl: Some(kernel),
            library: None,
        }),
        units: 0..1,
        args: vec![Value::Memory(memory), Value::U32(n)],
        cost: Cost::default(),
    })
}

/// The next completion, which comes within a minute.
pub(super) fn next(backend: &mut OpenClMachine, completions: &Receiver<Completion>) -> Completion {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        backend.poll();
        match completions.recv_timeout(Duration::from_millis(1)) {
            Ok(completion) if completion.event != EventId::NOBODYS => return completion,
            _ => assert!(Instant::now() < deadline, "a completion within a minute"),
        }
    }
}

/// Whether nothing was reported. A thread of the driver may have called.
fn is_silent(completions: &Receiver<Completion>) -> bool {
    completions
        .try_iter()
        .all(|completion| completion.event == EventId::NOBODYS)
}

fn numbers(region: &HostRegion) -> Vec<u32> {
    // SAFETY: the region is that long and aligned, and the tests look at it
    // only between commands.
    unsafe { std::slice::from_raw_parts(region.address.as_ptr().cast::<u32>(), 64).to_vec() }
}

fn filled(backend: &mut OpenClMachine, value: u32) -> HostRegion {
    let region = backend.alloc_host(256).expect("host memory");
    for i in 0..64 {
        // SAFETY: the region has 64 aligned words, and no command uses it.
        unsafe { region.address.cast::<u32>().add(i).write(value) };
    }
    region
}

/// A user event that stands for a command which has not ended.
pub(super) fn gate(backend: &OpenClMachine) -> Arc<Event> {
    let context = backend.driver.contexts[0].context.raw();
    Arc::new(Event::new(create_user_event(context).expect("an event")))
}

/// Puts a command on its way that ends with `gate`, an event of `context`,
/// and of whose end the driver tells nobody.
pub(super) fn launched(
    backend: &mut OpenClMachine,
    id: EventId,
    gate: &Arc<Event>,
    context: usize,
) {
    backend.driver.context_of.resize(2, 1);
    let queue = own_queue(backend);
    backend.pretend((id, &[]), (queue, context), gate);
}

fn own_queue(backend: &OpenClMachine) -> ClQueue {
    let device = &backend.devices[0];
    let context = &backend.driver.contexts[0].context;
    ClQueue::new(new_queue(context, device.id, true).expect("a queue"))
}

pub(super) fn submit(
    backend: &mut OpenClMachine,
    queue: QueueId,
    memory: Memory,
    wait: &[EventId],
) -> EventId {
    let event = EventId::fresh();
    backend
        .submit(queue, add(memory, 1), wait, Some(event))
        .expect("submitted");
    event
}

#[test]
fn a_failure_reaches_everything_behind_it() {
    let (mut backend, completions) = cpu();
    let [first, second, third, fresh] =
        [(); 4].map(|()| backend.queue(DeviceId(0)).expect("a queue"));
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let memory = Memory::Device(buffer);
    let gate = gate(&backend);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 0);

    // Both are on their way when the precursor fails.
    let waiting = submit(&mut backend, first, memory, &[precursor]);
    let behind = submit(&mut backend, second, memory, &[waiting]);
    backend.fail(precursor);
    set_user_event_status(gate.raw(), CL_COMPLETE).expect("set");
    let ended = [
        next(&mut backend, &completions),
        next(&mut backend, &completions),
    ];
    assert_eq!([ended[0].event, ended[1].event], [waiting, behind]);
    // These come after: one behind it in the queue, one by the event.
    submit(&mut backend, first, memory, &[]);
    submit(&mut backend, third, memory, &[behind]);
    for completion in ended.into_iter().chain([
        next(&mut backend, &completions),
        next(&mut backend, &completions),
    ]) {
        assert_eq!(completion.status, Status::Skipped, "{completion:?}");
    }
    // A new queue starts afresh.
    let event = submit(&mut backend, fresh, memory, &[]);
    let completion = next(&mut backend, &completions);
    assert_eq!((completion.event, completion.status), (event, Status::Done));
}

/// The completion of a command whose event ends with this code, and that waited for these.
fn ended_with(code: i32, waits: &[EventId]) -> (Completion, OpenClMachine) {
    let (mut backend, completions) = cpu();
    let event = gate(&backend);
    let queue = own_queue(&backend);
    backend.pretend((EventId::fresh(), waits), (queue, 0), &event);
    set_user_event_status(event.raw(), code).expect("set");
    backend.inspect();
    (next(&mut backend, &completions), backend)
}

#[test]
fn a_command_that_a_failure_before_it_ended_is_skipped() {
    let code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    let (waiting, _backend) = ended_with(code, &[EventId::fresh()]);
    assert_eq!(waiting.status, Status::Skipped);
    // It waited for nothing.
    let (alone, _backend) = ended_with(code, &[]);
    assert!(matches!(alone.status, Status::Failed(_)));
}

/// Looks until so many commands have been reported.
fn polled_until(
    backend: &mut OpenClMachine,
    completions: &Receiver<Completion>,
    count: usize,
) -> Vec<Completion> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut completed = Vec::new();
    while completed.len() < count {
        assert!(
            Instant::now() < deadline,
            "{} were reported",
            completed.len()
        );
        backend.poll();
        let all = completions.try_iter();
        completed.extend(all.filter(|completion| completion.event != EventId::NOBODYS));
    }
    completed
}

#[test]
fn a_watched_devices_commands_are_reported_once_when_looked_at_and_in_order() {
    let (mut backend, completions) = cpu();
    backend.devices[0].polled = true;
    let [first, second] = [(); 2].map(|()| backend.queue(DeviceId(0)).expect("a queue"));
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let memory = Memory::Device(buffer);
    let events: Vec<EventId> = (0..50)
        .map(|_| submit(&mut backend, first, memory, &[]))
        .collect();
    let behind = submit(&mut backend, second, memory, &events);
    backend.free_queue(first);
    assert!(is_silent(&completions), "nobody has polled_until");
    let completed = polled_until(&mut backend, &completions, events.len() + 1);
    let of_first = completed.iter().filter(|c| c.queue == first);
    assert!(of_first.map(|c| c.event).eq(events));
    assert!(completed.iter().any(|c| c.event == behind));
    for completion in &completed {
        assert_eq!(completion.status, Status::Done);
        assert!(completion.queued <= completion.started && completion.started <= completion.ended);
    }
    assert!(!backend.poll(), "nothing is left to look for");
    assert!(is_silent(&completions), "all were reported once");
}

#[test]
fn a_watched_devices_failure_and_loss_are_reported() {
    let (mut backend, completions) = cpu();
    backend.devices[0].polled = true;
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let memory = Memory::Device(buffer);
    let gate = gate(&backend);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 0);
    let waiting = submit(&mut backend, queue, memory, &[precursor]);
    assert!(backend.poll(), "it waits");
    backend.fail(precursor);
    set_user_event_status(gate.raw(), CL_COMPLETE).expect("set");
    let completed = polled_until(&mut backend, &completions, 1);
    assert_eq!(
        (completed[0].event, &completed[0].status),
        (waiting, &Status::Skipped)
    );

    let fresh = backend.queue(DeviceId(0)).expect("a queue");
    submit(&mut backend, fresh, memory, &[]);
    backend.devices[0].mark_lost("it fell off the bus");
    let completed = polled_until(&mut backend, &completions, 1);
    assert!(
        matches!(completed[0].status, Status::DeviceLost(_)),
        "{completed:?}"
    );
}

#[test]
fn what_the_driver_reports_is_reported() {
    let (failed, backend) = ended_with(-5, &[]);
    assert!(
        matches!(&failed.status, Status::Failed(why) if why.contains("CL_OUT_OF_RESOURCES")),
        "{failed:?}"
    );
    assert!(failed.queued == 5 && failed.started >= 5 && failed.ended >= failed.started);
    assert!(backend.devices[0].check().is_ok());
    assert!(backend.has_failed(failed.event));

    let (lost, backend) = ended_with(-2, &[]);
    assert!(matches!(lost.status, Status::DeviceLost(_)), "{lost:?}");
    assert!(backend.devices[0].check().is_err());
}

#[test]
fn a_lost_device_refuses_everything() {
    let (mut backend, _completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    backend.devices[0].mark_lost("it fell off the bus");
    backend.devices[0].mark_lost("a later reason");
    let submitted = backend.submit(
        queue,
        add(Memory::Device(buffer), 1),
        &[],
        Some(EventId::fresh()),
    );
    for error in [
        submitted.err(),
        backend.queue(DeviceId(0)).err(),
        backend.alloc(DeviceId(0), 16).err(),
    ] {
        let text = error.map(|e| e.to_string()).unwrap_or_default();
        assert!(text.contains("was lost: it fell off the bus"), "{text}");
    }
}

#[test]
fn a_device_that_may_cache_sees_host_memory_and_shows_its_own() {
    let (mut backend, completions) = cpu();
    // As an integrated GPU: it shares host memory, but is no CPU.
    backend.devices[0].info.kind = DeviceKind::Gpu;
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 1);
    for round in 1..=3 {
        let event = EventId::fresh();
        backend
            .submit(queue, add(Memory::Host(region.id), 10), &[], Some(event))
            .expect("submitted");
        let completion = next(&mut backend, &completions);
        assert_eq!((completion.event, completion.status), (event, Status::Done));
        assert_eq!(numbers(&region), [1 + 10 * round; 64]);
        let view = &backend.queues[&queue].own.views[&region.id];
        assert!(view.mapped.is_some(), "at rest it is mapped");
    }
}

#[test]
fn a_separate_device_gets_pinned_memory_and_computes_only_in_its_own() {
    let (mut backend, completions) = cpu();
    backend.devices[0].info.shares_host_memory = false;
    assert!(backend.pins_host_memory());
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 7);
    assert_eq!(region.address.as_ptr().addr() % 4096, 0);
    let refused = backend.submit(
        queue,
        add(Memory::Host(region.id), 1),
        &[],
        Some(EventId::fresh()),
    );
    let text = refused.expect_err("host memory").to_string();
    assert!(text.contains("memory of its own"), "{text}");

    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    for command in [
        Command::write(region.id, 0..256, buffer, 0),
        add(Memory::Device(buffer), 3),
        Command::read(buffer, 0, region.id, 0..256),
    ] {
        backend
            .submit(queue, command, &[], Some(EventId::fresh()))
            .expect("submitted");
    }
    for _ in 0..3 {
        assert_eq!(next(&mut backend, &completions).status, Status::Done);
    }
    assert_eq!(numbers(&region), [10; 64]);
    backend.forget_host(region.id);
}

#[test]
fn a_command_waits_for_one_of_another_context() {
    let (mut backend, completions) = cpu();
    let (foreign, _) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let gate = gate(&foreign);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 1);
    submit(&mut backend, queue, Memory::Device(buffer), &[precursor]);
    std::thread::sleep(Duration::from_millis(50));
    backend.poll();
    assert!(is_silent(&completions), "it must wait");
    set_user_event_status(gate.raw(), CL_COMPLETE).expect("set");
    for _ in 0..2 {
        assert_eq!(next(&mut backend, &completions).status, Status::Done);
    }
}

#[test]
fn a_failure_crosses_into_another_context() {
    let (mut backend, completions) = cpu();
    let (foreign, _) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let gate = gate(&foreign);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 1);
    submit(&mut backend, queue, Memory::Device(buffer), &[precursor]);
    set_user_event_status(gate.raw(), -5).expect("set");
    // PoCL calls nobody back for a user event that fails: it is asked after a silence. What waits
    // is let go then, and learns of the failure.
    backend.inspect();
    let ended = [(); 2].map(|()| next(&mut backend, &completions));
    assert!(matches!(&ended[0].status, Status::Failed(_)), "{ended:?}");
    assert_eq!(ended[1].status, Status::Skipped);
}

#[test]
fn a_released_queue_finishes_what_is_on_it() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 1);
    let gate = gate(&backend);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 0);
    let memory = Memory::Host(region.id);
    let events = [precursor, precursor].map(|wait| submit(&mut backend, queue, memory, &[wait]));
    backend.free_queue(queue);
    let refused = backend.submit(queue, add(memory, 1), &[], Some(EventId::fresh()));
    assert!(matches!(
        refused,
        Err(RuntimeError::Unknown { what: "queue" })
    ));
    set_user_event_status(gate.raw(), CL_COMPLETE).expect("set");
    for event in [precursor].into_iter().chain(events) {
        let completion = next(&mut backend, &completions);
        assert_eq!((completion.event, completion.status), (event, Status::Done));
    }
    assert_eq!(numbers(&region), [3; 64]);
}

#[test]
fn a_slow_command_is_left_alone_and_a_forgotten_one_is_reported() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let gate = gate(&backend);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 0);
    let waiting = submit(&mut backend, queue, Memory::Device(buffer), &[precursor]);
    backend.inspect();
    assert!(is_silent(&completions), "both are merely slow");
    set_user_event_status(gate.raw(), CL_COMPLETE).expect("set");
    // What was waited for is asked for when the other one has ended.
    let completed = next(&mut backend, &completions);
    assert_eq!(
        (completed.event, completed.status),
        (precursor, Status::Done)
    );
    // It ran at some time between; none of it must count as no time at all.
    assert_eq!(
        (completed.started, completed.ended > completed.started),
        (5, true)
    );
    assert_eq!(next(&mut backend, &completions).event, waiting);
    backend.inspect();
    assert!(is_silent(&completions), "everything was reported once");
}

#[test]
fn a_silently_lost_device_ends_its_commands_once() {
    let (mut backend, completions) = cpu();
    let (foreign, _) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let memory = Memory::Device(buffer);
    // The first is in another context than what waits for it.
    let gate = gate(&foreign);
    let stuck = EventId::fresh();
    launched(&mut backend, stuck, &gate, 1);
    let waiting = submit(&mut backend, queue, memory, &[stuck]);
    let behind = submit(&mut backend, queue, memory, &[]);
    backend.devices[0].mark_lost("it fell off the bus");
    backend.inspect();
    let ended = [(); 3].map(|()| next(&mut backend, &completions));
    assert_eq!(ended.each_ref().map(|c| c.event), [stuck, waiting, behind]);
    for completion in ended {
        let lost = Status::DeviceLost("it fell off the bus".to_owned());
        assert_eq!(completion.status, lost);
    }
    // What waited in the other context was let go, and its late callbacks
    // find everything reported.
    std::thread::sleep(Duration::from_millis(100));
    backend.poll();
    assert!(is_silent(&completions), "a second completion");
}

#[path = "without_event_tests.rs"]
mod without_event;

#[path = "series_tests.rs"]
mod series;
