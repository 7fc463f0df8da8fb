//! Cost of a balancer's decisions: `next` during a step, and `plan` at a barrier.

use criterion::{Criterion, criterion_group, criterion_main};
use pdawl_api::balance::{
    Balancer, ChunkDone, Dawl, DeviceStep, DeviceView, Guided, Setup, StepReport, StepState,
};
use pdawl_api::machine::DeviceKind;
use std::hint::black_box;

const UNITS: u64 = 16384;

/// A CPU and three GPUs of limited memory.
fn setup() -> Setup {
    let device = |kind, capacity: Option<u64>| DeviceView {
        kind,
        compute_units: 16,
        capacity,
        slots: None,
        stream_limit: capacity.map(|_| 0.4e6),
        latency: 0.0,
        min_chunk: 8,
    };
    Setup {
        units: UNITS,
        steps: 30,
        devices: vec![
            device(DeviceKind::Cpu, None),
            device(DeviceKind::Gpu, Some(3000)),
            device(DeviceKind::Gpu, Some(3000)),
            device(DeviceKind::Gpu, Some(3000)),
        ],
        direct: None,
        published: 0.0,
        runs_ahead: true,
        moves_directly: true,
        bus: None,
        memory: None,
        even: true,
    }
}

/// Brings a balancer into the middle of its fifth step, after four steps in which
/// every device computes a quarter.
fn warm(balancer: &mut dyn Balancer) {
    for step in 0..4 {
        balancer.plan(step);
        for device in 0..4 {
            balancer.completed(&ChunkDone {
                step,
                device,
                units: 1000,
                held: false,
                issued: 0,
                started: 10_000,
                ended: 3_000_000,
            });
        }
        let did = |device: usize| DeviceStep {
            held: if device == 0 { 0 } else { 3000 },
            pooled: 1000,
            held_busy: 300_000,
            beside: 0,
            beside_launches: 0,
            pooled_busy: 3_000_000,
            waited: 10_000,
            finished: 3_010_000,
            known: 3_015_000,
        };
        balancer.step_ended(&StepReport {
            step,
            duration: 3_020_000,
            moved: 0,
            devices: (0..4).map(did).collect(),
        });
    }
    balancer.plan(4);
}

fn decisions(c: &mut Criterion) {
    let setup = setup();
    let balancers: [(&str, Box<dyn Balancer>); 2] = [
        ("dawl", Box::new(Dawl::new(&setup))),
        ("guided", Box::new(Guided::new(&setup))),
    ];
    for (name, mut balancer) in balancers {
        warm(balancer.as_mut());
        for (part, left) in [("start", [1500; 4]), ("tail", [300, 200, 0, 100])] {
            c.bench_function(&format!("{name}/next/{part}"), |b| {
                let state = StepState {
                    step: 4,
                    began: 0,
                    now: 1_000_000,
                    left: black_box(&left),
                    in_flight: &[200, 3100, 3100, 3000],
                };
                let mut device = 0;
                b.iter(|| {
                    device = (device + 1) % 4;
                    black_box(balancer.next(device, &state))
                });
            });
        }
        c.bench_function(&format!("{name}/plan"), |b| {
            b.iter(|| black_box(balancer.plan(4)));
        });
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
