//! The kernels on other drivers than PoCL: `tests/nasty-driver` with small work-groups, and
//! Mesa's rusticl on its CPU, where it is installed, which stands for the drivers of AMD and
//! Intel.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::command::{Home, process};

/// Where distributions register Mesa's rusticl. It has devices only if a variable names one of
/// its drivers.
const RUSTICL: &str = "/etc/OpenCL/vendors/rusticl.icd";

/// A driver, by its `.icd` file, and the variables with which it shows devices.
struct Driver {
    home: Home,
    variables: Vec<(&'static str, &'static str)>,
}

impl Driver {
    /// The nasty driver: a GPU whose groups have so many work-items at most.
    fn nasty(group: &'static str) -> Self {
        let home = Home::new();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nasty-driver");
        let files = fs::read_dir(sources).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let sources: Vec<PathBuf> = files
            .filter(|file| file.extension().is_some_and(|end| end == "c"))
            .collect();
        let library = home.path("libnasty.so");
        let mut compiler = Command::new("cc");
        compiler.args([
            "-std=gnu11",
            "-fvisibility=hidden",
            "-shared",
            "-fPIC",
            "-o",
        ]);
        compiler.arg(&library).args(sources);
        compiler.args(["-ldl", "-lpthread"]);
        assert!(compiler.status().unwrap().success());
        fs::write(
            home.path("nasty.icd"),
            library.as_os_str().as_encoded_bytes(),
        )
        .unwrap();
        Self {
            home,
            variables: vec![("NASTY_DEVICES", "1"), ("NASTY_GROUP", group)],
        }
    }

    /// Mesa's rusticl with a device of this type; `None` where it is not installed.
    fn rusticl(kind: &'static str) -> Option<Self> {
        let Ok(registered) = fs::read(RUSTICL) else {
            eprintln!("SKIPPED: {RUSTICL} is not there; apt-get install mesa-opencl-icd");
            return None;
        };
        let home = Home::new();
        fs::write(home.path("rusticl.icd"), registered).unwrap();
        Some(Self {
            home,
            variables: vec![
                ("RUSTICL_ENABLE", "swrast,llvmpipe"),
                ("RUSTICL_DEVICE_TYPE", kind),
            ],
        })
    }

    fn run(&self, line: &str) -> Output {
        let mut command = process(line);
        command.env("OCL_ICD_VENDORS", self.home.folder());
        command.envs(self.variables.iter().copied());
        command.output().unwrap()
    }

    /// The report of a run, which must succeed and be right.
    fn report(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --verify --format json"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["verification"]["right"], true, "{line}: {report}");
        report
    }

    /// Runs a workload on the driver's device alone.
    fn computes(&self, line: &str) {
        let report = self.report(&format!("{line} --devices opencl0.0"));
        assert!(
            !report.to_string().contains("cannot run kernel"),
            "{report}"
        );
    }

    /// Runs a workload that the device cannot compute: it is left out beside the host, and
    /// alone it is refused with the reason.
    fn leaves_out(&self, line: &str, reason: &str) {
        let report = self.report(&format!("{line} --devices host:1,opencl0.0"));
        let said = report.to_string();
        assert!(
            said.contains("cannot run kernel") && said.contains(reason),
            "{line}: {said}"
        );
        let output = self.run(&format!("{line} --devices opencl0.0"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(
            said.contains("cannot run kernel") && said.contains(reason),
            "{line}: {said}"
        );
    }
}

/// A kernel whose groups are too large has a variant with smaller ones, or the device is left
/// out.
#[test]
fn groups_are_as_small_as_the_device_needs() {
    let small = Driver::nasty("32");
    for line in [
        "run stencil --size 50 --steps 3",
        "run spmv --matrix rmat:8,8 --steps 3",
        "run matmul --size 64",
        "run fft --size 128",
        "run convolution --size 70 --filter 5",
        "run transformer --heads 1 --beta 48 --layers 1",
    ] {
        small.computes(line);
    }
    small.leaves_out("run lu --size 70", "groups have 256 work-items");
    small.leaves_out("run stencil --size 50 --until 0.1 --steps 9", "32 at most");
}

/// On a device that allows fewer work-items than any of our variants has, only kernels that
/// take every size run.
#[test]
fn a_device_without_large_enough_groups_is_left_out() {
    let tiny = Driver::nasty("8");
    tiny.computes("run stencil --size 50 --steps 3 --precision f32");
    tiny.leaves_out(
        "run spmv --matrix rmat:8,8 --steps 2",
        "the device runs it with 8 at most",
    );
}

#[test]
fn rusticl_computes_as_cpu_and_as_gpu() {
    let vadd = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/examples/vadd.json");
    let kernel = format!("run kernel {} -D dataset=4096 --steps 2", vadd.display());
    for kind in ["cpu", "gpu"] {
        let Some(rusticl) = Driver::rusticl(kind) else {
            return;
        };
        for line in [
            "run stencil --size 50 --steps 3 --precision f32",
            "run spmv --matrix rmat:8,8 --precision f32 --steps 3",
            "run matmul --size 70",
        ] {
            rusticl.computes(line);
        }
        rusticl.computes(&kernel);
        // A CPU device leaves no cores to the host.
        if kind == "gpu" {
            rusticl.leaves_out("run lu --size 64", "groups have 256 work-items");
        }
    }
}
