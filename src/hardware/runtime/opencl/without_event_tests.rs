//! Commands without an event, and repeated launches.

use super::*;

#[test]
fn what_was_submitted_quietly_has_ended_when_the_next_has() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 5);
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let (to, from) = (
        Command::write(region.id, 0..256, buffer, 0),
        Command::read(buffer, 0, region.id, 0..256),
    );
    let Command::Launch(launch) = add(Memory::Device(buffer), 2) else {
        panic!("a launch");
    };
    let repeat = Arc::new(launch);
    backend.submit(queue, to, &[], None).expect("submitted");
    for _ in 0..20 {
        for command in [
            add(Memory::Device(buffer), 1),
            Command::Repeat(Arc::clone(&repeat)),
        ] {
            backend
                .submit(queue, command, &[], None)
                .expect("submitted");
        }
    }
    let event = EventId::fresh();
    backend
        .submit(queue, from, &[], Some(event))
        .expect("submitted");
    let completion = next(&mut backend, &completions);
    assert_eq!((completion.event, completion.status), (event, Status::Done));
    assert_eq!(numbers(&region), vec![65; 64]);
    assert!(is_silent(&completions), "nobody hears of the others");
}

#[test]
fn a_queue_may_be_freed_with_something_quiet_behind() {
    let (mut backend, completions) = cpu();
    let region = filled(&mut backend, 0);
    for round in 1..=20 {
        let queue = backend.queue(DeviceId(0)).expect("a queue");
        for _ in 0..5 {
            backend
                .submit(queue, add(Memory::Host(region.id), 1), &[], None)
                .expect("submitted");
        }
        if round % 2 == 0 {
            backend.finish(queue);
            assert_eq!(numbers(&region), vec![round * 5; 64]);
        }
        backend.free_queue(queue);
        assert_eq!(numbers(&region), vec![round * 5; 64], "all have ended");
    }
    assert!(is_silent(&completions));
}

#[test]
fn what_is_quiet_and_waits_for_a_failure_fails_the_next() {
    let (mut backend, completions) = cpu();
    let [first, second] = [(); 2].map(|()| backend.queue(DeviceId(0)).expect("a queue"));
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let memory = Memory::Device(buffer);
    let gate = gate(&backend);
    let precursor = EventId::fresh();
    launched(&mut backend, precursor, &gate, 0);
    backend
        .submit(first, add(memory, 1), &[precursor], None)
        .expect("submitted");
    let behind = submit(&mut backend, first, memory, &[]);
    backend.fail(precursor);
    set_user_event_status(gate.raw(), CL_COMPLETE).expect("set");
    let completion = next(&mut backend, &completions);
    assert_eq!(
        (completion.event, completion.status),
        (behind, Status::Skipped)
    );
    // One that comes after the failure.
    backend
        .submit(second, add(memory, 1), &[precursor], None)
        .expect("submitted");
    let behind = submit(&mut backend, second, memory, &[]);
    let completion = next(&mut backend, &completions);
    assert_eq!(
        (completion.event, completion.status),
        (behind, Status::Skipped)
    );
}

#[test]
fn a_repeated_launch_is_forgotten_with_its_memory() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let [kept, freed] = [(); 2].map(|()| backend.alloc(DeviceId(0), 256).expect("a buffer"));
    let launches = [kept, freed].map(|buffer| match add(Memory::Device(buffer), 1) {
        Command::Launch(launch) => Arc::new(launch),
        other => panic!("{other:?}"),
    });
    for launch in &launches {
        let command = Command::Repeat(Arc::clone(launch));
        let event = EventId::fresh();
        backend
            .submit(queue, command, &[], Some(event))
            .expect("submitted");
        assert_eq!(next(&mut backend, &completions).status, Status::Done);
    }
    backend.free(freed);
    let [good, bad] = launches.map(|launch| {
        let command = Command::Repeat(launch);
        backend.submit(queue, command, &[], Some(EventId::fresh()))
    });
    assert!(good.is_ok());
    assert!(matches!(bad, Err(RuntimeError::Unknown { .. })), "{bad:?}");
    assert_eq!(next(&mut backend, &completions).status, Status::Done);
}
