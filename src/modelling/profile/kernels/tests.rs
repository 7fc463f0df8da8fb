//! Files of kernel profiles.

use super::*;
use crate::machine::{Fingerprint, MachineStore, PeerSpec};
use crate::profile::kernels::Program;
use crate::runtime::sim::{Sim, SimOptions};
use crate::runtime::{Devices, Implementation};

fn here() -> Fingerprint {
    Fingerprint::of("Xeon", 8, ["A GPU"])
}

fn key(kernel: &str) -> KernelKey {
    KernelKey::new(Program::new(b"text", ""), kernel, &[64], None, &[256])
}

fn seconds(profiles: &KernelProfiles, kernel: &KernelKey, device: &str) -> Option<f64> {
    profiles.times(kernel, device).map(KernelTimes::median)
}

#[test]
fn profiles_outlive_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    let mut profiles = KernelProfiles::open(&path, &here()).unwrap();
    assert_eq!(
        profiles.record(&key("f"), "gpu", f64::NAN),
        Recorded::Ignored
    );
    profiles.save().unwrap();
    assert!(!path.exists(), "nothing to save");
    for seconds in [3.0, 1.0, 2.0] {
        profiles.record(&key("f"), "gpu", seconds);
    }
    profiles.record(&key("g"), "gpu", 0.5);
    profiles.record(&key("f"), "cpu", 9.0);
    profiles.save().unwrap();
    let again = KernelProfiles::open(&path, &here()).unwrap();
    assert_eq!(seconds(&again, &key("f"), "gpu"), Some(2.0));
    assert_eq!(again.times(&key("f"), "gpu").unwrap().count(), 3);
}

#[test]
fn records_of_several_processes_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    let mut one = KernelProfiles::open(&path, &here()).unwrap();
    let mut other = KernelProfiles::open(&path, &here()).unwrap();
    one.record(&key("f"), "gpu", 1.0);
    other.record(&key("f"), "gpu", 2.0);
    other.record(&key("g"), "gpu", 5.0);
    one.save().unwrap();
    other.save().unwrap();
    assert_eq!(seconds(&other, &key("f"), "gpu"), Some(1.5));
    // What is saved is not saved again.
    other.record(&key("f"), "gpu", 3.0);
    other.save().unwrap();
    one.record(&key("h"), "gpu", 7.0);
    one.save().unwrap();
    assert_eq!(one.times(&key("f"), "gpu").unwrap().count(), 3);
    assert_eq!(seconds(&one, &key("g"), "gpu"), Some(5.0));
}

#[test]
fn many_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut profiles = KernelProfiles::empty(&path, &here());
                for _ in 0..5 {
                    profiles.record(&key("f"), "gpu", 1.0);
                    profiles.save().unwrap();
                }
            });
        }
    });
    let profiles = KernelProfiles::open(&path, &here()).unwrap();
    assert_eq!(profiles.times(&key("f"), "gpu").unwrap().count(), 20);
}

#[test]
fn a_wrong_file_is_refused_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    let header = r#""format":"pdawl-kernels/1","fingerprint":"Xeon x8 + A GPU""#;
    for (text, part) in [
        ("no JSON", "it is damaged"),
        ("{}", "its format is none, not `pdawl-kernels/2`"),
        (
            r#"{"format":"pdawl-kernels/3"}"#,
            "its format is `pdawl-kernels/3`",
        ),
        (
            r#"{"format":"pdawl-kernels/1","fingerprint":"B"}"#,
            "another machine, B, and this is Xeon x8 + A GPU",
        ),
        (&format!("{{{header}}}"), "missing field `kernels`"),
        (
            &format!(r#"{{{header},"kernels":{{"f":{{"gpu":{{"last":[],"count":0}}}}}}}}"#),
            "the times of kernel `f` are impossible",
        ),
        (
            &format!(r#"{{{header},"kernels":{{"f":{{"gpu":{{"last":[-1],"count":1}}}}}}}}"#),
            "are impossible",
        ),
        (
            &format!(
                r#"{{{header},"kernels":{{}},"machine":{}}}"#,
                without_cores()
            ),
            "the measured machine: `host.cores` is 0",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = KernelProfiles::open(&path, &here())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(part) && error.contains("here.json"),
            "{error}"
        );
        let mut profiles = KernelProfiles::empty(&path, &here());
        profiles.record(&key("f"), "gpu", 1.0);
        assert_eq!(profiles.save().unwrap_err().to_string(), error);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        // The records wait for the next attempt.
        std::fs::remove_file(&path).unwrap();
        profiles.save().unwrap();
        assert_eq!(seconds(&profiles, &key("f"), "gpu"), Some(1.0));
    }
}

#[test]
fn what_cannot_be_written_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut profiles = KernelProfiles::empty(folder.path().join("no/here.json"), &here());
    profiles.record(&key("f"), "gpu", 1.0);
    let error = profiles.save().unwrap_err().to_string();
    assert!(
        error.contains("cannot be written") && error.contains("PDAWL_KERNELS"),
        "{error}"
    );
}

