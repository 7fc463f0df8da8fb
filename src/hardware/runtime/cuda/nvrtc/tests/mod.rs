//! Kernels that NVRTC compiles, where its library is found. No GPU is needed: what is made
//! is translated, and constant expressions are computed by the compiler.

mod codelets;

use rayon::prelude::*;

use super::*;
use crate::runtime::cuda::ptx::{Kernel, Parameter, Translation, translate};

/// Generations of GPUs with and without what the kernels use of newer ones.
const CAPABILITIES: [u32; 2] = [80, 90];

/// NVRTC; `None`, and a note, without its library.
fn nvrtc() -> Option<&'static Nvrtc> {
    match find(i32::MAX) {
        Ok(nvrtc) => Some(nvrtc),
        Err(why) => {
            eprintln!("nothing is tested: {why}");
            None
        }
    }
}

fn source(text: &str) -> KernelSource {
    KernelSource::new(text.to_owned(), "test.cl", "test", "")
}

fn translated(nvrtc: &Nvrtc, source: &KernelSource, capability: u32) -> Translation {
    let ptx = nvrtc.compile(source, capability);
    let ptx = ptx.unwrap_or_else(|why| panic!("{source:?} for {capability}: {why}"));
    translate(&ptx).unwrap_or_else(|why| panic!("{source:?} for {capability}: {why}"))
}

/// Bytes of parameters; NVRTC's PTX does not tell an address from another number.
fn bytes(kernel: &Kernel) -> Vec<u64> {
    let of = |parameter: &Parameter| match parameter {
        Parameter::Memory | Parameter::Local { .. } => 8,
        Parameter::Value { bytes } => *bytes,
    };
    kernel.parameters.iter().map(of).collect()
}

#[test]
fn every_kernel_of_the_project_compiles_and_has_the_arguments_of_its_codelet() {
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    let all = codelets::all();
    all.par_iter().for_each(|(codelet, arguments)| {
        let opencl = codelet.opencl.as_ref().expect("it has a kernel");
        for source in opencl.kernels() {
            for capability in CAPABILITIES {
                let made = translated(nvrtc, source, capability);
                assert!(made.refused.is_empty(), "{source:?}: {:?}", made.refused);
                let mut kernels = made.kernels.iter();
                let kernel = kernels.find(|kernel| kernel.name == source.entry());
                let kernel = kernel.unwrap_or_else(|| panic!("{source:?} has its entry"));
                assert_eq!(bytes(kernel), *arguments, "{source:?}");
                let requires = source.text().contains("reqd_work_group_size");
                assert_eq!(kernel.group.is_some(), requires, "{source:?}");
            }
        }
    });
}

#[test]
fn stencils_keep_multiplications_and_additions_separate() {
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    let mut seen = 0;
    for (codelet, _) in codelets::all() {
        let opencl = codelet.opencl.expect("it has a kernel");
        if opencl.source.file() == "kernels/stencil.cl" {
            let text = translated(nvrtc, &opencl.source, 90).text;
            assert!(
                text.contains("mul.rn.f") && !text.contains("fma."),
                "{text}"
            );
            seen += 1;
        }
    }
    // Two precisions, dimensions and rules.
    assert_eq!(seen, 8);
    // Elsewhere they are fused, as OpenCL allows.
    let product = "kernel void f(global float *x) { x[0] = x[1] * x[2] + x[3]; }";
    assert!(
        translated(nvrtc, &source(product), 90)
            .text
            .contains("fma.rn.f32")
    );
}

