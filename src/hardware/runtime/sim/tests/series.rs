//! Commands reported as one.

use super::*;

/// Three launches of unlike costs on a buffer.
fn launches(pair: &Pair) -> Vec<Command> {
    [1e9, 3e8, 2e9]
        .map(|bytes| pair.launch(traffic(bytes)))
        .into()
}

fn submit(sim: &mut Sim, queue: QueueId, command: Command) -> EventId {
    sim.enqueue(queue, command, &[]).expect("submitted")
}

/// A simulator with data of noughts, a buffer of it on the GPU, and a queue
/// there, once `fault` has struck.
fn with_zeros(noise: f64, fault: Option<FaultEffect>) -> (Sim, Pair, QueueId) {
    let options = SimOptions {
        data: true,
        noise: Some(noise),
        faults: (fault.into_iter())
            .map(|what| Fault {
                device: 1,
                at: At::Phase(0),
                what,
            })
            .collect(),
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine("k40"), options).expect("a simulator");
    let pair = Pair::new(&mut sim, 1, 1 << 12);
    sim.host_bytes(pair.host).expect("bytes").fill(0);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    submit(&mut sim, queue, pair.write());
    drain(&mut sim);
    sim.notify(Notice::PhaseBegins(0));
    (sim, pair, queue)
}

#[test]
fn a_series_is_its_launches_one_after_the_other() {
    let (mut sim, pair, queue) = with_zeros(0.05, None);
    for launch in launches(&pair) {
        submit(&mut sim, queue, launch);
    }
    let each = drain(&mut sim);
    let (mut sim, pair, queue) = with_zeros(0.05, None);
    let series = submit(&mut sim, queue, Command::Series(launches(&pair)));
    let read = submit(&mut sim, queue, pair.read());
    let together = drain(&mut sim);
    let completed: Vec<EventId> = together.iter().map(|c| c.event).collect();
    assert_eq!(completed, [series, read]);
    let all = &together[0];
    assert_eq!((each.len(), all.kind), (3, CommandKind::Launch));
    assert_eq!((all.stages, all.bytes), (None, 0));
    let times = |first: &Completion, last: &Completion| (first.queued, first.started, last.ended);
    assert_eq!(times(all, all), times(&each[0], &each[2]));
    let bytes = sim.host_bytes(pair.host).expect("bytes");
    let numbers = bytemuck::cast_slice::<u8, u64>(bytes);
    assert!(numbers.iter().all(|n| *n == 3), "{numbers:?}");
}

#[test]
fn what_befalls_a_launch_befalls_its_series() {
    let (mut sim, pair, queue) = with_zeros(0.0, Some(FaultEffect::FailNext(1)));
    let series = submit(&mut sim, queue, Command::Series(launches(&pair)));
    let behind = submit(&mut sim, queue, pair.read());
    let done = drain(&mut sim);
    assert_eq!(done.len(), 2);
    assert!(matches!(&find(&done, series).status, Status::Failed(_)));
    assert_eq!(find(&done, behind).status, Status::Skipped);

    let (mut sim, pair, queue) = with_zeros(0.0, None);
    let series = submit(&mut sim, queue, Command::Series(launches(&pair)));
    sim.strike(Fault {
        device: 1,
        at: At::Phase(0),
        what: FaultEffect::Lost,
    });
    let done = drain(&mut sim);
    assert_eq!(done.len(), 1);
    assert!(matches!(&find(&done, series).status, Status::DeviceLost(_)));
}

#[test]
fn a_series_of_transfers_and_launches_tells_when_its_kernels_ran() {
    let all = |pair: &Pair| {
        let mut commands = vec![pair.write(), pair.write()];
        commands.extend(launches(pair));
        commands.push(pair.read());
        commands
    };
    let (mut sim, pair, queue) = with_zeros(0.05, None);
    for command in all(&pair) {
        submit(&mut sim, queue, command);
    }
    let each = drain(&mut sim);
    let (mut sim, pair, queue) = with_zeros(0.05, None);
    let series = submit(&mut sim, queue, Command::Series(all(&pair)));
    let completed = drain(&mut sim);
    let [completed] = &completed[..] else {
        panic!("{} completions", completed.len());
    };
    assert_eq!(
        (completed.event, completed.kind),
        (series, CommandKind::Launch)
    );
    assert_eq!(
        (completed.started, completed.ended),
        (each[0].started, each[5].ended)
    );
    let expected = Stages {
        written: 2 * pair.bytes,
        kernels: (each[2].started, each[4].ended),
        read: pair.bytes,
    };
    assert_eq!(completed.stages, Some(expected));
    assert_eq!(completed.bytes, 3 * pair.bytes);
    let (mut sim, pair, queue) = with_zeros(0.05, None);
    submit(
        &mut sim,
        queue,
        Command::Series(vec![pair.write(), pair.read()]),
    );
    let completed = &drain(&mut sim)[0];
    assert_eq!(
        (completed.kind, completed.stages),
        (CommandKind::Write, None)
    );
}

#[test]
fn a_series_of_nothing_is_refused() {
    let (mut sim, pair, queue) = with_zeros(0.0, None);
    let within = vec![Command::Series(launches(&pair))];
    for (commands, why) in [
        (Vec::new(), "a series of no commands"),
        (within, "a series within a series"),
    ] {
        let refused = sim.enqueue(queue, Command::Series(commands), &[]);
        let message = refused.expect_err("refused").to_string();
        assert!(message.contains(why), "{message}");
    }
}
