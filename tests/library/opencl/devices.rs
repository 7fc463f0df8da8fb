//! Discovery and sub-devices.

use std::sync::Arc;
use std::time::Instant;

use pdawl_api::codelet::{Memory, Value};
use pdawl_api::machine::RuntimeKind;
use pdawl_api::runtime::opencl::{self, Selected};
use pdawl_api::runtime::{DeviceId, RuntimeError};

use super::harness::{Bench, codelet, contents, launch, read, select, write};
use crate::own_process::{in_own_process, run_again};
use crate::pocl::cpu_device;

#[test]
fn a_device_tells_all_of_itself() {
    let found = cpu_device();
    let info = found.info;
    assert_eq!(
        info.name,
        format!("opencl{}.{}", found.platform, found.device)
    );
    assert_eq!(info.runtime, RuntimeKind::Opencl);
    assert!(info.shares_host_memory && info.fp64);
    assert!(info.compute_units > 0 && info.memory > 0);
    assert!(info.max_allocation > 0 && info.max_allocation <= info.memory);
    assert!(!info.model.is_empty() && !info.driver.is_empty());
    assert_eq!((info.queues, info.link_bandwidth), (2, None));
}

fn refusal(selection: &[Selected]) -> RuntimeError {
    let (sender, _completions) = crossbeam_channel::unbounded();
    match opencl::open(selection, sender, Instant::now()) {
        Ok(_) => panic!("{selection:?} opens"),
        Err(error) => error,
    }
}

#[test]
fn what_cannot_be_selected_is_refused() {
    let units = cpu_device().info.compute_units;
    for selection in [
        vec![select(None), select(None)],
        vec![select(Some(units + 1))],
        vec![select(Some(0))],
        vec![select(None), select(Some(1))],
        vec![Selected {
            platform: 999,
            device: 0,
            units: None,
            own_memory: false,
        }],
    ] {
        let error = refusal(&selection);
        assert!(matches!(error, RuntimeError::Selection(_)), "{error}");
        assert!(error.to_string().contains("opencl"), "{error}");
    }
}

#[test]
fn sub_devices_of_one_device_work_side_by_side() {
    if !in_own_process(
        "opencl::devices::sub_devices_of_one_device_work_side_by_side",
        &[],
    ) {
        return;
    }
    let units = cpu_device().info.compute_units;
    assert!(
        units >= 2,
        "this test needs two cores, or POCL_MAX_PTHREAD_COUNT=2"
    );
    let mut bench = Bench::open(&[select(Some(1)), select(Some(1))]);
    let infos = bench.backend.devices();
    assert_ne!(infos[0].name, infos[1].name);
    assert!(infos.iter().all(|info| info.compute_units == 1));
    assert!(infos[0].name.ends_with(":1"), "{}", infos[0].name);

    // Long enough for both to run at the same time, on parts of one host region.
    let spin = codelet(
        "__kernel void spin(__global ulong *a, uint at, uint n)
        {
            ulong s = 1;
            for (uint i = 0; i < n; i++)
                s = s * 6364136223846793005ul + 1442695040888963407ul;
            a[at + get_global_id(0)] = s;
        }",
        "spin",
    );
    let region = bench.host(&[0u64; 128]);
    let queues = [0, 1].map(|d| bench.backend.queue(DeviceId(d)).expect("a queue"));
    let args = |half: u32| {
        vec![
            Value::Memory(Memory::Host(region.id)),
            Value::U32(half * 64),
            Value::U32(8_000_000),
        ]
    };
    // The first round compiles the kernel.
    let mut ends = Vec::new();
    for _ in 0..2 {
        let events =
            [0, 1].map(|d| bench.submit(queues[d], launch(&spin, 64, args(d as u32)), &[]));
        ends = events.map(|event| bench.done(event)).into();
    }
    let both =
        ends[0].ended.min(ends[1].ended) as f64 - ends[0].started.max(ends[1].started) as f64;
    let shorter = ends
        .iter()
        .map(|c| c.ended - c.started)
        .min()
        .unwrap_or_default() as f64;
    assert!(both > 0.3 * shorter, "at once for {both} of {shorter} ns");
    let first = contents::<u64>(&region)[0];
    assert!(first != 0 && contents::<u64>(&region).iter().all(|v| *v == first));
    assert_eq!(Arc::strong_count(&spin), 1);
}

#[test]
fn a_machine_without_drivers_reports_what_to_install() {
    let empty = tempfile::tempdir().expect("a directory");
    let vendors = empty.path().to_string_lossy();
    let output = run_again(
        "opencl::devices::a_device_tells_all_of_itself",
        &[("OCL_ICD_VENDORS", &vendors)],
    );
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("apt-get install pocl-opencl-icd"), "{text}");
    assert!(text.contains("the OpenCL loader finds no driver"), "{text}");
}

#[test]
fn a_cpu_taken_for_a_separate_device_copies_its_data() {
    let own = Selected {
        own_memory: true,
        ..select(Some(1))
    };
    let mut bench = Bench::open(&[own, select(Some(1))]);
    let [separate, beside] = bench.backend.devices() else {
        panic!("two devices");
    };
    assert!(separate.name.ends_with(":1=own") && beside.name.ends_with(":1"));
    assert_eq!(separate.kind, beside.kind);
    assert!(!separate.shares_host_memory && beside.shares_host_memory);
    assert!(bench.backend.pins_host_memory());

    let add = codelet(
        "__kernel void add(__global uint *a, uint n) { a[get_global_id(0)] += n; }",
        "add",
    );
    // Both devices use the pinned memory: one by copies, one in place.
    let region = bench.host(&[1u32; 100]);
    let buffer = bench.buffer(400);
    let [first, second] = [0, 1].map(|d| bench.backend.queue(DeviceId(d)).expect("a queue"));
    let args = |memory, n| vec![Value::Memory(memory), Value::U32(n)];
    bench.submit(first, write(&region, buffer), &[]);
    bench.submit(
        first,
        launch(&add, 100, args(Memory::Device(buffer), 10)),
        &[],
    );
    let copied = bench.submit(first, read(buffer, &region), &[]);
    let in_place = launch(&add, 100, args(Memory::Host(region.id), 100));
    let last = bench.submit(second, in_place, &[copied]);
    bench.done(last);
    assert_eq!(contents::<u32>(&region), [111; 100]);
    let foreign = launch(&add, 100, args(Memory::Host(region.id), 1));
    let refused = bench.try_submit(first, foreign, &[]).expect_err("no copy");
    assert!(
        refused.to_string().contains("memory of its own"),
        "{refused}"
    );
}

#[test]
fn equal_parts_have_names_of_their_own() {
    let own = Selected {
        own_memory: true,
        ..select(Some(1))
    };
    let bench = Bench::open(&[own, own]);
    let root = cpu_device().info.name;
    let names: Vec<&str> = (bench.backend.devices().iter())
        .map(|info| info.name.as_str())
        .collect();
    assert_eq!(names, [format!("{root}:1=own"), format!("{root}:1=own#2")]);
}
