//! What waits for what, and that everything ends exactly once.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[test]
fn a_queue_is_in_order_and_an_event_orders_across_queues() {
    let mut sim = sim("k40");
    let pair = Pair::new(&mut sim, 1, 1 << 24);
    let memory = sim.alloc_host(8).expect("memory");
    let gpu = sim.queue(DeviceId(1)).expect("a queue");
    let other = sim.queue(DeviceId(1)).expect("a queue");
    let host = sim.queue(DeviceId(0)).expect("a queue");
    let mut submit =
        |queue, command, wait: &[EventId]| sim.enqueue(queue, command, wait).expect("submitted");
    let first = submit(gpu, pair.write(), &[]);
    let second = submit(gpu, pair.launch(traffic(1e8)), &[]);
    let third = submit(other, pair.read(), &[second]);
    let fourth = submit(
        host,
        launch(Memory::Host(memory), 8, traffic(1e6)),
        &[third],
    );
    let done = drain(&mut sim);
    for (before, after) in [(first, second), (second, third), (third, fourth)] {
        assert!(find(&done, before).ended <= find(&done, after).started);
    }
}

#[test]
fn a_released_queue_finishes_what_is_on_it_and_takes_no_more() {
    let mut sim = sim("k40");
    let pair = Pair::new(&mut sim, 1, 1 << 24);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    let commands = [pair.write(), pair.launch(traffic(1e8)), pair.read()];
    let events = commands.map(|command| sim.enqueue(queue, command, &[]).expect("submitted"));
    sim.free_queue(queue);
    let refused = sim.enqueue(queue, pair.write(), &[]);
    assert!(matches!(
        refused,
        Err(RuntimeError::Unknown { what: "queue" })
    ));
    let done = drain(&mut sim);
    assert_eq!(done.iter().map(|c| c.event).collect::<Vec<_>>(), events);
    assert!(done.iter().all(|c| c.status == Status::Done));
}

#[test]
fn waiting_ends_at_the_timeout_or_when_nothing_is_in_flight() {
    let mut sim = sim("k40");
    assert!(sim.wait(None).expect("a wait").is_none());
    assert_eq!(sim.now(), 0);
    let pair = Pair::new(&mut sim, 1, 1 << 30);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    sim.enqueue(queue, pair.write(), &[]).expect("submitted");
    let early = sim.wait(Some(Duration::from_millis(1))).expect("a wait");
    assert!(early.is_none());
    assert_eq!(sim.now(), 5_000 + 1_000_000);
    assert!(sim.wait(Some(Duration::MAX)).expect("a wait").is_some());
    assert!(sim.wait(Some(Duration::ZERO)).expect("a wait").is_none());
}

#[test]
fn unknown_names_are_refused() {
    let (mut sim, mut other) = (sim("k40"), sim("k40"));
    let pair = Pair::new(&mut sim, 1, 1024);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    let elsewhere = other.queue(DeviceId(1)).expect("a queue");
    let refused = |result: Result<EventId, RuntimeError>, what: &str| {
        let message = result.expect_err("refused").to_string();
        assert!(message.contains(what), "{message}");
    };
    refused(sim.enqueue(elsewhere, pair.write(), &[]), "queue");
    refused(
        sim.enqueue(queue, pair.write(), &[EventId::fresh()]),
        "event",
    );
    refused(other.enqueue(elsewhere, pair.write(), &[]), "host memory");
    assert!(matches!(
        sim.queue(DeviceId(2)),
        Err(RuntimeError::Unknown { .. })
    ));
    let host = sim.queue(DeviceId(0)).expect("a queue");
    refused(sim.enqueue(host, pair.write(), &[]), "neither memory");
    refused(
        sim.enqueue(host, pair.launch(traffic(1.0)), &[]),
        "another device",
    );
    let on_host = launch(Memory::Host(pair.host), 1, traffic(1.0));
    refused(sim.enqueue(queue, on_host, &[]), "not in the memory");
    assert!(
        drain(&mut sim).is_empty(),
        "what was refused does not complete"
    );
}

/// A command of a random graph: queue, kind, size, and how far back the
/// commands are that it waits for.
type Node = (usize, u8, u64, Vec<usize>);

fn graphs() -> impl Strategy<Value = Vec<Node>> {
    let node = (
        0usize..5,
        0u8..3,
        0u64..1 << 16,
        prop::collection::vec(1usize..20, 0..4),
    );
    prop::collection::vec(node, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_command_completes_once_and_after_what_it_waits_for(
        graph in graphs(),
        seed in any::<u64>(),
        lost_at in prop::option::of(0.0..2e-3),
        fails in 0u32..3,
    ) {
        let fault = |what, s| Fault { device: 1, at: At::Seconds(s), what };
        let faults = lost_at.map(|s| fault(FaultEffect::Lost, s)).into_iter()
            .chain((fails > 0).then(|| fault(FaultEffect::FailNext(fails), 1e-4)))
            .collect();
        let options = SimOptions { seed, noise: Some(0.2), faults, ..SimOptions::default() };
        let mut sim = Sim::new(&machine("k40"), options).expect("a simulator");
        sim.notify(Notice::PhaseBegins(0));
        let pair = Pair::new(&mut sim, 1, 1 << 16);
        let memory = sim.alloc_host(8).expect("memory");
        // Three queues of the GPU and two of the host.
        let queues: Vec<QueueId> = [1, 1, 1, 0, 0]
            .map(|d| sim.queue(DeviceId(d)).expect("a queue")).into();
        let mut submitted: Vec<(EventId, QueueId, Vec<EventId>)> = Vec::new();
        let mut done = Vec::new();
        for (at, (queue, kind, bytes, back)) in graph.iter().enumerate() {
            let cost = traffic(*bytes as f64 * 100.0);
            let command = match (queue, kind) {
                (3.., _) => launch(Memory::Host(memory), 1 + bytes % 9, cost),
                (_, 0) => Command::write(pair.host, 0..*bytes, pair.buffer, 0),
                (_, 1) => Command::read(pair.buffer, 0, pair.host, 0..*bytes),
                _ => pair.launch(cost),
            };
            let wait: Vec<EventId> = back.iter()
                .filter_map(|b| at.checked_sub(*b)).map(|i| submitted[i].0).collect();
            let event = sim.enqueue(queues[*queue], command, &wait).expect("submitted");
            submitted.push((event, queues[*queue], wait));
            if bytes % 7 == 0 {
                done.extend(sim.wait(Some(Duration::from_micros(50))).expect("a wait"));
            }
        }
        done.extend(drain(&mut sim));

        let ended: HashSet<EventId> = done.iter().map(|c| c.event).collect();
        prop_assert_eq!(ended.len(), done.len(), "none completes twice");
        prop_assert_eq!(done.len(), submitted.len(), "all complete");
        for (at, (event, queue, wait)) in submitted.iter().enumerate() {
            let this = find(&done, *event);
            prop_assert!(this.queued <= this.started && this.started <= this.ended);
            let before_in_queue = submitted[..at].iter().rev().find(|s| s.1 == *queue).map(|s| s.0);
            for before in wait.iter().copied().chain(before_in_queue) {
                let before = find(&done, before);
                match &this.status {
                    Status::Done => {
                        prop_assert_eq!(&before.status, &Status::Done);
                        prop_assert!(before.ended <= this.started);
                    }
                    Status::Failed(_) | Status::Skipped => prop_assert!(before.ended <= this.ended),
                    Status::DeviceLost(_) => {}
                }
            }
        }
    }
}
