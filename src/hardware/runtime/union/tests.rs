//! The union over backends that complete what the test chooses.

mod adopt;
mod fake;
mod faults;
mod staging;
mod without_event;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::unbounded;
use proptest::prelude::*;

use self::fake::world;
use super::*;
use crate::runtime::host::{HostBackend, PoolSpec};
use crate::runtime::{Devices, Memory, Notice};

/// A union of so many pools of one worker.
fn pools(count: usize) -> Union {
    let (sender, receiver) = unbounded();
    let epoch = Instant::now();
    let pool = PoolSpec {
        name: "host:1".to_owned(),
        cores: vec![0],
    };
    let backend = HostBackend::open(&vec![pool; count], sender, epoch).unwrap();
    Union::new(vec![Box::new(backend)], receiver, epoch)
}

#[test]
fn a_command_for_another_backend_is_held_with_all_behind_it() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    let second = world.submit(2, &[first]).unwrap();
    let third = world.submit(2, &[]).unwrap();
    let beside = world.submit(3, &[]).unwrap();
    assert_eq!(world.pending(1), [beside]);
    world.end(0, first);
    assert_eq!(world.poll().unwrap().event, first);
    assert_eq!(world.pending(1), [beside, second, third]);
}

#[test]
fn completions_carry_the_devices_of_the_whole_machine() {
    let mut world = world(&[2, 2]);
    let event = world.submit(7, &[]).unwrap();
    world.end(1, event);
    let completion = world.poll().unwrap();
    assert_eq!(completion.device, DeviceId(3));
    assert_eq!(completion.queue, world.queues[7].0);
    let names: Vec<_> = world.union.devices().iter().map(|d| &d.name).collect();
    assert_eq!(names, ["fake0.0", "fake0.1", "fake1.0", "fake1.1"]);
}

#[test]
fn a_held_command_that_is_refused_fails_and_so_does_what_waits_for_it() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    let before = world.submit(2, &[]).unwrap();
    let refused = world.submit(2, &[first]).unwrap();
    let waiting = world.submit(1, &[refused]).unwrap();
    world.fakes[1].borrow_mut().refuses = true;
    world.end(0, first);
    let mut ends = vec![world.poll().unwrap()];
    // A queue's completions stay in order even then.
    assert!(world.poll().is_none());
    world.end(1, before);
    assert_eq!(world.poll().unwrap().event, before);
    ends.extend((0..2).map(|_| world.poll().unwrap()));
    assert_eq!(
        ends.iter().map(|c| c.event).collect::<Vec<_>>(),
        [first, refused, waiting]
    );
    assert_eq!(ends[1].status, Status::DeviceLost("unplugged".to_owned()));
    assert_eq!(ends[1].device, DeviceId(1));
    assert_eq!(ends[2].status, Status::Skipped);
    // What need not be held is refused at once, and counts for nothing.
    assert!(world.submit(3, &[]).is_err());
    assert!(world.poll().is_none());
}

#[test]
fn a_released_queue_lasts_until_what_it_holds_back_has_gone() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    let held = world.submit(2, &[first]).unwrap();
    for queue in [0, 2] {
        world.union.free_queue(world.queues[queue].0);
        world.union.free_queue(world.queues[queue].0);
        assert!(matches!(
            world.submit(queue, &[]),
            Err(RuntimeError::Unknown { what: "queue" })
        ));
    }
    assert!(world.fakes[1].borrow().freed.is_empty());
    world.end(0, first);
    let completion = world.poll().unwrap();
    assert_eq!((completion.event, completion.device), (first, DeviceId(0)));
    assert_eq!(world.fakes[0].borrow().freed.len(), 1);
    assert_eq!(world.fakes[1].borrow().freed.len(), 1);
    world.end(1, held);
    let completion = world.poll().unwrap();
    assert_eq!((completion.event, completion.device), (held, DeviceId(1)));
    assert_eq!(completion.queue, world.queues[2].0);
}

