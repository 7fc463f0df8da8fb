//! Results: effects happen when commands end, in the order of ending.

use super::*;
use crate::codelet::stencil::Precision;
use crate::runtime::Rows;
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Grid, Ring};

fn with_data(name: &str) -> Sim {
    let options = SimOptions {
        data: true,
        ..SimOptions::default()
    };
    Sim::new(&machine(name), options).expect("a simulator")
}

#[test]
fn a_missing_event_gives_a_wrong_result() {
    for ordered in [true, false] {
        let mut sim = with_data("k40");
        let pair = Pair::new(&mut sim, 1, 8 << 20);
        sim.host_bytes(pair.host).expect("bytes").fill(0);
        let (a, b) = (
            sim.queue(DeviceId(1)).expect("a queue"),
            sim.queue(DeviceId(1)).expect("a queue"),
        );
        let written = sim.enqueue(a, pair.write(), &[]).expect("submitted");
        let wait: &[EventId] = if ordered { &[written] } else { &[] };
        let kernel = pair.launch(traffic(1e6));
        let ran = sim.enqueue(b, kernel, wait).expect("submitted");
        sim.enqueue(a, pair.read(), &[ran]).expect("submitted");
        drain(&mut sim);
        let bytes = sim.host_bytes(pair.host).expect("bytes");
        let right = bytemuck::cast_slice::<u8, u64>(bytes)
            .iter()
            .all(|n| *n == 1);
        assert_eq!(right, ordered);
    }
}

#[test]
fn a_stencil_on_two_devices_equals_a_scalar_loop() {
    let (nx, ny, cut) = (37u64, 23u64, 9u64);
    let stencil = Stencil::new(nx, ny, None, Precision::F64, 5).expect("a stencil");
    let row = stencil.unit_bytes();
    let mut sim = with_data("k40");
    let (from, to) = (
        sim.alloc_host(ny * row).expect("memory"),
        sim.alloc_host(ny * row).expect("memory"),
    );
    stencil
        .initial(0..ny, sim.host_bytes(from).expect("bytes"))
        .expect("numbers");

    let ring = |memory, slots, unit| Ring {
        memory,
        slots,
        unit,
        slot: 0,
    };
    let launch = |units: std::ops::Range<u64>, from: &Ring, to: &Ring| {
        Command::Launch(Launch {
            codelet: stencil.codelet(),
            units: units.clone(),
            args: stencil.args(units.clone(), from, to),
            cost: stencil.cost(&units),
        })
    };
    let host_queue = sim.queue(DeviceId(0)).expect("a queue");
    let gpu_queue = sim.queue(DeviceId(1)).expect("a queue");

    // The host's rows, in place.
    let whole = |memory| ring(Memory::Host(memory), ny, 0);
    let command = launch(0..cut, &whole(from), &whole(to));
    sim.enqueue(host_queue, command, &[]).expect("submitted");

    // The GPU's rows and their halo above, through its own memory.
    let held = ny - cut + 1;
    let present = sim.alloc(DeviceId(1), held * row).expect("a buffer");
    let next = sim.alloc(DeviceId(1), held * row).expect("a buffer");
    let rows = |first: u64, count: u64| first * row..(first + count) * row;
    for command in [
        Command::write(from, rows(cut - 1, held), present, 0),
        launch(
            cut..ny,
            &ring(Memory::Device(present), held, cut - 1),
            &ring(Memory::Device(next), held, cut - 1),
        ),
        Command::read(next, row, to, rows(cut, ny - cut)),
    ] {
        sim.enqueue(gpu_queue, command, &[]).expect("submitted");
    }
    assert!(drain(&mut sim).iter().all(|c| c.status == Status::Done));

    let before: Vec<f64> = bytemuck::cast_slice(sim.host_bytes(from).expect("bytes")).to_vec();
    let after: &[f64] = bytemuck::cast_slice(sim.host_bytes(to).expect("bytes"));
    let (nx, ny) = (nx as usize, ny as usize);
    for y in 0..ny {
        for x in 0..nx {
            let i = y * nx + x;
            let edge = y == 0 || y == ny - 1 || x == 0 || x == nx - 1;
            let expected = if edge {
                before[i]
            } else {
                (((before[i - nx] + before[i + nx]) + (before[i - 1] + before[i + 1])) + before[i])
                    * (1.0 / 5.0)
            };
            assert_eq!(after[i].to_bits(), expected.to_bits(), "at {x}, {y}");
        }
    }
}

#[test]
fn a_copy_between_devices_takes_the_direct_link_or_the_hosts() {
    for (direct, seconds) in [(true, 10e-6 + 1e-3), (false, 16e-6 + 24e6 / 6.195e9)] {
        let mut machine = machine("v100x2");
        if !direct {
            machine.peers.clear();
        }
        let options = SimOptions {
            data: true,
            ..SimOptions::default()
        };
        let mut sim = Sim::new(&machine, options).expect("a simulator");
        let [from, to] = [1, 2].map(|device| Pair::new(&mut sim, device, 24_000_000));
        sim.host_bytes(from.host).expect("bytes").fill(9);
        let copy = Command::Copy {
            from: Location::device(from.buffer, 0),
            to: Location::device(to.buffer, 0),
            rows: Rows::one(24_000_000),
        };
        let queues = [1, 2].map(|device| sim.queue(DeviceId(device)).expect("a queue"));
        let written = sim
            .enqueue(queues[0], from.write(), &[])
            .expect("submitted");
        sim.enqueue(queues[1], copy, &[written]).expect("submitted");
        sim.enqueue(queues[1], to.read(), &[]).expect("submitted");
        let all = drain(&mut sim);
        assert_eq!(all[1].kind, CommandKind::Copy);
        let took = (all[1].ended - all[0].ended) as f64 * 1e-9;
        assert!(
            (took / seconds - 1.0).abs() < 1e-3,
            "{took} and not {seconds}"
        );
        let arrived = sim.host_bytes(to.host).expect("bytes");
        assert!(arrived.iter().all(|byte| *byte == 9));
    }
}

#[test]
fn a_copy_from_a_lost_device_does_not_run() {
    let fault = Fault {
        device: 1,
        at: At::Seconds(1e-4),
        what: FaultEffect::Lost,
    };
    let options = SimOptions {
        faults: vec![fault],
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine("v100x2"), options).expect("a simulator");
    sim.notify(Notice::PhaseBegins(0));
    let [from, to] = [1, 2].map(|device| Pair::new(&mut sim, device, 24_000_000));
    let copy = Command::Copy {
        from: Location::device(from.buffer, 0),
        to: Location::device(to.buffer, 0),
        rows: Rows::one(24_000_000),
    };
    let queue = sim.queue(DeviceId(2)).expect("a queue");
    sim.enqueue(queue, copy, &[]).expect("submitted");
    let all = drain(&mut sim);
    assert_eq!(all[0].status, Status::Skipped);
}
