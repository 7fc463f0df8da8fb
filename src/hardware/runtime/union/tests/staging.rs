//! Copies between devices through host memory.

use std::cell::RefCell;
use std::rc::Rc;

use fastrand::Rng;

use super::fake::{Fake, World};
use super::*;
use crate::runtime::union::faults::{Effect, LOST, When};
use crate::runtime::{CommandKind, Location, Rows};

/// More pieces than slots, and an odd length.
const BYTES: u64 = (9 << 20) + 5;

/// Two devices, of one backend or of two.
fn two(one_backend: bool) -> World {
    world(if one_backend { &[2] } else { &[1, 1] })
}

/// A buffer of a device, filled with numbers.
fn filled(world: &mut World, device: usize, rng: &mut Rng) -> BufferId {
    let buffer = world.union.alloc(DeviceId(device), BYTES).unwrap();
    for fake in &world.fakes {
        if let Some(memory) = fake.borrow_mut().buffers.get_mut(&buffer) {
            rng.fill(memory);
        }
    }
    buffer
}

/// The contents of a buffer.
fn bytes(world: &World, buffer: BufferId) -> Vec<u8> {
    let of = |fake: &Rc<RefCell<Fake>>| fake.borrow().buffers.get(&buffer).cloned();
    world.fakes.iter().find_map(of).unwrap()
}

fn copy(from: (BufferId, u64), to: (BufferId, u64), bytes: u64) -> Command {
    Command::Copy {
        from: Location::device(from.0, from.1),
        to: Location::device(to.0, to.1),
        rows: Rows::one(bytes),
    }
}

/// The commands that can end now, and their backends.
fn ready(world: &World) -> Vec<(usize, EventId)> {
    let of = |fake: usize| {
        let ready = world.fakes[fake].borrow().ready();
        ready.into_iter().map(move |event| (fake, event))
    };
    (0..world.fakes.len()).flat_map(of).collect()
}

/// Ends everything in any order, and returns the completions. The command of number
/// `failing` fails.
fn end_all(world: &mut World, rng: &mut Rng, failing: Option<usize>) -> Vec<Completion> {
    let mut completions = Vec::new();
    for number in 0.. {
        if rng.bool() {
            completions.extend(world.poll());
        }
        let mut commands = ready(world);
        if commands.is_empty() {
            while let Some(completion) = world.poll() {
                completions.push(completion);
            }
            commands = ready(world);
        }
        let Some((fake, event)) = rng.choice(&commands) else {
            break;
        };
        let mut fake = world.fakes[*fake].borrow_mut();
        fake.end(*event, failing == Some(number));
    }
    assert!(world.union.in_flight.is_empty());
    completions
}

#[test]
fn copies_are_whole_and_in_order_however_their_pieces_end() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let mut world = two(rng.bool());
        let [a, b, c] = [0, 1, 0].map(|device| filled(&mut world, device, &mut rng));
        let (before, mut right) = (bytes(&world, a), bytes(&world, c));
        let length = [0, 1, (1 << 20) + 1, BYTES - 2][rng.usize(0..4)];
        // There on a queue of either device, back likewise, and a command behind that.
        let sides = [rng.usize(0..4), rng.usize(0..4)];
        let queues = sides.map(|side| world.queues[side].0);
        let there = copy((a, 2), (b, 1), length);
        let there = world.union.enqueue(queues[0], there, &[]).unwrap();
        let back = copy((b, 1), (c, 2), length);
        let back = world.union.enqueue(queues[1], back, &[there]).unwrap();
        let behind = world.submit(sides[1], &[]).unwrap();
        let done = end_all(&mut world, &mut rng, None);
        let events: Vec<EventId> = done.iter().map(|c| c.event).collect();
        assert_eq!(events, [there, back, behind], "seed {seed}");
        for (completion, queue) in done.iter().zip(queues) {
            assert_eq!(completion.status, Status::Done);
            assert_eq!(completion.kind, CommandKind::Copy);
            assert_eq!((completion.bytes, completion.queue), (length, queue));
        }
        let copied = 2..2 + length as usize;
        right[copied.clone()].copy_from_slice(&before[copied]);
        assert!(bytes(&world, c) == right, "seed {seed}, {length} bytes");
    }
}

