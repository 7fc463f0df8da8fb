//! Measuring the simulator of a machine gives its figures back: the proof that
//! simulating and measuring mean the same things.

use super::*;
use crate::codelet::{HostCode, HostValue, KernelSource, NdRange, OpenClKernel, Shape};
use crate::machine::{MachineStore, PeerSpec, file};
use crate::runtime::select::open_union;
use crate::runtime::sim::{At, Fault, FaultEffect, Sim, SimOptions};
use crate::runtime::{Devices, Notice, PeerPath, opencl};

/// A copying codelet with the arguments that measuring relies on.
fn copy() -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "copy".into(),
        host: Some(HostCode::Kernel(|args: &[HostValue], _, _| {
            assert_eq!(args.len(), 3);
        })),
        opencl: Some(OpenClKernel {
            source: KernelSource::new("", "none", "copy", ""),
            fp64: false,
            shape: Shape::Of(|units, _| NdRange::new(vec![(units.end - units.start) as usize])),
        }),
        library: None,
    })
}

fn described(name: &str) -> MachineFile {
    let store = MachineStore::at("/nonexistent");
    store.find(name).expect("a shipped machine")
}

fn about() -> MachineDescription {
    MachineDescription {
        name: "measured".into(),
        title: "A measured machine".into(),
        description: "Measured.".into(),
        sockets: 1,
        ..MachineDescription::default()
    }
}

fn measured(machine: &MachineFile, options: SimOptions) -> Result<MachineFile, MeasureError> {
    let mut sim = Sim::new(machine, options).expect("a simulator");
    sim.notify(Notice::PhaseBegins(0));
    let mut reported = Vec::new();
    let mut progress = |device: &str, what: &str| reported.push(format!("{device}: {what}"));
    let result = measure(
        &mut sim,
        &copy(),
        about(),
        MeasureOptions::default(),
        &mut progress,
    );
    assert!(reported[0].starts_with("host: "), "{reported:?}");
    result
}

#[track_caller]
fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance * expected,
        "{what}: {value} for {expected}"
    );
}

/// A difference of two periods is off by what these are.
const DELAY_NS: u64 = 100;

fn assert_same_figures(found: &MachineFile, described: &MachineFile, tolerance: f64) {
    let near = |what: &str, value, expected| assert_near(what, value, expected, tolerance);
    let (a, b) = (&found.host, &described.host);
    assert_eq!(a.cores, b.cores);
    near("memory", a.memory_bandwidth, b.memory_bandwidth);
    near("shared", a.shared(), b.shared());
    near("core", a.core_bandwidth, b.core_bandwidth);
    if let Some(flops) = b.flops {
        near("flops", a.flops.unwrap_or(0.0), flops);
    }
    near(
        "launch",
        a.launch_overhead_ns as f64,
        b.launch_overhead_ns as f64,
    );
    near(
        "completion",
        a.completion_latency_ns as f64,
        b.completion_latency_ns as f64,
    );
    for codelet in ["stencil5-f64", "stencil7-f64"] {
        let of = |m: &MachineFile| file::efficiency(&m.host.efficiency, codelet);
        near("host efficiency", of(found), of(described));
    }
    assert_eq!(found.devices.len(), described.devices.len());
    for (a, b) in found.devices.iter().zip(&described.devices) {
        assert_eq!(a.copy_engines, b.copy_engines);
        near("device memory", a.memory_bandwidth, b.memory_bandwidth);
        near(
            "device launch",
            a.launch_overhead_ns as f64,
            b.launch_overhead_ns as f64,
        );
        near("device enqueue", a.enqueue_ns as f64, b.enqueue_ns as f64);
        near(
            "device completion",
            a.completion_latency_ns as f64,
            b.completion_latency_ns as f64,
        );
        for codelet in ["stencil5-f64", "stencil7-f64"] {
            let of = |d: &crate::machine::DeviceSpec| file::efficiency(&d.efficiency, codelet);
            near("device efficiency", of(a), of(b));
        }
        for (a, b) in [
            (a.flops_f64, b.flops_f64),
            (a.flops_f32, b.flops_f32),
            (a.flops_f16, b.flops_f16),
            (a.flops_tf32, b.flops_tf32),
        ] {
            if let Some(flops) = b {
                near("device flops", a.unwrap_or(0.0), flops);
            }
        }
        match (&a.link, &b.link) {
            (Some(a), Some(b)) => {
                near("h2d", a.h2d, b.h2d);
                near("d2h", a.d2h, b.d2h);
                near("both ways", a.both_ways, b.both_ways);
                near("latency", a.latency_ns as f64, b.latency_ns as f64);
                assert!(a.launch_delay_ns.abs_diff(b.launch_delay_ns) <= DELAY_NS);
            }
            (a, b) => assert_eq!(a, b),
        }
    }
}

