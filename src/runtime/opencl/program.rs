//! Compiling kernels, once for every context.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use cl3::kernel::create_kernel;
use cl3::program::{
    CL_PROGRAM_BUILD_LOG, build_program, create_program_with_source, get_program_build_data,
};
use cl3::types::{cl_device_id, cl_int};
use opencl3::error_codes::{
    CL_BUILD_PROGRAM_FAILURE, CL_INVALID_BUILD_OPTIONS, CL_INVALID_KERNEL_NAME,
};

use super::device::OpenDevice;
use super::failure::describe;
use super::handle::{Context, Kernel, Program};
use crate::codelet::OpenClKernel;
use crate::runtime::RuntimeError;

/// A context and the programs built in it.
pub(super) struct Programs {
    pub context: Arc<Context>,
    /// By source and options.
    built: HashMap<(&'static str, &'static str), Program>,
}

impl Programs {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context: Arc::new(context),
            built: HashMap::new(),
        }
    }

    /// A new kernel object for `device`; builds its program for all of
    /// `devices`, which are the context's, the first time.
    pub(super) fn kernel(
        &mut self,
        source: &OpenClKernel,
        device: &OpenDevice,
        devices: &[&OpenDevice],
    ) -> Result<Kernel, RuntimeError> {
        let refuse = |log: String| RuntimeError::Build {
            device: device.info.name.clone(),
            kernel: format!("{} ({})", source.entry, source.file),
            log,
        };
        if source.fp64 && !device.info.fp64 {
            return Err(refuse(
                "the device has no double precision (cl_khr_fp64); use single".to_owned(),
            ));
        }
        let key = (source.source, source.options);
        if !self.built.contains_key(&key) {
            let able: Vec<cl_device_id> = devices
                .iter()
                .filter(|d| d.info.fp64 || !source.fp64)
                .map(|d| d.id.id())
                .collect();
            let program = self.build(source, device, &able, &refuse)?;
            self.built.insert(key, program);
        }
        let program = &self.built[&key];
        let entry = CString::new(source.entry)
            .map_err(|_| refuse("the entry's name holds a zero byte".to_owned()))?;
        create_kernel(program.raw(), &entry)
            .map(Kernel::new)
            .map_err(|code| match code {
                CL_INVALID_KERNEL_NAME => {
                    refuse(format!("it has no kernel named `{}`", source.entry))
                }
                _ => device.shared.failed("clCreateKernel", code),
            })
    }

    fn build(
        &self,
        source: &OpenClKernel,
        device: &OpenDevice,
        able: &[cl_device_id],
        refuse: &dyn Fn(String) -> RuntimeError,
    ) -> Result<Program, RuntimeError> {
        let failed = |call, code: cl_int| device.shared.failed(call, code);
        let options = CString::new(source.options)
            .map_err(|_| refuse("the options hold a zero byte".to_owned()))?;
        let program = create_program_with_source(self.context.raw(), &[source.source])
            .map(Program::new)
            .map_err(|code| failed("clCreateProgramWithSource", code))?;
        match build_program(program.raw(), able, &options, None, std::ptr::null_mut()) {
            Ok(()) => Ok(program),
            Err(code @ (CL_BUILD_PROGRAM_FAILURE | CL_INVALID_BUILD_OPTIONS)) => {
                let log = able
                    .iter()
                    .filter_map(|id| log_of(&program, *id))
                    .next()
                    .unwrap_or_else(|| format!("nothing; the driver answers {}", describe(code)));
                Err(refuse(log))
            }
            Err(code) => Err(failed("clBuildProgram", code)),
        }
    }
}

/// What the compiler said for a device, if anything.
fn log_of(program: &Program, device: cl_device_id) -> Option<String> {
    let bytes = get_program_build_data(program.raw(), device, CL_PROGRAM_BUILD_LOG).ok()?;
    let log = String::from_utf8_lossy(&bytes);
    let log = log.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!log.is_empty()).then(|| log.to_owned())
}
