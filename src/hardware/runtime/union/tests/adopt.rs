//! The user's memory as host memory.

use super::*;

/// The bytes of a mapping from one on.
struct Tail(memmap2::MmapMut, usize);

impl AsMut<[u8]> for Tail {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0[self.1..]
    }
}

#[test]
fn refused_memory_returns_and_no_backend_keeps_it() {
    let mut world = world(&[1, 1]);
    world.fakes[1].borrow_mut().refuses_memory = true;
    let numbers = vec![7u64; 5];
    let first = numbers.as_ptr();
    let refused = (world.union)
        .adopt_host(numbers.into())
        .expect_err("refused");
    assert!(matches!(refused.error, RuntimeError::Busy));
    let numbers: Vec<u64> = refused.memory.into_owner().expect("a vector");
    assert_eq!((numbers.as_ptr(), &numbers[..]), (first, &[7; 5][..]));
    // Only the memory of the world itself.
    assert_eq!(world.fakes[0].borrow().known.len(), 1);
}

#[test]
fn a_gpu_in_host_memory_needs_whole_pages() {
    let mut world = world(&[1]);
    world.union.devices[0].shares_host_memory = true;
    let mut pages = |begin: usize| {
        let map = memmap2::MmapMut::map_anon(3 * 4096).unwrap();
        world.union.adopt_host(AdoptedMemory::new(Tail(map, begin)))
    };
    assert!(pages(4096).is_ok());
    let refused = pages(2048).expect_err("half a page").to_string();
    assert!(refused.contains("need 4096"), "{refused}");
}

#[test]
fn memory_is_busy_until_held_commands_and_those_without_events_have_ended() {
    let mut world = world(&[1, 1]);
    world.fakes[1].borrow_mut().omits_events = true;
    let memory = world.union.adopt_host(vec![1u8; 64].into()).unwrap();
    world.memory = memory;
    let first = world.submit(0, &[]).unwrap();
    let held = world.submit(2, &[first]).unwrap();
    let is_busy = |world: &mut fake::World| {
        let taken = world.union.take_host(memory).map(drop);
        assert!(matches!(taken, Err(RuntimeError::Busy)), "{taken:?}");
    };
    is_busy(&mut world);
    world.end(0, first);
    assert_eq!(world.poll().unwrap().event, first);
    is_busy(&mut world);
    world.end(1, held);
    assert_eq!(world.poll().unwrap().event, held);
    world.submit_without_event(2, &[]);
    is_busy(&mut world);
    let (queue, _) = world.queues[2];
    world.union.finish(queue);
    let taken = world.union.take_host(memory).unwrap();
    assert_eq!(taken.into_owner::<Vec<u8>>().unwrap(), [1; 64]);
    let gone = world.union.take_host(memory).map(drop);
    assert!(matches!(gone, Err(RuntimeError::Unknown { .. })));
}

#[test]
fn memory_that_a_backend_keeps_stays_host_memory() {
    let mut world = world(&[1]);
    let memory = world.union.adopt_host(vec![1u8; 64].into()).unwrap();
    // As a driver would that never releases what a command used.
    let kept = world.union.regions[&memory].clone();
    assert!(matches!(
        world.union.take_host(memory),
        Err(RuntimeError::Busy)
    ));
    world.union.host_bytes(memory).unwrap()[3] = 9;
    let copy = Command::write(memory, 0..64, world.queues[0].1, 0);
    let event = world.union.enqueue(world.queues[0].0, copy, &[]).unwrap();
    world.end(0, event);
    assert_eq!(world.poll().unwrap().status, Status::Done);
    drop(kept);
    let taken = world.union.take_host(memory).unwrap();
    assert_eq!(taken.into_owner::<Vec<u8>>().unwrap()[3], 9);
}

#[test]
fn memory_of_the_runtime_cannot_be_taken() {
    let mut world = world(&[1]);
    let error = world.union.take_host(world.memory).unwrap_err();
    assert!(error.to_string().contains("free_host"), "{error}");
    assert!(world.union.host_bytes(world.memory).is_ok());
    assert!(world.submit(0, &[]).is_ok());
}

#[test]
fn a_refused_command_leaves_memory_as_used_as_it_was() {
    let mut world = world(&[1]);
    let memory = world.union.adopt_host(vec![1u8; 64].into()).unwrap();
    let (queue, buffer) = world.queues[0];
    let covered = Command::write(memory, 0..8, buffer, 0);
    world.union.submit(queue, covered, &[], None).unwrap();
    world.fakes[0].borrow_mut().refuses = true;
    let refused = Command::write(memory, 8..64, buffer, 0);
    assert!(world.union.enqueue(queue, refused, &[]).is_err());
    assert!(world.union.host_range(memory, 8..64).is_ok());
    let busy = world.union.host_range(memory, 0..8).map(drop);
    assert!(matches!(busy, Err(RuntimeError::Busy)));
    let [event] = world.pending(0)[..] else {
        panic!("one command");
    };
    world.end(0, event);
    assert!(world.union.take_host(memory).is_ok());
}
