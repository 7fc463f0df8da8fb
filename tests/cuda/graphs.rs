//! Command graphs: launches with precedences that the driver gets with one call. The fake
//! driver runs the kernels of a graph in the latest order that its precedences allow.

use std::sync::Arc;

use pdawl_api::codelet::{
    Codelet, KernelSeries, KernelSource, NdRange, OpenClKernel, Shape, Value,
};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{
    BufferId, Command, CommandGraph, CommandKind, Devices, EventId, GraphLaunch, Memory, QueueId,
    QueueKind, Runtime, Status,
};

use crate::library::fake;
use crate::machine::{
    ONE, OTHER, PTX, add, codelet, enqueue, finish, host, launch, machine, mix, mixed, next,
    numbers, slow,
};

/// A graph of these launches, each after those with these indices.
fn graph(launches: Vec<(Command, &[usize])>) -> Arc<CommandGraph> {
    let launches = launches.into_iter().map(|(command, after)| match command {
        Command::Launch(launch) => GraphLaunch {
            launch: Arc::new(launch),
            after: after.to_vec(),
        },
        other => panic!("{other:?}"),
    });
    Arc::new(CommandGraph::new(launches.collect()).expect("a graph"))
}

fn of(graph: &Arc<CommandGraph>) -> Command {
    Command::Graph(Arc::clone(graph))
}

/// Buffers of 64 numbers, the first of which has these.
fn buffers<const N: usize>(machine: &mut Union, queue: QueueId, first: &[u32]) -> [BufferId; N] {
    let buffers = std::array::from_fn(|_| machine.alloc(ONE, 256).expect("a buffer"));
    let memory = host(machine, first);
    let write = Command::write(memory, 0..256, buffers[0], 0);
    enqueue(machine, queue, write, &[]);
    finish(machine);
    buffers
}

/// What a buffer has.
fn read(machine: &mut Union, queue: QueueId, buffer: BufferId) -> Vec<u32> {
    let memory = host(machine, &[0; 64]);
    let read = Command::read(buffer, 0, memory, 0..256);
    enqueue(machine, queue, read, &[]);
    finish(machine);
    numbers(machine, memory)
}

/// Works on numbers in the first of four buffers.
fn diamond([a, b, c, d]: [BufferId; 4]) -> Vec<(Command, &'static [usize])> {
    vec![
        (mix([a, a], b, 5), &[]),
        (mix([b, a], c, 6), &[0]),
        (mix([b, a], d, 7), &[0]),
        (add(c, 8), &[1]),
        (mix([c, d], a, 9), &[2, 3]),
        (add(a, 1), &[4]),
    ]
}

/// What [`diamond`] leaves in its buffers.
fn worked_on(a: &[u32]) -> [Vec<u32>; 4] {
    let plus = |numbers: Vec<u32>, more| numbers.iter().map(|n| n.wrapping_add(more)).collect();
    let b = mixed([a, a], 5);
    let c: Vec<u32> = plus(mixed([&b, a], 6), 8);
    let d = mixed([&b, a], 7);
    [plus(mixed([&c, &d], 9), 1), b, c, d]
}

#[test]
fn a_graph_is_its_launches_in_an_order_that_they_allow() {
    let fake = fake();
    let mut machine = machine("cuda0");
    assert!(machine.runs_graphs(ONE));
    let queue = machine.queue(ONE).expect("a queue");
    let first: Vec<u32> = (0..64).map(|i| i * i).collect();
    let all: [BufferId; 4] = buffers(&mut machine, queue, &first);
    let whole = graph(diamond(all));
    let mut a = first;
    for run in 1..4 {
        let event = enqueue(&mut machine, queue, of(&whole), &[]);
        let completion = next(&mut machine);
        assert_eq!(
            (completion.event, completion.kind, &completion.status),
            (event, CommandKind::Launch, &Status::Done)
        );
        let expected = worked_on(&a);
        for (buffer, expected) in all.into_iter().zip(&expected) {
            assert_eq!(&read(&mut machine, queue, buffer), expected, "run {run}");
        }
        [a, ..] = expected;
    }
    assert_eq!(fake.calls("cuGraphInstantiateWithFlags"), 1);
    assert_eq!(fake.calls("cuGraphLaunch"), 3);
    assert_eq!(fake.calls("cuLaunchKernel"), 0);
}

