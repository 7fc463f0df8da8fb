//! How long commands take, alone and together.

use super::*;

/// Queues of a device.
fn queues<const N: usize>(sim: &mut Sim, device: usize) -> [QueueId; N] {
    std::array::from_fn(|_| sim.queue(DeviceId(device)).expect("a queue"))
}

fn submit(sim: &mut Sim, queue: QueueId, command: Command, wait: &[EventId]) -> EventId {
    sim.enqueue(queue, command, wait).expect("submitted")
}

#[test]
fn a_transfer_alone_takes_its_latency_and_its_bytes() {
    let mut sim = sim("k40");
    let pair = Pair::new(&mut sim, 1, 1 << 30);
    let [queue] = queues(&mut sim, 1);
    submit(&mut sim, queue, pair.write(), &[]);
    let done = drain(&mut sim);
    let expected = 10_000e-9 + (1u64 << 30) as f64 / 10.3e9;
    assert_near(seconds(done[0].started, done[0].ended), expected, 1e-6);
    // The driver paid for the enqueue, and knew late.
    assert_eq!(done[0].queued, 5_000);
    assert_eq!(sim.now(), done[0].ended + 15_000);
}

#[test]
fn both_ways_at_once_share_the_link() {
    let mut sim = sim("pcie5");
    let (up, down) = (
        Pair::new(&mut sim, 1, 1 << 30),
        Pair::new(&mut sim, 1, 1 << 30),
    );
    let [a, b] = queues(&mut sim, 1);
    submit(&mut sim, a, up.write(), &[]);
    submit(&mut sim, b, down.read(), &[]);
    for done in drain(&mut sim) {
        let rate = (1u64 << 30) as f64 / seconds(done.started, done.ended);
        assert_near(rate, 46e9, 0.01);
    }
}

#[test]
fn with_one_copy_engine_directions_take_turns() {
    let mut sim = sim("titan");
    let (up, down) = (
        Pair::new(&mut sim, 1, 1 << 28),
        Pair::new(&mut sim, 1, 1 << 28),
    );
    let [a, b] = queues(&mut sim, 1);
    submit(&mut sim, a, up.write(), &[]);
    submit(&mut sim, b, down.read(), &[]);
    let done = drain(&mut sim);
    assert!(done[1].started >= done[0].ended);
    assert_near(
        seconds(done[1].started, done[1].ended),
        10e-6 + (1u64 << 28) as f64 / 11.5e9,
        1e-3,
    );
}

#[test]
fn three_queues_chunk_by_chunk_overlap_fully() {
    let mut sim = sim("pcie5");
    let bytes = 256u64 << 20;
    let chunks: Vec<Pair> = (0..16).map(|_| Pair::new(&mut sim, 1, bytes)).collect();
    let [write, kernel, read] = queues(&mut sim, 1);
    let begin = sim.now();
    for chunk in &chunks {
        let written = submit(&mut sim, write, chunk.write(), &[]);
        let ran = submit(
            &mut sim,
            kernel,
            chunk.launch(traffic(2.0 * bytes as f64)),
            &[written],
        );
        submit(&mut sim, read, chunk.read(), &[ran]);
    }
    let done = drain(&mut sim);
    let took = seconds(begin, done.iter().map(|c| c.ended).max().expect("some"));
    // Fifteen chunks pass both ways at once; the first write and the last
    // read have the link to themselves.
    let expected = bytes as f64 * (15.0 / 46e9 + 2.0 / 55e9);
    assert_near(took, expected, 0.02);
}

#[test]
fn a_kernel_is_bound_by_memory_or_by_operations() {
    let mut sim = sim("k40");
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let [queue] = queues(&mut sim, 1);
    let memory_bound = submit(&mut sim, queue, pair.launch(traffic(21.6e9)), &[]);
    let compute_bound = Cost {
        flops: 1.43e12,
        bytes: 1e6,
    };
    let compute_bound = submit(&mut sim, queue, pair.launch(compute_bound), &[]);
    let done = drain(&mut sim);
    let (a, b) = (find(&done, memory_bound), find(&done, compute_bound));
    assert_near(seconds(a.started, a.ended), 0.1, 1e-6);
    assert_near(seconds(b.started, b.ended), 1.0, 1e-6);
    assert_eq!(
        b.started,
        a.ended + 3_000,
        "the launch overhead between them"
    );
}

#[test]
fn kernels_of_several_queues_share_a_device_up_to_its_limit() {
    let mut file = machine("k40");
    file.devices[0].concurrent_kernels = 2;
    let mut sim = Sim::new(&file, SimOptions::default()).expect("a simulator");
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let [a, b, c] = queues(&mut sim, 1);
    let kernel = || pair.launch(traffic(21.6e9));
    let events = [a, b, c].map(|queue| submit(&mut sim, queue, kernel(), &[]));
    let done = drain(&mut sim);
    let [a, b, c] = events.map(|event| find(&done, event));
    assert_near(seconds(a.started, a.ended), 0.2, 1e-3);
    assert_near(seconds(b.started, b.ended), 0.2, 1e-3);
    assert!(
        c.started >= a.ended.min(b.ended),
        "the third waits its turn"
    );
}

