//! Results: effects happen when commands end, in the order of ending.

use super::*;
use crate::runtime::Rows;

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
