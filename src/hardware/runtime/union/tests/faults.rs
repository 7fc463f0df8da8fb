//! Faults that are injected on purpose.

use std::ops::Range;

use super::*;
use crate::codelet::{Codelet, Cost, HostCode, HostValue};
use crate::runtime::Launch;
use crate::runtime::union::faults::{Effect, LOST, When};

unsafe fn nothing(_args: &[HostValue], _first: u64, _units: Range<u64>) {}

/// Two pools of one worker, a queue each, and a second queue of the first.
fn open(faults: Vec<Fault>) -> (Union, [QueueId; 3]) {
    let mut union = pools(2);
    union.inject(faults);
    let queues = [0, 1, 0].map(|device| union.queue(DeviceId(device)).unwrap());
    (union, queues)
}

fn nothing_to_launch() -> Launch {
    let codelet = Codelet {
        name: "nothing".into(),
        host: Some(HostCode::Kernel(nothing)),
        opencl: None,
        library: None,
    };
    Launch {
        codelet: Arc::new(codelet),
        units: 0..1,
        args: Vec::new(),
        cost: Cost::default(),
    }
}

fn launch(
    runtime: &mut impl Runtime,
    queue: QueueId,
    wait: &[EventId],
) -> Result<EventId, RuntimeError> {
    let command = Command::Launch(nothing_to_launch());
    runtime.enqueue(queue, command, wait)
}

fn statuses(runtime: &mut impl Runtime) -> HashMap<EventId, Status> {
    let mut statuses = HashMap::new();
    while let Some(completion) = runtime.wait(None).unwrap() {
        let before = statuses.insert(completion.event, completion.status);
        assert_eq!(before, None, "an event completed twice");
    }
    statuses
}

#[test]
fn a_lost_device_takes_what_depends_on_it_along_and_no_more() {
    let (mut runtime, [first, second, third]) = open(vec![Fault {
        device: DeviceId(0),
        when: When::Launch(1),
        effect: Effect::Lose,
    }]);
    let before = launch(&mut runtime, first, &[]).unwrap();
    let lost = launch(&mut runtime, first, &[before]).unwrap();
    let also = launch(&mut runtime, third, &[]).unwrap();
    let beside = launch(&mut runtime, second, &[before]).unwrap();
    let waiting = launch(&mut runtime, second, &[lost]).unwrap();
    let statuses = statuses(&mut runtime);
    assert_eq!(statuses.len(), 5);
    assert_eq!(statuses[&before], Status::Done);
    assert_eq!(statuses[&lost], Status::DeviceLost(LOST.to_owned()));
    assert_eq!(statuses[&also], Status::DeviceLost(LOST.to_owned()));
    assert_eq!(statuses[&beside], Status::Done);
    assert_eq!(statuses[&waiting], Status::Skipped);
    let refused = launch(&mut runtime, first, &[]).unwrap_err().to_string();
    assert_eq!(refused, "host:1 was lost: lost on purpose");
    assert!(runtime.queue(DeviceId(0)).is_err());
    assert!(runtime.alloc(DeviceId(0), 8).is_err());
    assert!(runtime.queue(DeviceId(1)).is_ok());
}

#[test]
fn a_released_queue_finishes_what_is_on_it_whether_or_not_it_runs() {
    let (mut runtime, [first, second, _]) = open(vec![Fault {
        device: DeviceId(0),
        when: When::Launch(1),
        effect: Effect::Fail,
    }]);
    let good = launch(&mut runtime, first, &[]).unwrap();
    let failed = launch(&mut runtime, first, &[]).unwrap();
    let skipped = launch(&mut runtime, second, &[failed]).unwrap();
    for queue in [first, second] {
        runtime.free_queue(queue);
        assert!(matches!(
            launch(&mut runtime, queue, &[]),
            Err(RuntimeError::Unknown { what: "queue" })
        ));
    }
    let statuses = statuses(&mut runtime);
    assert_eq!(statuses[&good], Status::Done);
    assert!(matches!(statuses[&failed], Status::Failed(_)));
    assert_eq!(statuses[&skipped], Status::Skipped);
    assert_eq!(runtime.queues.len(), 1, "released queues are forgotten");
}

#[test]
fn a_device_is_lost_with_its_step() {
    let (mut runtime, [first, second, _]) = open(vec![Fault {
        device: DeviceId(1),
        when: When::Phase(3),
        effect: Effect::Lose,
    }]);
    for step in 0..5 {
        runtime.notify(Notice::PhaseBegins(step));
        let good = launch(&mut runtime, first, &[]).unwrap();
        let other = launch(&mut runtime, second, &[]);
        let statuses = statuses(&mut runtime);
        assert_eq!(statuses[&good], Status::Done);
        match (step, other) {
            (0..3, Ok(event)) => assert_eq!(statuses[&event], Status::Done),
            (3, Ok(event)) => assert!(matches!(statuses[&event], Status::DeviceLost(_))),
            (4, Err(RuntimeError::DeviceLost { .. })) => {}
            (step, other) => panic!("step {step}: {other:?}"),
        }
    }
}

#[test]
fn a_device_is_lost_at_a_time_with_what_is_in_flight() {
    let mut world = world(&[1, 1]);
    world.union.inject(vec![Fault {
        device: DeviceId(1),
        when: When::Time(0),
        effect: Effect::Lose,
    }]);
    // The time counts from the first phase.
    let early = world.submit(2, &[]).unwrap();
    world.end(1, early);
    assert_eq!(world.poll().unwrap().status, Status::Done);
    let in_flight = world.submit(2, &[]).unwrap();
    let waiting = world.submit(0, &[in_flight]).unwrap();
    let beside = world.submit(1, &[]).unwrap();
    world.union.notify(Notice::PhaseBegins(0));
    world.end(1, in_flight);
    world.end(0, beside);
    let ends = [(); 3].map(|()| world.poll().unwrap());
    let status = |event| &ends.iter().find(|end| end.event == event).unwrap().status;
    assert_eq!(*status(in_flight), Status::DeviceLost(LOST.to_owned()));
    assert_eq!(*status(waiting), Status::Skipped);
    assert_eq!(*status(beside), Status::Done);
    assert!(matches!(
        world.submit(2, &[]),
        Err(RuntimeError::DeviceLost { .. })
    ));
}

#[test]
fn one_command_fails_and_the_device_goes_on_with_another_queue() {
    let (mut runtime, [first, _, third]) = open(vec![Fault {
        device: DeviceId(0),
        when: When::Launch(0),
        effect: Effect::Fail,
    }]);
    let failed = launch(&mut runtime, first, &[]).unwrap();
    let behind = launch(&mut runtime, first, &[]).unwrap();
    let beside = launch(&mut runtime, third, &[]).unwrap();
    let statuses = statuses(&mut runtime);
    assert!(matches!(&statuses[&failed], Status::Failed(why) if why == "failed on purpose"));
    assert_eq!(statuses[&behind], Status::Skipped);
    assert_eq!(statuses[&beside], Status::Done);
}

#[test]
fn the_launches_of_a_series_count_each() {
    for (number, is_struck) in [(0, true), (2, true), (3, false)] {
        let (mut runtime, _) = open(vec![Fault {
            device: DeviceId(0),
            when: When::Launch(number),
            effect: Effect::Fail,
        }]);
        let launch = Command::Launch(nothing_to_launch());
        let series = Command::Series(vec![launch.clone(), launch.clone(), launch]);
        let struck = runtime.faults.strike(DeviceId(0), &series, 0);
        assert_eq!(struck.is_some(), is_struck, "launch {number}");
    }
}
