//! Runs the C programs of `tests/opencl-layer` through the layer.
//!
//! Cargo builds the library together with this test, in the same folder. The programs need a
//! C compiler, a loader with layers and a driver. Two places are two devices of PoCL, or of
//! the driver in `tests/nasty-driver`, which does what PoCL never does and others may.

#[path = "../../tests/fixtures/own_home.rs"]
mod own_home;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::{env, fs};

use serde_json::Value;

/// How a program ends that tests nothing on the devices that it finds.
const NOTHING: i32 = 77;

/// The folder of the build profile, which has the library.
fn target() -> PathBuf {
    let test = env::current_exe().expect("the test has a path");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("tests are in `deps`");
    folder.to_owned()
}

fn library() -> PathBuf {
    let library = target().join("deps/libpdawl_opencl.so");
    assert!(
        library.exists(),
        "{} is missing: cargo test -p pdawl-opencl-layer builds it",
        library.display()
    );
    library
}

/// The folder of the programs' sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/opencl-layer")
}

/// Compiles C sources into a file of the target folder. Tests of one process run at once, of which
/// two may want the same file, and another process may run the same ones, so that the file appears
/// when it is whole.
fn compiled(name: &str, sources: &[PathBuf], options: &[&str]) -> PathBuf {
    let folder = target().join("opencl-programs");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let thread = std::thread::current().id();
    let (target, part) = (
        folder.join(name),
        folder.join(format!("{name}.{}.{thread:?}", std::process::id())),
    );
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg("-o")
        .arg(&part)
        .args(sources)
        .args(options);
    let status = cc.status().expect("a C compiler starts");
    assert!(status.success(), "{name} is not compiled");
    fs::rename(&part, &target).expect("the target folder can be written");
    target
}

fn compile(name: &str) -> PathBuf {
    let source = sources().join(format!("{name}.c"));
    let name = Path::new(name).file_name().and_then(|name| name.to_str());
    let options = [
        "-O1",
        "-std=c11",
        "-D_DEFAULT_SOURCE",
        "-lOpenCL",
        "-lpthread",
    ];
    compiled(name.expect("a name"), &[source], &options)
}

/// A file for loaders that names the driver of `tests/nasty-driver`.
fn nasty_driver() -> &'static Path {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
        let files = fs::read_dir(sources().join("../nasty-driver")).expect("a folder");
        let files = files.map(|file| file.expect("an entry").path());
        let is_source = |file: &PathBuf| file.extension().is_some_and(|end| end == "c");
        let files: Vec<PathBuf> = files.filter(is_source).collect();
        let options = [
            "-O2",
            "-g",
            "-std=gnu11",
            "-fvisibility=hidden",
            "-shared",
            "-fPIC",
            "-ldl",
            "-lpthread",
        ];
        let driver = compiled("libnasty.so", &files, &options);
        let file = driver.with_extension("icd");
        fs::write(&file, driver.as_os_str().as_encoded_bytes()).expect("it can be written");
        file
    });
    &FILE
}

fn text(output: &Output) -> String {
    let (out, errors) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(errors)
    )
}

/// The variables of one run.
type Way = &'static [(&'static str, &'static str)];

/// One device, two, and one or two that stand for both.
const WAYS: [Way; 5] = [
    &[],
    &[("PDAWL_VIRTUAL", "1"), ("PDAWL_DEVICE_TYPE", "cpu")],
    &[("PDAWL_VIRTUAL", "1"), ("PDAWL_POLICY", "round-robin")],
    &[("PDAWL_VIRTUAL", "2"), ("PDAWL_POLICY", "auto-fit")],
    &[("PDAWL_VIRTUAL", "1"), ("PDAWL_POLICY", "divide:equal")],
];

/// Runs a program through the layer. Two minutes are more than any of them needs.
fn run_one(program: &Path, arguments: &[&str], way: &[(&str, &str)]) -> Output {
    let kernels = target().join("opencl-programs/kernels");
    fs::create_dir_all(&kernels).expect("the target folder can be written");
    let mut command = Command::new("timeout");
    command
        .env("OPENCL_LAYERS", library())
        .env("PDAWL_POLICY", "off")
        .env("PDAWL_KERNELS", &kernels)
        .env("PDAWL_CHECK_LEAKS", "1")
        .envs(way.iter().copied());
    command.arg("120").arg(program).args(arguments);
    let output = command.output().expect("`timeout` starts");
    // The layer answers a panic with a status code, which a program may expect.
    let said = text(&output);
    assert!(
        !said.contains("panicked at"),
        "{program:?} {way:?}:\n{said}"
    );
    output
}

