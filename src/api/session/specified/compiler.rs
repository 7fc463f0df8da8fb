//! Checking a kernel with a device's compiler.

use std::collections::HashMap;

use crate::codelet::{Codelet, KernelArgument, KernelSource, NdRange, OpenClKernel, Shape};
use crate::graph::spec::{Described, Kernel};
use crate::runtime::select::{self, Selection};
use crate::runtime::{DeviceId, Runtime, RuntimeError, opencl};
use crate::session::Error;

/// The compiler of a device.
pub struct Compiler {
    /// The device alone.
    runtime: Box<dyn Runtime>,
    /// The arguments of the kernels that were compiled.
    known: HashMap<KernelSource, Vec<KernelArgument>>,
    /// The device's name.
    pub name: String,
}

impl Compiler {
    /// The compiler of this device, or of the first OpenCL device; `None` without one.
    ///
    /// # Errors
    /// When the device cannot be opened.
    pub fn open(device: Option<&str>) -> Result<Option<Self>, Error> {
        let first = || {
            let discovery = opencl::discover();
            discovery
                .devices
                .first()
                .map(|found| found.info.name.clone())
        };
        match device.map(str::to_owned).or_else(first) {
            Some(name) => Self::of(name).map(Some),
            None => Ok(None),
        }
    }

    /// The first device of a list, all of whose devices compile OpenCL C; `None` where it
    /// names none.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn first_of(devices: &str) -> Result<Option<Self>, Error> {
        let first = devices.split(',').next().unwrap_or_default().trim();
        match first.is_empty() {
            true => Ok(None),
            false => Self::of(first.to_owned()).map(Some),
        }
    }

    fn of(name: String) -> Result<Self, Error> {
        let selection: Selection = name.parse()?;
        let compiles = selection.names_opencl() || selection.names_cuda();
        if !compiles || selection.devices().len() != 1 {
            return Err(Error::KernelDevices(format!(
                "`{name}` compiles no OpenCL C; name one OpenCL or CUDA device"
            )));
        }
        let (runtime, _) = select::open(Some(&selection), false)?;
        Ok(Self {
            runtime,
            known: HashMap::new(),
            name,
        })
    }

    /// Compiles a kernel unless that was done before, and compares its arguments with its
    /// file.
    ///
    /// # Errors
    /// The compiler's message when it does not compile, and as
    /// [`KernelSpec::agrees_with_compiler`](crate::graph::spec::KernelSpec::agrees_with_compiler).
    pub fn check(&mut self, described: &Described) -> Result<(), Error> {
        let spec = &described.spec;
        match self.arguments(&described.kernel) {
            Ok(arguments) => Ok(spec.agrees_with_compiler(&arguments)?),
            Err(error) => Err(spec.fault("src", error.to_string()).into()),
        }
    }

    fn arguments(&mut self, kernel: &Kernel) -> Result<Vec<KernelArgument>, RuntimeError> {
        let kernel = compiled(kernel);
        if let Some(arguments) = self.known.get(&kernel.source) {
            return Ok(arguments.clone());
        }
        let arguments = self.runtime.arguments(DeviceId(0), &kernel)?;
        self.known.insert(kernel.source, arguments.clone());
        Ok(arguments)
    }

    /// Makes a kernel ready to run.
    ///
    /// # Errors
    /// When the device cannot run it.
    pub(super) fn load(&mut self, kernel: &Kernel) -> Result<(), RuntimeError> {
        let queue = self.runtime.queue(DeviceId(0))?;
        let codelet = Codelet {
            name: kernel.name.clone().into(),
            host: None,
            library: None,
            opencl: Some(compiled(kernel)),
        };
        let loaded = self.runtime.load(queue, &codelet);
        self.runtime.free_queue(queue);
        loaded
    }
}

/// A kernel for a compiler.
fn compiled(kernel: &Kernel) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(
            kernel.text.clone(),
            kernel.source.display().to_string(),
            kernel.name.clone(),
            kernel.options.clone(),
        ),
        fp64: false,
        shape: Shape::with(|_, _| NdRange::new(vec![1])),
    }
}
