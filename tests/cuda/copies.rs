//! Copies of rows, between devices, and of the user's memory.

use pdawl_api::codelet::BufferId;
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{
    AdoptedMemory, Command, DeviceId, Devices, Location, QueueId, Rows, Runtime, RuntimeError,
};

use crate::library::fake;
use crate::machine::{ONE, OTHER, add, enqueue, finish, host, machine, numbers};

/// Three rows of two numbers, four apart in `from` and five apart in `to`.
const ROWS: Rows = Rows {
    count: 3,
    bytes: 8,
    from_pitch: 16,
    to_pitch: 20,
};

/// What the rows of 0, 1, 2, ... are behind the copy, from the third number on.
fn copied(mut to: Vec<u32>) -> Vec<u32> {
    for row in 0..3 {
        for column in 0..2 {
            to[3 + 5 * row + column] = (2 + 4 * row + column) as u32;
        }
    }
    to
}

fn fill(machine: &mut Union, queue: QueueId, buffer: BufferId, with: &[u32]) {
    let memory = host(machine, with);
    let write = Command::write(memory, 0..4 * with.len() as u64, buffer, 0);
    enqueue(machine, queue, write, &[]);
    finish(machine);
    machine.free_host(memory);
}

fn read(machine: &mut Union, queue: QueueId, buffer: BufferId, count: usize) -> Vec<u32> {
    let memory = host(machine, &vec![0; count]);
    let read = Command::read(buffer, 0, memory, 0..4 * count as u64);
    enqueue(machine, queue, read, &[]);
    finish(machine);
    let all = numbers(machine, memory);
    machine.free_host(memory);
    all
}

#[test]
fn rows_are_copied_at_their_pitches_in_every_direction() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let counted: Vec<u32> = (0..16).collect();
    let expected = copied(vec![77; 20]);
    let queue = machine.queue(ONE).expect("a queue");
    let elsewhere = machine.queue(OTHER).expect("a queue");
    let [from, to] = [64, 80].map(|bytes| machine.alloc(ONE, bytes).expect("a buffer"));
    let other = machine.alloc(OTHER, 80).expect("a buffer");
    let copy = |from, to| Command::Copy {
        from,
        to,
        rows: ROWS,
    };
    // From the host.
    let memory = host(&mut machine, &counted);
    fill(&mut machine, queue, to, &[77; 20]);
    let command = copy(Location::host(memory, 8), Location::device(to, 12));
    enqueue(&mut machine, queue, command, &[]);
    finish(&mut machine);
    assert_eq!(read(&mut machine, queue, to, 20), expected);
    // To the host.
    fill(&mut machine, queue, from, &counted);
    let result = host(&mut machine, &[77; 20]);
    let command = copy(Location::device(from, 8), Location::host(result, 12));
    enqueue(&mut machine, queue, command, &[]);
    finish(&mut machine);
    assert_eq!(numbers(&mut machine, result), expected);
    // Within a device.
    fill(&mut machine, queue, to, &[77; 20]);
    let command = copy(Location::device(from, 8), Location::device(to, 12));
    enqueue(&mut machine, queue, command, &[]);
    finish(&mut machine);
    assert_eq!(read(&mut machine, queue, to, 20), expected);
    // To another device, on a queue of either.
    for on in [queue, elsewhere] {
        fill(&mut machine, elsewhere, other, &[77; 20]);
        let command = copy(Location::device(from, 8), Location::device(other, 12));
        enqueue(&mut machine, on, command, &[]);
        finish(&mut machine);
        assert_eq!(read(&mut machine, elsewhere, other, 20), expected);
    }
}

#[test]
fn devices_that_reach_each_other_copy_directly() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    for (from, to) in [(ONE, OTHER), (OTHER, ONE)] {
        let path = machine
            .peer_path(from, to)
            .expect("measured when it was opened");
        assert!(path.bandwidth > 0.0 && !path.through_host);
    }
    assert!(machine.peer_path(ONE, ONE).is_none());
    let queues = [ONE, OTHER].map(|device| machine.queue(device).expect("a queue"));
    let buffers = [ONE, OTHER].map(|device| machine.alloc(device, 1 << 20).expect("a buffer"));
    let begin: Vec<u32> = (0..1 << 18).collect();
    fill(&mut machine, queues[0], buffers[0], &begin);
    let copy = Command::Copy {
        from: Location::device(buffers[0], 0),
        to: Location::device(buffers[1], 0),
        rows: Rows::one(1 << 20),
    };
    let added = enqueue(&mut machine, queues[0], add(buffers[0], 1), &[]);
    let copied = enqueue(&mut machine, queues[1], copy, &[added]);
    enqueue(&mut machine, queues[0], add(buffers[0], 1), &[copied]);
    finish(&mut machine);
    let there = read(&mut machine, queues[1], buffers[1], 1 << 18);
    let expected = |i: u32| if i < 64 { i + 1 } else { i };
    assert!(there.iter().zip(0..).all(|(has, i)| *has == expected(i)));
}

#[test]
fn memory_of_the_user_is_pinned_while_it_is_host_memory() {
    let fake = fake();
    let mut machine = machine("cuda0");
    let pinned = fake.live()[3];
    for refused in [false, true] {
        // Where the driver does not pin it, copies work all the same.
        fake.fail("cuMemHostRegister", 801, i32::from(refused));
        let memory = machine.adopt_host(AdoptedMemory::from(vec![5u32; 64]));
        let memory = memory.map_err(|error| error.error).expect("adopted");
        assert_eq!(fake.live()[3], pinned + i32::from(!refused));
        let queue = machine.queue(ONE).expect("a queue");
        let buffer = machine.alloc(ONE, 256).expect("a buffer");
        for command in [
            Command::write(memory, 0..256, buffer, 0),
            add(buffer, 2),
            Command::read(buffer, 0, memory, 0..256),
        ] {
            enqueue(&mut machine, queue, command, &[]);
        }
        assert!(matches!(machine.take_host(memory), Err(RuntimeError::Busy)));
        finish(&mut machine);
        let taken = machine.take_host(memory).expect("nothing uses it");
        assert_eq!(taken.into_owner::<Vec<u32>>().expect("the vector"), [7; 64]);
        assert_eq!(fake.live()[3], pinned);
        machine.free_queue(queue);
    }
}

#[test]
fn copies_outside_of_their_memory_are_refused() {
    let _fake = fake();
    let mut machine = machine("cuda0,cuda1");
    let memory = host(&mut machine, &[0; 64]);
    let queue = machine.queue(ONE).expect("a queue");
    let buffer = machine.alloc(ONE, 256).expect("a buffer");
    let foreign = machine.alloc(OTHER, 256).expect("a buffer");
    for command in [
        Command::write(memory, 0..256, buffer, 4),
        Command::read(buffer, 200, memory, 0..57),
        Command::read(buffer, u64::MAX, memory, 0..4),
        Command::write(memory, 0..256, foreign, 0),
        Command::Copy {
            from: Location::host(memory, 0),
            to: Location::device(buffer, 0),
            rows: Rows::new(5, 8, 8, 63),
        },
    ] {
        let refused = machine.enqueue(queue, command.clone(), &[]);
        assert!(refused.is_err(), "{command:?}");
    }
    let empty = Command::write(memory, 0..0, buffer, 256);
    enqueue(&mut machine, queue, empty, &[]);
    assert_eq!(finish(&mut machine).len(), 1);
    assert!(machine.queue(DeviceId(7)).is_err());
}
