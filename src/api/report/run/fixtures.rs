//! Outcomes and contexts for the tests of reports.

use super::workload::StencilParameters;
use super::{Context, HostInfo, Machine, Parameters, Workload};
use crate::balance::{Account, Trusted};
use crate::engine::{DeviceRecord, Outcome, StepRecord};
use crate::machine::{Device, DeviceKind, RuntimeKind, SubDeviceSupport};
use crate::runtime::CommandKind;
use crate::spans::span;
use crate::trace::Trace;

/// Four steps of 0.1 s on 100 rows, the host's share 0.5 and then 0.4.
pub fn outcome() -> Outcome {
    let steps = (0..4)
        .map(|step| {
            let host = if step == 0 { 50 } else { 40 };
            let record = |units, copy_seconds: f64| DeviceRecord {
                units,
                busy_seconds: 0.09,
                finished_seconds: 0.1,
                chunks: 3,
                bytes_h2d: (copy_seconds * 1e9) as u64,
                bytes_d2h: (copy_seconds * 1e9) as u64,
                copy_seconds,
                overlapped_seconds: copy_seconds * 0.75,
                ..DeviceRecord::default()
            };
            StepRecord {
                steps: 1,
                step,
                seconds: 0.1,
                devices: vec![record(host, 0.0), record(100 - host, 0.04)],
                moved: if step == 1 { 10 } else { 0 },
                engine_seconds: 1e-5,
                enqueue_seconds: 2e-5,
            }
        })
        .collect();
    Outcome {
        devices: vec!["host".into(), "gpu0".into()],
        steps,
        seconds: 0.4,
        setup_seconds: 0.01,
        gather_seconds: 0.02,
        wait_seconds: vec![0.0, 2e-8],
        trace: Trace {
            devices: vec!["host".into(), "gpu0".into()],
            spans: vec![
                span(1, 0, CommandKind::Write, 100, 200),
                span(1, 0, CommandKind::Launch, 200, 300),
            ],
            ..Trace::default()
        },
        ..Outcome::default()
    }
}

/// A model that predicted the GPU to be a tenth faster than it was.
pub fn account() -> Account {
    let trusted = |slowdown| Trusted {
        slowdown: Some(slowdown),
        interval: 0.1,
    };
    Account {
        model: "lab".into(),
        predicted_step_seconds: Some(0.096),
        expected_seconds: vec![Some(0.096), Some(0.1), Some(0.1), None],
        replans: 1,
        handed_over: None,
        devices: vec![trusted(1.0), trusted(1.1)],
    }
}

pub fn context() -> Context {
    let device = |name: &str, kind, link_bandwidth| Device {
        name: name.into(),
        model: format!("Model of {name}"),
        kind,
        runtime: RuntimeKind::Sim,
        compute_units: 8,
        memory: 1 << 33,
        max_allocation: 1 << 31,
        clock_mhz: Some(2400),
        shares_host_memory: kind == DeviceKind::Cpu,
        fp64: true,
        sub_devices: SubDeviceSupport::default(),
        queues: 3,
        driver: "sim".into(),
        link_bandwidth,
        one_way: None,
    };
    Context {
        workload: Workload::new(
            "stencil",
            Parameters::Stencil(StencilParameters {
                nx: 100,
                ny: 100,
                nz: None,
                precision: "f64",
                coefficients: None,
                input: None,
                steps: 4,
                superstep: 1,
                until: None,
                check_every: None,
                seed: 1,
            }),
        ),
        machine: Machine {
            name: "k40".into(),
            simulated: true,
            host: HostInfo {
                cpu: "Model of host".into(),
                cores: 8,
                memory: 1 << 33,
            },
            devices: vec![
                device("host", DeviceKind::Cpu, None),
                device("gpu0", DeviceKind::Gpu, Some(6e9)),
            ],
            implementations: Vec::new(),
        },
        policy: "dawl".into(),
        notes: Vec::new(),
    }
}
