//! From OpenCL C to kernels that CUDA's driver launches. A compiler makes PTX, once for all
//! GPUs of one kind ([`super::compiler`]); [`super::ptx`] translates it; the driver compiles
//! it for each GPU.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use super::compiler::Compiler;
use super::device::OpenDevice;
use super::handle::{Function, Module};
use super::ptx::{self, Translation};
use crate::codelet::{KernelArgument, KernelSource};
use crate::runtime::RuntimeError;

/// Source and options.
pub(super) type ProgramKey = (Cow<'static, str>, Cow<'static, str>);

/// A program in one device's machine code.
pub(super) struct LoadedProgram {
    module: Module,
    translation: Arc<Translation>,
}

/// A kernel that one device can launch.
pub(super) struct LoadedKernel {
    pub function: Function,
    pub kernel: ptx::Kernel,
    /// Most work-items of a group.
    pub group: usize,
    /// Keeps the function.
    _program: Arc<LoadedProgram>,
}

/// The compilers, and what they made.
#[derive(Default)]
pub(super) struct Programs {
    /// By model of the GPU.
    compilers: HashMap<String, Compiler>,
    /// By model of the GPU and program.
    translations: HashMap<(String, ProgramKey), Arc<Translation>>,
}

impl Programs {
    /// A kernel for a device, compiled when it is asked for the first time.
    pub(super) fn kernel(
        &mut self,
        source: &KernelSource,
        device: &mut OpenDevice,
    ) -> Result<Arc<LoadedKernel>, RuntimeError> {
        if let Some(kernel) = device.kernels.get(source) {
            return Ok(Arc::clone(kernel));
        }
        let kernel = Arc::new(self.load(source, device)?);
        device.kernels.insert(source.clone(), Arc::clone(&kernel));
        Ok(kernel)
    }

    fn load(
        &mut self,
        source: &KernelSource,
        device: &mut OpenDevice,
    ) -> Result<LoadedKernel, RuntimeError> {
        let key = source.program();
        let program = match device.programs.get(&key) {
            Some(program) => Arc::clone(program),
            None => {
                let translation = self.translation(source, device)?;
                let program = Arc::new(load(translation, source, device)?);
                device.programs.insert(key, Arc::clone(&program));
                program
            }
        };
        let name = source.entry();
        let mut kernels = program.translation.kernels.iter();
        let Some(kernel) = kernels.find(|kernel| kernel.name == name) else {
            let mut others = program.translation.refused.iter();
            let why = match others.find(|(refused, _)| refused == name) {
                Some((_, why)) => format!(
                    "it cannot run through CUDA: {why}; run it through OpenCL (--runtime opencl)"
                ),
                None => format!("it has no kernel named `{name}`"),
            };
            return Err(refused(source, device, why));
        };
        let kernel = kernel.clone();
        let name = CString::new(name)
            .map_err(|_| refused(source, device, "its name holds a zero byte".to_owned()))?;
        let function = program.module.function(&name);
        let function = function.map_err(|failure| device.failed(failure))?;
        let group = function.most_items();
        Ok(LoadedKernel {
            function,
            kernel,
            group: group.map_err(|failure| device.failed(failure))?,
            _program: program,
        })
    }

    /// The translated PTX of a program.
    fn translation(
        &mut self,
        source: &KernelSource,
        device: &OpenDevice,
    ) -> Result<Arc<Translation>, RuntimeError> {
        let model = &device.info.model;
        let key = (model.clone(), source.program());
        if let Some(translation) = self.translations.get(&key) {
            return Ok(Arc::clone(translation));
        }
        let translated = match ptx::is_ptx(source.text()) {
            true => ptx::translate(source.text()),
            false => ptx::translate(&self.compiler(device)?.compile(source, device)?),
        };
        let translation = translated.map_err(|why| {
            let why =
                format!("its PTX cannot be used: {why}; run it through OpenCL (--runtime opencl)");
            refused(source, device, why)
        })?;
        let translation = Arc::new(translation);
        self.translations.insert(key, Arc::clone(&translation));
        Ok(translation)
    }

    /// A kernel's arguments, as the compiler reports them.
    pub(super) fn arguments(
        &mut self,
        source: &KernelSource,
        device: &OpenDevice,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        self.compiler(device)?.arguments(source, device)
    }

    fn compiler(&mut self, device: &OpenDevice) -> Result<&Compiler, RuntimeError> {
        let model = &device.info.model;
        if !self.compilers.contains_key(model) {
            self.compilers.insert(model.clone(), Compiler::of(device)?);
        }
        Ok(&self.compilers[model])
    }
}

/// Compiles translated PTX for a device.
fn load(
    translation: Arc<Translation>,
    source: &KernelSource,
    device: &mut OpenDevice,
) -> Result<LoadedProgram, RuntimeError> {
    let text = CString::new(translation.text.as_str())
        .map_err(|_| refused(source, device, "its PTX holds a zero byte".to_owned()))?;
    match Module::load(&device.context, &text) {
        Ok(module) => Ok(LoadedProgram {
            module,
            translation,
        }),
        Err((failure, _)) if failure.is_loss() => Err(device.failed(failure)),
        Err((failure, log)) => {
            let log = format!(
                "CUDA's driver does not compile its PTX: {}\n{log}\nrun it through OpenCL \
                 (--runtime opencl)",
                failure.describe()
            );
            Err(refused(source, device, log))
        }
    }
}

/// The error of a kernel that cannot be used on this device.
fn refused(source: &KernelSource, device: &OpenDevice, log: String) -> RuntimeError {
    RuntimeError::Build {
        device: device.info.name.clone(),
        kernel: format!("{} ({})", source.entry(), source.file()),
        log,
    }
}
