use super::*;
use crate::machine::Device;
use crate::machine::host::CoreLocation;
use crate::machine::{RuntimeKind, SubDeviceSupport};
use crate::runtime::ids::GpuIdentity;

fn offer(platform: usize, device: usize, kind: DeviceKind, units: u32, fp64: bool) -> FoundDevice {
    let divisible = kind == DeviceKind::Cpu;
    FoundDevice {
        platform,
        device,
        info: Device {
            name: format!("opencl{platform}.{device}"),
            model: format!("model {platform}"),
            kind,
            runtime: RuntimeKind::Opencl,
            compute_units: units,
            memory: 1 << 30,
            max_allocation: 1 << 28,
            clock_mhz: None,
            shares_host_memory: divisible,
            fp64,
            sub_devices: SubDeviceSupport {
                equally: divisible,
                by_counts: divisible,
                by_affinity: false,
            },
            queues: 3,
            driver: String::new(),
            link_bandwidth: None,
            one_way: None,
        },
        identity: GpuIdentity::default(),
    }
}

/// PoCL on two cores, a GPU, and a GPU without double precision.
fn offers() -> Discovery {
    Discovery {
        devices: vec![
            offer(0, 0, DeviceKind::Cpu, 2, true),
            offer(1, 0, DeviceKind::Gpu, 132, true),
            offer(2, 0, DeviceKind::Gpu, 24, false),
        ],
        warnings: Vec::new(),
    }
}

/// Two sockets, of even and of odd cores.
fn sockets() -> Topology {
    let site = |core| CoreLocation {
        core,
        socket: core % 2,
        physical: core,
    };
    Topology::new((0..8).map(site).collect())
}

fn planned(
    selection: Option<&Selection>,
    found: &Discovery,
    allowed: &[usize],
    fp64: bool,
) -> Result<OpenPlan, SelectionError> {
    granted(selection, found, allowed, None, fp64)
}

fn granted(
    selection: Option<&Selection>,
    found: &Discovery,
    allowed: &[usize],
    granted: Option<usize>,
    fp64: bool,
) -> Result<OpenPlan, SelectionError> {
    let host = HostCores {
        allowed,
        topology: &sockets(),
        granted,
    };
    let existing = Existing {
        opencl: found.clone(),
        ..Existing::default()
    };
    plan(selection, &existing, host, fp64)
}

fn check(text: &str, allowed: &[usize]) -> Result<OpenPlan, SelectionError> {
    let selection: Selection = text.parse().unwrap();
    planned(Some(&selection), &offers(), allowed, true)
}

fn refusal(text: &str, allowed: &[usize]) -> String {
    check(text, allowed).unwrap_err().to_string()
}

fn pools(text: &str, allowed: &[usize]) -> Vec<(String, Vec<usize>)> {
    let plan = check(text, allowed).unwrap();
    plan.pools.into_iter().map(|p| (p.name, p.cores)).collect()
}

#[test]
fn by_default_the_host_and_the_gpus_take_part() {
    let plan = planned(None, &offers(), &[0, 1], true).unwrap();
    assert_eq!(plan.pools[0].cores, [0, 1]);
    let gpu = Selected {
        platform: 1,
        device: 0,
        units: None,
        own_memory: false,
    };
    assert_eq!(plan.opencl, [gpu]);
    assert_eq!(
        plan.notes,
        [
            "opencl0.0 (model 0) is left out: its cores are the host's",
            "opencl2.0 (model 2) is left out: it does not compute in double precision",
        ]
    );
    let single = planned(None, &offers(), &[0, 1], false).unwrap();
    assert_eq!(single.opencl.len(), 2);
}

#[test]
fn a_core_is_left_to_the_engine_beside_a_discrete_gpu() {
    let cores = [0, 1, 2, 3];
    let by_default = |offers: &Discovery, cores: &[usize]| {
        let plan = planned(None, offers, cores, true).unwrap();
        plan.pools[0].cores.clone()
    };
    assert_eq!(by_default(&offers(), &cores), [0, 1, 2]);
    // Of few cores each is worth more.
    assert_eq!(by_default(&offers(), &cores[..3]), [0, 1, 2]);
    assert_eq!(by_default(&Discovery::default(), &cores), cores);
    let cores_of = |text: &str| pools(text, &cores)[0].1.clone();
    assert_eq!(cores_of("host,opencl1.0"), [0, 1, 2]);
    assert_eq!(cores_of("host,opencl0.0:1"), [0, 1, 2]);
    assert_eq!(cores_of("host,opencl0.0:1,opencl1.0"), [0, 1]);
    // Whoever says how many gets them.
    assert_eq!(cores_of("host:4,opencl1.0"), cores);
}

