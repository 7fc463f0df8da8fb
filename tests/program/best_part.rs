//! Runs by default against runs on parts of the devices, on simulated machines. 200 cells are drawn
//! by the hash of the commit; `PDAWL_TEST_CELLS=all` runs all of them.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use predicates::str::contains;
use serde_json::Value;
use tempfile::tempdir;

use crate::command::{json, pdawl};

const MACHINES: [&str; 11] = [
    "h200", "k20-32", "k20-40", "k40", "laptop", "m2070x2", "titan", "v100x1", "v100x2", "v100x4",
    "v100x7",
];

/// Workloads, and their sizes.
const WORKLOADS: [(&str, [&str; 5]); 15] = [
    (
        "stencil --steps 40 --size",
        ["500", "1500", "4000", "9000", "14000"],
    ),
    (
        "stencil --dims 3 --steps 30 --size",
        ["60", "100", "150", "300", "600"],
    ),
    (
        "stencil --steps 40 --gpu-memory 400MiB --size",
        ["2000", "6000", "9000", "12000", "14000"],
    ),
    (
        "stencil --steps 40 --gpu-memory 400MiB --superstep auto --size",
        ["1000", "2000", "6000", "9000", "14000"],
    ),
    (
        "spmv --steps 40 --matrix",
        [
            "uniform:20000,10",
            "uniform:500000,20",
            "rmat:14,16",
            "rmat:16,16",
            "banded:300000,12",
        ],
    ),
    (
        "spmv --iterate --steps 40 --matrix",
        [
            "uniform:20000,10",
            "rmat:12,16",
            "rmat:14,16",
            "rmat:16,16",
            "banded:300000,12",
        ],
    ),
    (
        "pagerank --matrix",
        [
            "rmat:12,8",
            "rmat:14,16",
            "rmat:16,8",
            "rmat:18,8",
            "uniform:100000,8",
        ],
    ),
    (
        "transformer",
        [
            "--heads 1 --beta 64",
            "--heads 4 --beta 128",
            "--heads 8 --beta 256",
            "--heads 16 --beta 256",
            "--heads 16 --beta 512",
        ],
    ),
    (
        "tasks --set matmul2d --gpu-memory 500MiB --n",
        ["4", "8", "16", "24", "32"],
    ),
    (
        "tasks --set cholesky --dependencies --gpu-memory 500MiB --n",
        ["4", "8", "12", "16", "20"],
    ),
    ("matmul --size", ["512", "1024", "2048", "4096", "8192"]),
    ("lu --size", ["512", "1024", "2048", "4096", "8192"]),
    ("cholesky --size", ["512", "1024", "2048", "4096", "8192"]),
    ("fft --size", ["512", "1024", "2048", "4096", "8192"]),
    (
        "convolution --size",
        [
            "1024 --filter 5",
            "2048 --filter 5",
            "4096 --filter 5",
            "4096 --filter 31",
            "8192 --filter 31",
        ],
    ),
];

const CELLS: usize = 200;

/// What a run takes over the least of its parts.
struct Cell {
    run: String,
    ratio: f64,
}

/// The hash of the commit, as a number.
fn drawn_by() -> u64 {
    let head = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let hash = head.map(|head| String::from_utf8_lossy(&head.stdout).into_owned());
    let hash = hash.unwrap_or_default();
    u64::from_str_radix(hash.get(..15).unwrap_or("0"), 16).unwrap_or(0)
}

/// All cells.
fn all_cells() -> Vec<String> {
    let runs = WORKLOADS.iter().flat_map(|(words, sizes)| {
        let runs = sizes.iter();
        runs.map(move |size| format!("run {words} {size}"))
    });
    let on = |run: String| MACHINES.map(|machine| format!("{run} --machine {machine}"));
    runs.flat_map(on).collect()
}

fn seconds(line: &str) -> f64 {
    let seconds = json(line)["seconds"].as_f64().expect("seconds");
    assert!(seconds > 0.0, "{line}: {seconds}");
    seconds
}

/// What a run takes over what it takes on its best part.
fn to_best_part(run: &str) -> f64 {
    let bench = json(&format!("bench --parts --repeats 1 {run}"));
    let (default, parts) = bench["runs"]
        .as_array()
        .expect("runs")
        .split_first()
        .expect("runs");
    assert_eq!(default["values"]["devices"], "default");
    assert!(parts.len() > 1, "{run}: {}", parts.len());
    let to_part = |part: &Value| part["to_first"].as_f64().expect("a ratio");
    parts.iter().map(to_part).fold(0.0, f64::max)
}

/// The goal is 1.05 in 99 of 100 cells and 1.15 in all.
#[test]
fn a_run_is_hardly_slower_than_its_best_part() {
    let seed = drawn_by();
    let mut drawn = all_cells();
    fastrand::Rng::with_seed(seed).shuffle(&mut drawn);
    if std::env::var_os("PDAWL_TEST_CELLS").is_none() {
        drawn.truncate(CELLS);
    }
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(run) = drawn.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (run, ratio) = (run.clone(), to_best_part(run));
            cells.lock().expect("no panic").push(Cell { run, ratio });
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut cells = cells.into_inner().expect("no panic");
    cells.sort_by(|one, other| other.ratio.total_cmp(&one.ratio));
    println!("drawn by {seed:x}");
    for cell in &cells {
        println!("{:.3} {}", cell.ratio, cell.run);
    }
    assert_eq!(cells.len(), drawn.len());
    let above = |most: f64| {
        let slow = cells.iter().filter(|cell| cell.ratio > most);
        slow.count() as f64 / cells.len() as f64
    };
    assert!(above(1.05) < 0.05 && above(1.35) == 0.0);
}

