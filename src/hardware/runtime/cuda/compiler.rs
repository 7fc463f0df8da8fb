//! Which compiler makes PTX of a kernel: NVIDIA's OpenCL where it is installed, and NVRTC
//! otherwise.

use std::env;

#[cfg(feature = "cuda")]
pub(super) use open::Compiler;

use super::FoundGpu;
use crate::runtime::opencl::Discovery;

/// The variable that chooses the compiler.
const CHOICE: &str = "PDAWL_CUDA_COMPILER";

/// The compiler of a GPU, by its name for users, where one is installed and not excluded by
/// the choice. NVRTC is looked for only where it is needed.
pub fn name(gpu: &FoundGpu, opencl: &Discovery) -> Option<String> {
    let mut devices = opencl.devices.iter();
    let has_opencl = devices.any(|device| device.identity.is(&gpu.identity));
    chosen(choice().ok()?, has_opencl, nvrtc)
}

fn chosen(
    choice: Choice,
    has_opencl: bool,
    nvrtc: impl FnOnce() -> Option<String>,
) -> Option<String> {
    match choice {
        Choice::Any | Choice::Opencl if has_opencl => Some("NVIDIA's OpenCL".to_owned()),
        Choice::Any | Choice::Nvrtc => nvrtc(),
        Choice::Opencl => None,
    }
}

#[cfg(feature = "cuda")]
fn nvrtc() -> Option<String> {
    let driver = super::discover::start().ok()?;
    super::nvrtc::find(driver).map(|nvrtc| nvrtc.name()).ok()
}

#[cfg(not(feature = "cuda"))]
fn nvrtc() -> Option<String> {
    None
}

/// The compilers that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Any,
    Opencl,
    Nvrtc,
}

/// The user's choice.
///
/// # Errors
/// A value that names no compiler.
fn choice() -> Result<Choice, String> {
    read(env::var(CHOICE).ok().as_deref())
}

fn read(value: Option<&str>) -> Result<Choice, String> {
    match value {
        None | Some("") => Ok(Choice::Any),
        Some("opencl") => Ok(Choice::Opencl),
        Some("nvrtc") => Ok(Choice::Nvrtc),
        Some(other) => Err(format!(
            "{CHOICE} is `{other}`, which is no compiler; write opencl or nvrtc, or unset it"
        )),
    }
}

#[cfg(feature = "cuda")]
mod open {
    use super::{Choice, choice};
    use crate::codelet::{KernelArgument, KernelSource};
    use crate::runtime::RuntimeError;
    use crate::runtime::cuda::device::OpenDevice;
    use crate::runtime::cuda::nvrtc::{self, Nvrtc};
    use crate::runtime::opencl::PtxCompiler;

    /// The compiler for GPUs of one model.
    pub(in crate::runtime::cuda) enum Compiler {
        Opencl(PtxCompiler),
        Nvrtc(&'static Nvrtc),
    }

    impl Compiler {
        /// The compiler for a device.
        ///
        /// # Errors
        /// Why there is none, with the remedies.
        pub(in crate::runtime::cuda) fn of(device: &OpenDevice) -> Result<Self, RuntimeError> {
            let opencl = || PtxCompiler::new(&device.info.name, &device.identity).map(Self::Opencl);
            let nvrtc = || nvrtc::find(device.driver).map(Self::Nvrtc);
            let of_nvrtc = |why| RuntimeError::Selection(format!("{}: {why}", device.info.name));
            match choice().map_err(RuntimeError::Selection)? {
                Choice::Opencl => opencl(),
                Choice::Nvrtc => nvrtc().map_err(of_nvrtc),
                Choice::Any => opencl().or_else(|error| {
                    nvrtc().map_err(|why| match error {
                        RuntimeError::NoOpenCl(without) => {
                            RuntimeError::NoOpenCl(format!("{without}; and {why}"))
                        }
                        other => other,
                    })
                }),
            }
        }

        /// Compiles a program to PTX of the form that OpenCL's compiler writes.
        ///
        /// # Errors
        /// [`RuntimeError::Build`] with what the compiler says.
        pub(in crate::runtime::cuda) fn compile(
            &self,
            source: &KernelSource,
            device: &OpenDevice,
        ) -> Result<String, RuntimeError> {
            match self {
                Self::Opencl(compiler) => compiler.compile(source),
                Self::Nvrtc(compiler) => {
                    let made = compiler.compile(source, device.capability);
                    made.map_err(|log| RuntimeError::Build {
                        device: device.info.name.clone(),
                        kernel: format!("{} ({})", source.entry(), source.file()),
                        log,
                    })
                }
            }
        }

        /// A kernel's arguments, as the compiler reports them.
        ///
        /// # Errors
        /// As [`Self::compile`]; NVRTC reports none.
        pub(in crate::runtime::cuda) fn arguments(
            &self,
            source: &KernelSource,
            device: &OpenDevice,
        ) -> Result<Vec<KernelArgument>, RuntimeError> {
            match self {
                Self::Opencl(compiler) => compiler.arguments(source),
                Self::Nvrtc(_) => Err(RuntimeError::Unsupported {
                    device: device.info.name.clone(),
                    what: "listing a kernel's arguments with NVRTC",
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opencl_compiles_where_it_offers_the_gpu_and_nvrtc_elsewhere() {
        let nvrtc = || Some("NVRTC".to_owned());
        for (choice, of_both, of_nvrtc, of_opencl) in [
            (Choice::Any, "NVIDIA's OpenCL", "NVRTC", "NVIDIA's OpenCL"),
            (Choice::Opencl, "NVIDIA's OpenCL", "none", "NVIDIA's OpenCL"),
            (Choice::Nvrtc, "NVRTC", "NVRTC", "none"),
        ] {
            let name_or_none = |compiler: Option<String>| compiler.unwrap_or("none".to_owned());
            assert_eq!(name_or_none(chosen(choice, true, nvrtc)), of_both);
            assert_eq!(name_or_none(chosen(choice, false, nvrtc)), of_nvrtc);
            assert_eq!(name_or_none(chosen(choice, true, || None)), of_opencl);
            assert_eq!(chosen(choice, false, || None), None);
        }
    }

    #[test]
    fn a_choice_is_one_of_two_compilers() {
        assert_eq!(read(None), Ok(Choice::Any));
        assert_eq!(read(Some("")), Ok(Choice::Any));
        assert_eq!(read(Some("opencl")), Ok(Choice::Opencl));
        assert_eq!(read(Some("nvrtc")), Ok(Choice::Nvrtc));
        let why = read(Some("nvcc")).unwrap_err();
        assert!(
            why.contains("`nvcc`") && why.contains("opencl or nvrtc"),
            "{why}"
        );
    }
}
