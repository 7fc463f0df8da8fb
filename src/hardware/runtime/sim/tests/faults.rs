//! Devices that are lost, slowed, given back, or fail.

use super::*;

fn with_faults(name: &str, faults: &[(usize, At, FaultEffect)]) -> Sim {
    let faults = faults
        .iter()
        .map(|&(device, at, what)| Fault { device, at, what });
    let options = SimOptions {
        faults: faults.collect(),
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine(name), options).expect("a simulator");
    // Faults at times count from here.
    sim.notify(Notice::PhaseBegins(0));
    sim
}

fn submit(sim: &mut Sim, queue: QueueId, command: Command, wait: &[EventId]) -> EventId {
    sim.enqueue(queue, command, wait).expect("submitted")
}

#[test]
fn a_lost_device_ends_all_its_commands_and_spoils_what_waits_for_them() {
    let mut sim = with_faults("k40", &[(1, At::Seconds(0.05), FaultEffect::Lost)]);
    let pair = Pair::new(&mut sim, 1, 1 << 30);
    let memory = sim.alloc_host(8).expect("memory");
    let gpu = sim.queue(DeviceId(1)).expect("a queue");
    let host = sim.queue(DeviceId(0)).expect("a queue");
    let second_host = sim.queue(DeviceId(0)).expect("a queue");
    let on_host = || launch(Memory::Host(memory), 8, traffic(1e6));
    let running = submit(&mut sim, gpu, pair.write(), &[]);
    let queued = submit(&mut sim, gpu, pair.launch(traffic(1e9)), &[]);
    let waiting = submit(&mut sim, host, on_host(), &[queued]);
    let independent = submit(&mut sim, second_host, on_host(), &[]);
    let done = drain(&mut sim);
    for event in [running, queued] {
        let lost = find(&done, event);
        assert!(matches!(lost.status, Status::DeviceLost(_)));
        assert_eq!(lost.ended, 50_000_000);
    }
    assert_eq!(find(&done, waiting).status, Status::Skipped);
    assert_eq!(find(&done, independent).status, Status::Done);

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
        (0, At::Phase(1), FaultEffect::Slowed(2.0)),
        (1, At::Phase(1), FaultEffect::Slowed(3.0)),
        (0, At::Phase(2), FaultEffect::Restored),
        (1, At::Phase(2), FaultEffect::Restored),
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
    let mut sim = with_faults("k40", &[(1, At::Seconds(0.05), FaultEffect::Slowed(2.0))]);
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let gpu = sim.queue(DeviceId(1)).expect("a queue");
    submit(&mut sim, gpu, pair.launch(traffic(21.6e9)), &[]);
    // Half of a tenth of a second at full speed, the rest at half.
    assert_near(seconds(0, drain(&mut sim)[0].ended), 0.15, 0.001);
}

#[test]
fn cores_taken_away_slow_a_pool() {
    let mut sim = with_faults("pcie5", &[(0, At::Phase(1), FaultEffect::Cores(4))]);
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
    let mut sim = with_faults("k40", &[(1, At::Seconds(0.0), FaultEffect::FailNext(1))]);
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
        (1, At::Phase(1), FaultEffect::Lost),
        (1, At::Phase(2), FaultEffect::Restored),
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
    // Neither the memory nor the queue of before is there.
    let again = sim.queue(DeviceId(1)).expect("a queue");
    submit(&mut sim, again, pair.read(), &[]);
    assert!(matches!(drain(&mut sim)[0].status, Status::DeviceLost(_)));
    let fresh = Pair {
        buffer: sim.alloc(DeviceId(1), 8).expect("memory"),
        ..pair
    };
    submit(&mut sim, write, fresh.write(), &[]);
    assert!(matches!(drain(&mut sim)[0].status, Status::DeviceLost(_)));
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    submit(&mut sim, queue, fresh.read(), &[]);
    assert_eq!(drain(&mut sim)[0].status, Status::Done);
    assert_eq!(sim.host_bytes(pair.host).expect("bytes"), [0xff; 8]);
}

#[test]
fn a_device_has_another_generation_after_each_loss() {
    let faults = [
        (1, At::Phase(1), FaultEffect::Slowed(2.0)),
        (1, At::Phase(2), FaultEffect::Restored),
        (1, At::Phase(3), FaultEffect::Lost),
        (1, At::Phase(4), FaultEffect::Restored),
        (1, At::Phase(5), FaultEffect::Lost),
        (1, At::Phase(5), FaultEffect::Restored),
    ];
    let mut sim = with_faults("k40", &faults);
    let mut seen = Vec::new();
    for phase in 0..6 {
        sim.notify(Notice::PhaseBegins(phase));
        seen.push(sim.generation(DeviceId(1)).map(|generation| generation.0));
    }
    let [first, second, third] = [Some(0), Some(1), Some(2)];
    assert_eq!(seen, [first, first, first, None, second, third]);
    assert_eq!(sim.generation(DeviceId(0)).map(|g| g.0), Some(0));
}

#[test]
fn all_memory_of_a_device_is_free_when_it_is_back() {
    let faults = [
        (1, At::Phase(1), FaultEffect::Lost),
        (1, At::Phase(1), FaultEffect::Restored),
    ];
    let mut sim = with_faults("k40", &faults);
    let all = sim.devices()[1].memory;
    let before = sim.alloc(DeviceId(1), all).expect("all of it");
    sim.notify(Notice::PhaseBegins(1));
    let after = sim.alloc(DeviceId(1), all).expect("all of it again");
    sim.free(before);
    assert!(
        sim.alloc(DeviceId(1), 1).is_err(),
        "what was lost counts no more"
    );
    sim.free(after);
    assert!(sim.alloc(DeviceId(1), all).is_ok());
}

#[test]
fn a_phase_begins_with_its_first_command_though_others_run() {
    let faults = [
        (1, At::Phase(1), FaultEffect::Slowed(4.0)),
        (1, At::Phase(2), FaultEffect::FailNext(1)),
        (1, At::Phase(3), FaultEffect::Lost),
    ];
    let mut sim = with_faults("k40", &faults);
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    // Four steps are enqueued at once.
    let steps: Vec<EventId> = (0..4)
        .map(|step| {
            sim.notify(Notice::PhaseBegins(step));
            submit(&mut sim, queue, pair.launch(traffic(1e9)), &[])
        })
        .collect();
    let done = drain(&mut sim);
    let of = |step: usize| find(&done, steps[step]);
    let took = |step| seconds(of(step).started, of(step).ended);
    assert_near(took(1) / took(0), 4.0, 0.001);
    assert!(matches!(of(2).status, Status::Failed(_)));
    // It would have been skipped, as it follows one that failed.
    assert!(of(3).status != Status::Done);
    assert_eq!(sim.generation(DeviceId(1)), None);
}

#[test]
fn faults_that_cannot_be_are_refused() {
    for (device, at, what) in [
        (2, At::Phase(0), FaultEffect::Lost),
        (0, At::Phase(0), FaultEffect::Slowed(0.0)),
        (0, At::Phase(0), FaultEffect::Slowed(f64::NAN)),
        (1, At::Phase(0), FaultEffect::Slowed(1e308)),
        (1, At::Phase(0), FaultEffect::Slowed(1e-300)),
        (0, At::Phase(0), FaultEffect::Cores(0)),
        (0, At::Phase(0), FaultEffect::Cores(9)),
        (1, At::Phase(0), FaultEffect::Cores(1)),
        (0, At::Seconds(-1.0), FaultEffect::Lost),
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
