//! Every case that can be is read back as it was written.

use super::*;
use crate::codelet::stencil::Precision;
use crate::machine::MachineStore;
use crate::model::descriptors::HostFigures;
use crate::model::{DevicePart, StepWork};
use crate::workload::Divisible;
use crate::workload::stencil::Stencil;

fn sample(features: BTreeMap<String, f64>) -> Sample {
    Sample {
        machine: "k40".into(),
        simulated: true,
        device: "gpu0".into(),
        kind: "gpu".into(),
        codelet: "a codelet".into(),
        configuration: "a configuration".into(),
        repeat: 1,
        counters: "none".into(),
        steps: 3,
        seconds: 1.0,
        features,
    }
}

fn cases() -> Vec<(Case, Descriptors)> {
    let store = MachineStore::at("/nonexistent");
    let host = |units, chunk| DevicePart::Host {
        workers: 5,
        sockets: 2,
        units,
        chunk,
    };
    let own = |held, streamed, solo| DevicePart::Discrete {
        held,
        slots: 3001,
        streamed,
        chunk: 16,
        queues: 3,
        solo,
    };
    let mut cases = Vec::new();
    for name in ["k40", "h200", "laptop"] {
        let machine = store.find(name).unwrap();
        let device = &machine.devices[0];
        for (grid, precision) in [
            ((4000, 3000, None), Precision::F64),
            ((64, 65, Some(3000)), Precision::F32),
        ] {
            let (nx, ny, nz) = grid;
            let stencil = Stencil::new(nx, ny, nz, precision, 1).unwrap();
            let (work, codelet) = (StepWork::of(&stencil), stencil.codelet());
            let fp64 = precision == Precision::F64;
            let on_host = Descriptors::of(&machine, None, &codelet.name, fp64);
            let on_device = Descriptors::of(&machine, Some(device), &codelet.name, fp64);
            let mut add = |part, descriptors| {
                cases.push((Case { work, part }, descriptors));
            };
            add(host(3000, 3000), on_host);
            add(host(7, 2), on_host);
            if device.shares_host_memory {
                add(host(1000, 1000), on_device);
            } else {
                add(own(3000, 0, true), on_device);
                add(own(2500, 500, false), on_device);
                add(own(0, 3000, false), on_device);
            }
        }
    }
    cases
}

#[test]
fn what_is_written_is_read_back() {
    for (case, descriptors) in cases() {
        let written = sample(features(&case, &descriptors));
        // A device by itself shares the host's memory with nobody.
        let host = HostFigures {
            shared_bandwidth: descriptors.host.bandwidth,
            ..descriptors.host
        };
        let descriptors = Descriptors {
            host,
            ..descriptors
        };
        assert!(written.features.values().all(|v| v.is_finite()));
        assert!(!written.features.keys().any(|k| k.starts_with("prior.")));
        assert_eq!(read(&written), Ok((case, descriptors)));
    }
}

#[test]
fn each_feature_of_the_case_is_needed_and_named_when_it_is_missing() {
    // A k40 has every figure that a machine file can have.
    for (case, descriptors) in cases().into_iter().take(5) {
        let all = features(&case, &descriptors);
        for name in all.keys().filter(|k| !k.starts_with("derived.")) {
            let mut some = all.clone();
            some.remove(name);
            match read(&sample(some)) {
                Ok(other) => assert_ne!(other, (case, descriptors), "{name}"),
                Err(error) => assert!(
                    matches!(&error, RecordError::Missing { .. }),
                    "{name}: {error}"
                ),
            }
        }
    }
    let (case, descriptors) = cases().remove(0);
    let mut some = features(&case, &descriptors);
    some.remove("known.units_count");
    let error = read(&sample(some)).unwrap_err().to_string();
    assert!(error.contains("a configuration, repeat 1: `known.units_count` is missing"));
}

#[test]
fn impossible_values_are_refused_by_name() {
    let (case, descriptors) = cases().remove(3);
    for (name, value) in [
        ("known.units_count", 2.5),
        ("known.unit_flops", f64::NAN),
        ("known.queues_count", 5e9),
        ("known.held_units_count", -1.0),
        ("known.solo_ratio", 0.5),
    ] {
        let mut wrong = features(&case, &descriptors);
        wrong.insert(name.into(), value);
        let error = read(&sample(wrong)).unwrap_err();
        assert!(
            matches!(error, RecordError::Impossible { feature, .. } if feature == name),
            "{error}"
        );
    }
}

#[test]
fn derived_figures_count_what_a_step_moves() {
    let (case, descriptors) = cases().remove(3);
    let row = features(&case, &descriptors);
    let unit = 4000.0 * 8.0;
    // 2500 units in 3001 slots leave windows of 498: 6 launches, and 32 chunks
    // of 16, each with both neighbours; one border between held and streamed.
    assert_eq!(row["derived.chunks_count"], 32.0);
    assert_eq!(row["derived.launches_count"], 38.0);
    assert_eq!(row["derived.h2d_bytes"], (500.0 + 64.0 + 1.0) * unit);
    assert_eq!(row["derived.d2h_bytes"], 501.0 * unit);
    assert_eq!(row["derived.flops"], 3000.0 * 4000.0 * 5.0);
    assert_eq!(row["derived.traffic_bytes"], 3000.0 * unit * 2.0);
    let ring_and_buffers = (2500.0 + 498.0 + 3.0 * 34.0) * unit;
    assert_eq!(row["derived.working_set_bytes"], ring_and_buffers);
    let (case, descriptors) = cases().remove(0);
    let row = features(&case, &descriptors);
    let bytes = 2.0 * 3000.0 * unit;
    assert_eq!(row["derived.working_set_bytes"], bytes);
    let l2 = 5.0 * 262_144.0;
    assert_eq!(row["derived.working_set_over_l2_ratio"], bytes / l2);
}
