//! Kernels of specifications: the devices that run them, and survive their first launch.

mod compiler;
mod devices;

use std::sync::atomic::AtomicBool;

use crate::codelet::KernelArgument;
use crate::engine::first_launch::{Tried, Verdict, examine};
use crate::graph::TaskGraph;
use crate::graph::spec::Described;
use crate::machine::DeviceKind;
use crate::runtime::select::{DeviceSpec, Selection, Source};
use crate::session::Error;

pub use crate::engine::first_launch::Words;
pub use compiler::Compiler;
pub(super) use devices::every;

/// The devices that run kernels.
pub struct KernelDevices {
    /// As a list of names.
    pub list: String,
    /// Why some of those that were asked for, or of all, take no part.
    pub notes: Vec<String>,
}

impl KernelDevices {
    /// The devices that are asked for, or by default all, the CPU's included, but each core once.
    /// GPUs are opened through OpenCL where CUDA refuses a kernel and the user left the choice.
    ///
    /// # Errors
    /// When there is none, or the embedded runtime is named.
    pub fn of(kernels: &[&Described], asked: Option<&str>) -> Result<Self, Error> {
        let Some(list) = asked else {
            let (list, notes) = devices::running(kernels)?;
            return Ok(Self { list, notes });
        };
        let selection: Selection = list.parse()?;
        let mut devices = selection.devices().iter();
        match devices.any(|device| device.source == Source::Host) {
            true => Err(Error::KernelDevices(
                "the embedded runtime (host) runs no OpenCL C; the CPU takes part as an OpenCL \
                 device"
                    .to_owned(),
            )),
            false => Ok(Self {
                list: list.to_owned(),
                notes: Vec::new(),
            }),
        }
    }

    /// Their kinds.
    pub fn kinds(&self) -> Vec<DeviceKind> {
        devices::kinds(&self.list)
    }

    /// Launches kernels, which are those of the graph, on each device that runs them in this
    /// process. Those whose drivers do not survive that are left out. A compiler is asked whether
    /// it agrees with the kernels' files. `contents`: whether the data decide what kernels touch.
    ///
    /// # Errors
    /// When a compiler disagrees with a file, a kernel leaves its buffers, no device is left, and
    /// when the stop was set.
    pub fn examine(
        &mut self,
        kernels: &[&Described],
        (graph, words, contents): (&TaskGraph, &[Words], bool),
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let selection: Selection = self.list.parse()?;
        let tried = Tried {
            graph,
            words,
            contents,
            stop,
        };
        let survivors = survivors(&selection, &tried)?;
        for (described, arguments) in kernels.iter().zip(&survivors.arguments) {
            if let Some(arguments) = arguments {
                described.spec.agrees_with_compiler(arguments)?;
            }
        }
        if survivors.devices.is_empty() {
            let names = kernels.iter().map(|kernel| kernel.kernel.name.as_str());
            let names: Vec<&str> = names.collect();
            let why = survivors.left_out.join("; ");
            return Err(Error::NoKernelDevice {
                what: format!("no device is left for {}: {why}", names.join(", ")),
                remedy: "another version of the driver, or other devices".to_owned(),
            });
        }
        let names: Vec<String> = (survivors.devices.iter())
            .map(DeviceSpec::to_string)
            .collect();
        self.list = names.join(",");
        self.notes.extend(survivors.notes);
        self.notes.extend(survivors.left_out);
        if survivors.arguments.iter().any(Option::is_none)
            && let Some(mut compiler) = Compiler::first_of(&self.list)?
        {
            for kernel in kernels {
                compiler.check(kernel)?;
            }
        }
        Ok(())
    }
}

/// What first launches show.
pub(super) struct Survivors {
    pub devices: Vec<DeviceSpec>,
    pub notes: Vec<String>,
    /// Devices that do not survive, and why.
    pub left_out: Vec<String>,
    /// By kernel, as a compiler reports them, if one has compiled it.
    arguments: Vec<Option<Vec<KernelArgument>>>,
}

/// Launches kernels in a process of its own, once for each device that computes in the process
/// that uses it.
///
/// # Errors
/// When a kernel leaves its buffers, and when the stop was set.
pub(super) fn survivors(selection: &Selection, tried: &Tried) -> Result<Survivors, Error> {
    let examined = examine(selection, tried).map_err(|_| Error::Stopped)?;
    let mut survivors = Survivors {
        devices: selection.devices().to_vec(),
        notes: Vec::new(),
        left_out: Vec::new(),
        arguments: examined.arguments,
    };
    for (spec, device, verdict) in examined.verdicts {
        match verdict {
            Verdict::Fine => {}
            Verdict::Note(note) => survivors.notes.push(note),
            Verdict::LeaveOut(why) => {
                (survivors.devices).retain(|other| other.source != spec.source);
                survivors
                    .left_out
                    .push(format!("{device} is left out: {why}"));
            }
            Verdict::Fault(what) => return Err(Error::Kernel(what)),
        }
    }
    Ok(survivors)
}
