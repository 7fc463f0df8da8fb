//! Devices that are lost, slowed, given back, or fail.

use super::*;

fn with_faults(name: &str, faults: &[(usize, At, What)]) -> Sim {
    let faults = faults
        .iter()
        .map(|&(device, at, what)| Fault { device, at, what });
    let options = SimOptions {
        faults: faults.collect(),
        ..SimOptions::default()
    };
    Sim::new(&machine(name), options).expect("a simulator")
}

fn submit(sim: &mut Sim, queue: QueueId, command: Command, wait: &[EventId]) -> EventId {
    sim.enqueue(queue, command, wait).expect("submitted")
}

#[test]
fn a_lost_device_ends_all_its_commands_and_spoils_what_waits_for_them() {
    let mut sim = with_faults("k40", &[(1, At::Seconds(0.05), What::Lost)]);
    let pair = Pair::new(&mut sim, 1, 1 << 30);
    let memory = sim.alloc_host(8).expect("memory");
    let gpu = sim.queue(DeviceId(1)).expect("a queue");
    let host = sim.queue(DeviceId(0)).expect("a queue");
    let second_host = sim.queue(DeviceId(0)).expect("a queue");
    let on_host = || launch(Memory::Host(memory), 8, traffic(1e6));
    let running = submit(&mut sim, gpu, pair.write(), &[]);
    let queued = submit(&mut sim, gpu, pair.launch(traffic(1e9)), &[]);
    let waiting = submit(&mut sim, host, on_host(), &[queued]);
    let apart = submit(&mut sim, second_host, on_host(), &[]);
    let done = drain(&mut sim);
    for event in [running, queued] {
        let lost = find(&done, event);
        assert!(matches!(lost.status, Status::DeviceLost(_)));
        assert_eq!(lost.ended, 50_000_000);
    }
    assert_eq!(find(&done, waiting).status, Status::Skipped);
    assert_eq!(find(&done, apart).status, Status::Done);

    submit(&mut sim, gpu, pair.write(), &[]);
    assert!(matches!(drain(&mut sim)[0].status, Status::DeviceLost(_)));
    for refused in [
        sim.alloc(DeviceId(1), 8).map(|_| ()),
        sim.queue(DeviceId(1)).map(|_| ()),
    ] {
        assert!(matches!(refused, Err(RuntimeError::DeviceLost { .. })));
    }
    submit(&mut sim, second_host, on_host(), &[]);
    assert_eq!(drain(&mut sim)[0].status, Status::Done);
}

#[test]
fn a_slowed_device_is_exactly_that_much_slower_until_restored() {
    let faults = [
        (0, At::Phase(1), What::Slowed(2.0)),
        (1, At::Phase(1), What::Slowed(3.0)),
        (0, At::Phase(2), What::Restored),
        (1, At::Phase(2), What::Restored),
    ];
    let mut sim = with_faults("k40", &faults);
    let pair = Pair::new(&mut sim, 1, 1 << 28);
    let memory = sim.alloc_host(8).expect("memory");
    let (host, gpu) = (
        sim.queue(DeviceId(0)).expect("a queue"),
        sim.queue(DeviceId(1)).expect("a queue"),
    );
    let mut step = |number| {
        sim.notify(Notice::PhaseBegins(number));
        let mut took = Vec::new();
        for (queue, command) in [
            (gpu, pair.launch(traffic(1e10))),
            (host, launch(Memory::Host(memory), 64, traffic(1e9))),
            (gpu, pair.write()),
        ] {
            submit(&mut sim, queue, command, &[]);
            let done = drain(&mut sim);
            took.push(seconds(done[0].started, done[0].ended));
        }
        took
    };
    let (before, slowed, after) = (step(0), step(1), step(2));
    for (i, factor) in [3.0, 2.0, 3.0].into_iter().enumerate() {
        assert_near(slowed[i] / before[i], factor, 0.001);
        assert_eq!(after[i], before[i]);
    }
}

