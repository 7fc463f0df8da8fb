//! `pdawl run kernel` and `pdawl run dag` on specification files of users.

use std::process::Command;

use pdawl_api::machine::DeviceKind;
use pdawl_api::runtime::opencl::discover;
use serde_json::Value;

use super::fixtures::{Folder, example};

/// Option for two sub-devices of the OpenCL CPU device, one with device memory.
fn two() -> String {
    let found = discover().devices.into_iter();
    let cpu = found
        .map(|found| found.info)
        .find(|info| info.kind == DeviceKind::Cpu);
    let cpu = cpu
        .expect("an OpenCL CPU device: apt-get install pocl-opencl-icd")
        .name;
    format!("--devices {cpu}:1,{cpu}:1=own")
}

/// Returns standard output, standard error and the exit status of the program.
fn pdawl(args: &str) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_pdawl"))
        .args(args.split_whitespace())
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

/// Returns the report of a run that must succeed.
fn report(args: &str) -> Value {
    let (out, err, status) = pdawl(&format!("{args} --format json"));
    assert_eq!(status, Some(0), "{args}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{args}: {e}: {out}"))
}

#[test]
fn a_kernel_is_divided_and_verified() {
    let file = example("matmul.json");
    let devices = two();
    for strategy in [
        "--adaptive",
        "--strategy fixed:0.4,0.6",
        "--strategy guided",
    ] {
        let run = format!(
            "run kernel {} -D n=128 --steps 3 --verify {devices} {strategy}",
            file.display()
        );
        let report = report(&run);
        assert_eq!(report["verification"]["right"], true, "{strategy}");
        assert_eq!(report["verification"]["error"], 0.0);
        assert_eq!(report["throughput"]["unit"], "work-items/s");
        let parameters = &report["workload"]["parameters"];
        assert_eq!(parameters["global"], serde_json::json!([128, 128]));
        // Rows of a and c are divided; every device has all of b.
        assert_eq!(parameters["sliced"], serde_json::json!([0, 2]));
        assert_eq!(report["details"]["steps"].as_array().map(Vec::len), Some(3));
    }
}

#[test]
fn what_is_loaded_comes_out_computed() {
    let numbers = |f: &dyn Fn(u32) -> f32| -> Vec<u8> {
        (0..1000u32).flat_map(|i| f(i).to_ne_bytes()).collect()
    };
    let folder = Folder::with(&[]);
    let [a, b, c] = ["a.bin", "b.bin", "c.bin"].map(|name| folder.path(name));
    std::fs::write(&a, numbers(&|i| i as f32)).expect("a file");
    std::fs::write(&b, numbers(&|i| 0.5 * i as f32)).expect("a file");
    let file = example("vadd.json");
    let run = format!(
        "run kernel {} -D dataset=1000 --steps 2 --load 0={} --load 1={} --save 2={} \
         {} --strategy fixed:0.3,0.7",
        file.display(),
        a.display(),
        b.display(),
        c.display(),
        two()
    );
    report(&run);
    assert_eq!(
        std::fs::read(&c).expect("the result"),
        numbers(&|i| 1.5 * i as f32)
    );
    // Invalid options are refused before anything runs.
    for (wrong, part) in [
        ("--load 2x=f", "write POS=FILE"),
        ("--load 0=a.bin", "cannot read a.bin"),
        (
            "--load 7=a.bin",
            "the kernel has no buffer and no value at position 7",
        ),
        ("--load 0=/dev/zero", "/dev/zero has more bytes"),
        ("--load 0=/dev/null", "/dev/null has 0 bytes"),
        (
            "--save 0=x.bin",
            "the kernel writes no buffer at position 0",
        ),
    ] {
        let (_, err, status) = pdawl(&format!("run kernel {} {wrong}", file.display()));
        assert!(matches!(status, Some(1 | 2)), "{wrong}: {err}");
        assert!(err.contains(part), "{wrong}: {err}");
    }
    let twice = format!(
        "run kernel {} -D dataset=1000 --load 0={} --load 0={}",
        file.display(),
        a.display(),
        b.display()
    );
    let (_, err, status) = pdawl(&twice);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("two files are given for position 0"), "{err}");
    let short = format!(
        "run kernel {} -D dataset=999 --load 0={}",
        file.display(),
        a.display()
    );
    let (_, err, status) = pdawl(&short);
    assert_eq!(status, Some(2), "{err}");
    assert!(
        err.contains("has 4000 bytes, and the buffer at position 0 has 3996"),
        "{err}"
    );
}