#[test]
fn a_control_groups_time_limits_a_host_without_a_number() {
    let cores = [0, 1, 2, 3];
    let workers = |text: Option<&str>, quota: usize| {
        let selection = text.map(|text| text.parse().unwrap());
        let found = Discovery::default();
        let found = if text.is_some() { &offers() } else { &found };
        let plan = granted(selection.as_ref(), found, &cores, Some(quota), true).unwrap();
        let note = plan.notes.iter().any(|note| note.contains("control group"));
        (plan.pools[0].cores.len(), note)
    };
    assert_eq!(workers(None, 1), (1, true));
    assert_eq!(workers(None, 3), (3, true));
    assert_eq!(workers(None, 4), (4, false));
    assert_eq!(workers(Some("host"), 2), (2, true));
    assert_eq!(workers(Some("host,opencl0.0:1"), 3), (2, true));
    assert_eq!(workers(Some("host,opencl0.0:2"), 1), (1, true));
    // Whoever says how many gets them.
    assert_eq!(workers(Some("host:4"), 1), (4, false));
}

#[test]
fn cores_that_no_device_takes_are_spare() {
    let cores = [0, 1, 2, 3];
    let spare = |text: &str| {
        let selection = text.parse().unwrap();
        let plan = planned(Some(&selection), &offers(), &cores, true).unwrap();
        plan.spare
    };
    assert_eq!(spare("host,opencl1.0"), [3]);
    assert!(spare("host:4,opencl1.0").is_empty());
    assert_eq!(spare("host:1,opencl0.0:2"), [3]);
    let all = planned(None, &offers(), &cores, true).unwrap();
    assert_eq!(all.spare, [3]);
}

#[test]
fn no_core_is_given_twice() {
    assert_eq!(
        pools("host:1,host:2,host:1", &[3, 5, 7, 9]),
        [
            ("host:1".to_owned(), vec![3]),
            ("host:2".to_owned(), vec![5, 7]),
            ("host:1#2".to_owned(), vec![9]),
        ]
    );
    assert_eq!(
        pools("opencl0.0:1,host:1", &[0, 1]),
        [("host:1".to_owned(), vec![1])]
    );
    assert_eq!(
        pools("host,opencl0.0:1", &[0, 1, 2]),
        [("host".to_owned(), vec![0, 1])]
    );
    assert_eq!(
        pools("host:1,host", &[0, 1, 2]),
        [
            ("host:1".to_owned(), vec![0]),
            ("host".to_owned(), vec![1, 2])
        ]
    );
}

#[test]
fn cores_are_taken_near_or_far() {
    let cores = [0, 1, 2, 3, 4, 5];
    assert_eq!(
        pools("host:2@spread,host:2@compact,host:1@compact", &cores),
        [
            ("host:2@spread".to_owned(), vec![0, 1]),
            ("host:2@compact".to_owned(), vec![2, 4]),
            ("host:1@compact".to_owned(), vec![3]),
        ]
    );
    assert_eq!(
        pools("host:3@compact,host:3", &cores),
        [
            ("host:3@compact".to_owned(), vec![0, 2, 4]),
            ("host:3".to_owned(), vec![1, 3, 5]),
        ]
    );
    assert_eq!(
        refusal("host:9@spread", &cores),
        "host:9@spread asks for 9 cores of 6; use host:6@spread at most"
    );
}

#[test]
fn the_same_cores_are_refused_with_a_way_out() {
    let shared = "name the same cores: 2 + 2 cores asked of 2; use e.g. host:1,opencl0.0:1";
    for text in ["host:2,opencl0.0", "host,opencl0.0", "host:2,opencl0.0:2"] {
        assert!(refusal(text, &[0, 1]).ends_with(shared), "{text}");
    }
    assert!(refusal("host:2,opencl0.0", &[0, 1]).starts_with("host:2 and opencl0.0 name"));
    assert_eq!(
        refusal("host:3", &[0, 1]),
        "host:3 asks for 3 cores of 2; use host:2 at most"
    );
    assert_eq!(
        refusal("opencl0.0", &[1]),
        "opencl0.0 asks for 2 cores of 1; use opencl0.0:1 at most"
    );
    assert!(refusal("host:1,host:1,host:1", &[0, 1]).ends_with("name at most 2 of them"));
    assert!(refusal("host:4294967295,host:4294967295", &[0]).contains("cores asked of 1"));
}