#[test]
fn a_long_silence_makes_backends_look_after_their_devices() {
    let mut world = world(&[1, 1]);
    world.union.silence = Duration::from_millis(20);
    let slow = world.submit(0, &[]).unwrap();
    let lost = world.submit(2, &[]).unwrap();
    world.fakes[1].borrow_mut().silent = true;
    // Who does not wait for long is not kept longer.
    let brief = Some(Duration::from_millis(1));
    assert!(world.union.wait(brief).unwrap().is_none());
    let completion = world.union.wait(None).unwrap().unwrap();
    assert_eq!(completion.event, lost);
    assert_ne!(completion.status, Status::Done);
    // A device that is there may take its time.
    let several = Some(Duration::from_millis(70));
    assert!(world.union.wait(several).unwrap().is_none());
    world.end(0, slow);
    assert_eq!(world.union.wait(None).unwrap().unwrap().event, slow);
}

#[test]
fn waiting_for_nothing_returns_at_once() {
    let mut world = world(&[1]);
    assert!(world.union.wait(None).unwrap().is_none());
    let event = world.submit(0, &[]).unwrap();
    let timeout = Some(Duration::from_millis(1));
    assert!(world.union.wait(timeout).unwrap().is_none());
    world.end(0, event);
    assert_eq!(world.union.wait(None).unwrap().unwrap().event, event);
    assert!(world.union.wait(None).unwrap().is_none());
}

#[test]
fn backends_that_vanish_are_an_error_and_no_hang() {
    let (sender, receiver) = unbounded();
    let mut world = world(&[1]);
    world.union.completions = receiver;
    world.submit(0, &[]).unwrap();
    drop(sender);
    let error = world.union.wait(None).unwrap_err().to_string();
    assert!(error.contains("1 commands in flight"), "{error}");
}

#[test]
fn host_memory_is_seen_only_when_nothing_is_in_flight() {
    let mut world = world(&[1, 1]);
    let memory = world.memory;
    world.union.host_bytes(memory).unwrap()[63] = 7;
    let event = world.submit(0, &[]).unwrap();
    let busy = world.union.host_bytes(memory);
    assert!(matches!(busy, Err(RuntimeError::Busy)));
    world.end(0, event);
    assert_eq!(world.union.host_bytes(memory).unwrap()[63], 7);
    assert_eq!(world.poll().unwrap().event, event);
    world.union.free_host(memory);
    assert!(world.union.host_bytes(memory).is_err());
    assert!(world.fakes.iter().all(|f| f.borrow().known.is_empty()));
}

#[test]
fn memory_released_under_a_held_command_stays_until_it_is_sent() {
    let mut world = world(&[1, 1]);
    let first = world.submit(0, &[]).unwrap();
    world.submit(2, &[first]).unwrap();
    let (memory, buffer) = (world.memory, world.queues[2].1);
    world.union.free_host(memory);
    world.union.free(buffer);
    assert!(world.fakes[1].borrow().buffers.contains_key(&buffer));
    // The fake checks, when the command arrives, that both are still known.
    world.end(0, first);
    world.poll().unwrap();
    assert_eq!(world.pending(1).len(), 1);
    assert!(!world.fakes[1].borrow().buffers.contains_key(&buffer));
    assert!(!world.fakes[1].borrow().known.contains_key(&memory));
}

#[test]
fn memory_that_one_backend_cannot_adopt_is_given_up() {
    let mut world = world(&[1, 1]);
    world.fakes[0].borrow_mut().refuses_memory = true;
    let known = world.fakes[1].borrow().known.clone();
    assert!(matches!(world.union.alloc_host(8), Err(RuntimeError::Busy)));
    assert_eq!(world.fakes[1].borrow().known, known);
}

#[test]
fn unknown_things_are_refused() {
    let mut world = world(&[1]);
    assert!(world.union.alloc(DeviceId(1), 1).is_err());
    assert!(world.union.queue(DeviceId(1)).is_err());
    let memory = HostMemoryId::fresh();
    assert!(world.union.host_bytes(memory).is_err());
    world.queues.push((QueueId::fresh(), world.queues[0].1));
    assert!(world.submit(2, &[]).is_err());
    assert!(world.union.wait(None).unwrap().is_none());
    // Held by nobody else, so dropping the union releases it.
    assert_eq!(
        Arc::strong_count(&world.union.regions[&world.memory].keeper),
        1
    );
}

/// A command of a random run: its queue, which earlier ones it waits for, and
/// whether it fails when it runs.
type Plan = (usize, Vec<prop::sample::Index>, bool);

