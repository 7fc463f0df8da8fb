//! NVRTC, NVIDIA's compiler of CUDA C++, for kernels in OpenCL C where NVIDIA's OpenCL is not
//! installed.
//!
//! * `library` finds it and calls it.
//! * `header/` declares OpenCL C in C++: work-items, vectors, functions. `source` rewrites
//!   what a declaration cannot do.
//! * The result is written as OpenCL's compiler does, so that the same translation
//!   ([`super::ptx`]) makes kernels of it.

mod library;
mod source;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use library::Library;

use super::discover::release;
use crate::codelet::KernelSource;

/// OpenCL C, as C++ declares it.
const HEADER: [&str; 6] = [
    include_str!("header/language.cuh"),
    include_str!("header/work_items.cuh"),
    include_str!("header/vectors.cuh"),
    include_str!("header/math.cuh"),
    include_str!("header/integers.cuh"),
    include_str!("header/memory.cuh"),
];

/// The compiler.
pub(super) struct Nvrtc(Library);

/// The first NVRTC here whose PTX a driver of this version knows.
///
/// # Errors
/// Why there is none, with the remedy.
pub(super) fn find(driver: i32) -> Result<&'static Nvrtc, String> {
    static FOUND: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
    FOUND
        .get_or_init(|| search(driver))
        .as_ref()
        .map_err(Clone::clone)
}

fn search(driver: i32) -> Result<Nvrtc, String> {
    let mut newer = None;
    for library in library::libraries() {
        if library.version <= driver {
            return Ok(Nvrtc(library));
        }
        newer.get_or_insert(library.version);
    }
    let driver = release(driver);
    Err(match newer {
        Some(version) => format!(
            "NVRTC {} is newer than the driver, which is for CUDA {driver}; install NVRTC {driver} \
             or an earlier one, or update the driver",
            release(version)
        ),
        None => format!(
            "NVRTC is not found (libnvrtc.so); install that of CUDA {driver} or earlier, for \
             example with pip install nvidia-cuda-nvrtc-cu12, or set LD_LIBRARY_PATH"
        ),
    })
}

impl Nvrtc {
    /// Its name and version.
    pub(super) fn name(&self) -> String {
        format!("NVRTC {}", release(self.0.version))
    }

    /// Compiles a program for GPUs of a compute capability (ten times it) to PTX in the form
    /// of NVIDIA's OpenCL.
    ///
    /// # Errors
    /// What the compiler says, with the remedy.
    pub(super) fn compile(&self, source: &KernelSource, capability: u32) -> Result<String, String> {
        let known = self.0.capabilities();
        // PTX for an older GPU runs on newer ones.
        let capability = known.iter().copied().filter(|own| *own <= capability).max();
        let Some(capability) = capability else {
            return Err(format!("{} does not compile for this old GPU", self.name()));
        };
        let made = source::rewrite(source.text()).and_then(|rewritten| {
            let separate = rewritten.keeps_operations_separate;
            let given = format!("{} -DPDAWL_NV_CAPABILITY={capability}", source.options());
            let options = options(&given, capability, separate)?;
            let text = with_header(&rewritten, &options.macros, source.file());
            let ptx = self.0.compile(&text, source.file(), &options.all)?;
            Ok(as_of_opencl(&ptx))
        });
        made.map_err(|why| {
            format!(
                "{why}\n{} compiled it as C++, which is not quite OpenCL C; NVIDIA's OpenCL \
                 compiles it as it is: install that (libnvidia-opencl.so.1 and \
                 /etc/OpenCL/vendors/nvidia.icd)",
                self.name()
            )
        })
    }
}

/// A source behind the header and these macros, with the lines of its file. Its names may be
/// those that the header uses for itself, as they are in a namespace within.
fn with_header(source: &source::Rewritten, macros: &str, file: &str) -> String {
    let mut text = source::swizzle_macros(&source.swizzles);
    text.push_str("#line 1 \"OpenCL C in C++\"\n");
    for part in HEADER {
        text.push_str(part);
    }
    let file = file.replace(['"', '\\', '\n'], "_");
    let source = &source.text;
    text.push_str(&format!(
        "namespace opencl {{ namespace program {{\n{macros}#line 1 \"{file}\"\n{source}\n}} }}\n"
    ));
    text
}

// PTX of NVRTC in the form in which NVIDIA's OpenCL compiler writes it, which
// `crate::runtime::cuda::ptx` translates.
//
// The header (`header/`) leaves two marks that no other kernel has: arguments of 256 bytes
// for local memory, and groups whose size along each axis is in the bits of one number.