#[test]
fn the_fake_driver_shows_a_missing_precedence() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    let queue = machine.queue(ONE).expect("a queue");
    let [a, b] = buffers(&mut machine, queue, &[1; 64]);
    let after = |after: &'static [usize]| graph(vec![(mix([a, a], b, 2), &[]), (add(a, 1), after)]);
    enqueue(&mut machine, queue, of(&after(&[0])), &[]);
    assert_eq!(read(&mut machine, queue, b), mixed([&[1; 64]; 2], 2));
    enqueue(&mut machine, queue, of(&after(&[])), &[]);
    assert_eq!(read(&mut machine, queue, b), mixed([&[3; 64]; 2], 2));
}

#[test]
fn graphs_wait_and_are_waited_for() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let queues: Vec<QueueId> = [ONE, ONE, ONE, OTHER]
        .map(|device| machine.queue(device).expect("a queue"))
        .into();
    let [a, b] = buffers(&mut machine, queues[0], &[0; 64]);
    let other = machine.alloc(OTHER, 256).expect("a buffer");
    let zeros = host(&mut machine, &[0; 64]);
    let write = Command::write(zeros, 0..256, other, 0);
    enqueue(&mut machine, queues[3], write, &[]);
    let whole = graph(vec![
        (add(a, 1), &[]),
        (slow(a), &[0]),
        (mix([a, a], b, 0), &[1]),
    ]);
    let mut expected = vec![0u32; 64];
    let mut waited: Vec<EventId> = Vec::new();
    for round in 0..6 {
        // The same graph is on a queue while others have it, too.
        let ended = enqueue(&mut machine, queues[round % 3], of(&whole), &waited);
        let before = enqueue(&mut machine, queues[3], slow(other), &[ended]);
        let behind = enqueue(&mut machine, queues[(round + 1) % 3], add(a, 3), &[before]);
        waited = vec![behind];
        expected = expected.iter().map(|n| n + 2 + 3).collect();
    }
    finish(&mut machine);
    assert_eq!(read(&mut machine, queues[0], a), expected);
    let last: Vec<u32> = expected.iter().map(|n| n - 3).collect();
    assert_eq!(read(&mut machine, queues[0], b), mixed([&last, &last], 0));
    assert_eq!(read(&mut machine, queues[3], other), vec![6; 64]);
}

#[test]
fn several_graphs_run_on_several_queues_at_once() {
    let fake = fake();
    let mut machine = machine("cuda0");
    let queues: Vec<QueueId> = (0..4)
        .map(|_| machine.open_queue(ONE, QueueKind::Plain).expect("a queue"))
        .collect();
    let all: Vec<[BufferId; 4]> = (0..8)
        .map(|i| buffers(&mut machine, queues[i % 4], &[i as u32; 64]))
        .collect();
    let graphs: Vec<_> = all.iter().map(|own| graph(diamond(*own))).collect();
    for _ in 0..5 {
        for (i, whole) in graphs.iter().enumerate() {
            let command = of(whole);
            let event = (i > 3).then(EventId::fresh);
            // Each one without an event is covered by the one behind it.
            (machine.submit(queues[i % 4], command, &[], event)).expect("accepted");
        }
    }
    assert_eq!(finish(&mut machine).len(), 5 * 4);
    for (i, own) in all.into_iter().enumerate() {
        let mut a = vec![i as u32; 64];
        for _ in 0..5 {
            [a, ..] = worked_on(&a);
        }
        assert_eq!(read(&mut machine, queues[0], own[0]), a, "graph {i}");
    }
    assert_eq!(fake.calls("cuGraphInstantiateWithFlags"), 8);
}

#[test]
fn a_graph_is_forgotten_with_its_memory_and_with_its_last_holder() {
    let fake = fake();
    let before = fake.live();
    let mut machine = machine("cuda0");
    let queue = machine.queue(ONE).expect("a queue");
    let all: [BufferId; 4] = buffers(&mut machine, queue, &[3; 64]);
    let [kept, other] = buffers(&mut machine, queue, &[3; 64]);
    let graphs_before = fake.live()[4];
    let (whole, dropped) = (
        graph(diamond(all)),
        graph(vec![
            (mix([kept, kept], other, 1), &[]),
            (add(kept, 1), &[0]),
        ]),
    );
    for _ in 0..2 {
        enqueue(&mut machine, queue, of(&whole), &[]);
        enqueue(&mut machine, queue, of(&dropped), &[]);
    }
    assert_eq!(fake.live()[4], graphs_before + 2);
    // What runs keeps what it needs.
    machine.free(all[2]);
    finish(&mut machine);
    assert_eq!(fake.live()[4], graphs_before + 1);
    assert_eq!(read(&mut machine, queue, kept), vec![5; 64]);
    drop(dropped);
    let refused = machine.enqueue(queue, of(&whole), &[]);
    let error = refused.expect_err("its buffer is gone").to_string();
    assert!(error.contains("buffer of this device"), "{error}");
    machine.free(all[3]);
    assert_eq!(fake.live()[4], graphs_before);
    drop(machine);
    assert_eq!(fake.live(), before);
}