#[test]
fn a_piece_that_fails_skips_the_copy_and_what_is_behind_it() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let mut world = two(rng.bool());
        let [a, b] = [0, 1].map(|device| filled(&mut world, device, &mut rng));
        let (queue, other) = (world.queues[2].0, world.queues[3].0);
        let command = copy((a, 0), (b, 0), BYTES);
        let failed = world.union.enqueue(queue, command.clone(), &[]).unwrap();
        let behind = world.union.enqueue(queue, command.clone(), &[]).unwrap();
        let beside = world.union.enqueue(other, command, &[]).unwrap();
        // One of the first copy's, or of the copy beside it.
        let failing = rng.usize(0..16);
        let done = end_all(&mut world, &mut rng, Some(failing));
        let status = |event| &done.iter().find(|c| c.event == event).unwrap().status;
        let driven = [failed, behind, beside];
        let mut strangers = done.iter().filter(|c| !driven.contains(&c.event));
        let stranger = strangers.next().expect("the failure");
        assert!(strangers.next().is_none(), "seed {seed}");
        assert!(matches!(stranger.status, Status::Failed(_)));
        match status(failed) {
            Status::Skipped => {
                assert_eq!(*status(behind), Status::Skipped);
                assert_eq!(*status(beside), Status::Done);
            }
            Status::Done => assert!(driven.iter().any(|e| *status(*e) == Status::Skipped)),
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn the_loss_of_the_other_device_is_reported_as_its_own() {
    let World {
        union,
        fakes,
        memory,
        queues,
    } = two(false);
    let fault = Fault {
        device: DeviceId(0),
        when: When::Phase(0),
        effect: Effect::Lose,
    };
    let mut world = World {
        union,
        fakes,
        memory,
        queues,
    };
    world.union.inject(vec![fault]);
    let mut rng = Rng::with_seed(1);
    let [a, b] = [0, 1].map(|device| filled(&mut world, device, &mut rng));
    let queue = world.queues[2].0;
    let command = copy((a, 0), (b, 0), BYTES);
    let event = world.union.enqueue(queue, command.clone(), &[]).unwrap();
    let done = end_all(&mut world, &mut rng, None);
    let lost = Status::DeviceLost(LOST.to_owned());
    assert!(
        done.iter()
            .any(|c| (c.device, &c.status) == (DeviceId(0), &lost))
    );
    let own = done.iter().filter(|c| c.device == DeviceId(1));
    let own: Vec<_> = own.map(|c| (c.event, &c.status)).collect();
    assert_eq!(own, [(event, &Status::Skipped)]);
    let refused = world.union.enqueue(world.queues[3].0, command, &[]);
    assert!(matches!(refused, Err(RuntimeError::DeviceLost { device, .. }) if device == "fake0.0"));
    assert!(world.union.queue(DeviceId(1)).is_ok());
}

#[test]
fn staging_memory_of_a_released_queue_is_used_again() {
    let mut world = two(false);
    let mut rng = Rng::with_seed(1);
    let [a, b] = [0, 1].map(|device| filled(&mut world, device, &mut rng));
    let mut known = Vec::new();
    for _ in 0..3 {
        let queue = world.union.queue(DeviceId(0)).unwrap();
        let command = copy((a, 0), (b, 0), 100);
        world.union.enqueue(queue, command, &[]).unwrap();
        end_all(&mut world, &mut rng, None);
        world.union.free_queue(queue);
        known.push(world.fakes[0].borrow().known.len());
    }
    assert_eq!(known, [2, 2, 2], "beside the world's memory");
    assert!(world.union.staging.lanes.is_empty());
    // While copies use it, it stays theirs.
    let queue = world.union.queue(DeviceId(0)).unwrap();
    let event = world.union.enqueue(queue, copy((a, 0), (b, 0), 100), &[]);
    world.union.free_queue(queue);
    let done = end_all(&mut world, &mut rng, None);
    assert_eq!(
        (done[0].event, &done[0].status),
        (event.unwrap(), &Status::Done)
    );
    assert_eq!(world.fakes[0].borrow().known.len(), 1);
}

#[test]
fn a_chosen_direct_way_is_one_command_of_the_backend() {
    let direct = PeerPath {
        bandwidth: 1e9,
        through_host: false,
    };
    let (zero, one) = (DeviceId(0), DeviceId(1));
    let mut world = two(true);
    world.union.set_peer_path(zero, one, direct).unwrap();
    assert_eq!(world.union.peer_path(zero, one), Some(direct));
    assert_eq!(world.union.peer_path(one, zero), None);
    let mut rng = Rng::with_seed(1);
    let [a, b] = [0, 1].map(|device| filled(&mut world, device, &mut rng));
    let queue = world.queues[2].0;
    let event = world
        .union
        .enqueue(queue, copy((a, 0), (b, 0), BYTES), &[])
        .unwrap();
    assert_eq!(world.pending(0), [event]);
    end_all(&mut world, &mut rng, None);
    assert!(bytes(&world, a) == bytes(&world, b));
    for (from, to) in [(zero, one), (one, one)] {
        let set = two(false).union.set_peer_path(from, to, direct);
        assert!(matches!(set, Err(RuntimeError::Unsupported { .. })));
    }
}

#[test]
fn copies_that_cannot_be_are_refused_at_once() {
    let mut world = world(&[1, 1, 1]);
    let mut rng = Rng::with_seed(1);
    let [a, b] = [0, 1].map(|device| filled(&mut world, device, &mut rng));
    let queue = world.queues[0].0;
    for (from, to, bytes) in [(1, 0, BYTES), (0, 1, BYTES), (u64::MAX, 0, 2)] {
        let refused = world
            .union
            .enqueue(queue, copy((a, from), (b, to), bytes), &[]);
        assert!(matches!(refused, Err(RuntimeError::Call { .. })));
    }
    let foreign = world.queues[4].0;
    let refused = world.union.enqueue(foreign, copy((a, 0), (b, 0), 1), &[]);
    assert!(matches!(refused, Err(RuntimeError::Unknown { .. })));
    let series = Command::Series(vec![copy((a, 0), (b, 0), 1)]);
    let refused = world.union.enqueue(queue, series, &[]);
    assert!(matches!(refused, Err(RuntimeError::Unsupported { .. })));
    assert!(world.union.in_flight.is_empty() && world.union.staging.begun.is_empty());
}

#[test]
fn a_copy_without_an_event_is_covered_by_what_follows() {
    let mut world = two(false);
    for fake in &world.fakes {
        fake.borrow_mut().omits_events = true;
    }
    let mut rng = Rng::with_seed(1);
    let [a, b] = [0, 1].map(|device| filled(&mut world, device, &mut rng));
    let queue = world.queues[2].0;
    let command = copy((a, 0), (b, 0), BYTES);
    world.union.submit(queue, command, &[], None).unwrap();
    let covering = world.submit(2, &[]).unwrap();
    let done = end_all(&mut world, &mut rng, None);
    assert_eq!(done.last().map(|c| c.event), Some(covering));
    assert!(bytes(&world, a) == bytes(&world, b));
}
