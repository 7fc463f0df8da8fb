//! Balancers on whole machines, against the best fixed shares.

use proptest::prelude::*;

use super::testbed::{Machine, Real, cpu, real_cpu, real_gpu};
use super::{Balancer, Dawl, Fixed, Guided, Strategy, Sweep};

/// Microseconds of a step with the best fixed shares, without noise, with the
/// speeds of `step` and only the devices that are still there.
fn oracle(machine: &Machine, step: u32) -> f64 {
    let mut still = machine.clone();
    still.steps = 3;
    still.noise = 0.0;
    still.losses.clear();
    still.speeds = (machine.speeds.iter())
        .filter(|(from, to, _, _)| (*from..*to).contains(&step))
        .map(|(_, _, device, factor)| (0, u32::MAX, *device, *factor))
        .collect();
    let setup = still.setup();
    let mut sweep = Sweep::new(&setup);
    while let Some(shares) = sweep.next() {
        let times = still.run(&mut Fixed::new("fixed", &setup, &shares));
        sweep.tell(times[2]);
    }
    sweep.best().unwrap().1
}

/// An unlike pair of host pools.
fn pool(rate: f64) -> Real {
    Real {
        view: super::DeviceView {
            compute_units: 1,
            ..cpu()
        },
        ..real_cpu(rate)
    }
}

/// The machines that DAWL must do well on.
fn machines() -> Vec<(&'static str, Machine)> {
    let h200 = |capacity| Machine::new(16384, vec![real_cpu(0.45), real_gpu(capacity, 12.0, 0.35)]);
    // Rows of 131 kB (and 262 kB), 16 bytes a point.
    let gbs = |gigabytes: f64, row: f64| gigabytes * 1e3 / row;
    let k20 = |n, row: f64, capacity| {
        Machine::new(
            n,
            vec![
                real_cpu(gbs(60.0, 2.0 * row)),
                real_gpu(capacity, gbs(150.0, 2.0 * row), gbs(6.0, row)),
            ],
        )
    };
    let k40 = |n, row: f64, capacity| {
        Machine::new(
            n,
            vec![
                real_cpu(gbs(20.0, 2.0 * row)),
                real_gpu(capacity, gbs(220.0, 2.0 * row), gbs(10.0, row)),
            ],
        )
    };
    let mut laptop = Machine::new(8192, vec![pool(0.5), pool(0.8)]);
    laptop.host_limit = 0.9;
    let mut contended = h200(4000);
    contended.host_limit = 0.6;
    let with_gpus = |cpus: &[f64], gpus: &[(u64, f64, f64)]| {
        let cpus = cpus.iter().map(|rate| real_cpu(*rate));
        let gpus = gpus
            .iter()
            .map(|(capacity, held, stream)| real_gpu(*capacity, *held, *stream));
        Machine::new(16384, cpus.chain(gpus).collect())
    };
    vec![
        ("h200 in memory", h200(16384)),
        ("h200 nearly in memory", h200(15000)),
        ("h200 limited", h200(4000)),
        ("h200 limited, host memory contended", contended),
        ("k20 in memory", k20(16384, 131_072.0, 16384)),
        ("k20 beyond memory", k20(32768, 262_144.0, 10_000)),
        ("k40 in memory", k40(16384, 131_072.0, 16384)),
        ("k40 beyond memory", k40(40_000, 320_000.0, 18_000)),
        ("laptop", laptop),
        (
            "unlike pools",
            Machine::new(4096, vec![pool(0.2), pool(0.07)]),
        ),
        (
            "cpu and two gpus",
            with_gpus(&[0.45], &[(16384, 12.0, 0.35), (16384, 4.0, 0.3)]),
        ),
        (
            "cpu and three gpus",
            with_gpus(
                &[0.45],
                &[(3000, 12.0, 0.35), (3000, 4.0, 0.3), (3000, 2.0, 0.1)],
            ),
        ),
        (
            "two cpus and a gpu",
            with_gpus(&[0.3, 0.1], &[(16384, 5.0, 0.3)]),
        ),
        (
            "forty to one",
            Machine::new(16384, vec![pool(0.02), pool(0.8)]),
        ),
        (
            "a gpu that only streams, slowly",
            with_gpus(&[1.0], &[(0, 2.0, 0.05)]),
        ),
    ]
}

fn dawl(machine: &Machine) -> Vec<f64> {
    machine.run(&mut Dawl::new(&machine.setup()))
}

/// Steps from `first` on that take longer than `allowed` times the best.
fn late(times: &[f64], first: usize, best: f64, allowed: f64) -> Vec<(usize, f64)> {
    (times.iter().enumerate().skip(first))
        .map(|(step, time)| (step, time / best))
        .filter(|(_, ratio)| *ratio > allowed)
        .collect()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn dawl_is_within_three_percent_from_the_fourth_step() {
    let mut failed = Vec::new();
    for (name, machine) in machines() {
        let best = oracle(&machine, 0);
        let times = dawl(&machine);
        let ratios: Vec<f64> = times
            .iter()
            .take(8)
            .map(|t| (t / best * 1e3).round() / 1e3)
            .collect();
        println!("{name}: best {best:.0} us, ratios {ratios:?}");
        let late = late(&times, 3, best, 1.03);
        if !late.is_empty() {
            failed.push(format!("{name}: {late:.3?}"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
