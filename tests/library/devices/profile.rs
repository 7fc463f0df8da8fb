//! A profile of a device with device memory, measured on this machine.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pdawl_api::codelet::stencil::Precision;
use pdawl_api::machine::{Device, MachineFile, MachineStore};
use pdawl_api::model::{DevicePart, record};
use pdawl_api::profile::design::DesignRequest;
use pdawl_api::profile::{
    ModelKind, ProfiledMachine, ProfilingSession, SessionProgress, Settings, Space, design,
    schedule, stencil,
};
use pdawl_profiler::dataset::{Appender, Provenance};

use crate::pocl::cpu_device;

/// The OpenCL CPU device treated as a GPU, and a machine file that describes it.
fn separate_device() -> (Device, MachineFile) {
    let mut device = cpu_device().info;
    device.name = format!("{}:1=own", device.name);
    device.shares_host_memory = false;
    let mut machine = MachineStore::at("/nonexistent")
        .find("k40")
        .expect("shipped");
    machine.devices[0].name.clone_from(&device.name);
    (device, machine)
}

#[test]
fn what_is_held_and_streamed_is_measured_as_designed() {
    let (device, machine) = separate_device();
    let host = machine.host.clone();
    let mut profiled = ProfiledMachine::real(machine, vec![device]);
    assert_eq!(profiled.notes(), [] as [String; 0]);
    let gpus = profiled.gpus(Some(64 << 20), true);
    let request = DesignRequest {
        dimensions: 2,
        precision: Precision::F64,
        sizes: vec![150, 301],
        most: None,
    };
    let topology = profiled.topology().clone();
    let space = Space::of(&host, topology, gpus, 1 << 30, true, &request).expect("a space");
    let runs = schedule(&[design(&space, ModelKind::Gpu, 10)], 1, 1);
    assert_eq!(runs.len(), 10);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    let mut rows = Appender::open(&path, &Provenance::default()).expect("a dataset");
    let settings = Settings {
        steps: Some(4),
        seed: 1,
    };
    let (budget, stop) = (Duration::from_secs(60), AtomicBool::new(false));
    let mut watch = |_: &SessionProgress| {};
    let mut session = ProfilingSession::begin(
        &mut profiled,
        settings,
        budget,
        &stop,
        &mut rows,
        &mut watch,
    );
    stencil::profile(&mut session, &runs).expect("a profile");
    let summary = session.finish().expect("a profile");
    let rows = rows.samples();
    assert_eq!(summary.failed, [] as [String; 0]);
    assert_eq!(rows.len(), 10);
    let mut kinds = [0; 3];
    for row in rows {
        assert!(!row.simulated && row.steps == 4 && row.seconds > 0.0);
        let (case, _) = record::read(row).expect("a case");
        let DevicePart::Discrete {
            held,
            streamed,
            solo,
            ..
        } = case.part
        else {
            panic!("{}", row.configuration);
        };
        assert_eq!(held + streamed, case.work.units);
        kinds[0] += u32::from(solo);
        kinds[1] += u32::from(streamed > 0 && held > 0);
        kinds[2] += u32::from(held == 0);
        let sum = |name: &str| row.features[&format!("trace.{name}_seconds")];
        assert!(sum("kernel") > 0.0 && sum("launch") > 0.0);
        assert_eq!(sum("d2h") > 0.0, streamed > 0, "{}", row.configuration);
        // This device has no sensors, so no row may have their figures.
        assert!(
            !row.features
                .keys()
                .any(|name| name.starts_with("telemetry."))
        );
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
    assert!(
        profiled
            .notes()
            .iter()
            .any(|note| note.starts_with("no telemetry of"))
    );
}

#[test]
fn a_device_without_figures_is_left_out_and_reported() {
    let (mut device, machine) = separate_device();
    device.name = "opencl9.0".into();
    device.model = "unheard of".into();
    let profiled = ProfiledMachine::real(machine, vec![device]);
    assert_eq!(profiled.gpus(None, true), []);
    assert!(profiled.notes()[0].starts_with("opencl9.0 (unheard of) is not profiled"));
}