#[test]
fn a_write_under_way_delays_the_launches_that_come_meanwhile() {
    let mut file = machine("pcie5");
    let link = file.devices[0].link.as_mut().expect("a link");
    link.launch_delay_ns = 15_000;
    // From one kernel's end to the next one's beside a transfer, if any.
    let period = |file: &MachineFile, kind: Option<CommandKind>| {
        let mut sim = Sim::new(file, SimOptions::default()).expect("a simulator");
        let (pair, buffer) = (
            Pair::new(&mut sim, 1, 1 << 30),
            Pair::new(&mut sim, 1, 1 << 20),
        );
        let [link, kernels] = queues(&mut sim, 1);
        match kind {
            Some(CommandKind::Write) => submit(&mut sim, link, pair.write(), &[]),
            Some(_) => submit(&mut sim, link, pair.read(), &[]),
            None => submit(&mut sim, link, buffer.launch(traffic(1.0)), &[]),
        };
        let cost = traffic(86e6);
        let first = submit(&mut sim, kernels, buffer.launch(cost), &[]);
        let second = submit(&mut sim, kernels, buffer.launch(cost), &[]);
        let done = drain(&mut sim);
        let (first, second) = (find(&done, first), find(&done, second));
        assert_eq!(second.ended - second.started, 20_000, "no kernel is slower");
        second.ended - first.ended
    };
    assert_eq!(period(&file, None), 22_000);
    assert_eq!(period(&file, Some(CommandKind::Read)), 22_000);
    assert_eq!(period(&file, Some(CommandKind::Write)), 37_000);
    // Directions that share an engine are no reason for a read to delay.
    file.devices[0].copy_engines = 1;
    assert_eq!(period(&file, Some(CommandKind::Read)), 22_000);
    assert_eq!(period(&file, Some(CommandKind::Write)), 37_000);
    assert_eq!(period(&machine("pcie5"), Some(CommandKind::Write)), 22_000);
}

#[test]
fn a_write_is_not_slower_for_the_launches_that_it_delays() {
    let mut file = machine("pcie5");
    let took = |file: &MachineFile| {
        let mut sim = Sim::new(file, SimOptions::default()).expect("a simulator");
        let pair = Pair::new(&mut sim, 1, 1 << 30);
        let [link, kernels] = queues(&mut sim, 1);
        let written = submit(&mut sim, link, pair.write(), &[]);
        submit(&mut sim, kernels, pair.launch(traffic(4.3e9)), &[]);
        let done = drain(&mut sim);
        let write = find(&done, written);
        write.ended - write.started
    };
    let before = took(&file);
    let link = file.devices[0].link.as_mut().expect("a link");
    link.launch_delay_ns = 1_000_000;
    assert_eq!(took(&file), before);
}

#[test]
fn an_efficiency_slows_the_codelets_that_it_names() {
    let mut file = machine("k40");
    file.devices[0].efficiency.insert("increment".into(), 0.5);
    let mut sim = Sim::new(&file, SimOptions::default()).expect("a simulator");
    let pair = Pair::new(&mut sim, 1, 1 << 20);
    let [queue] = queues(&mut sim, 1);
    submit(&mut sim, queue, pair.launch(traffic(21.6e9)), &[]);
    let done = drain(&mut sim);
    assert_near(seconds(done[0].started, done[0].ended), 0.2, 1e-6);
}

#[test]
fn one_unit_runs_on_one_core() {
    let mut sim = sim("k40");
    let memory = sim.alloc_host(1 << 20).expect("memory");
    let [queue] = queues(&mut sim, 0);
    let mut took = |units| {
        let command = launch(Memory::Host(memory), units, traffic(1e9));
        submit(&mut sim, queue, command, &[]);
        let done = drain(&mut sim);
        seconds(done[0].started, done[0].ended)
    };
    assert_near(took(1), 1e9 / 12e9, 1e-6);
    assert_near(took(1024), 1e9 / 20.5e9, 1e-6);
}

