//! Checking a kernel with a device's compiler.

use std::collections::HashMap;

use pdawl::codelet::{Codelet, KernelArgument, KernelSource, NdRange, OpenClKernel, Shape};
use pdawl::graph::spec::{Kernel, KernelSpec};
use pdawl::runtime::opencl;
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::{DeviceId, Runtime, RuntimeError};

use super::described::{Described, refused};
use crate::failure::{Failure, wrong_names};

/// The compiler of a device.
pub struct Compiler {
    /// The device alone.
    pub runtime: Box<dyn Runtime>,
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
    pub fn open(device: Option<&str>) -> Result<Option<Self>, Failure> {
        let first = || {
            let discovery = opencl::discover();
            discovery
                .devices
                .first()
                .map(|found| found.info.name.clone())
        };
        match device.map(str::to_owned).or_else(first) {
            Some(name) => Self::of(name, "--device").map(Some),
            None => Ok(None),
        }
    }

    /// The first device of a list, all of whose devices compile OpenCL C; `None` where it
    /// names none.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn first_of(devices: &str) -> Result<Option<Self>, Failure> {
        let first = devices.split(',').next().unwrap_or_default().trim();
        match first.is_empty() {
            true => Ok(None),
            false => Self::of(first.to_owned(), "--devices").map(Some),
        }
    }

    fn of(name: String, option: &str) -> Result<Self, Failure> {
        let selection: Selection = name.parse().map_err(|why| wrong_names(option, why))?;
        let compiles = selection.names_opencl() || selection.names_cuda();
        if !compiles || selection.devices().len() != 1 {
            let why = format!("`{name}` compiles no OpenCL C; name one OpenCL or CUDA device");
            return Err(wrong_names(option, why));
        }
        let opened = select::open(Some(&selection), false);
        let (runtime, _) = opened.map_err(crate::failure::refused)?;
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
    /// [`KernelSpec::agrees_with_compiler`].
    pub fn check(&mut self, described: &Described) -> Result<(), Failure> {
        let compiled = self.arguments(&described.kernel);
        match compiled {
            Ok(arguments) => (described.spec.agrees_with_compiler(&arguments)).map_err(refused),
            Err(error) => Err(failed(&described.spec, &error)),
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
    pub fn load(&mut self, kernel: &Kernel) -> Result<(), RuntimeError> {
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

/// The failure of a kernel that does not compile.
fn failed(spec: &KernelSpec, error: &RuntimeError) -> Failure {
    refused(spec.fault("src", error.to_string()))
}