#[test]
fn kernels_that_are_several_launches_are_several_nodes() {
    let fake = fake();
    let mut machine = machine("cuda0");
    let queue = machine.queue(ONE).expect("a queue");
    let zeros = host(&mut machine, &[0; 180]);
    let large = machine.alloc(ONE, 720).expect("a buffer");
    let [one, other] = buffers(&mut machine, queue, &[0; 64]);
    for (buffer, bytes) in [(large, 720), (other, 256)] {
        let write = Command::write(zeros, 0..bytes, buffer, 0);
        enqueue(&mut machine, queue, write, &[]);
    }
    // Thirteen groups along y, of which the fake driver launches five at most.
    let sizes = NdRange::new(vec![6, 26]).exactly(vec![3, 2]);
    let place = codelet(PTX, "place", sizes);
    let memory = |buffer| Value::Memory(Memory::Device(buffer));
    let place = launch(&place, vec![memory(large), Value::U32(6)]);
    let nothing = codelet(PTX, "add", NdRange::new(vec![0]));
    let nothing = launch(&nothing, vec![memory(one), Value::U32(1)]);
    let series = scratch();
    let scratch = |buffer| Command::Launch(launch(&series, vec![memory(buffer)]));
    let whole = graph(vec![
        (Command::Launch(place), &[]),
        (Command::Launch(nothing), &[0]),
        // Both use the same memory of their own, so one comes after the other.
        (scratch(one), &[1]),
        (scratch(other), &[]),
    ]);
    enqueue(&mut machine, queue, of(&whole), &[]);
    let memory = host(&mut machine, &[0; 180]);
    let back = Command::read(large, 0, memory, 0..720);
    enqueue(&mut machine, queue, back, &[]);
    finish(&mut machine);
    for (at, has) in numbers(&mut machine, memory).into_iter().enumerate() {
        let row = at / 6;
        let expected = match row {
            26.. => 0,
            _ => 1 + ((row / 2) << 8) + (13 << 20),
        };
        assert_eq!(has as usize, expected, "number {at}");
    }
    assert_eq!(read(&mut machine, queue, one)[0], 1 + 2);
    assert_eq!(read(&mut machine, queue, other)[0], 3 + 4 + 5);
    assert_eq!(fake.calls("cuGraphAddKernelNode"), 3 + 3 + 3);
}

/// A series of three kernels that count in memory of their own.
fn scratch() -> Arc<Codelet> {
    let source = KernelSource::new(PTX, "kernels.ptx", "scratch", "");
    let series = KernelSeries {
        kernels: vec![source.clone()],
        steps: |_, _| vec![(0, NdRange::new(vec![1])); 3],
        scratch: |_| 4,
    };
    Arc::new(Codelet {
        name: "scratch".into(),
        host: None,
        library: None,
        opencl: Some(OpenClKernel {
            source,
            fp64: false,
            shape: Shape::Series(Arc::new(series)),
        }),
    })
}

#[test]
fn a_profiled_queue_has_the_times_of_a_graph() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    for kind in [QueueKind::Profiled, QueueKind::Plain] {
        let queue = machine.open_queue(ONE, kind).expect("a queue");
        let [a, b] = buffers(&mut machine, queue, &[0; 64]);
        let whole = graph(vec![(slow(a), &[]), (slow(b), &[0]), (add(a, 1), &[1])]);
        let event = enqueue(&mut machine, queue, of(&whole), &[]);
        let completion = next(&mut machine);
        assert_eq!(
            (completion.event, &completion.status),
            (event, &Status::Done)
        );
        assert!(completion.queued <= completion.started, "{completion:?}");
        assert!(
            completion.ended - completion.started >= 40_000_000,
            "{completion:?}"
        );
        assert!(completion.ended <= machine.now() && completion.stages.is_none());
        assert_eq!(read(&mut machine, queue, a), vec![2; 64]);
    }
}