/// Each check of the file is computed by the compiler, and stores something if it fails.
#[test]
fn builtins_compute_what_opencl_says() {
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    let text = include_str!("builtins.cl");
    let stores = |text: &str| {
        let made = translated(nvrtc, &source(text), 90);
        assert_eq!(made.kernels.len(), 5, "{:?}", made.refused);
        let lines = made.text.lines().filter(|line| line.contains("st.global"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let failed = stores(text);
    assert!(failed.is_empty(), "at 4 bytes times the line: {failed:?}");
    let wrong = text.replace("rotate(5, 0) == 5", "rotate(5, 0) == 6");
    assert_eq!(stores(&wrong).len(), 1, "a check that fails is seen");
}

#[test]
fn the_common_builtins_compile() {
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    let made = translated(nvrtc, &source(include_str!("everything.cl")), 80);
    let [functions, memories] = &made.kernels[..] else {
        panic!("{:?}", made.refused);
    };
    assert_eq!(bytes(functions), [8, 8, 8, 32, 16]);
    let is_local = |parameter: &Parameter| matches!(parameter, Parameter::Local { .. });
    let local: Vec<bool> = memories.parameters.iter().map(is_local).collect();
    assert_eq!(local, [false, false, false, false, true, true, false]);
    assert!(made.text.contains("pdawl_local_memory"), "{}", made.text);
}

#[test]
fn a_register_is_read_for_each_question_about_the_place() {
    use crate::runtime::cuda::ptx::Register::{GlobalOffset, GroupOffset, Groups};
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    for (question, registers) in [
        ("get_global_id(1)", vec![GlobalOffset(1)]),
        ("get_group_id(0)", vec![GroupOffset(0)]),
        ("get_num_groups(2)", vec![Groups(2)]),
        ("get_global_size(0)", vec![Groups(0)]),
        (
            "get_global_offset(2)",
            vec![GroupOffset(2), GlobalOffset(2)],
        ),
        ("get_local_id(0) + get_local_size(1)", vec![]),
        ("get_global_id(3) + get_group_id(7)", vec![]),
    ] {
        let text = format!("kernel void f(global ulong *x) {{ x[0] = {question}; }}");
        let made = translated(nvrtc, &source(&text), 80);
        assert_eq!(made.kernels[0].registers, registers, "{question}");
    }
}

#[test]
fn what_does_not_compile_is_reported_with_its_line_and_the_remedy() {
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    for (text, part) in [
        (
            "kernel void f(global int *x)\n{\n    x[0] = nowhere;\n}",
            "test.cl(3)",
        ),
        ("kernel void f(read_only image2d_t x) { }", "image2d_t"),
        ("#include \"other.cl\"\n", "line 1 includes a file"),
    ] {
        let why = nvrtc.compile(&source(text), 80).unwrap_err();
        assert!(
            why.contains(part) && why.contains("NVIDIA's OpenCL"),
            "{why}"
        );
    }
    let prints = "kernel void f(global int *x) { printf(\"%d\", x[0]); }";
    let refused = translated(nvrtc, &source(prints), 80).refused;
    assert!(refused[0].1.contains("printf"), "{refused:?}");
    let old = nvrtc
        .compile(&source("kernel void f() { }"), 10)
        .unwrap_err();
    assert!(old.contains("old GPU"), "{old}");
}

#[test]
fn macros_of_options_do_not_change_the_header() {
    let Some(nvrtc) = nvrtc() else {
        return;
    };
    let text = "kernel void f(global T *x) { x[data] = (T)(DOWN, part); }";
    let options = "-DT=float2 -DDOWN=1 -Dpart=2 -Ddata=3";
    let source = KernelSource::new(text, "test.cl", "f", options);
    assert_eq!(translated(nvrtc, &source, 80).kernels.len(), 1);
}

const OF_NVRTC: &str = ".version 8.8
.target sm_90
.address_size 64
.visible .entry k(
\t.param .u64 k_param_0,
\t.param .align 256 .b8 k_param_1[256],
\t.param .align 16 .b8 k_param_2[16]
)
.maxntid 4210720, 1, 1
{
\tld.param.u64 \t%rd1, [k_param_1];
\tret;
}
";

#[test]
fn local_memory_and_groups_are_as_opencl_has_them() {
    let text = as_of_opencl(OF_NVRTC);
    assert!(
        text.contains(".param .u64 .ptr .shared .align 1 k_param_1,\n"),
        "{text}"
    );
    assert!(text.contains("\n)\n.reqntid 32, 8, 1\n{"), "{text}");
    assert_eq!(text.lines().count(), OF_NVRTC.lines().count());
    let kernels = translate(&text).unwrap().kernels;
    assert_eq!(kernels[0].group, Some([32, 8, 1]));
    assert_eq!(
        kernels[0].parameters,
        [
            Parameter::Value { bytes: 8 },
            Parameter::Local { bytes: 8 },
            Parameter::Value { bytes: 16 }
        ]
    );
}

#[test]
fn other_lines_stay() {
    let plain = OF_NVRTC
        .replace("256", "128")
        .replace(".maxntid 4210720, 1, 1\n", "");
    assert_eq!(as_of_opencl(&plain), plain);
}

fn of(given: &str, is_separate: bool) -> Options {
    options(given, 80, is_separate).unwrap()
}

fn assert_has(options: &Options, expected: &[&str]) {
    for option in expected {
        assert!(
            options.all.iter().any(|own| own == option),
            "{option}: {options:?}"
        );
    }
}

#[test]
fn macros_and_meanings_are_kept() {
    let plain = of(
        "-DA=1 -D B -cl-std=CL1.2 -cl-mad-enable -D'C=a b' -UD",
        false,
    );
    assert_eq!(
        plain.macros,
        "#define A 1\n#define B 1\n#define C a b\n#undef D\n"
    );
    assert_eq!(plain.all[0], "--gpu-architecture=compute_80");
    assert_has(
        &plain,
        &[
            "--fmad=true",
            "--prec-div=false",
            "--prec-sqrt=false",
            "--ftz=false",
        ],
    );
    assert_has(&of("-cl-mad-enable", true), &["--fmad=false"]);
    let exact = of(
        "-cl-fp32-correctly-rounded-divide-sqrt -cl-denorms-are-zero",
        false,
    );
    assert_has(
        &exact,
        &["--prec-div=true", "--prec-sqrt=true", "--ftz=true"],
    );
}

#[test]
fn fast_mathematics_does_not_fuse_what_is_to_stay_separate() {
    let fast = of("-cl-fast-relaxed-math", true);
    assert_has(&fast, &["--use_fast_math", "--fmad=false"]);
    assert_eq!(fast.macros, "#define __FAST_RELAXED_MATH__ 1\n");
}

#[test]
fn what_nvrtc_does_not_have_is_named() {
    for (given, part) in [
        (
            "-cl-single-precision-constant",
            "-cl-single-precision-constant",
        ),
        ("-cl-std=CL2.0", "-cl-std=CL2.0"),
        ("-I include", "-I"),
        ("-D", "lacks a name"),
        ("-DA='b", "does not end"),
    ] {
        let why = options(given, 80, false).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}