/// Asserts that a program has found nothing wrong and left nothing.
fn passed(name: &str, way: &[(&str, &str)], output: &Output) {
    let said = text(output);
    match output.status.code() {
        Some(NOTHING) => {}
        Some(0) => assert!(
            said.contains("no objects are left"),
            "{name} {way:?}:\n{said}"
        ),
        _ => panic!("{name} {way:?} ended with {}:\n{said}", output.status),
    }
}

/// Runs a program on devices of PoCL and on those of the nasty driver.
fn run(name: &str) {
    let program = compile(name);
    let one: &[(&str, &str)] = &[("POCL_DEVICES", "pthread")];
    passed(name, one, &run_one(&program, &[], one));
    for way in WAYS {
        let pocl = [&[("POCL_DEVICES", "pthread pthread")], way].concat();
        passed(name, &pocl, &run_one(&program, &[], &pocl));
        let nasty = [&[nasty()], way].concat();
        passed(name, &nasty, &run_one(&program, &[], &nasty));
    }
}

/// The variable with which loaders and the layer find the nasty driver, and no other.
fn nasty() -> (&'static str, &'static str) {
    let file = nasty_driver().to_str().expect("a path in UTF-8");
    ("OCL_ICD_VENDORS", file)
}

/// The arguments of `random`: PoCL cannot copy boxes of sub-buffers.
const POCL_KINDS: &str = "0x3f7f";
const ALL_KINDS: &str = "0x3fff";

/// Random commands have the results of a model, whatever orders them and wherever they run.
fn random(order: &str) {
    let program = compile("random");
    fn arguments<'a>(
        seed: &'a str,
        count: &'a str,
        order: &'a str,
        kinds: &'a str,
    ) -> [&'a str; 5] {
        [seed, count, order, "2", kinds]
    }
    let without: [(&str, &str, &str); 3] = [
        ("POCL_DEVICES", "pthread", POCL_KINDS),
        ("POCL_DEVICES", "pthread pthread", POCL_KINDS),
        (nasty().0, nasty().1, ALL_KINDS),
    ];
    for (variable, value, kinds) in without {
        let mut command = Command::new("timeout");
        command.env(variable, value).env_remove("OPENCL_LAYERS");
        command
            .arg("120")
            .arg(&program)
            .args(arguments("1", "120", order, kinds));
        let output = command.output().expect("`timeout` starts");
        let said = text(&output);
        assert!(output.status.success(), "{order} {value}:\n{said}");
    }
    for devices in ["", "1", "2"] {
        for (seed, policy) in ["off", "auto-fit", "round-robin", "divide:equal"]
            .into_iter()
            .enumerate()
        {
            let seed = (seed + 1).to_string();
            // Each kernel is examined for each size of its buffers.
            let count = if policy == "divide:equal" {
                "40"
            } else {
                "120"
            };
            let mut way = vec![("PDAWL_POLICY", policy), ("NASTY_SEED", &seed)];
            way.extend((!devices.is_empty()).then_some(("PDAWL_VIRTUAL", devices)));
            let pocl = [&[("POCL_DEVICES", "pthread pthread")], way.as_slice()].concat();
            let output = run_one(&program, &arguments(&seed, count, order, POCL_KINDS), &pocl);
            passed("random", &pocl, &output);
            let nasty = [&[nasty()], way.as_slice()].concat();
            let output = run_one(&program, &arguments(&seed, count, order, ALL_KINDS), &nasty);
            passed("random", &nasty, &output);
        }
    }
}

#[test]
fn random_commands_and_waits() {
    random("finish");
}

#[test]
fn random_commands_in_a_chain() {
    random("chain");
}

#[test]
fn random_commands_with_events() {
    random("events");
}

#[test]
fn random_commands_with_barriers() {
    random("barrier");
}