#[test]
fn the_kernels_with_the_fewest_records_are_left_out() {
    let mut profiles = KernelProfiles::empty("none", &here());
    for (kernel, count) in [("f", 3), ("g", 1), ("h", 2)] {
        for _ in 0..count {
            profiles.record(&key(kernel), "gpu", 1.0);
        }
    }
    limit(&mut profiles.kept.kernels, 2, records_of);
    let known = ["f", "g", "h"].map(|kernel| profiles.times(&key(kernel), "gpu").is_some());
    assert_eq!(known, [true, false, true]);
}

#[test]
fn verdicts_and_times_taken_outlive_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    let mut one = KernelProfiles::open(&path, &here()).unwrap();
    let mut two = KernelProfiles::open(&path, &here()).unwrap();
    let sliced = Division::Sliced {
        axis: 1,
        agreeing: [("gpu".to_owned(), true)].into(),
    };
    let refused = Division::Refused {
        reason: "it prints".to_owned(),
    };
    one.record(&key("f"), "gpu", 1.0);
    one.record_division("f : 3=05", &sliced);
    one.spend(&key("f"), 2.5);
    one.spend(&key("f"), f64::NAN);
    two.record_division("g :", &refused);
    two.spend(&key("f"), 0.5);
    one.save().unwrap();
    two.save().unwrap();
    let again = KernelProfiles::open(&path, &here()).unwrap();
    assert_eq!(again.division("f : 3=05"), Some(&sliced));
    assert_eq!(again.division("g :"), Some(&refused));
    assert_eq!(again.division("f : 3=06"), None);
    assert_eq!(again.divisions("f :").collect::<Vec<_>>(), [&sliced]);
    assert_eq!((again.spent(&key("f")), again.spent(&key("g"))), (3.0, 0.0));
    assert_eq!(two.spent(&key("f")), 3.0);
    // What another version of the examination found is not used; times are.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"examination\":", "\"examination\":9")).unwrap();
    let other = KernelProfiles::open(&path, &here()).unwrap();
    assert_eq!((other.division("g :"), other.spent(&key("f"))), (None, 3.0));
    // What is damaged is said.
    std::fs::write(&path, text.replace("\"axis\":1", "\"axis\":-1")).unwrap();
    let damaged = KernelProfiles::open(&path, &here());
    assert!(matches!(damaged, Err(KernelProfilesError::Damaged { .. })));
}

fn device() -> Device {
    let machine = MachineStore::of_user().find("k40").unwrap();
    let sim = Sim::new(&machine, SimOptions::default()).unwrap();
    sim.devices().last().unwrap().clone()
}

fn comparison(device: &Device, library: &str, seconds: [f64; 2]) -> Comparison {
    Comparison {
        device: device.name.clone(),
        codelet: "gemm-tile-f32".to_owned(),
        sizes: vec![512, 1024, 8],
        library: Some(library.to_owned()),
        own_seconds: Some(seconds[0]),
        library_seconds: Some(seconds[1]),
        serves: None,
        refusal: None,
    }
}

#[test]
fn comparisons_outlive_a_process_beside_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let (path, here) = (
        folder.path().join("here.json"),
        Fingerprint::of("Xeon", 8, ["A GPU"]),
    );
    let device = device();
    let mut profiles = KernelProfiles::open(&path, &here).unwrap();
    let kernel = KernelKey::new(Program::new(b"text", ""), "f", &[64], None, &[256]);
    profiles.record(&kernel, "gpu", 1.0);
    let known = comparison(&device, "cublas-130002", [2.0, 1.0]);
    profiles.record_comparison(&device, &known);
    let unknown = Comparison {
        own_seconds: None,
        ..comparison(&device, "cufft-12000", [1.0, 1.0])
    };
    profiles.record_comparison(&device, &unknown);
    profiles.save().unwrap();
    let again = KernelProfiles::open(&path, &here).unwrap();
    assert_eq!(again.comparisons(&device), std::slice::from_ref(&known));
    assert_eq!(known.faster(), Some(Implementation::Library));
    assert_eq!(seconds(&again, &kernel, "gpu"), Some(1.0));
    let other = Device {
        driver: "another driver".to_owned(),
        ..device
    };
    assert_eq!(again.comparisons(&other), []);
}