#[test]
fn a_small_launch_leaves_cores_to_the_next() {
    // One tile a launch is one core's work, at 12 GB/s.
    let (small, large) = (200e3, 82e6);
    let mut sim = sim("k40");
    let memory = sim.alloc_host(1 << 20).expect("memory");
    let [a, b] = queues(&mut sim, 0);
    let mut together = |bytes| {
        let command = || launch(Memory::Host(memory), 1024, traffic(bytes));
        let first = submit(&mut sim, a, command(), &[]);
        let second = submit(&mut sim, b, command(), &[]);
        let done = drain(&mut sim);
        let (first, second) = (find(&done, first).clone(), find(&done, second).clone());
        (first, second)
    };
    let (first, second) = together(small);
    assert_eq!(first.started, second.started, "seven cores are left");
    // Both together want 24 GB/s of 20.5.
    assert_near(
        seconds(first.started, first.ended),
        2.0 * small / 20.5e9,
        1e-3,
    );
    let (first, second) = together(large);
    assert!(second.started >= first.ended, "no core is left");
    assert_near(seconds(first.started, first.ended), large / 20.5e9, 1e-3);
}

#[test]
fn host_memory_is_shared_by_pools_transfers_and_integrated_gpus() {
    let mut sim = sim("k40");
    let pair = Pair::new(&mut sim, 1, 1 << 30);
    let memory = sim.alloc_host(1 << 20).expect("memory");
    let ([pool], [gpu]) = (queues(&mut sim, 0), queues(&mut sim, 1));
    let written = submit(&mut sim, gpu, pair.write(), &[]);
    let computed = submit(
        &mut sim,
        pool,
        launch(Memory::Host(memory), 64, traffic(20.5e9)),
        &[],
    );
    let done = drain(&mut sim);
    let write = find(&done, written);
    let slow = 30.8 / 20.5;
    assert_near(
        seconds(write.started, write.ended),
        (1u64 << 30) as f64 / 10.3e9 * slow,
        0.01,
    );
    // All bytes pass the host's memory at its full rate.
    let all = 20.5e9 + (1u64 << 30) as f64;
    assert_near(seconds(0, find(&done, computed).ended), all / 20.5e9, 0.01);

    let mut sim = self::sim("laptop");
    let memory = sim.alloc_host(1 << 20).expect("memory");
    let ([pool], [gpu]) = (queues(&mut sim, 0), queues(&mut sim, 1));
    for queue in [pool, gpu] {
        submit(
            &mut sim,
            queue,
            launch(Memory::Host(memory), 64, traffic(41e9)),
            &[],
        );
    }
    let done = drain(&mut sim);
    let last = done.iter().map(|c| c.ended).max().expect("some");
    assert_near(seconds(0, last), 2.0, 0.01);
}

#[test]
fn sub_devices_divide_the_cores() {
    let options = |pools: &[u32]| SimOptions {
        devices: Some(
            pools
                .iter()
                .map(|c| SimDevice::Host { cores: Some(*c) })
                .collect(),
        ),
        ..SimOptions::default()
    };
    let file = machine("pcie5");
    let mut sim = Sim::new(&file, options(&[4, 8])).expect("a simulator");
    let names: Vec<&str> = sim.devices().iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["host:4", "host:8"]);
    let memory = sim.alloc_host(1 << 20).expect("memory");
    let [queue] = queues(&mut sim, 0);
    submit(
        &mut sim,
        queue,
        launch(Memory::Host(memory), 64, traffic(48e9)),
        &[],
    );
    let done = drain(&mut sim);
    assert_near(seconds(done[0].started, done[0].ended), 1.0, 1e-6);

    for wrong in [&[16, 1][..], &[0], &[17], &[]] {
        assert!(Sim::new(&file, options(wrong)).is_err(), "{wrong:?}");
    }
    let named = |names: &[&str]| SimOptions {
        devices: Some(
            names
                .iter()
                .map(|n| SimDevice::Named((*n).into()))
                .collect(),
        ),
        ..SimOptions::default()
    };
    assert!(Sim::new(&file, named(&["gpu0"])).is_ok());
    let twice = Sim::new(&file, named(&["gpu0", "gpu0"]))
        .err()
        .expect("refused");
    assert!(twice.to_string().contains("named twice"), "{twice}");
    let unknown = Sim::new(&file, named(&["gpu7"])).err().expect("refused");
    assert!(
        unknown.to_string().contains("it has host, gpu0"),
        "{unknown}"
    );
}

#[test]
fn noise_is_reproduced_by_its_seed() {
    let run = |seed, noise| {
        let options = SimOptions {
            seed,
            noise,
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&machine("k40"), options).expect("a simulator");
        let pair = Pair::new(&mut sim, 1, 1 << 24);
        let [queue] = queues(&mut sim, 1);
        for _ in 0..20 {
            submit(&mut sim, queue, pair.write(), &[]);
        }
        drain(&mut sim).iter().map(|c| c.ended).collect::<Vec<_>>()
    };
    assert_eq!(run(1, Some(0.05)), run(1, Some(0.05)));
    assert_ne!(run(1, Some(0.05)), run(2, Some(0.05)));
    assert_eq!(run(1, None), run(2, None));
}
