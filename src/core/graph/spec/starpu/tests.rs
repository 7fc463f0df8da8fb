//! Made-up recordings.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::graph::{Argument, KernelId};

/// A task from one time to another in milliseconds, on data `a`, `b` ... of 8 bytes.
fn task(id: u32, worker: u32, (start, end): (f64, f64), modes: &str, more: &str) -> String {
    let count = modes.split(' ').count();
    let (handles, sizes) = (&"a b c"[..2 * count - 1], &"8 8 8"[..2 * count - 1]);
    format!(
        "Name: task 1\nModel: mul\nJobId: {id}\nSubmitOrder: {id}\nWorkerId: {worker}\n\
         StartTime: {start}\nEndTime: {end}\nFootprint: 1f\nHandles: {handles}\n\
         Modes: {modes}\nSizes: {sizes}\n{more}\n"
    )
}

/// A mean of a core, and a fit of CUDA device 1.
const MODEL: &str = "# comment\n45\n2\n1\n0\n0\n1\n1\n1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\n\
                     0000001f 16 nan 3000 1 6000 9 2\n1\n1\n1\n1\n1\n0\n0 0 0 0 2 1 20 8 800\n\
                     nan nan nan\n0\n";

/// Reads a recording of a core and two CUDA devices, with one file that is this.
fn read_with(tasks: &str, (name, content): (&str, &str)) -> Result<Recording, SpecError> {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("sampling/bus")).unwrap();
    fs::create_dir_all(folder.path().join("sampling/codelets/45")).unwrap();
    let config = "1 # Number of CPUs\n1 # Number of NUMA nodes\n2 # Number of CUDA nodes\n";
    let platform = "<host id=\"CUDA1\"><prop id=\"memsize\" value=\"34089730048\"/></host>";
    for (file, text) in [
        ("tasks.rec", tasks),
        (
            "activity.data",
            "name\t2\tCPU 0\nname\t1\tCUDA 0\nx\t0\t1\nname\t0\tCUDA 1\n",
        ),
        ("sampling/bus/box.config", config),
        (
            "sampling/bus/box.bandwidth",
            "# to\n0 10000 12000\n11000 0 5238.1\n12000 24000 0\n",
        ),
        (
            "sampling/bus/box.latency",
            "# to\n0 8 9 nan\n10 0 20 nan\n11 21 0 nan\n",
        ),
        ("sampling/bus/box.platform.xml", platform),
        ("sampling/codelets/45/mul.box", MODEL),
        (name, content),
    ] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    load(folder.path())
}

fn read_of(tasks: &str) -> Recording {
    read_with(tasks, ("data.rec", "Handle: a\nHomeNode: -1\nName: A\n")).unwrap()
}

#[test]
fn workers_are_devices_with_measured_links_and_modelled_seconds() {
    let tasks = task(1, 2, (1.0, 2.0), "R", "") + &task(2, 1, (1.0, 6.0), "R", "");
    let Recording {
        machine,
        schedule,
        seconds,
        ..
    } = read_of(&tasks);
    assert_eq!(
        (machine.name.as_str(), machine.host.bus_bandwidth),
        ("box", Some(12e9))
    );
    let link = machine.devices[0].link.as_ref().unwrap();
    assert_eq!([link.h2d, link.d2h, link.both_ways], [12e9; 3]);
    assert_eq!(
        (link.latency_ns, machine.devices[0].memory),
        (9_000, 34_089_730_048)
    );
    // The way from device 0 to 1 goes through the host: 1 / (1 / 11 + 1 / 12) = 5.739.
    let peers: Vec<_> = machine
        .peers
        .iter()
        .map(|of| (&*of.from, &*of.to, of.bandwidth))
        .collect();
    assert_eq!(peers, [("cuda1", "cuda0", 24e9)]);
    let all = machine
        .devices
        .iter()
        .map(|of| (&*of.name, of.seconds["task 1 mul 0000001f"]));
    // The GPUs share the fit 2 us * bytes.
    assert_eq!(
        all.collect::<Vec<_>>(),
        [("cuda1", 16e-6), ("cuda0", 16e-6), ("cpu0", 3e-3)]
    );
    assert_eq!(schedule, [(2, 0), (1, 1)]);
    assert!((seconds - 5e-3).abs() < 1e-12);
    MachineFile::parse(&machine.to_toml().unwrap(), "box.toml").unwrap();
}