#[test]
fn keys_of_codelets_are_read_as_they_are_written() {
    let key = KernelKey::of_codelet("lu-row-f32", &[4, 16, 2], "cublas-130002");
    let read = KernelKey::codelet_of(key.as_str());
    assert_eq!(read, Some(("lu-row-f32", vec![4, 16, 2], "cublas-130002")));
    for wrong in [
        "codelet a 1x own",
        "codelet a 1",
        "codelet a 1 own more",
        "a 1 own",
    ] {
        assert_eq!(KernelKey::codelet_of(wrong), None, "{wrong}");
    }
}

fn run(seconds: f64) -> RunRecord {
    RunRecord {
        part: "gpu0".to_owned(),
        seconds,
        units: BTreeMap::new(),
        expected: Vec::new(),
        left: None,
    }
}

#[test]
fn runs_of_several_processes_are_kept_and_the_oldest_kinds_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    let mut one = KernelProfiles::open(&path, &here()).unwrap();
    let mut other = KernelProfiles::open(&path, &here()).unwrap();
    for kind in 0..MOST_RUNS {
        one.record_run(&kind.to_string(), run(2.0));
    }
    one.record_run("0", run(f64::NAN));
    other.record_run("0", run(1.0));
    other.record_run("new", run(1.0));
    one.save().unwrap();
    other.save().unwrap();
    let again = KernelProfiles::open(&path, &here()).unwrap();
    let runs = |kind: &str| again.run(kind).map(|row| row.runs);
    assert_eq!(
        [runs("0"), runs("new"), runs("1")],
        [Some(2), Some(1), None]
    );
    assert_eq!(again.file().runs.len(), MOST_RUNS);
    // One of the version before has no runs, and gets some.
    let text = std::fs::read_to_string(&path).unwrap();
    let old = r#"{"format":"pdawl-kernels/1","fingerprint":"Xeon x8 + A GPU","kernels":{}}"#;
    std::fs::write(&path, old).unwrap();
    let mut upgraded = KernelProfiles::open(&path, &here()).unwrap();
    upgraded.record_run("0", run(1.0));
    upgraded.save().unwrap();
    let upgraded = std::fs::read_to_string(&path).unwrap();
    assert!(
        upgraded.contains(FORMAT) && text.contains(FORMAT),
        "{upgraded}"
    );
    // What has no file waits for none.
    let mut session = KernelProfiles::empty("", &here());
    session.record_run("0", run(1.0));
    assert!(session.run("0").is_some());
    assert_eq!(session.unsaved, Unsaved::default());
}

/// A machine as files have it, with a wrong figure.
fn without_cores() -> String {
    let mut machine = MachineStore::at("/nonexistent").find("v100x4").unwrap();
    machine.host.cores = 0;
    serde_json::to_string(&machine).unwrap()
}

#[test]
fn a_machine_is_kept_with_devices_that_it_did_not_have_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.json");
    // A file of links alone is that of a machine which is not known.
    let links = r#""kernels":{},"ways":{"links":{},"peers":[]}"#;
    let header = r#""format":"pdawl-kernels/2","fingerprint":"Xeon x8 + A GPU""#;
    std::fs::write(&path, format!("{{{header},{links}}}")).unwrap();
    let mut profiles = KernelProfiles::open(&path, &here()).unwrap();
    assert_eq!(profiles.file().machine, None);
    let mut all = MachineStore::at("/nonexistent").find("v100x4").unwrap();
    all.peers = [("gpu0", "gpu1"), ("gpu1", "gpu2")]
        .map(|(from, to)| PeerSpec {
            from: from.to_owned(),
            to: to.to_owned(),
            bandwidth: 1e10,
            latency_ns: 0,
            through_host: false,
        })
        .to_vec();
    profiles.record_machine(all.clone());
    let mut one = all.clone();
    one.devices.drain(1..);
    one.peers.clear();
    one.devices[0].memory_bandwidth /= 2.0;
    profiles.record_machine(one.clone());
    profiles.save().unwrap();
    let kept = KernelProfiles::open(&path, &here()).unwrap();
    let kept = kept.file().machine.as_ref().unwrap();
    assert_eq!(kept.devices[0], one.devices[0]);
    assert_eq!(kept.devices[1..], all.devices[1..]);
    assert_eq!(kept.peers, all.peers);
}
