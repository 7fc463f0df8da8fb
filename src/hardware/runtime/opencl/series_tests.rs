//! Series of commands with one completion.

use super::*;

/// Launches that add these numbers to a buffer's, one after the other.
fn launches(memory: Memory, numbers: &[u32]) -> Vec<Command> {
    numbers.iter().map(|n| add(memory, *n)).collect()
}

#[test]
fn a_series_is_reported_once_from_its_first_start_to_its_last_end() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 1);
    let memory = Memory::Host(region.id);
    for count in [1, 2, 5] {
        // Not the sum alone: each launch of them must have run.
        let numbers: Vec<u32> = (0..count).map(|i| 10_u32.pow(i)).collect();
        let before = numbers_of(&region);
        let (series, next_event) = (EventId::fresh(), EventId::fresh());
        let command = Command::Series(launches(memory, &numbers));
        backend
            .submit(queue, command, &[], Some(series))
            .expect("submitted");
        backend
            .submit(queue, add(memory, 0), &[series], Some(next_event))
            .expect("submitted");
        let (all, behind) = (
            next(&mut backend, &completions),
            next(&mut backend, &completions),
        );
        assert_eq!((all.event, behind.event), (series, next_event));
        assert_eq!((all.status, all.kind), (Status::Done, CommandKind::Launch));
        assert_eq!((all.stages, all.bytes), (None, 0));
        assert!(all.queued <= all.started && all.started < all.ended);
        assert!(all.ended <= behind.started);
        assert_eq!(numbers_of(&region), before + numbers.iter().sum::<u32>());
        assert!(is_silent(&completions), "nobody hears of the launches");
    }
}

#[test]
fn a_series_of_transfers_and_launches_tells_when_its_kernels_ran() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 5);
    let buffer = backend.alloc(DeviceId(0), 256).expect("a buffer");
    let write = Command::write(region.id, 0..256, buffer, 0);
    let read = Command::read(buffer, 0, region.id, 0..256);
    let launches = launches(Memory::Device(buffer), &[10, 20, 30]);
    let mut commands = vec![write.clone(), write.clone()];
    commands.extend(launches);
    commands.push(read);
    let mut submit = |command| {
        let event = EventId::fresh();
        backend
            .submit(queue, command, &[], Some(event))
            .expect("submitted");
        let completed = next(&mut backend, &completions);
        assert_eq!((completed.event, &completed.status), (event, &Status::Done));
        assert!(is_silent(&completions), "nobody hears of the parts");
        completed
    };
    let completed = submit(Command::Series(commands));
    assert_eq!(numbers_of(&region), 65);
    let stages = completed.stages.expect("its stages");
    assert_eq!(
        (stages.written, stages.read, completed.bytes),
        (512, 256, 768)
    );
    let (from, until) = stages.kernels;
    assert!(completed.started <= from && from < until && until <= completed.ended);
    // Of transfers alone there are none.
    let completed = submit(Command::Series(vec![write.clone(), write]));
    assert_eq!(
        (completed.kind, completed.stages),
        (CommandKind::Write, None)
    );
    assert_eq!(completed.bytes, 512);
}

#[test]
fn a_series_is_refused_with_the_launch_that_cannot_be() {
    let (mut backend, completions) = cpu();
    let queue = backend.queue(DeviceId(0)).expect("a queue");
    let region = filled(&mut backend, 0);
    let mut some = launches(Memory::Host(region.id), &[1, 2]);
    some.extend(launches(Memory::Device(BufferId::fresh()), &[3]));
    for (launches, why) in [
        (some, "no buffer of this device"),
        (Vec::new(), "no commands"),
        (
            vec![Command::Series(launches(Memory::Host(region.id), &[4]))],
            "a series or a graph",
        ),
    ] {
        let command = Command::Series(launches);
        let refused = backend.submit(queue, command, &[], Some(EventId::fresh()));
        let message = refused.expect_err("refused").to_string();
        assert!(message.contains(why), "{message}");
    }
    // What was on its way by then has ended when the queue is released.
    backend.free_queue(queue);
    assert_eq!(numbers_of(&region), 3);
    assert!(is_silent(&completions));
}

/// The number that all of a region's are.
fn numbers_of(region: &HostRegion) -> u32 {
    let all = numbers(region);
    assert!(all.iter().all(|n| *n == all[0]), "{all:?}");
    all[0]
}