#[test]
fn measuring_a_simulated_machine_gives_its_figures_back() {
    for name in ["k20-32", "k20-40", "k40", "titan", "h200", "laptop"] {
        let mut machine = described(name);
        let half = machine.devices[0].flops_f32.map(|flops| 4.0 * flops);
        (machine.devices[0].flops_f16, machine.devices[0].flops_tf32) = (half, half);
        let found = measured(&machine, SimOptions::default()).expect("measured");
        assert_same_figures(&found, &machine, 0.02);
    }
}

/// A first run measures less, and no products.
#[test]
fn a_first_run_measures_a_simulated_machine() {
    for name in ["k40", "h200", "v100x2", "laptop"] {
        let machine = described(name);
        let mut sim = Sim::new(&machine, SimOptions::default()).expect("a simulator");
        let options = MeasureOptions::FIRST;
        let found = measure(&mut sim, &copy(), about(), options, &mut |_, _| {});
        let mut found = found.expect("measured");
        for (own, device) in found.devices.iter_mut().zip(&machine.devices) {
            let flops = [own.flops_f64, own.flops_f32, own.flops_f16, own.flops_tf32];
            assert_eq!(flops, [None; 4], "{name}");
            (own.flops_f64, own.flops_f32) = (device.flops_f64, device.flops_f32);
            (own.flops_f16, own.flops_tf32) = (device.flops_f16, device.flops_tf32);
            // The GPUs of this one share a bus that carries less than both directions, and launch in
            // no time.
            if let ("v100x2", Some(link), Some(of)) = (name, &mut own.link, &device.link) {
                link.both_ways = of.both_ways;
                own.launch_overhead_ns = device.launch_overhead_ns;
            }
        }
        assert_same_figures(&found, &machine, 0.05);
        for peer in &machine.peers {
            let same = |own: &&PeerSpec| (&own.from, &own.to) == (&peer.from, &peer.to);
            let own = found.peers.iter().find(same).expect("a way");
            assert_near("a way between devices", own.bandwidth, peer.bandwidth, 0.05);
        }
    }
}

#[test]
fn of_devices_that_are_alike_one_is_measured_and_the_link_of_each() {
    let mut machine = described("h200");
    let mut second = machine.devices[0].clone();
    second.name = "gpu1".into();
    let link = second.link.as_mut().expect("a link");
    for rate in [&mut link.h2d, &mut link.d2h, &mut link.both_ways] {
        *rate /= 2.0;
    }
    machine.devices.push(second);
    let mut sim = Sim::new(&machine, SimOptions::default()).expect("a simulator");
    let mut told = Vec::new();
    let mut progress = |device: &str, what: &str| told.push(format!("{device}: {what}"));
    let found = measure(
        &mut sim,
        &copy(),
        about(),
        MeasureOptions::default(),
        &mut progress,
    );
    assert_same_figures(&found.expect("measured"), &machine, 0.05);
    let of = |device: &str| told.iter().filter(|what| what.starts_with(device)).count();
    assert!(told.contains(&"gpu1: transfers".to_owned()), "{told:?}");
    assert_eq!(of("gpu0: "), of("gpu1: ") + 4, "{told:?}");
}

#[test]
fn the_faster_way_between_devices_is_measured() {
    let mut machine = described("h200");
    let mut second = machine.devices[0].clone();
    second.name = "gpu1".into();
    machine.devices.push(second);
    let link = machine.devices[0].link.clone().expect("a link");
    // Directly 395 or 1.3 GB/s; through host memory as fast as the links.
    for (direct, through_host) in [(395e9, false), (1.3e9, true)] {
        machine.peers = [("gpu0", "gpu1"), ("gpu1", "gpu0")]
            .map(|(from, to)| PeerSpec {
                from: from.into(),
                to: to.into(),
                bandwidth: direct,
                latency_ns: 10_000,
                through_host: false,
            })
            .to_vec();
        let mut found = measured(&machine, SimOptions::default()).expect("measured");
        let ways = |m: &MachineFile| -> Vec<_> {
            let way = |p: &PeerSpec| (p.from.clone(), p.to.clone(), p.through_host);
            m.peers.iter().map(way).collect()
        };
        let expected = [("gpu0", "gpu1"), ("gpu1", "gpu0")];
        let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned(), through_host));
        assert_eq!(ways(&found), expected);
        for peer in &found.peers {
            let (bandwidth, latency) = match through_host {
                true => (link.h2d.min(link.d2h), 2 * link.latency_ns),
                false => (direct, 10_000),
            };
            assert_near("peer", peer.bandwidth, bandwidth, 0.02);
            // With what the host takes for a command.
            let found = peer.latency_ns;
            assert!(
                (latency..2 * latency).contains(&found),
                "{found} for {latency}"
            );
        }
        // What was measured is measured again.
        found.devices = machine.devices.clone();
        let again = measured(&found, SimOptions::default()).expect("measured");
        assert_eq!(ways(&again), expected);
    }
}