#[test]
fn without_a_model_a_kind_of_worker_takes_what_was_recorded_there() {
    let tasks = task(1, 2, (1.0, 2.0), "R", "") + &task(2, 2, (2.0, 5.0), "R", "");
    let tasks = tasks.replace("mul", "none");
    let seconds = |tasks: &str| {
        let devices = read_of(tasks).machine.devices.into_iter();
        devices
            .map(|of| of.seconds.into_values().collect())
            .collect::<Vec<Vec<f64>>>()
    };
    let mean = seconds(&tasks);
    assert!(mean[0].is_empty() && mean[1].is_empty() && (mean[2][0] - 2e-3).abs() < 1e-12);
    assert_eq!(seconds(&tasks.replace("1f", "0"))[2].len(), 2, "each alone");
}

#[test]
fn the_order_is_that_of_dependencies_and_of_data_as_far_as_the_times_agree() {
    let tasks = "Control: WontUse\nJobId: 5\nHandles: a\n\n".to_owned()
        + &task(1, 0, (1.0, 2.0), "RW", "EndDependencies: 3, 4 ")
        + &task(2, 1, (2.0, 3.0), "S R", "DependsOn: 9\n")
        + "Name: _starpu_sync_task\nJobId: 9\nDependsOn: 1 7\n\n"
        + &task(3, 2, (2.0, 4.0), "RWC", "")
        // Begins before the one ends that it depends on, and that makes its datum.
        + &task(4, 0, (3.5, 5.0), "RW", "DependsOn: 3 2\n");
    let Recording {
        graph, unordered, ..
    } = read_of(&tasks);
    let before = [0, 1, 2, 3].map(|kernel| {
        let all = graph.predecessors(KernelId(kernel)).iter();
        all.map(|before| before.0).collect::<Vec<_>>()
    });
    assert_eq!(
        (before, unordered),
        ([vec![], vec![0], vec![0], vec![1]], 2)
    );
    let arguments = [0, 2, 3].map(|kernel: usize| graph.kernels()[kernel].arguments[0]);
    // The datum has no home, so the first task makes it.
    let [
        Argument::FullOutput(_),
        Argument::InOut { .. },
        Argument::FullOutput(_),
    ] = arguments
    else {
        panic!("{arguments:?}");
    };
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    let good = task(1, 2, (1.0, 2.0), "R", "");
    let two = good.clone() + &good.replace("JobId: 1", "JobId: 2\nMPIRank: 1");
    let with = |from: &str, to: &str| (good.replace(from, to), ("data.rec", ""));
    let file = |name: &'static str, text: &'static str| (good.clone(), (name, text));
    for ((tasks, file), expected) in [
        (
            (String::new(), ("data.rec", "")),
            "tasks.rec: 0 tasks have a StartTime",
        ),
        (
            with("Name: ", "Name "),
            "tasks.rec, line 1: it is no `Field: value`",
        ),
        (
            with("JobId: 1\n", ""),
            "tasks.rec, line 1, JobId: it is missing",
        ),
        (
            with("Time: 1", "Time: x"),
            "line 6, StartTime: `x` is not what",
        ),
        (
            with("EndTime: 2", "EndTime: 0"),
            "line 7, EndTime: it is no time",
        ),
        (
            with("Sizes: 8", "Sizes: 8 9"),
            "line 11, Sizes: 2 sizes of 1 handles",
        ),
        (
            with("WorkerId: 2", "WorkerId: 7"),
            "line 1, WorkerId: activity.data has no worker 7",
        ),
        ((two, ("data.rec", "")), "several MPI ranks"),
        (
            file("activity.data", "name\t0\tGPU 0\n"),
            "activity.data, line 1: `0\tGPU 0`",
        ),
        (
            file("data.rec", "Handle: xyz\n"),
            "data.rec, line 1, Handle: `xyz`",
        ),
        (
            file("sampling/bus/b.config", ""),
            "several machines (b, box)",
        ),
        (
            file("sampling/bus/box.latency", ""),
            "no bandwidth between main memory and CUDA 1",
        ),
        (
            file("sampling/bus/box.bandwidth", "0 x\n"),
            "line 1: it is no row of numbers",
        ),
        (
            file("sampling/codelets/45/mul.box", "44\n"),
            "its version is 44",
        ),
        (
            file("sampling/codelets/45/mul.box", "45\n1\n"),
            "it ends early",
        ),
        (
            file("sampling/codelets/45/mul.box", "45\n1\n\nx"),
            "line 4: `x` is no number",
        ),
    ] {
        let error = read_with(&tasks, file).err().map(|error| error.to_string());
        assert!(
            error.as_ref().is_some_and(|of| of.contains(expected)),
            "{expected}: {error:?}"
        );
    }
}