#[test]
fn buffers() {
    run("buffers");
}

#[test]
fn events() {
    run("events");
}

#[test]
fn images() {
    run("images");
}

#[test]
fn programs() {
    run("programs");
}

#[test]
fn parts_of_devices() {
    run("parts");
}

#[test]
fn memory_of_the_program() {
    run("host");
}

#[test]
fn errors() {
    run("errors");
}

#[test]
fn pinned() {
    run("pinned");
}

#[test]
fn large() {
    run("large");
}

#[test]
fn views() {
    run("views");
}

#[test]
fn threads() {
    run("threads");
}

/// Where queues run nothing but what the program launches, its drivers build its programs as
/// often as without the layer. PoCL keeps a folder of each program that it has built.
#[test]
fn contexts_of_threads() {
    run("contexts");
    let program = compile("contexts");
    let builds = |way: &[(&str, &str)]| -> usize {
        let cache = target().join("opencl-programs/pocl-cache");
        let _ = fs::remove_dir_all(&cache);
        fs::create_dir_all(&cache).expect("the target folder can be written");
        let folder = cache.to_str().expect("a path in UTF-8");
        let cached = [
            ("POCL_DEVICES", "pthread pthread"),
            ("POCL_CACHE_DIR", folder),
        ];
        let output = match way {
            [] => Command::new(&program)
                .env_remove("OPENCL_LAYERS")
                .envs(cached)
                .output(),
            way => Ok(run_one(&program, &[], &[&cached, way].concat())),
        };
        let output = output.expect("it starts");
        assert!(output.status.success(), "{way:?}:\n{}", text(&output));
        // Two letters of a program's hash, then the others.
        let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        let programs = inside(cache.clone())
            .filter(|entry| entry.file_name().len() == 2)
            .flat_map(|entry| inside(entry.path()));
        programs.count()
    };
    let native = builds(&[]);
    assert!(native > 0);
    for shown in ["1", "2"] {
        for policy in ["off", "round-robin"] {
            let way = [("PDAWL_POLICY", policy), ("PDAWL_VIRTUAL", shown)];
            assert_eq!(builds(&way), native, "{way:?}");
        }
    }
}

/// Launches that are divided have the right results, and each kernel the verdict that its
/// program says; also in a second run, which knows the verdicts of the first.
#[test]
fn division() {
    let (program, library) = (compile("division"), library());
    let kernels = target().join("opencl-programs/division-kernels");
    let _ = fs::remove_dir_all(&kernels);
    fs::create_dir_all(&kernels).expect("the target folder can be written");
    let report = kernels.join("report.json");
    for run in 0..2 {
        let output = Command::new("timeout")
            .arg("120")
            .arg(&program)
            .env("OPENCL_LAYERS", &library)
            .env("POCL_DEVICES", "pthread pthread")
            .env("PDAWL_VIRTUAL", "1")
            .env("PDAWL_POLICY", "divide:equal")
            .env("PDAWL_KERNELS", &kernels)
            .env("PDAWL_REPORT", &report)
            .env("PDAWL_CHECK_LEAKS", "1")
            .current_dir(sources())
            .output()
            .expect("`timeout` starts");
        let said = text(&output);
        assert!(output.status.success(), "run {run}:\n{said}");
        assert!(said.contains("no objects are left"), "run {run}:\n{said}");
        let report = fs::read(&report).expect("the layer has written a report");
        let report: Value = serde_json::from_slice(&report).expect("it is JSON");
        for line in said.lines() {
            if let Some((name, expected)) = line
                .strip_prefix("verdict ")
                .and_then(|line| line.split_once(' '))
            {
                verdict(&report, name, expected, run);
            }
        }
    }
}

/// Runs of `heavy` on two devices, with kernel profiles of their own.
struct Heavy {
    program: PathBuf,
    library: PathBuf,
    kernels: PathBuf,
}

impl Heavy {
    /// Runs that know nothing yet.
    fn new(name: &str) -> Self {
        let kernels = target().join("opencl-programs").join(name);
        let _ = fs::remove_dir_all(&kernels);
        fs::create_dir_all(&kernels).expect("the target folder can be written");
        Self {
            program: compile("heavy"),
            library: library(),
            kernels,
        }
    }