/// What was misjudged: tasks of a pool alone, which are larger; rows of a transform, which are no
/// results; panels in long tiles; GPUs that share a bus, and those that run nothing; and some of
/// several GPUs with the host.
#[test]
fn a_part_runs_what_is_fastest_on_it() {
    for (run, part) in [
        ("lu --size 512 --machine k20-32", "host"),
        ("fft --size 512 --machine v100x1", "gpu0"),
        ("fft --size 8192 --machine h200", "host"),
        ("lu --size 4096 --machine h200", "gpu0"),
        (
            "tasks --set cholesky --dependencies --n 12 --machine v100x7",
            "gpu0",
        ),
        (
            "tasks --set matmul2d --gpu-memory 500MiB --n 4 --machine v100x7",
            "host,gpu0",
        ),
        (
            "transformer --heads 8 --beta 256 --machine v100x7",
            "host,gpu0,gpu1",
        ),
    ] {
        let of = |more: &str| seconds(&format!("run {run}{more}"));
        let ratio = of("") / of(&format!(" --devices {part}"));
        assert!(ratio < 1.05, "{run}: {ratio}");
    }
}

/// GPUs alone take the tiles that are expected to be fastest, not those of a rule.
#[test]
fn tiles_are_hardly_slower_than_others() {
    for devices in ["h200 --devices gpu0", "v100x2 --devices gpu0,gpu1"] {
        for operation in ["matmul", "lu", "cholesky", "fft"] {
            let run = format!("run {operation} --size 2048 --machine {devices}");
            let of_tile = |tile: &u32| seconds(&format!("{run} --tile {tile}"));
            let tiles = [128, 256, 512, 1024, 2048];
            let best = tiles.iter().map(of_tile).reduce(f64::min);
            let ratio = seconds(&run) / best.expect("a tile");
            println!("{ratio:.3} {run}");
            assert!(ratio < 1.25, "{run}: {ratio}");
        }
    }
}

#[test]
fn what_has_no_parts_or_is_kept_nowhere_is_refused() {
    for (line, part) in [
        (
            "bench --parts run lu --size 64 --machine k40 --devices host",
            "--parts names the devices",
        ),
        (
            "bench --parts run fft --size 64 --cluster four",
            "has no parts",
        ),
        (
            "train run lu --size 64 --machine k40",
            "nothing is kept of `run lu",
        ),
        (
            "train run stencil --strategy dawl",
            "--strategy: what such runs take is not kept",
        ),
        ("train --format json run lu", "cannot be used with"),
        ("train stencil", "runs are compared, and `stencil` is none"),
        (
            "train --machine k40 run lu --size 64",
            "cannot be used with",
        ),
    ] {
        pdawl(line).assert().code(2).stderr(contains(part));
    }
}

/// Each value that varies has the parts of its own run.
#[test]
fn parts_are_compared_in_turns() {
    let line = "bench --parts --vary size=256,512 --repeats 2 run lu --machine v100x2";
    let bench = json(line);
    assert_eq!(bench["varied"], serde_json::json!(["size", "devices"]));
    let runs = bench["runs"].as_array().expect("runs");
    let devices = runs
        .iter()
        .map(|run| run["values"]["devices"].as_str().expect("devices"));
    let of_each = [
        "default",
        "gpu0",
        "host:40",
        "host:40,gpu0",
        "gpu0,gpu1",
        "host:40,gpu0,gpu1",
    ];
    assert_eq!(devices.collect::<Vec<_>>(), [of_each, of_each].concat());
    for run in runs {
        assert_eq!(run["seconds"].as_array().map(Vec::len), Some(2), "{run}");
        let own = run["report"]["machine"]["devices"]
            .as_array()
            .expect("devices")
            .len();
        let named = run["values"]["devices"]
            .as_str()
            .expect("devices")
            .split(',')
            .count();
        assert!(
            own == named || run["values"]["devices"] == "default",
            "{run}"
        );
    }
}

/// Runs of the host alone load no driver of a GPU, and so are kept only where all are.
#[test]
fn runs_of_the_host_alone_are_kept_if_all_are() {
    let folder = tempdir().expect("a folder");
    let kept = |rows: Option<&str>| {
        let mut run = pdawl("run lu --size 64 --devices host");
        run.env("PDAWL_KERNELS", folder.path())
            .env_remove("PDAWL_ROWS");
        run.envs(rows.map(|rows| ("PDAWL_ROWS", rows)))
            .assert()
            .success();
        let files = folder.path().read_dir().expect("a folder").flatten();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.collect::<String>().contains("lu 64 x 64")
    };
    assert_eq!(
        [None, Some("off"), Some("all")].map(kept),
        [false, false, true]
    );
}