#[test]
fn what_cannot_be_divided_runs_on_one_device_and_says_so() {
    let source = "__kernel void count(__global const int *x, __global int *n) {
        if (x[get_global_id(0)] > 3) atomic_inc(n);
    }";
    let spec = r#"{"src": "count.cl", "name": "count", "workDimension": 1, "globalWorkSize": 5000,
        "inputBuffers": [{"type": "int", "size": 5000, "pos": 0}],
        "ioBuffers": [{"type": "int", "size": 1, "pos": 1}], "partition": 5}"#;
    let folder = Folder::with(&[("spec.json", spec), ("count.cl", source)]);
    let run = format!(
        "run kernel {} --verify --steps 2 {}",
        folder.spec().display(),
        two()
    );
    let report = report(&run);
    assert_eq!(report["verification"]["right"], true);
    let shares = report["devices"].as_array().unwrap().iter();
    let mut shares: Vec<f64> = shares.map(|d| d["share"].as_f64().unwrap()).collect();
    shares.sort_by(f64::total_cmp);
    assert_eq!(shares, [0.0, 1.0]);
    let notes = report["notes"].to_string();
    assert!(notes.contains("it is not divided, and runs on"), "{notes}");
    assert!(
        notes.contains("write the same bytes of argument 1"),
        "{notes}"
    );
}

#[test]
fn a_strategy_counts_on_a_single_device_as_well() {
    let file = example("vadd.json");
    let one = two().replace("=own", "");
    let one = one.split(',').next().expect("a device");
    for (more, part) in [
        ("--strategy gpu", "gpu needs a GPU"),
        ("--strategy fixed:0.5,0.4", "shares"),
        ("--strategy fixed:0.5", "GPU"),
        ("--strategy pdawl", "there is none for your own kernels"),
        ("--model any", "unexpected argument '--model'"),
    ] {
        let run = format!("run kernel {} -D dataset=1000 {one} {more}", file.display());
        let (_, err, status) = pdawl(&run);
        assert_eq!(status, Some(2), "{run}: {err}");
        assert!(err.contains(part), "{run}: no {part} in {err}");
    }
    for (strategy, named) in [("cpu", "cpu"), ("guided", "guided"), ("fixed:1", "fixed:1")] {
        let run = format!(
            "run kernel {} -D dataset=1000 --steps 2 --verify {one} --strategy {strategy}",
            file.display()
        );
        let report = report(&run);
        assert_eq!(report["policy"], named, "{run}");
        assert_eq!(report["verification"]["right"], true, "{run}");
    }
}

#[test]
fn kernels_run_on_opencl_devices_only() {
    let file = example("vadd.json");
    for (more, part) in [
        ("--devices host", "runs no OpenCL C"),
        ("--machine k40", "cannot be simulated"),
        ("--steps 0", "0 is not in 1"),
        ("-D dataset", "write NAME=VALUE"),
        ("-D dataset=n", "has no value"),
    ] {
        for command in ["kernel", "dag"] {
            if command == "dag" && more.starts_with("--steps") {
                continue;
            }
            let file = if command == "dag" {
                example("head.dag")
            } else {
                file.clone()
            };
            let run = format!("run {command} {} {more}", file.display());
            let (_, err, status) = pdawl(&run);
            assert_eq!(status, Some(2), "{run}: {err}");
            assert!(err.contains(part), "{run}: {err}");
        }
    }
    let (_, err, status) = pdawl(&format!("run dag {}", file.display()));
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("it is a kernel, not a graph"), "{err}");
    let (_, err, status) = pdawl(&format!("run kernel {}", example("head.dag").display()));
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("it is a graph of kernels"), "{err}");
}

#[test]
fn graphs_are_right_under_every_policy() {
    for policy in [
        "adaptive",
        "eager",
        "heft",
        "clustering",
        "locality",
        "darts+luf",
    ] {
        for (file, kernels) in [("head.dag", 8), ("three.json", 3)] {
            let run = format!(
                "run dag {} --policy {policy} --verify {}",
                example(file).display(),
                two()
            );
            let report = report(&run);
            assert_eq!(report["verification"]["right"], true, "{run}: {report}");
            assert_eq!(report["verification"]["error"], 0.0, "{run}");
            assert_eq!(
                report["details"]["kernels"], kernels,
                "{run}: {}",
                report["details"]
            );
        }
    }
}