    /// The report of a run.
    fn run(&self, environment: &[(&str, &str)]) -> Value {
        let report = self.kernels.join("report.txt");
        let output = Command::new("timeout")
            .arg("60")
            .arg(&self.program)
            .env("OPENCL_LAYERS", &self.library)
            .env("POCL_DEVICES", "pthread pthread")
            .env("PDAWL_VIRTUAL", "1")
            .env("PDAWL_KERNELS", &self.kernels)
            .env("PDAWL_REPORT", &report)
            .envs(environment.iter().copied())
            .output()
            .expect("`timeout` starts");
        assert!(output.status.success(), "{}", text(&output));
        let report = fs::read(&report).expect("the layer has written a report");
        serde_json::from_slice(&report).expect("it is JSON")
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        let folder = self.kernels.clone();
        Profiles { folder }.change(change);
    }
}

/// The kernel profiles that runs have left in a folder.
struct Profiles {
    folder: PathBuf,
}

impl Profiles {
    fn change(&self, change: impl FnOnce(&mut Value)) {
        let files = fs::read_dir(&self.folder).expect("a folder").flatten();
        let mut files = files.map(|entry| entry.path());
        let profiles = files.find(|path| path.extension().is_some_and(|end| end == "json"));
        let profiles = profiles.expect("the layer has written profiles");
        let kept = fs::read(&profiles).expect("a file");
        let mut kept: Value = serde_json::from_slice(&kept).expect("it is JSON");
        change(&mut kept);
        fs::write(&profiles, kept.to_string()).expect("the file can be written");
    }
}

/// A kernel is examined once its launches have taken long enough, and no run waits for it.
#[test]
fn division_that_pays() {
    let heavy = Heavy::new("heavy-kernels");
    let verdict =
        || heavy.run(&[("PDAWL_POLICY", "divide")])["kernels"][0]["division"][0]["verdict"].clone();
    // Seconds are too few for an examination.
    assert_eq!(verdict(), "unknown");
    heavy.change(|kept| {
        let spent = kept["spent"]
            .as_object_mut()
            .expect("times that were taken");
        spent.values_mut().for_each(|seconds| *seconds = 1e5.into());
    });
    // A run may end before the examination does, and keeps what was found out.
    assert!((0..5).any(|_| verdict() == "sliced"), "it was not examined");
}

/// A run of `divide:equal` leaves a verdict and times, by which the first launch of a later
/// run is divided.
#[test]
fn division_known_before() {
    let heavy = Heavy::new("known-kernels");
    let divided = |policy: &str| {
        let report = heavy.run(&[("PDAWL_POLICY", policy)]);
        report["kernels"][0]["division"][0]["divided"].clone()
    };
    assert_eq!(divided("divide:equal"), 20);
    heavy.change(|kept| {
        let kernels = kept["kernels"].as_object_mut().expect("kernels");
        let mut heavy = kernels
            .iter_mut()
            .filter(|(key, _)| key.contains(" heavy "));
        let (_, devices) = heavy.next().expect("parts tell times");
        for times in devices.as_object_mut().expect("devices").values_mut() {
            // Half of it takes longer than any build.
            times["last"] = serde_json::json!([1e3]);
        }
    });
    assert_ne!(divided("divide"), 0);
}

/// With `PDAWL_EXACT`, devices of one launch have had the same results.
#[test]
fn exact_division() {
    let heavy = Heavy::new("exact-kernels");
    let division = || {
        let report = heavy.run(&[("PDAWL_POLICY", "divide:equal"), ("PDAWL_EXACT", "1")]);
        let division = report["kernels"][0]["division"][0].clone();
        assert_eq!(division["verdict"], "sliced", "{division}");
        division
    };
    let change = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        heavy.change(|kept| {
            let divisions = kept["divisions"].as_object_mut().expect("verdicts");
            for division in divisions.values_mut() {
                change(division["agreeing"].as_object_mut().expect("devices"));
            }
        });
    };
    assert_eq!(division()["divided"], 20);
    change(&|devices| {
        assert_eq!(devices.len(), 1, "{devices:?}");
        devices
            .values_mut()
            .for_each(|agrees| *agrees = false.into());
    });
    let whole = division();
    assert_eq!(whole["divided"], 0);
    let reason = whole["reason"].as_str().expect("a reason");
    assert!(reason.contains("bit for bit"), "{reason}");
    // A device of which nothing is known is compared.
    change(&|devices| devices.clear());
    assert_eq!(division()["divided"], 20);
}

