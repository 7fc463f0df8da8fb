//! NVRTC, NVIDIA's compiler of CUDA C++, for kernels in OpenCL C where NVIDIA's OpenCL is not
//! installed.
//!
//! * `library` finds it and calls it, `options` are its options.
//! * `header/` declares OpenCL C in C++: work-items, vectors, functions. `source` rewrites
//!   what a declaration cannot do.
//! * `ptx` writes the result as OpenCL's compiler does, so that the same translation
//!   ([`super::ptx`]) makes kernels of it.

mod library;
mod options;
mod ptx;
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
            let options = options::options(&given, capability, separate)?;
            let text = with_header(&rewritten, &options.macros, source.file());
            let ptx = self.0.compile(&text, source.file(), &options.all)?;
            Ok(ptx::as_of_opencl(&ptx))
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