#[test]
fn a_fault_strikes_in_the_middle_of_a_command() {
    let mut sim = with_faults("k40", &[(1, At::Seconds(0.05), What::Slowed(2.0))]);
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let gpu = sim.queue(DeviceId(1)).expect("a queue");
    submit(&mut sim, gpu, pair.launch(traffic(21.6e9)), &[]);
    // Half of a tenth of a second at full speed, the rest at half.
    assert_near(seconds(0, drain(&mut sim)[0].ended), 0.15, 0.001);
}

#[test]
fn cores_taken_away_slow_a_pool() {
    let mut sim = with_faults("pcie5", &[(0, At::Phase(1), What::Cores(4))]);
    let memory = sim.alloc_host(8).expect("memory");
    let queue = sim.queue(DeviceId(0)).expect("a queue");
    let mut rate = |step| {
        sim.notify(Notice::PhaseBegins(step));
        submit(
            &mut sim,
            queue,
            launch(Memory::Host(memory), 64, traffic(1e9)),
            &[],
        );
        let done = drain(&mut sim);
        1e9 / seconds(done[0].started, done[0].ended)
    };
    assert_near(rate(0), 132e9, 1e-3);
    assert_near(rate(1), 48e9, 1e-3);
}

#[test]
fn commands_that_fail_leave_the_device_working_for_other_queues() {
    let mut sim = with_faults("k40", &[(1, At::Seconds(0.0), What::FailNext(1))]);
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let gpu = sim.queue(DeviceId(1)).expect("a queue");
    let fresh = sim.queue(DeviceId(1)).expect("a queue");
    let failed = submit(&mut sim, gpu, pair.write(), &[]);
    let behind = submit(&mut sim, gpu, pair.write(), &[]);
    let done = drain(&mut sim);
    assert!(matches!(find(&done, failed).status, Status::Failed(_)));
    assert_eq!(find(&done, behind).status, Status::Skipped);
    let later = submit(&mut sim, gpu, pair.write(), &[]);
    let other = submit(&mut sim, fresh, pair.write(), &[]);
    let done = drain(&mut sim);
    assert_eq!(
        find(&done, later).status,
        Status::Skipped,
        "the queue is spoilt"
    );
    assert_eq!(find(&done, other).status, Status::Done);
}

#[test]
fn a_device_given_back_works_again_with_its_memory_undefined() {
    let faults = [
        (1, At::Phase(1), What::Lost),
        (1, At::Phase(2), What::Restored),
    ]
    .map(|(device, at, what)| Fault { device, at, what });
    let options = SimOptions {
        faults: faults.into(),
        data: true,
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine("k40"), options).expect("a simulator");
    let pair = Pair::new(&mut sim, 1, 8);
    let write = sim.queue(DeviceId(1)).expect("a queue");
    sim.host_bytes(pair.host).expect("bytes").fill(7);
    submit(&mut sim, write, pair.write(), &[]);
    assert_eq!(drain(&mut sim)[0].status, Status::Done);
    sim.notify(Notice::PhaseBegins(1));
    sim.notify(Notice::PhaseBegins(2));
    let read = sim.queue(DeviceId(1)).expect("a queue");
    submit(&mut sim, read, pair.read(), &[]);
    assert_eq!(drain(&mut sim)[0].status, Status::Done);
    assert_eq!(sim.host_bytes(pair.host).expect("bytes"), [0xff; 8]);
}

#[test]
fn faults_that_cannot_be_are_refused() {
    for (device, at, what) in [
        (2, At::Phase(0), What::Lost),
        (0, At::Phase(0), What::Slowed(0.0)),
        (0, At::Phase(0), What::Slowed(f64::NAN)),
        (1, At::Phase(0), What::Slowed(1e308)),
        (1, At::Phase(0), What::Slowed(1e-300)),
        (0, At::Phase(0), What::Cores(0)),
        (0, At::Phase(0), What::Cores(9)),
        (1, At::Phase(0), What::Cores(1)),
        (0, At::Seconds(-1.0), What::Lost),
    ] {
        let options = SimOptions {
            faults: vec![Fault { device, at, what }],
            ..SimOptions::default()
        };
        let refused = Sim::new(&machine("k40"), options);
        assert!(
            matches!(refused, Err(RuntimeError::Selection(_))),
            "{what:?}"
        );
    }
}
