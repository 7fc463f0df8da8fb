//! Made-up recordings.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::graph::{Argument, KernelId};

/// A task on a datum of 8 bytes, `a` or another one, from one time to another in milliseconds.
fn task(id: u32, worker: u32, (start, end): (f64, f64), modes: &str, more: &str) -> String {
    let handles: String = ('a'..)
        .take(modes.split(' ').count())
        .map(|h| format!(" {h}"))
        .collect();
    let sizes = handles.split_whitespace().map(|_| " 8").collect::<String>();
    format!(
        "Name: task {id}\nModel: mul\nJobId: {id}\nSubmitOrder: {id}\nWorkerId: {worker}\n\
         StartTime: {start}\nEndTime: {end}\nFootprint: 1f\nHandles:{handles}\nModes: {modes}\n\
         Sizes:{sizes}\n{more}\n"
    )
}

/// A performance model of a core, whose only entry has this, and of CUDA device 1.
const MODEL: &str = "# comment\n45\n2\n1\n0\n0\n1\n1\n1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\n\
                     0000001f 16 nan 3000 1 6000 9 2\n1\n1\n1\n1\n1\n0\n0 0 0 0 2 1 20 8 800\n\
                     nan nan nan\n0\n";

/// A recording of a core, CUDA device 1 and CUDA device 0, with this file instead of one of them.
fn folder(tasks: &str, (name, content): (&str, &str)) -> TempDir {
    let folder = TempDir::new().unwrap();
    let bus = folder.path().join("sampling/bus");
    let models = folder.path().join("sampling/codelets/45");
    fs::create_dir_all(&bus).unwrap();
    fs::create_dir_all(&models).unwrap();
    let activity = "name\t2\tCPU 0\nname\t1\tCUDA 0\ncnt_ready\t0\t1\nname\t0\tCUDA 1\n";
    let config =
        "# Current\n1 # Number of CPUs\n1 # Number of NUMA nodes\n2 # Number of CUDA nodes\n";
    let bandwidth = "# to\n0 10000 12000 nan\n11000 0 5238.1 nan\n12000 24000 0 nan\n";
    let platform = "<host id=\"CUDA1\">\n<prop id=\"memsize\" value=\"34089730048\"/>\n</host>";
    for (file, text) in [
        ("tasks.rec", tasks),
        ("activity.data", activity),
        ("sampling/bus/box.config", config),
        ("sampling/bus/box.bandwidth", bandwidth),
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
    folder
}

fn read_of(tasks: &str) -> Recording {
    load(folder(tasks, ("data.rec", "Handle: a\nHomeNode: -1\nName: A\n")).path()).unwrap()
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
    let names = machine.devices.iter().map(|device| device.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["cuda1", "cuda0", "cpu0"]);
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
    let of = |task: u32| {
        let name = format!("task {task} (mul) 0000001f");
        machine
            .devices
            .iter()
            .map(move |device| device.seconds[&name])
            .collect::<Vec<_>>()
    };
    // A fit 2 us * bytes on the GPUs, which share it, and a mean on the core.
    assert_eq!([of(1), of(2)], [[16e-6, 16e-6, 3e-3], [16e-6, 16e-6, 3e-3]]);
    assert_eq!(schedule, [(2, 0), (1, 1)]);
    assert!((seconds - 5e-3).abs() < 1e-12);
    MachineFile::parse(&machine.to_toml().unwrap(), "box.toml").unwrap();
}

#[test]
fn without_a_model_a_kind_of_worker_takes_what_was_recorded_there() {
    let other = |text: String| text.replace("mul", "none");
    let tasks = task(1, 2, (1.0, 2.0), "R", "")
        + &task(1, 2, (2.0, 5.0), "R", "").replace("JobId: 1", "JobId: 2");
    let machine = read_of(&other(tasks.clone())).machine;
    let seconds = machine
        .devices
        .iter()
        .map(|of| of.seconds.values().copied().collect());
    let seconds: Vec<Vec<f64>> = seconds.collect();
    assert!(seconds[..2].iter().all(Vec::is_empty), "{seconds:?}");
    assert!((seconds[2][0] - 2e-3).abs() < 1e-12, "the mean");
    let machine = read_of(&other(tasks).replace("1f", "0")).machine;
    assert_eq!(machine.devices[2].seconds.len(), 2, "each alone");
}

#[test]
fn the_order_is_that_of_dependencies_and_of_data_as_far_as_the_times_agree() {
    let between = "Name: _starpu_sync_task\nJobId: 9\nDependsOn: 1 7\n\n";
    let tasks = "Control: WontUse\nJobId: 5\nHandles: a\n\n".to_owned()
        + &task(1, 0, (1.0, 2.0), "RW", "EndDependencies: 3, 4 ")
        + &task(2, 1, (2.0, 3.0), "S R", "DependsOn: 9\n")
        + between
        // In place; beside the task before, which reads it; and before the one that makes it ended.
        + &task(3, 2, (2.0, 4.0), "RWC", "")
        + &task(4, 0, (3.5, 5.0), "RW", "DependsOn: 3 2\n");
    let Recording { graph, notes, .. } = read_of(&tasks);
    let before = |kernel| {
        let all = graph.predecessors(KernelId(kernel)).iter();
        all.map(|before| before.0).collect::<Vec<_>>()
    };
    assert_eq!(
        [before(0), before(1), before(2), before(3)],
        [vec![], vec![0], vec![0], vec![1]]
    );
    let arguments = |kernel: usize| &graph.kernels()[kernel].arguments[..];
    // The datum has no home, so the first task makes it.
    assert!(matches!(arguments(0), [Argument::FullOutput(_)]));
    assert!(matches!(arguments(2), [Argument::InOut { .. }]));
    assert!(matches!(arguments(3), [Argument::FullOutput(_)]));
    assert!(
        notes[0].starts_with("2 recorded accesses and dependencies"),
        "{notes:?}"
    );
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    let good = task(1, 2, (1.0, 2.0), "R", "");
    let with = |from: &str, to: &str| good.replace(from, to);
    for (tasks, file, expected) in [
        (
            String::new(),
            ("data.rec", ""),
            "tasks.rec: no task has a StartTime",
        ),
        (
            "Name\n".to_owned(),
            ("data.rec", ""),
            "tasks.rec, line 1: it is no `Field: value`",
        ),
        (
            with("JobId: 1\n", ""),
            ("data.rec", ""),
            "tasks.rec, line 1, JobId: it is missing",
        ),
        (
            with("Time: 1", "Time: x"),
            ("data.rec", ""),
            "line 6, StartTime: `x` is not what",
        ),
        (
            with("EndTime: 2", "EndTime: 0"),
            ("data.rec", ""),
            "line 7, EndTime: it is before",
        ),
        (
            with("Sizes: 8", "Sizes: 8 9"),
            ("data.rec", ""),
            "line 11, Sizes: 2 sizes of 1 handles",
        ),
        (
            with("WorkerId: 2", "WorkerId: 7"),
            ("data.rec", ""),
            "line 1, WorkerId: activity.data",
        ),
        (
            good.clone() + &with("JobId: 1", "JobId: 2\nMPIRank: 1"),
            ("data.rec", ""),
            "MPI ranks",
        ),
        (
            good.clone(),
            ("activity.data", "name\t0\tGPU 0\n"),
            "activity.data, line 1: `0\tGPU 0`",
        ),
        (
            good.clone(),
            ("activity.data", ""),
            "activity.data: it names no worker",
        ),
        (
            good.clone(),
            ("data.rec", "Handle: xyz\n"),
            "data.rec, line 1, Handle: `xyz`",
        ),
        (
            good.clone(),
            ("sampling/bus/b.config", ""),
            "several machines (b, box)",
        ),
        (
            good.clone(),
            ("sampling/bus/box.latency", ""),
            "no bandwidth between main memory and CUDA",
        ),
        (
            good.clone(),
            ("sampling/bus/box.bandwidth", "0 x\n"),
            "line 1: it is no row of numbers",
        ),
        (
            good.clone(),
            ("sampling/codelets/45/mul.box", "44\n"),
            "line 1: its version is 44",
        ),
        (
            good.clone(),
            ("sampling/codelets/45/mul.box", "45\n1\n"),
            "it ends where a number of",
        ),
        (
            good.clone(),
            (
                "sampling/codelets/45/mul.box",
                &MODEL.replace(" 1 6000 9 2", ""),
            ),
            "line 13: it is not a line hash, size",
        ),
    ] {
        let error = load(folder(&tasks, file).path())
            .err()
            .map(|error| error.to_string());
        assert!(
            error.as_ref().is_some_and(|of| of.contains(expected)),
            "{expected}: {error:?}"
        );
    }
}
