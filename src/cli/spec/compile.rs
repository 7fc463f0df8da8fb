//! What a device's compiler says of a kernel.

use pdawl::codelet::{KernelSource, NdRange, OpenClKernel, Shape};
use pdawl::graph::spec::{Kernel, KernelSpec};
use pdawl::runtime::opencl;
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::{DeviceId, Runtime, RuntimeError};

use super::described::{Described, refused};
use crate::cli::failure::{Failure, wrong_devices};

/// A device whose compiler is asked.
pub struct Compiler {
    runtime: Box<dyn Runtime>,
    /// The device's name.
    pub name: String,
}

impl Compiler {
    /// The device named, or the first OpenCL device; `None` without one.
    ///
    /// # Errors
    /// When the device named cannot be opened.
    pub fn open(device: Option<&str>) -> Result<Option<Self>, Failure> {
        let first = || {
            let discovery = opencl::discover();
            discovery
                .devices
                .first()
                .map(|found| found.info.name.clone())
        };
        let Some(name) = device.map(str::to_owned).or_else(first) else {
            return Ok(None);
        };
        let selection: Selection = name.parse().map_err(wrong_devices)?;
        if !selection.names_opencl() || selection.devices().len() != 1 {
            return Err(wrong_devices(format!(
                "`{name}` compiles no OpenCL; name one OpenCL device"
            )));
        }
        let (runtime, _) =
            select::open(Some(&selection), false).map_err(crate::cli::failure::refused)?;
        Ok(Some(Self { runtime, name }))
    }

    /// Compiles a kernel, and compares its arguments with its file.
    ///
    /// # Errors
    /// With the compiler's words when it does not compile, and as
    /// [`KernelSpec::agrees_with_compiler`].
    pub fn check(&mut self, described: &Described) -> Result<(), Failure> {
        let compiled = self.arguments(&described.kernel);
        match compiled {
            Ok(arguments) => (described.spec.agrees_with_compiler(&arguments)).map_err(refused),
            Err(error) => Err(failed(&described.spec, &error)),
        }
    }

    fn arguments(
        &mut self,
        kernel: &Kernel,
    ) -> Result<Vec<pdawl::codelet::KernelArgument>, RuntimeError> {
        let source = KernelSource::new(
            kernel.text.clone(),
            kernel.source.display().to_string(),
            kernel.name.clone(),
            kernel.options.clone(),
        );
        let kernel = OpenClKernel {
            source,
            fp64: false,
            shape: Shape::with(|_, _| NdRange::new(vec![1])),
        };
        self.runtime.arguments(DeviceId(0), &kernel)
    }
}

/// A kernel that does not compile.
fn failed(spec: &KernelSpec, error: &RuntimeError) -> Failure {
    refused(spec.fault("src", error.to_string()))
}