#[test]
fn a_device_that_is_lost_in_a_graph_ends_what_waits_for_it() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let queues = [ONE, OTHER].map(|device| machine.queue(device).expect("a queue"));
    let [a] = buffers(&mut machine, queues[0], &[0; 64]);
    let other = machine.alloc(OTHER, 256).expect("a buffer");
    let far = codelet(
        PTX,
        "add",
        NdRange::new(vec![64]).starting_at(vec![1 << 20]),
    );
    let far = launch(&far, vec![Value::Memory(Memory::Device(a)), Value::U32(1)]);
    let whole = graph(vec![(slow(a), &[]), (Command::Launch(far), &[0])]);
    let lost = enqueue(&mut machine, queues[0], of(&whole), &[]);
    let waiting = enqueue(&mut machine, queues[1], add(other, 1), &[lost]);
    for _ in 0..2 {
        let completion = next(&mut machine);
        let is_as_expected = match completion.status {
            Status::DeviceLost(why) => completion.event == lost && why.contains("ILLEGAL_ADDRESS"),
            status => completion.event == waiting && status == Status::Skipped,
        };
        assert!(is_as_expected, "{:?}", completion.event);
    }
    assert!(machine.alloc(ONE, 4).is_err(), "it is lost");
}

#[test]
fn a_graph_that_the_driver_does_not_make_runs_one_by_one() {
    const OUT_OF_MEMORY: i32 = 2;
    let fake = fake();
    let mut machine = machine("cuda0");
    let queue = machine.queue(ONE).expect("a queue");
    let all: [BufferId; 4] = buffers(&mut machine, queue, &[1; 64]);
    for call in [
        "cuGraphCreate",
        "cuGraphAddKernelNode",
        "cuGraphInstantiateWithFlags",
    ] {
        let whole = graph(diamond(all));
        let a = read(&mut machine, queue, all[0]);
        fake.fail(call, OUT_OF_MEMORY, 1);
        for _ in 0..2 {
            enqueue(&mut machine, queue, of(&whole), &[]);
        }
        let [once, ..] = worked_on(&a);
        let [twice, ..] = worked_on(&once);
        assert_eq!(read(&mut machine, queue, all[0]), twice, "{call}");
    }
    assert_eq!(fake.calls("cuLaunchKernel"), 3 * 2 * 6);
    let whole = graph(diamond(all));
    fake.fail("cuGraphLaunch", OUT_OF_MEMORY, 1);
    let refused = machine.enqueue(queue, of(&whole), &[]);
    let error = refused.expect_err("it is not launched").to_string();
    assert!(error.starts_with("cuda0: cuGraphLaunch failed"), "{error}");
}

#[test]
fn graphs_that_cannot_be_are_refused() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    let queue = machine.queue(ONE).expect("a queue");
    let [a] = buffers(&mut machine, queue, &[0; 64]);
    let whole = graph(vec![(add(a, 1), &[])]);
    let memory = host(&mut machine, &[0; 64]);
    let codelet = codelet(PTX, "add", NdRange::new(vec![64]));
    let in_host = |args| graph(vec![(Command::Launch(launch(&codelet, args)), &[])]);
    let host_memory = Value::Memory(Memory::Host(memory));
    for (command, part) in [
        (Command::Series(vec![of(&whole)]), "a series or a graph"),
        (
            of(&in_host(vec![host_memory, Value::U32(1)])),
            "does not compute in host memory",
        ),
        (
            of(&in_host(vec![Value::U32(1)])),
            "2 arguments, and 1 are given",
        ),
    ] {
        let error = machine.enqueue(queue, command, &[]).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(read(&mut machine, queue, a), vec![0; 64]);
    // Host pools run none.
    let (mut pool, _) =
        pdawl_api::runtime::select::open(Some(&"host:1".parse().expect("one")), true)
            .expect("a pool");
    assert!(!pool.runs_graphs(ONE));
    let queue = pool.queue(ONE).expect("a queue");
    let error = pool.enqueue(queue, of(&whole), &[]).expect_err("refused");
    assert!(error.to_string().contains("a command graph"), "{error}");
}