/// Queues have the devices that the user says.
#[test]
fn map() {
    let heavy = Heavy::new("map-kernels");
    let devices = [
        ("0,1", "opencl0.0"),
        ("1,0", "opencl0.1"),
        ("7", "opencl0.0"),
    ];
    for (map, device) in devices {
        let report = heavy.run(&[("PDAWL_POLICY", "auto-fit"), ("PDAWL_MAP", map)]);
        assert_eq!(report["queues"][0]["device"], device, "{map}");
    }
}

/// Compares what the report says of a kernel with what its program says.
fn verdict(report: &Value, name: &str, expected: &str, run: usize) {
    let kernels = report["kernels"].as_array().expect("a list").iter();
    let own = kernels.filter(|kernel| kernel["name"] == name);
    let all: Vec<&Value> = own
        .flat_map(|kernel| kernel["division"].as_array().expect("a list"))
        .collect();
    let mut verdicts: Vec<&str> = all
        .iter()
        .filter_map(|one| one["verdict"].as_str())
        .collect();
    verdicts.sort_unstable();
    verdicts.reverse();
    assert_eq!(verdicts.join(","), expected, "run {run}: {name}: {all:?}");
    for one in &all {
        let divided = one["divided"].as_u64().expect("a number");
        let clashes = one["clashes"].as_u64().expect("a number");
        match one["verdict"].as_str() {
            // Parts clash in its second launch. The next run knows that.
            Some("refused") if name == "clash" && run == 0 => {
                assert_eq!((divided, clashes), (2, 1), "{one}");
            }
            Some("refused") => assert_eq!((divided, clashes), (0, 0), "{name}: {one}"),
            _ => {
                assert!(divided > 0 && clashes == 0, "run {run}: {name}: {one}");
                let shares = one["shares"].as_array().expect("a list");
                assert_eq!(shares.len(), 2, "{name}: {one}");
            }
        }
    }
}

/// A program may end while commands run. Nothing of the layer calls drivers afterwards, which
/// the nasty driver would tell, and PoCL takes its compiler down.
#[test]
fn the_end_of_a_program() {
    let program = compile("leave");
    let kernels = target().join("opencl-programs/leave-kernels");
    let policies = ["off", "auto-fit", "round-robin", "divide", "divide:equal"];
    let drivers = [nasty(), ("POCL_DEVICES", "pthread pthread")];
    let ways = policies
        .into_iter()
        .flat_map(|policy| drivers.map(|driver| (policy, driver)));
    for (policy, driver) in ways {
        let mut hows = vec!["return", "exit"];
        // A forked process has the nasty driver's function for the end, which complains.
        hows.extend((driver != nasty()).then_some("fork"));
        // The nasty driver complains of commands that wait for an event that nobody sets.
        hows.extend((driver != nasty()).then_some("event"));
        for (run, how) in hows.into_iter().cycle().take(12).enumerate() {
            // Kernels that nobody has measured are sampled and examined.
            let _ = fs::remove_dir_all(&kernels);
            fs::create_dir_all(&kernels).expect("the target folder can be written");
            let output = Command::new("timeout")
                .arg("120")
                .args([program.as_os_str(), how.as_ref()])
                .env("OPENCL_LAYERS", library())
                .env("PDAWL_POLICY", policy)
                .env("PDAWL_VIRTUAL", "1")
                .env("PDAWL_KERNELS", &kernels)
                .env("NASTY_SEED", run.to_string())
                .envs([driver])
                .output()
                .expect("`timeout` starts");
            let said = text(&output);
            assert!(
                output.status.success(),
                "{policy} {driver:?} {how}: {}\n{said}",
                output.status
            );
        }
    }
}