fn plan(queues: usize) -> impl Strategy<Value = Vec<Plan>> {
    let fails = prop::bool::weighted(0.05);
    let waits = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    prop::collection::vec((0..queues, waits, fails), 1..60)
}

proptest! {
    #[test]
    fn every_command_ends_once_in_order_and_after_its_waits(
        plan in plan(8),
        choices in prop::collection::vec(any::<(u8, prop::sample::Index)>(), 400),
    ) {
        let mut world = world(&[1, 2, 1]);
        let backend_of = |queue: usize| [0, 0, 1, 1, 1, 1, 2, 2][queue];
        let mut submitted: Vec<EventId> = Vec::new();
        let mut ended: Vec<Completion> = Vec::new();
        let mut choices = choices.iter().cycle();
        while ended.len() < plan.len() {
            let (action, index) = choices.next().unwrap();
            if action % 3 == 0 && submitted.len() < plan.len() {
                let (queue, waits, _) = &plan[submitted.len()];
                let wait: Vec<EventId> = if submitted.is_empty() {
                    Vec::new()
                } else {
                    waits.iter().map(|i| submitted[i.index(submitted.len())]).collect()
                };
                submitted.push(world.submit(*queue, &wait).unwrap());
            } else if action % 3 == 1 {
                let ready: Vec<(usize, EventId)> = (0..3)
                    .flat_map(|fake| {
                        let events = world.fakes[fake].borrow().ready();
                        events.into_iter().map(move |event| (fake, event))
                    })
                    .collect();
                if !ready.is_empty() {
                    let (fake, event) = ready[index.index(ready.len())];
                    let number = submitted.iter().position(|e| *e == event).unwrap();
                    world.fakes[fake].borrow_mut().end(event, plan[number].2);
                }
            } else if let Some(completion) = world.poll() {
                ended.push(completion);
            }
        }
        prop_assert!(world.poll().is_none());
        let order: HashMap<EventId, usize> =
            ended.iter().enumerate().map(|(at, c)| (c.event, at)).collect();
        prop_assert_eq!(order.len(), plan.len());
        let mut fails = Vec::new();
        for (number, (queue, waits, own)) in plan.iter().enumerate() {
            let waits = waits.iter().filter(|_| number > 0).map(|i| i.index(number));
            let before = (0..number).rev().find(|n| plan[*n].0 == *queue);
            let all: Vec<usize> = waits.chain(before).collect();
            let at = order[&submitted[number]];
            for awaited in &all {
                prop_assert!(order[&submitted[*awaited]] < at);
            }
            let passed_on = all.iter().any(|awaited| fails[*awaited]);
            let completion = &ended[at];
            prop_assert_eq!(completion.status != Status::Done, passed_on || *own);
            prop_assert_eq!(completion.queue, world.queues[*queue].0);
            let backend = backend_of(*queue);
            let reached = world.fakes[backend].borrow().seen.contains(&submitted[number]);
            prop_assert!(reached || passed_on);
            fails.push(passed_on || *own);
        }
    }
}

#[test]
fn host_allocations_one_after_the_other_begin_at_unlike_places_of_a_page() {
    let mut union = pools(1);
    let [one, other] = [1 << 20, 5 << 20].map(|bytes| {
        let memory = union.alloc_host(bytes).unwrap();
        let whole = union.host_bytes(memory).unwrap();
        assert_eq!(whole.len() as u64, bytes);
        whole.as_ptr() as usize % 4096
    });
    assert_eq!(one.abs_diff(other), 2048);
}

#[test]
fn freed_pinned_memory_serves_again_under_another_id() {
    let mut world = world(&[1, 1]);
    let first = world.union.alloc_host(300).unwrap();
    let bytes = world.union.host_bytes(first).unwrap();
    // Fresh memory of the fakes is zeros, and may begin at the same place.
    bytes.fill(7);
    let address = bytes.as_ptr();
    world.union.free_host(first);
    assert!(!world.fakes[0].borrow().known.contains_key(&first));
    let second = world.union.alloc_host(300).unwrap();
    assert_ne!(first, second);
    let bytes = world.union.host_bytes(second).unwrap();
    assert_eq!(bytes.as_ptr(), address);
    assert!(bytes.iter().all(|byte| *byte != 0));
    for fake in &world.fakes {
        assert!(fake.borrow().known.contains_key(&second));
    }
    assert!(world.union.host_bytes(first).is_err());
}
