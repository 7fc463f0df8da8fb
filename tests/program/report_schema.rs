//! Run reports conform to the published JSON schema, and docs/report.md describes
//! every field.

use pdawl::balance::{Account, Trusted};
use pdawl::engine::{DeviceRecord, Loss, Outcome, StepRecord};
use pdawl::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use pdawl::report::schema::{
    HostInfo, Machine, Parameters, Single, StencilParameters, Throughput, Workload,
};
use pdawl::report::{Context, report};
use serde_json::{Value, json};

use crate::json_schema::{conforms, report_schema, violations};

fn device(name: &str, kind: DeviceKind) -> Device {
    Device {
        name: name.into(),
        model: "a model".into(),
        kind,
        runtime: RuntimeKind::Opencl,
        compute_units: 4,
        memory: 1 << 30,
        max_allocation: 1 << 28,
        clock_mhz: None,
        shares_host_memory: false,
        fp64: true,
        sub_devices: SubDeviceSupport::default(),
        queues: 3,
        driver: "1.0".into(),
        link_bandwidth: Some(6e9),
    }
}

/// A report with every field present.
fn full() -> Value {
    let record = DeviceRecord {
        units: 5,
        busy_seconds: 0.5,
        finished_seconds: 0.9,
        copy_seconds: 0.2,
        overlapped_seconds: 0.1,
        ..DeviceRecord::default()
    };
    let outcome = Outcome {
        devices: vec!["host".into(), "opencl0.0".into()],
        steps: vec![StepRecord {
            step: 0,
            seconds: 1.0,
            devices: vec![record, record],
            ..StepRecord::default()
        }],
        seconds: 1.0,
        losses: vec![Loss {
            device: 1,
            step: 0,
            why: "gone".into(),
            repeated: 0,
            back: Some(5),
        }],
        verified: Some(true),
        max_abs_error: Some(0.0),
        model: Some(Account {
            model: "here".into(),
            predicted_step_seconds: Some(0.9),
            expected_seconds: vec![Some(0.9), None],
            replans: 1,
            handed_over: Some(1),
            devices: vec![Trusted {
                slowdown: None,
                interval: 0.1,
            }],
        }),
        ..Outcome::default()
    };
    let context = Context {
        workload: Workload {
            name: "stencil",
            parameters: Parameters::Stencil(StencilParameters {
                nx: 10,
                ny: 10,
                nz: Some(10),
                precision: "f32",
                steps: 1,
                seed: 0,
            }),
        },
        machine: Machine {
            name: "here".into(),
            simulated: false,
            host: HostInfo {
                cpu: "a CPU".into(),
                cores: 2,
                memory: 1 << 33,
            },
            devices: vec![
                device("host", DeviceKind::Cpu),
                device("opencl0.0", DeviceKind::Gpu),
            ],
        },
        strategy: "fixed:0.5".into(),
        comparison: vec![Single {
            strategy: "cpu".into(),
            throughput: Throughput::of_points(10, 1.0),
        }],
        notes: vec!["a note".into()],
    };
    serde_json::to_value(report(&outcome, &context)).unwrap()
}

#[test]
fn a_report_conforms() {
    conforms(&full());
}

#[test]
fn what_does_not_conform_is_found() {
    let schema = report_schema();
    for (pointer, wrong) in [
        ("/schema", json!("pdawl-report/2")),
        ("/seconds", json!(null)),
        ("/devices/0/share", json!(1.5)),
        ("/machine/devices/1/kind", json!("fpga")),
        ("/steps/0", json!({})),
        ("/workload/parameters/nz", json!(-1)),
        ("/model/replans", json!(null)),
        ("/model/devices/0", json!({})),
    ] {
        let mut report = full();
        *report.pointer_mut(pointer).unwrap() = wrong;
        assert!(!violations(&schema, &report).is_empty(), "{pointer}");
    }
}

/// Every field of a report is in the schema and in docs/report.md.
#[test]
fn every_field_is_described() {
    let page = include_str!("../../docs/report.md");
    let schema = report_schema();
    for (name, value) in full().as_object().unwrap() {
        assert!(schema["properties"].get(name).is_some(), "{name}");
        assert!(page.contains(&format!("`{name}")), "{name}");
        if name == "model" {
            for (inner, _) in value.as_object().unwrap() {
                assert!(page.contains(&format!("`{name}.{inner}")), "{name}.{inner}");
                let known = &schema["properties"][name]["properties"];
                assert!(known.get(inner).is_some(), "{name}.{inner}");
            }
        }
        let entries = match value {
            Value::Array(entries) => entries.first(),
            _ => None,
        };
        for inner in entries.and_then(Value::as_object).into_iter().flatten() {
            let described = page.contains(&format!("`{name}[].{}", inner.0))
                || page.contains(&format!("`{}`", inner.0));
            assert!(described, "{name}[].{}", inner.0);
            let known = &schema["properties"][name]["items"]["properties"];
            assert!(known.get(inner.0).is_some(), "{name}[].{}", inner.0);
        }
    }
}
