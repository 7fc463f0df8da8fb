//! The command line with the fake driver, which it finds on its own.

use std::process::{Command, Output};

use crate::library::folder;

fn pdawl(arguments: &[&str], settings: &[(&str, &str)]) -> (Output, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pdawl"));
    command.args(arguments).env("LD_LIBRARY_PATH", folder());
    command.envs(settings.iter().copied());
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    (output, said, errors)
}

#[test]
fn devices_are_listed_with_the_driver_that_opens_them() {
    let (output, said, errors) = pdawl(&["devices"], &[]);
    assert!(output.status.success(), "{errors}");
    assert!(said.contains("cuda0") && said.contains("cuda1"), "{said}");
    assert!(
        said.contains("A fake GPU") && said.contains("NVIDIA CUDA 13.0"),
        "{said}"
    );
    let (_, _, errors) = pdawl(&["devices", "--runtime", "opencl"], &[]);
    let why = "cuda0 (A fake GPU) is opened as nothing: --runtime opencl was asked for";
    assert!(errors.contains(why), "{errors}");
    // No OpenCL offers this GPU.
    let only_opencl = [("PDAWL_CUDA_COMPILER", "opencl")];
    let (_, _, errors) = pdawl(&["devices", "--runtime", "cuda"], &only_opencl);
    assert!(
        errors.contains("cuda1 (A fake GPU) is opened as cuda1, but nothing compiles"),
        "{errors}"
    );
    let (_, said, _) = pdawl(&["devices", "--format", "json"], &[]);
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(json["gpu_drivers"][1]["cuda"], "cuda1");
    assert_eq!(json["gpu_drivers"][1]["opencl"], serde_json::Value::Null);
}

#[test]
fn cuda_that_does_not_work_is_refused_with_the_reason() {
    let run = [
        "run",
        "stencil",
        "--size",
        "64",
        "--steps",
        "2",
        "--runtime",
        "cuda",
    ];
    for (settings, part) in [
        (
            ("FAKE_CUDA_VERSION", "11030"),
            "for CUDA 11.3, and 11.4 or later is needed",
        ),
        (("FAKE_CUDA_DEVICES", "0"), "CUDA's driver finds no GPU"),
        (
            ("PDAWL_CUDA_COMPILER", "opencl"),
            "cuda0 compiles kernels with NVIDIA's OpenCL",
        ),
        (
            ("PDAWL_CUDA_COMPILER", "nvcc"),
            "PDAWL_CUDA_COMPILER is `nvcc`, which is no compiler",
        ),
    ] {
        let (output, _, errors) = pdawl(&run, &[settings]);
        assert!(!output.status.success(), "{errors}");
        assert!(errors.contains(part), "{errors}");
    }
    let (output, _, errors) = pdawl(&["devices", "--runtime", "vulkan"], &[]);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("cuda"), "{errors}");
}