#[test]
fn the_ways_between_real_devices_are_measured_and_used() {
    let found = opencl::discover().devices;
    let cpu = (found.iter()).find(|d| d.info.kind == DeviceKind::Cpu);
    let name = &cpu.expect("an OpenCL CPU device, such as PoCL").info.name;
    let two = format!("{name}:1=own,{name}:1=own").parse();
    let (mut union, _) = open_union(Some(&two.expect("devices")), true).expect("a runtime");
    let options = MeasureOptions {
        bytes: 4 << 20,
        ..MeasureOptions::FIRST
    };
    let devices = [DeviceId(0), DeviceId(1)];
    let mut probe = Probe::on(&mut union, copy(), options);
    let peers = device::measure_peers(&mut probe, &devices, &mut |_, _| {}).expect("measured");
    drop(probe);
    assert_eq!(peers.len(), 2);
    for (peer, (from, to)) in peers.iter().zip([(0, 1), (1, 0)]) {
        assert!(peer.bandwidth > 0.0);
        let path = union.peer_path(devices[from], devices[to]);
        assert_eq!(path, Some(PeerPath::from(peer)));
    }
}

#[test]
fn what_memory_sustains_for_cores_and_links_together_is_measured() {
    let mut machine = described("h200");
    machine.host.shared_bandwidth = Some(1.15 * machine.host.memory_bandwidth);
    let found = measured(&machine, SimOptions::default()).expect("measured");
    assert!(found.host.shared() > 1.1 * found.host.memory_bandwidth);
    assert_same_figures(&found, &machine, 0.02);
    // Memory of one kind is no other's.
    let found = measured(&described("laptop"), SimOptions::default()).expect("measured");
    assert_eq!(found.host.shared_bandwidth, None);
}

#[test]
fn medians_see_through_noise() {
    let machine = described("k40");
    let options = SimOptions {
        seed: 4,
        noise: Some(0.02),
        ..SimOptions::default()
    };
    let found = measured(&machine, options).expect("measured");
    // A ratio of two medians of five is off by 1.6 %; three times that.
    assert_same_figures(&found, &machine, 0.05);
}

#[test]
fn a_measured_machine_can_be_saved_and_simulated() {
    let mut found = measured(&described("k40"), SimOptions::default()).expect("measured");
    found.fingerprint = Some("Some CPU x8".into());
    let directory = tempfile::tempdir().expect("a directory");
    let store = MachineStore::at(directory.path());
    store.save(&found).expect("saved");
    let again = store.find("measured").expect("found");
    assert_eq!(again, found);
    let twice = measured(&again, SimOptions::default()).expect("measured");
    assert_same_figures(&twice, &found, 0.02);
}

#[test]
fn a_machine_that_cannot_be_measured_says_why() {
    let machine = described("k40");
    let fault = Fault {
        device: 1,
        at: At::Seconds(0.0),
        what: FaultEffect::FailNext(1),
    };
    let options = SimOptions {
        faults: vec![fault],
        ..SimOptions::default()
    };
    let message = measured(&machine, options)
        .expect_err("a failure")
        .to_string();
    assert!(message.contains("gpu0: a write failed"), "{message}");

    let mut small = described("k40");
    small.devices[0].memory = 1_000_000;
    let message = measured(&small, SimOptions::default()).expect_err("too small");
    assert!(
        matches!(message, MeasureError::TooSmall { .. }),
        "{message}"
    );
}

#[test]
fn figures_are_rounded_to_four_digits() {
    assert_eq!(probe::rounded(10_298_765_432.1), 10_300_000_000.0);
    assert_eq!(probe::rounded(0.814_29), 0.8143);
    assert_eq!(probe::rounded(0.0), 0.0);
    assert_eq!(probe::median(vec![3.0, 1.0, 2.0]), 2.0);
    assert_eq!(probe::median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
}
