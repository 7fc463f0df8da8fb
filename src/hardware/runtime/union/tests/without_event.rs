//! Commands submitted without an event.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::codelet::{Codelet, Cost, HostCode, HostValue, Value};
use crate::runtime::Launch;

#[test]
fn a_backend_that_can_omit_events_does() {
    let mut world = world(&[1, 1]);
    world.fakes[0].borrow_mut().omits_events = true;
    let before = world.submit(0, &[]).unwrap();
    world.submit_without_event(0, &[]);
    world.submit_without_event(1, &[before]);
    assert_eq!((world.without_event(0), world.pending(0).len()), (2, 1));
    // The other backend gets ordinary commands.
    world.submit_without_event(2, &[]);
    let [ordinary] = world.pending(1)[..] else {
        panic!("one command");
    };
    world.end(0, before);
    world.poll().unwrap();
    world.end(1, ordinary);
    assert_eq!(world.poll().unwrap().event, ordinary);
    assert!(world.poll().is_none());
    for (fake, queue) in [(0, 0), (0, 1)] {
        let busy = world.union.host_bytes(world.memory);
        assert!(matches!(busy, Err(RuntimeError::Busy)), "not covered");
        let covering = world.submit(queue, &[]).unwrap();
        world.end(fake, covering);
        world.poll().unwrap();
    }
    assert!(world.union.host_bytes(world.memory).is_ok());
}

#[test]
fn a_queue_that_is_released_covers_its_commands() {
    let mut world = world(&[1]);
    world.fakes[0].borrow_mut().omits_events = true;
    world.submit_without_event(0, &[]);
    let (queue, _) = world.queues[0];
    world.union.free_queue(queue);
    assert!(world.union.host_bytes(world.memory).is_ok());
}

#[test]
fn commands_without_an_event_stay_behind_held_ones() {
    let mut world = world(&[1, 1]);
    world.fakes[1].borrow_mut().omits_events = true;
    let first = world.submit(0, &[]).unwrap();
    let second = world.submit(2, &[first]).unwrap();
    world.submit_without_event(2, &[]);
    // One that would itself have to be held.
    world.submit_without_event(3, &[first]);
    assert_eq!((world.without_event(1), world.pending(1).len()), (0, 0));
    world.end(0, first);
    assert_eq!(world.poll().unwrap().event, first);
    let pending = world.pending(1);
    assert_eq!(pending.len(), 3);
    assert!(matches!(
        world.union.host_bytes(world.memory),
        Err(RuntimeError::Busy)
    ));
    world.end(1, second);
    assert_eq!(world.poll().unwrap().event, second);
    for event in pending.into_iter().filter(|event| *event != second) {
        let busy = world.union.host_bytes(world.memory);
        assert!(matches!(busy, Err(RuntimeError::Busy)), "not ended");
        world.end(1, event);
        assert_eq!(world.poll().unwrap().event, event);
    }
    assert!(world.union.host_bytes(world.memory).is_ok());
}

static SLOW_ENDED: AtomicBool = AtomicBool::new(false);

unsafe fn slow(_args: &[HostValue], _first: u64, _units: Range<u64>) {
    thread::sleep(Duration::from_millis(50));
    SLOW_ENDED.store(true, Ordering::Release);
}

#[test]
fn finishing_waits_for_commands_whose_backend_needs_events() {
    let mut union = pools(1);
    let queue = union.queue(DeviceId(0)).unwrap();
    let memory = union.alloc_host(64).unwrap();
    let codelet = Codelet {
        name: "slow".into(),
        host: Some(HostCode::Kernel(slow)),
        opencl: None,
        library: None,
    };
    let launch = Command::Launch(Launch {
        codelet: Arc::new(codelet),
        units: 0..1,
        args: vec![Value::Memory(Memory::Host(memory))],
        cost: Cost::default(),
    });
    union.submit(queue, launch, &[], None).unwrap();
    assert!(matches!(union.host_bytes(memory), Err(RuntimeError::Busy)));
    union.finish(queue);
    assert!(SLOW_ENDED.load(Ordering::Acquire), "it still runs");
    assert!(union.host_bytes(memory).is_ok());
}