/// Mesa's rusticl has 8 units on any CPU.
#[test]
fn a_cpu_that_cannot_be_divided_takes_the_cores_that_there_are() {
    let mut found = offers();
    let mut whole = offer(3, 0, DeviceKind::Cpu, 8, true);
    whole.info.sub_devices = SubDeviceSupport::default();
    found.devices.push(whole);
    let planned = |text: &str, cores: &[usize]| {
        let selection: Selection = text.parse().unwrap();
        planned(Some(&selection), &found, cores, false)
    };
    for (text, cores) in [
        ("opencl3.0", 1),
        ("opencl3.0:8", 2),
        ("opencl3.0=own,opencl1.0", 2),
    ] {
        let plan = planned(text, &[0, 1][..cores]).unwrap();
        assert_eq!((plan.opencl[0].units, plan.spare), (None, vec![]), "{text}");
    }
    let plan = planned("opencl3.0,host:1", &[0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    assert_eq!(plan.pools.len(), 1);
    for text in ["opencl3.0,host:1", "opencl0.0,opencl3.0"] {
        let why = planned(text, &[0, 1]).unwrap_err().to_string();
        assert!(
            why.ends_with("name opencl3.0 alone, which cannot be divided, or others"),
            "{why}"
        );
    }
    let why = planned("opencl3.0:2", &[0, 1]).unwrap_err().to_string();
    assert!(why.ends_with("write opencl3.0 without `:2`"), "{why}");
}

#[test]
fn devices_named_too_often_are_refused() {
    let twice = "opencl1.0 is named twice; name it once";
    assert_eq!(refusal("opencl1.0,opencl1.0", &[0, 1]), twice);
    assert_eq!(refusal("opencl1.0,host:1,opencl1.0:132", &[0, 1]), twice);
    assert!(refusal("host,host", &[0, 1]).contains("write e.g. host:1,host:1"));
    // More cores than the device has units do not make it two devices.
    let cores = [0, 1, 2, 3];
    assert!(refusal("opencl0.0,opencl0.0", &cores).contains("named twice"));
    let plan = check("opencl0.0:1,opencl0.0:1", &cores).unwrap();
    assert_eq!(plan.opencl.len(), 2);
}

#[test]
fn what_a_device_cannot_do_is_refused() {
    assert_eq!(
        refusal("opencl3.0", &[0]),
        "there is no opencl3.0; this machine has host, opencl0.0 (model 0), \
         opencl1.0 (model 1), opencl2.0 (model 2)"
    );
    assert!(refusal("opencl0.0:3", &[0]).contains("ask for at most 2"));
    assert_eq!(
        refusal("opencl1.0:4", &[0]),
        "opencl1.0 cannot be divided into sub-devices; write opencl1.0 without `:4`"
    );
    assert!(refusal("opencl2.0", &[0]).contains("(model 2) does not compute in double"));
    assert_eq!(
        refusal("opencl1.0:132=own", &[0]),
        "opencl1.0:132=own: model 1 has memory of its own anyway; write opencl1.0:132 without =own"
    );
    let whole = check("opencl1.0:132", &[0]).unwrap();
    assert_eq!(whole.opencl[0].units, None);
}

#[test]
fn a_device_taken_for_one_with_its_own_memory_has_cores_like_any() {
    let plan = check("opencl0.0:1=own,opencl0.0:1", &[0, 1]).unwrap();
    let own: Vec<bool> = plan.opencl.iter().map(|s| s.own_memory).collect();
    assert_eq!(own, [true, false]);
    assert!(plan.pools.is_empty());
    assert_eq!(
        pools("opencl0.0:1=own,host", &[3, 4]),
        [("host".to_owned(), vec![4])]
    );
    assert_eq!(
        refusal("host:2,opencl0.0=own", &[0, 1]),
        "host:2 and opencl0.0=own name the same cores: 2 + 2 cores asked of 2; \
         use e.g. host:1,opencl0.0:1=own"
    );
    assert_eq!(
        refusal("opencl0.0=own", &[1]),
        "opencl0.0=own asks for 2 cores of 1; use opencl0.0:1=own at most"
    );
    assert!(refusal("opencl0.0=own,opencl0.0", &[0, 1, 2, 3]).contains("named twice"));
}

#[test]
fn why_a_device_is_missing_is_reported() {
    let none = Discovery {
        devices: Vec::new(),
        warnings: vec!["no OpenCL loader was found".to_owned()],
    };
    let selection: Selection = "opencl0.0".parse().unwrap();
    let error = planned(Some(&selection), &none, &[0], true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no opencl0.0; this machine has host; no OpenCL loader was found"
    );
    let default = planned(None, &none, &[0], true).unwrap();
    assert_eq!(default.notes, ["no OpenCL loader was found"]);
}

/// Two GPUs through CUDA, of which OpenCL offers the second one as `opencl1.0`.
fn with_cuda(runtime: GpuRuntime) -> Existing {
    let identity = |byte| GpuIdentity {
        uuid: Some([byte; 16]),
        pci: None,
    };
    let mut opencl = offers();
    opencl.devices[1].identity = identity(1);
    let gpu = |device| cuda::FoundGpu {
        device,
        info: Device {
            name: format!("cuda{device}"),
            runtime: RuntimeKind::Cuda,
            ..opencl.devices[1].info.clone()
        },
        identity: identity(device as u8),
    };
    let cuda = cuda::Discovery {
        devices: vec![gpu(0), gpu(1)],
        fault: None,
    };
    Existing {
        opencl,
        cuda,
        runtime,
    }
}

fn planned_with(existing: &Existing, text: Option<&str>) -> Result<OpenPlan, SelectionError> {
    let selection = text.map(|text| text.parse::<Selection>().unwrap());
    let host = HostCores {
        allowed: &[0, 1, 2, 3, 4, 5],
        topology: &sockets(),
        granted: None,
    };
    plan(selection.as_ref(), existing, host, true)
}

#[test]
fn a_gpu_is_opened_through_one_driver() {
    let all = planned_with(&with_cuda(GpuRuntime::Cuda), None).unwrap();
    assert_eq!(all.cuda, [0, 1]);
    assert!(all.opencl.is_empty(), "{:?}", all.opencl);
    assert_eq!(all.spare.len(), 1, "the driver thread has a core");
    // Left to itself, a GPU whose kernels nothing compiles for CUDA stays with OpenCL.
    let all = planned_with(&with_cuda(GpuRuntime::Auto), None).unwrap();
    assert_eq!((all.cuda.as_slice(), all.opencl.len()), (&[1][..], 0));
    let noted = |note: &String| note.contains("cuda0") && note.contains("not opened through CUDA");
    assert!(all.notes.iter().any(noted), "{:?}", all.notes);
    let all = planned_with(&with_cuda(GpuRuntime::Opencl), None).unwrap();
    assert!(all.cuda.is_empty());
    assert_eq!(all.opencl.len(), 1);
    // Named devices are opened as they are named, whatever the choice.
    for runtime in [GpuRuntime::Cuda, GpuRuntime::Opencl] {
        let existing = with_cuda(runtime);
        let mixed = planned_with(&existing, Some("host,cuda0,opencl1.0")).unwrap();
        assert_eq!((mixed.cuda.as_slice(), mixed.opencl.len()), (&[0][..], 1));
        assert_eq!(mixed.pools[0].cores.len(), 5);
        let twice = planned_with(&existing, Some("cuda1,opencl1.0")).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "cuda1 and opencl1.0 are one GPU (model 1); name it once"
        );
    }
}

#[test]
fn cuda_that_does_not_work_is_an_error_only_where_it_was_chosen() {
    let without = |runtime| Existing {
        cuda: cuda::Discovery {
            devices: Vec::new(),
            fault: Some("no driver".to_owned()),
        },
        ..with_cuda(runtime)
    };
    let error = planned_with(&without(GpuRuntime::Cuda), None).unwrap_err();
    assert!(
        error.to_string().contains("through CUDA: no driver"),
        "{error}"
    );
    for runtime in [GpuRuntime::Auto, GpuRuntime::Opencl] {
        let plan = planned_with(&without(runtime), None).unwrap();
        assert_eq!((plan.cuda.len(), plan.opencl.len()), (0, 1));
    }
    let error = planned_with(&without(GpuRuntime::Opencl), Some("cuda0")).unwrap_err();
    assert_eq!(error.to_string(), "there is no cuda0; no driver");
}
