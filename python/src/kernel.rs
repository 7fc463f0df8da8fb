//! Kernels and their launches.

use std::sync::{Mutex, MutexGuard};

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray1};
use pdawl::session::{Kernel as Inner, KernelRun};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A kernel of a source in OpenCL C.
#[pyclass(frozen)]
pub struct Kernel(Mutex<Inner>);

impl Kernel {
    pub fn of(kernel: Inner) -> Self {
        Self(Mutex::new(kernel))
    }

    /// The kernel, which no other thread launches meanwhile.
    pub fn lock(&self) -> PyResult<MutexGuard<'_, Inner>> {
        // Waiting here would keep the interpreter's lock from who has the kernel.
        self.0
            .try_lock()
            .map_err(|_| PyRuntimeError::new_err("another thread launches this kernel"))
    }
}

#[pymethods]
impl Kernel {
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.lock()?.name().to_owned())
    }

    /// Of each parameter the bytes of an element; None for a structure.
    #[getter]
    fn element_bytes(&self) -> PyResult<Vec<Option<u64>>> {
        let kernel = self.lock()?;
        let bytes = kernel
            .parameters()
            .map(|(parameter, _)| kernel.element_bytes(parameter));
        Ok(bytes.collect())
    }

    /// Of each parameter its name, its type, and how a buffer is used: `reads`, `writes` or
    /// `updates`; None for a value.
    #[getter]
    fn parameters(&self) -> PyResult<Vec<(String, String, Option<&'static str>)>> {
        let kernel = self.lock()?;
        let parameters = kernel.parameters().map(|(parameter, access)| {
            let usage = match (access.read, access.written) {
                _ if !parameter.pointer => None,
                (_, false) => Some("reads"),
                (false, true) => Some("writes"),
                (true, true) => Some("updates"),
            };
            (parameter.name.clone(), parameter.type_name.clone(), usage)
        });
        Ok(parameters.collect())
    }
}

/// An argument of a launch: how a buffer is used, and its bytes; or the bytes of a value.
#[derive(FromPyObject)]
pub enum LaunchArgument<'py> {
    Buffer(String, Bound<'py, PyArray1<u8>>),
    Value(Vec<u8>),
}

/// An argument whose memory nobody else uses in Python.
pub enum Borrowed<'a> {
    Reads(PyReadonlyArray1<'a, u8>),
    Writes(PyReadwriteArray1<'a, u8>),
    Updates(PyReadwriteArray1<'a, u8>),
    Value(&'a [u8]),
}

/// The bytes of an argument, for the session's thread.
pub enum Bytes<'a> {
    Reads(&'a [u8]),
    Writes(&'a mut [u8]),
    Updates(&'a mut [u8]),
    Value(&'a [u8]),
}

impl<'py> LaunchArgument<'py> {
    pub fn borrow<'a>(&'a self) -> PyResult<Borrowed<'a>>
    where
        'py: 'a,
    {
        Ok(match self {
            Self::Value(bytes) => Borrowed::Value(bytes),
            Self::Buffer(usage, array) => match usage.as_str() {
                "reads" => Borrowed::Reads(array.try_readonly()?),
                "writes" => Borrowed::Writes(array.try_readwrite()?),
                _ => Borrowed::Updates(array.try_readwrite()?),
            },
        })
    }
}

impl Borrowed<'_> {
    pub fn bytes(&mut self) -> PyResult<Bytes<'_>> {
        Ok(match self {
            Self::Reads(array) => Bytes::Reads(array.as_slice()?),
            Self::Writes(array) => Bytes::Writes(array.as_slice_mut()?),
            Self::Updates(array) => Bytes::Updates(array.as_slice_mut()?),
            Self::Value(bytes) => Bytes::Value(bytes),
        })
    }
}

impl<'a> Bytes<'a> {
    /// Adds it to a launch.
    pub fn add_to(self, launch: KernelRun<'a>) -> KernelRun<'a> {
        match self {
            Self::Reads(bytes) => launch.reads(bytes),
            Self::Writes(bytes) => launch.writes(bytes),
            Self::Updates(bytes) => launch.updates(bytes),
            Self::Value(bytes) => launch.value_of_bytes(bytes),
        }
    }
}