#[test]
fn buffers_of_a_graph_are_loaded_and_saved() {
    const SOURCE: &str = "__kernel void add(__global const float *a, __global const float *b,
                                            __global float *c, float more) {
        const size_t i = get_global_id(0);
        c[i] = a[i] + b[i] + more;
    }";
    const KERNEL: &str = r#"{"src": "add.cl", "name": "add", "workDimension": 1,
        "globalWorkSize": 100,
        "inputBuffers": [{"type": "float", "size": 100, "pos": 0},
                         {"type": "float", "size": 100, "pos": 1}],
        "outputBuffers": [{"type": "float", "size": 100, "pos": 2}],
        "varArguments": [{"type": "float", "value": 1, "pos": 3}]}"#;
    let folder = Folder::with(&[
        ("add.cl", SOURCE),
        ("add.json", KERNEL),
        ("g.dag", "7 add.json\n8 add.json\n---\n7 2->8 0\n---\n"),
    ]);
    let numbers = |f: &dyn Fn(u32) -> f32| -> Vec<u8> {
        (0..100u32).flat_map(|i| f(i).to_ne_bytes()).collect()
    };
    let path = |name: &str| folder.path(name).display().to_string();
    std::fs::write(path("a"), numbers(&|i| i as f32)).expect("a file");
    std::fs::write(path("b"), numbers(&|i| 0.25 * i as f32)).expect("a file");
    std::fs::write(path("five"), 5.0f32.to_ne_bytes()).expect("a file");
    let graph = format!("run dag {}", path("g.dag"));
    for policy in ["adaptive", "eager", "locality"] {
        report(&format!(
            "{graph} --load 7:0={a} --load 7:1={b} --load 8:1={b} --load 8:3={five} \
             --save 8:2={c} --policy {policy} --repeats 2 --verify {}",
            two(),
            a = path("a"),
            b = path("b"),
            five = path("five"),
            c = path("c")
        ));
        let found = std::fs::read(path("c")).expect("the result");
        assert_eq!(found, numbers(&|i| 1.5 * i as f32 + 6.0), "{policy}");
    }
    for (wrong, part) in [
        ("--load 7=a".to_owned(), "write KERNEL:POS=FILE"),
        (
            format!("--load 6:0={}", path("a")),
            "the graph has no kernel 6",
        ),
        (
            format!("--load 8:0={}", path("a")),
            "a kernel makes the buffer at position 8:0",
        ),
        (
            format!("--load 8:2={}", path("a")),
            "a kernel makes the buffer at position 8:2",
        ),
        (
            format!("--load 7:4={}", path("a")),
            "no buffer and no value at position 4",
        ),
        (
            format!("--load 7:0={}", path("five")),
            "has 4 bytes, and the buffer at position 0 has 400",
        ),
        (
            format!("--load 7:0={0} --load 7:0={0}", path("a")),
            "two files are given for position 7:0",
        ),
        (
            format!("--save 7:2={}", path("d")),
            "no result at position 7:2",
        ),
        (
            format!("--load 7:0={0} --save 8:2={0}", path("a")),
            "would be overwritten",
        ),
    ] {
        let (_, err, status) = pdawl(&format!("{graph} {wrong} {}", two()));
        assert_eq!(status, Some(2), "{wrong}: {err}");
        assert!(err.contains(part), "{wrong}: {err}");
    }
}

/// A transformer whose data have about eight times as many bytes as the GPU's memory.
#[test]
fn graphs_run_in_an_eighth_of_their_memory() {
    for policy in [
        "adaptive",
        "eager",
        "heft",
        "clustering",
        "locality",
        "darts+luf",
    ] {
        let run = format!(
            "run transformer --heads 16 --beta 64 --machine k40 --devices gpu0 --verify \
             --policy {policy} --gpu-memory"
        );
        let report = report(&format!("{run} 400KiB"));
        assert_eq!(report["verification"]["right"], true, "{run}: {report}");
    }
    let small = "run transformer --heads 16 --beta 64 --machine k40 --gpu-memory 30KiB";
    let (_, err, status) = pdawl(small);
    assert_eq!(status, Some(1));
    assert!(
        err.contains("component 0") && err.contains("raise --gpu-memory"),
        "{err}"
    );
}

/// Kernels that write only a part of their outputs: every second element, and one
/// element of each group.
#[test]
fn outputs_of_a_graph_begin_with_zeros() {
    const SOURCE: &str = "
        __kernel void half_of(__global const float *a, __global float *b) {
            const size_t i = get_global_id(0);
            if (i % 2 == 0) b[i] = a[i] + 1;
        }
        __kernel void sum_of(__global const float *a, __global float *b) {
            float sum = 0;
            for (int i = 0; i < 16; i++) sum += a[get_group_id(0) * 16 + i];
            if (get_local_id(0) == 0) b[get_group_id(0)] = sum;
        }";
    let kernel = |name: &str| {
        format!(
            r#"{{"src": "part.cl", "name": "{name}", "workDimension": 1,
            "globalWorkSize": 80, "localWorkSize": 16,
            "inputBuffers": [{{"type": "float", "size": 80, "pos": 0}}],
            "outputBuffers": [{{"type": "float", "size": 80, "pos": 1}}]}}"#
        )
    };
    let folder = Folder::with(&[
        ("part.cl", SOURCE),
        ("half_of.json", &kernel("half_of")),
        ("sum_of.json", &kernel("sum_of")),
        (
            "part.dag",
            "0 half_of.json\n1 sum_of.json\n2 half_of.json\n---\n0 1->1 0\n1 1->2 0\n---\n",
        ),
    ]);
    for policy in ["adaptive", "eager"] {
        let run = format!(
            "run dag {} --policy {policy} --repeats 3 --verify {}",
            folder.path("part.dag").display(),
            two()
        );
        let report = report(&run);
        assert_eq!(report["verification"]["right"], true, "{run}: {report}");
        assert_eq!(report["verification"]["error"], 0.0, "{run}");
    }
}
