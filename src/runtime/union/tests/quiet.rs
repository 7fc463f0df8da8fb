//! Commands of whose end nobody hears by itself.

use super::*;

#[test]
fn what_is_quiet_goes_to_a_backend_that_can_be() {
    let mut world = world(&[1, 1]);
    world.fakes[0].borrow_mut().quiet = true;
    let before = world.submit(0, &[]).unwrap();
    world.submit_quietly(0, &[]);
    world.submit_quietly(1, &[before]);
    assert_eq!((world.quietly(0), world.pending(0).len()), (2, 1));
    // The other has commands like all others.
    world.submit_quietly(2, &[]);
    let [ordinary] = world.pending(1)[..] else {
        panic!("one command");
    };
    world.end(0, before);
    world.poll().unwrap();
    assert!(
        world.union.host_bytes(world.memory).is_ok(),
        "all told ended"
    );
    world.end(1, ordinary);
    assert_eq!(world.poll().unwrap().event, ordinary);
    assert!(world.poll().is_none());
}

#[test]
fn what_is_quiet_stays_behind_what_is_held() {
    let mut world = world(&[1, 1]);
    world.fakes[1].borrow_mut().quiet = true;
    let first = world.submit(0, &[]).unwrap();
    let second = world.submit(2, &[first]).unwrap();
    world.submit_quietly(2, &[]);
    // One that would itself have to be held.
    world.submit_quietly(3, &[first]);
    assert_eq!((world.quietly(1), world.pending(1).len()), (0, 0));
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
    assert!(world.union.host_bytes(world.memory).is_ok());
    for event in pending.into_iter().filter(|event| *event != second) {
        world.end(1, event);
        assert_eq!(world.poll().unwrap().event, event);
    }
}
