//! NVIDIA's OpenCL compiler, for kernels that run through CUDA. What it makes of a program
//! is PTX, the text that CUDA's driver compiles, too.

use cl3::program::{CL_PROGRAM_BINARIES, get_program_info};
use opencl3::device::Device;

use super::discover::find;
use super::failure::call_error;
use super::handle::Context;
use super::open::new_context;
use super::program::{NotBuilt, arguments, build, entry};
use crate::codelet::{KernelArgument, KernelSource};
use crate::runtime::RuntimeError;
use crate::runtime::driven::Code;
use crate::runtime::ids::GpuIdentity;

/// The compiler for one GPU.
pub struct PtxCompiler {
    /// How CUDA's users name the GPU, for messages.
    name: String,
    context: Context,
    device: Device,
}

impl PtxCompiler {
    /// The compiler for the GPU of this identity, which users name so.
    ///
    /// # Errors
    /// [`RuntimeError::NoOpenCl`] where NVIDIA's OpenCL does not offer the GPU, or its context
    /// cannot be made.
    pub fn new(name: &str, identity: &GpuIdentity) -> Result<Self, RuntimeError> {
        let (found, complaints) = find();
        let gpu = found.iter().find(|(f, _)| f.identity.is(identity));
        let Some((gpu, handles)) = gpu else {
            let complaints = match complaints.is_empty() {
                true => String::new(),
                false => format!("; {}", complaints.join("; ")),
            };
            return Err(RuntimeError::NoOpenCl(format!(
                "{name} compiles kernels with NVIDIA's OpenCL, which does not offer this GPU; \
                 install it (libnvidia-opencl.so.1 and /etc/OpenCL/vendors/nvidia.icd){complaints}"
            )));
        };
        Ok(Self {
            name: name.to_owned(),
            context: new_context(gpu.platform, &[handles.device.id()], &found)?,
            device: handles.device,
        })
    }

    /// Compiles a program to PTX.
    ///
    /// # Errors
    /// [`RuntimeError::Build`] with the compiler's log.
    pub fn compile(&self, source: &KernelSource) -> Result<String, RuntimeError> {
        let program = build(&self.context, source, "", &[self.device.id()])
            .map_err(|error| self.not_built(source, error))?;
        let binaries = get_program_info(program.raw(), CL_PROGRAM_BINARIES)
            .map_err(|code| call_error(&self.name, "clGetProgramInfo", code))?;
        let binaries: Vec<Vec<u8>> = binaries.into();
        let ptx = binaries.into_iter().next().unwrap_or_default();
        String::from_utf8(ptx).map_err(|_| {
            let log = "NVIDIA's OpenCL gives no PTX, but something else".to_owned();
            self.not_built(source, NotBuilt::Refused(log))
        })
    }

    /// A kernel's arguments, as the compiler reports them.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn arguments(&self, source: &KernelSource) -> Result<Vec<KernelArgument>, RuntimeError> {
        let not_built = |error| self.not_built(source, error);
        let options = " -cl-kernel-arg-info";
        let program = build(&self.context, source, options, &[self.device.id()]);
        let kernel = entry(&program.map_err(not_built)?, source).map_err(not_built)?;
        arguments(&kernel).map_err(|code| call_error(&self.name, "clGetKernelArgInfo", code))
    }

    fn not_built(&self, source: &KernelSource, error: NotBuilt) -> RuntimeError {
        match error {
            NotBuilt::Refused(log) => RuntimeError::Build {
                device: self.name.clone(),
                kernel: format!("{} ({})", source.entry(), source.file()),
                log,
            },
            NotBuilt::Failed(call, code) => RuntimeError::Call {
                device: self.name.clone(),
                call,
                why: code.describe(),
            },
        }
    }
}