/// What a program is told has the status that the driver's answer has, whatever the policy; and
/// so have launches of sizes that do nothing or cannot run. What the platform shares with its
/// drivers is as theirs.
#[test]
fn queries() {
    let program = compile("queries");
    let answers = |output: &Output| -> Vec<String> {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let same = [
            "memory", "sampler", "kernel", "argument", "group", "launch", "clone",
        ];
        let compared = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let count = if same.contains(&words[0]) {
                words.len()
            } else {
                3
            };
            words[..count.min(words.len())].join(" ")
        };
        // A buffer is no image; PoCL answers as if it were one.
        let lines = said.lines().filter(|line| !line.starts_with("image"));
        lines.map(compared).collect()
    };
    for devices in ["pthread", "pthread pthread"] {
        let mut command = Command::new("timeout");
        command.env("POCL_DEVICES", devices);
        command.env_remove("OPENCL_LAYERS").arg("120").arg(&program);
        let native = command.output().expect("`timeout` starts");
        assert!(native.status.success(), "{}", text(&native));
        let native = answers(&native);
        assert!(native.len() > 200, "{native:?}");
        let policies = ["off", "round-robin", "auto-fit", "divide:equal"];
        for (policy, shown) in policies
            .into_iter()
            .flat_map(|p| ["0", "1"].map(|s| (p, s)))
        {
            let mut way = vec![("POCL_DEVICES", devices), ("PDAWL_POLICY", policy)];
            way.extend((shown == "1").then_some(("PDAWL_VIRTUAL", "1")));
            let output = run_one(&program, &[], &way);
            passed("queries", &way, &output);
            for (native, own) in native.iter().zip(answers(&output)) {
                assert_eq!(*native, own, "{way:?}");
            }
        }
    }
}

#[test]
fn scheduling() {
    run("scheduling");
}

/// Launches that no wait of the program divides take as long each however many there are: this
/// many would take minutes if each waited for the copies of all before it.
#[test]
fn a_long_epoch() {
    let program = compile("scheduling");
    let way = [
        ("POCL_DEVICES", "pthread pthread"),
        ("PDAWL_VIRTUAL", "1"),
        ("PDAWL_POLICY", "round-robin"),
    ];
    passed("scheduling", &way, &run_one(&program, &["long"], &way));
}

/// On unlike devices, queues have the one that is best for what bounds them, by the rates that
/// were measured; and those that are mapped by times have the fastest one if it is worth the
/// copies.
#[test]
fn unlike_devices() {
    let program = compile("scheduling");
    let kernels = target().join("opencl-programs/unlike-kernels");
    let _ = fs::remove_dir_all(&kernels);
    fs::create_dir_all(&kernels).expect("the target folder can be written");
    let folder = kernels.to_str().expect("a path in UTF-8");
    let way = [nasty(), ("NASTY_UNLIKE", "1"), ("PDAWL_KERNELS", folder)];
    let run = || {
        let output = run_one(&program, &["unlike"], &way);
        passed("scheduling", &way, &output);
        text(&output)
    };
    run();
    let profiles = Profiles {
        folder: kernels.clone(),
    };
    profiles.change(|kept| {
        let kernels = kept["kernels"].as_object_mut().expect("kernels");
        for (key, devices) in kernels {
            // The second device is better at arithmetic and copies, the first one's memory is.
            let seconds = match key {
                _ if key.contains(" fma_rate ") => [1e-2, 1e-3],
                _ if key.contains(" copy_rate ") => [1e-3, 1e-2],
                _ if key.contains(" place ") => [2e-3, 1e-3],
                _ => [2.0, 1.0],
            };
            // What was not measured at one of them is known now.
            let devices = devices.as_object_mut().expect("devices");
            let measured = devices.values().next().cloned().expect("a device");
            for (number, seconds) in seconds.into_iter().enumerate() {
                let mut times = measured.clone();
                times["last"] = serde_json::json!([seconds]);
                devices.insert(format!("Nasty device {number}, Nasty driver"), times);
            }
        }
    });
    let said = run();
    for expected in [
        "compute 1",
        "memory 0",
        "io 1",
        "changed 0",
        "before 0",
        "region 1",
        "few 0",
        "iterative 1",
    ] {
        assert!(
            said.lines().any(|line| line == expected),
            "{expected}:\n{said}"
        );
    }
}

/// The example for programs that know the platform.
#[test]
fn queues() {
    run("../../opencl-layer/examples/queues");
}
