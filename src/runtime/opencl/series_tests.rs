//! Launches told of as one.

use super::*;

/// Launches that add these numbers to a buffer's, one after the other.
fn launches(memory: Memory, numbers: &[u32]) -> Vec<Launch> {
    let one = |n: &u32| add(memory, *n).launches()[0].clone();
    numbers.iter().map(one).collect()
}

#[test]
fn a_series_is_told_once_from_its_first_start_to_its_last_end() {
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
            .submit(queue, command, &[], tag(), series)
            .expect("submitted");
        backend
            .submit(queue, add(memory, 0), &[series], tag(), next_event)
            .expect("submitted");
        let (all, behind) = (next(&completions), next(&completions));
        assert_eq!((all.event, behind.event), (series, next_event));
        assert_eq!((all.status, all.kind), (Status::Done, CommandKind::Launch));
        assert!(all.queued <= all.started && all.started < all.ended);
        assert!(all.ended <= behind.started);
        assert_eq!(numbers_of(&region), before + numbers.iter().sum::<u32>());
        assert!(completions.is_empty(), "nobody hears of the launches");
    }
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
        (Vec::new(), "no launches"),
    ] {
        let command = Command::Series(launches);
        let refused = backend.submit(queue, command, &[], tag(), EventId::fresh());
        let message = refused.expect_err("refused").to_string();
        assert!(message.contains(why), "{message}");
    }
    // What was on its way by then has ended when the queue is released.
    backend.free_queue(queue);
    assert_eq!(numbers_of(&region), 3);
    assert!(completions.is_empty());
}

/// The number that all of a region's are.
fn numbers_of(region: &HostRegion) -> u32 {
    let all = numbers(region);
    assert!(all.iter().all(|n| *n == all[0]), "{all:?}");
    all[0]
}
