//! Queues are in order, events order queues, and every command with an event is reported once.

use std::collections::HashSet;
use std::sync::Arc;

use pdawl_api::runtime::{Command, CommandKind, Devices, EventId, QueueKind, Runtime, Status};

use crate::library::fake;
use crate::machine::{ONE, OTHER, add, enqueue, finish, host, machine, next, numbers, slow};

#[test]
fn a_queue_is_in_order_and_each_command_is_reported_once() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    let memory = host(&mut machine, &[5; 64]);
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    for kind in [QueueKind::Plain, QueueKind::Profiled] {
        machine.host_bytes(memory).expect("free").fill(0);
        let queue = machine.open_queue(ONE, kind).expect("a queue");
        let mut events = vec![enqueue(
            &mut machine,
            queue,
            Command::write(memory, 0..256, buffer, 0),
            &[],
        )];
        for _ in 0..50 {
            events.push(enqueue(&mut machine, queue, add(buffer, 1), &[]));
        }
        let read = Command::read(buffer, 0, memory, 0..256);
        events.push(enqueue(&mut machine, queue, read, &[]));
        assert_eq!(finish(&mut machine), events, "in their order, each once");
        assert_eq!(numbers(&mut machine, memory), vec![50; 64]);
        machine.free_queue(queue);
    }
}

#[test]
fn events_order_queues_of_one_device_and_of_two() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let memory = host(&mut machine, &[0; 64]);
    for round in 0..10 {
        let buffers = [ONE, OTHER].map(|device| machine.alloc(device, 256).expect("a buffer"));
        let queues = [ONE, ONE, OTHER, OTHER].map(|device| machine.queue(device).expect("one"));
        machine.host_bytes(memory).expect("free").fill(0);
        let mut before: Vec<EventId> = Vec::new();
        for i in 0..24u32 {
            // Which queue comes next has no period of the devices' count.
            let turn = (i * i + round) as usize % 4;
            let (queue, buffer) = (queues[turn], buffers[turn / 2]);
            let write = Command::write(memory, 0..256, buffer, 0);
            let read = Command::read(buffer, 0, memory, 0..256);
            before = vec![enqueue(&mut machine, queue, write, &before)];
            before = vec![enqueue(&mut machine, queue, add(buffer, 1), &before)];
            before = vec![enqueue(&mut machine, queue, read, &before)];
        }
        finish(&mut machine);
        assert_eq!(numbers(&mut machine, memory), vec![24; 64]);
        for queue in queues {
            machine.free_queue(queue);
        }
        for buffer in buffers {
            machine.free(buffer);
        }
    }
}

#[test]
fn commands_without_an_event_are_covered_by_the_next_one_with_one() {
    let _fake = fake();
    let mut machine = machine("cuda0");
    let memory = host(&mut machine, &[3; 64]);
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    let queue = machine.queue(ONE).expect("a queue");
    let repeat = match add(buffer, 2) {
        Command::Launch(launch) => Command::Repeat(Arc::new(launch)),
        other => panic!("{other:?}"),
    };
    let write = Command::write(memory, 0..256, buffer, 0);
    machine.submit(queue, write, &[], None).expect("accepted");
    for _ in 0..20 {
        let commands = [add(buffer, 1), repeat.clone()];
        for command in commands {
            machine.submit(queue, command, &[], None).expect("accepted");
        }
    }
    let read = Command::read(buffer, 0, memory, 0..256);
    let event = enqueue(&mut machine, queue, read, &[]);
    assert_eq!(finish(&mut machine), [event], "nobody hears of the others");
    assert_eq!(numbers(&mut machine, memory), vec![63; 64]);
    // What nothing covers ends before its queue is freed.
    let read = Command::read(buffer, 0, memory, 0..256);
    machine
        .submit(queue, add(buffer, 1), &[], None)
        .expect("accepted");
    machine.submit(queue, read, &[], None).expect("accepted");
    machine.free_queue(queue);
    assert_eq!(numbers(&mut machine, memory), vec![64; 64]);
}

#[test]
fn freed_queues_and_memory_serve_the_commands_in_flight() {
    let fake = fake();
    let before = fake.live();
    let mut machine = machine("cuda0,cuda1");
    let memory = host(&mut machine, &[0; 64]);
    let mut waited: Vec<EventId> = Vec::new();
    let mut all = HashSet::new();
    for round in 0..20 {
        let device = [ONE, OTHER][round % 2];
        let queue = machine.queue(device).expect("a queue");
        let buffer = machine.alloc(device, 256).expect("a buffer");
        let commands = [
            Command::write(memory, 0..256, buffer, 0),
            slow(buffer),
            Command::read(buffer, 0, memory, 0..256),
        ];
        for command in commands {
            let event = enqueue(&mut machine, queue, command, &waited);
            waited = vec![event];
            all.insert(event);
        }
        machine.free_queue(queue);
        machine.free(buffer);
    }
    let ended = finish(&mut machine);
    assert_eq!(ended.len(), all.len());
    assert_eq!(ended.into_iter().collect::<HashSet<_>>(), all);
    assert_eq!(numbers(&mut machine, memory), vec![20; 64]);
    // As much is kept as was in use at once.
    assert_eq!([fake.allocated(0), fake.allocated(1)], [256, 256]);
    drop(machine);
    assert_eq!([fake.allocated(0), fake.allocated(1)], [0, 0]);
    assert_eq!(
        fake.live(),
        before,
        "streams, events, modules, pinned memory"
    );
}

#[test]
fn a_machine_may_be_dropped_while_it_computes() {
    let fake = fake();
    let before = fake.live();
    let mut machine = machine("cuda0");
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    let queue = machine.queue(ONE).expect("a queue");
    for _ in 0..3 {
        enqueue(&mut machine, queue, slow(buffer), &[]);
    }
    drop(machine);
    assert_eq!((fake.live(), fake.allocated(0)), (before, 0));
}

#[test]
fn times_are_in_order_on_one_clock() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let buffers = [ONE, OTHER].map(|device| machine.alloc(device, 256).expect("a buffer"));
    let queues = [ONE, OTHER].map(|device| machine.queue(device).expect("a queue"));
    let mut before: Vec<EventId> = Vec::new();
    let mut last_end = machine.now();
    for i in 0..12 {
        let event = enqueue(&mut machine, queues[i % 2], slow(buffers[i % 2]), &before);
        before = vec![event];
    }
    for _ in 0..12 {
        let completion = next(&mut machine);
        assert_eq!(
            (&completion.status, completion.kind),
            (&Status::Done, CommandKind::Launch)
        );
        assert!(
            completion.queued <= completion.submitted && completion.submitted <= completion.started
        );
        // The fake's slow kernel sleeps for so long.
        assert!(
            completion.ended - completion.started >= 20_000_000,
            "{completion:?}"
        );
        // A device's clock is known to within what a call takes.
        assert!(
            completion.started + 15_000_000 >= last_end,
            "{completion:?} {last_end}"
        );
        assert!(completion.ended <= machine.now());
        last_end = completion.ended;
    }
}