/// The declaration of an argument in local memory.
const LOCAL: &str = ".param .align 256 .b8 ";
const LOCAL_SIZE: &str = "[256]";

/// Bits of each axis in the size of a group, as `language.cuh` writes them.
const AXIS: u32 = 11;

/// PTX as OpenCL's.
fn as_of_opencl(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match local_argument(line).or_else(|| group(line)) {
            Some(line) => text.push_str(&line),
            None => text.push_str(line),
        }
    }
    text
}

fn local_argument(line: &str) -> Option<String> {
    let (before, rest) = line.split_once(LOCAL)?;
    let (name, after) = rest.split_once(LOCAL_SIZE)?;
    Some(format!(
        "{before}.param .u64 .ptr .shared .align 1 {name}{after}"
    ))
}

fn group(line: &str) -> Option<String> {
    let size = line.trim().strip_prefix(".maxntid ")?.split(',').next()?;
    let size: u32 = size.trim().parse().ok()?;
    let mask = (1 << AXIS) - 1;
    let [x, y, z] = [size & mask, size >> AXIS & mask, size >> (2 * AXIS)];
    Some(format!(".reqntid {x}, {y}, {z}\n"))
}

/// What the options of a program become.
#[derive(Debug, Default)]
struct Options {
    /// NVRTC's.
    pub all: Vec<String>,
    /// The macros, as lines of a source. As options they would also change the header.
    pub macros: String,
}

/// NVRTC's options for a program: `given` are OpenCL's, `capability` is ten times the compute
/// capability to compile for, and `keeps_operations_apart` says that no multiplication and
/// addition may become one operation.
///
/// Division and square root of singles have the precision that OpenCL asks for, which is less
/// than that of a rounded result, and small numbers are not replaced by zero.
///
/// # Errors
/// An option that NVRTC has nothing for.
fn options(
    given: &str,
    capability: u32,
    keeps_operations_separate: bool,
) -> Result<Options, String> {
    let mut macros = String::new();
    let (mut is_rounded, mut is_flushed, mut is_fast) = (false, false, false);
    let mut words = words(given)?.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-D" | "-U" => {
                let name = words.next();
                let name = name.ok_or_else(|| format!("the option {word} lacks a name"))?;
                add_macro(&format!("{word}{name}"), &mut macros);
            }
            "-cl-fp32-correctly-rounded-divide-sqrt" => is_rounded = true,
            "-cl-denorms-are-zero" => is_flushed = true,
            "-cl-fast-relaxed-math" => is_fast = true,
            // Operations are fused anyway where the source allows it. The others allow what
            // NVRTC does not do.
            "-cl-mad-enable"
            | "-cl-no-signed-zeros"
            | "-cl-unsafe-math-optimizations"
            | "-cl-finite-math-only"
            | "-cl-strict-aliasing"
            | "-cl-opt-disable"
            | "-cl-kernel-arg-info"
            | "-cl-nv-verbose"
            | "-w" => {}
            word if word.starts_with("-cl-std=CL1.") => {}
            word if word.starts_with("-D") || word.starts_with("-U") => {
                add_macro(word, &mut macros);
            }
            word => return Err(format!("NVRTC has nothing for the option {word}")),
        }
    }
    let mut all = vec![
        format!("--gpu-architecture=compute_{capability}"),
        "--std=c++17".to_owned(),
        "--device-as-default-execution-space".to_owned(),
        // Pragmas and attributes of OpenCL.
        "--disable-warnings".to_owned(),
        format!("--fmad={}", !keeps_operations_separate),
        format!("--prec-div={is_rounded}"),
        format!("--prec-sqrt={is_rounded}"),
        format!("--ftz={}", is_flushed || is_fast),
    ];
    if is_fast {
        macros.push_str("#define __FAST_RELAXED_MATH__ 1\n");
        // Functions of singles are the device's own.
        all.push("--use_fast_math".to_owned());
    }
    Ok(Options { all, macros })
}

/// Adds the line of an option `-DNAME`, `-DNAME=VALUE` or `-UNAME`.
fn add_macro(option: &str, lines: &mut String) {
    let (kind, definition) = option.split_at(2);
    let line = match (kind, definition.split_once('=')) {
        ("-U", _) => format!("#undef {definition}\n"),
        (_, Some((name, value))) => format!("#define {name} {value}\n"),
        (_, None) => format!("#define {definition} 1\n"),
    };
    lines.push_str(&line);
}

/// The words of a command line; what is quoted is one.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_one = false;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, is_one) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if is_one || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                is_one = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote of the options `{line}` does not end"));
    }
    if is_one || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}
