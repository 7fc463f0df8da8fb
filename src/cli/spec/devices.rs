//! The devices of users' kernels: OpenCL devices only.

use pdawl::runtime::opencl;
use pdawl::runtime::select::{Selection, Source};

use crate::cli::args::MachineArgs;
use crate::cli::failure::{Failure, wrong_devices};
use crate::cli::machine_session::NamedMachine;

/// The arguments with OpenCL devices: those named, or all, the CPU's included.
///
/// # Errors
/// When there is none, the embedded runtime is named, or another machine, on
/// which kernels would have to be simulated.
pub fn opencl_only(args: &MachineArgs) -> Result<MachineArgs, Failure> {
    if let Some(name) = &args.machine
        && NamedMachine::find(name)?.is_simulated()
    {
        return Err(Failure::usage(
            format!(
                "--machine {name}: a kernel in OpenCL C cannot be simulated, since its cost is \
                 not known"
            ),
            "no --machine, for the devices that are here",
        ));
    }
    let Some(list) = &args.devices else {
        return Ok(MachineArgs {
            devices: Some(every()?),
            ..args.clone()
        });
    };
    let selection: Selection = list.parse().map_err(wrong_devices)?;
    let host = |source: Source| source == Source::Host;
    if selection.devices().iter().any(|spec| host(spec.source)) {
        return Err(wrong_devices(
            "the embedded runtime (host) runs no OpenCL C; the CPU takes part as an OpenCL device",
        ));
    }
    Ok(args.clone())
}

/// Every OpenCL device.
fn every() -> Result<String, Failure> {
    let discovery = opencl::discover();
    let found = discovery.devices.into_iter();
    let names: Vec<String> = found.map(|found| found.info.name).collect();
    if !names.is_empty() {
        return Ok(names.join(","));
    }
    let what = "there is no OpenCL device here, and kernels in OpenCL C run on nothing else";
    // Warnings of the loader, with their remedies.
    let of_loader = |warning: &String| warning.contains("OpenCL") || warning.contains("OCL_");
    let warnings: Vec<String> = discovery.warnings.into_iter().filter(of_loader).collect();
    Err(match warnings.as_slice() {
        [] => Failure::failed(
            what,
            "an OpenCL driver; for the CPU, PoCL (apt-get install pocl-opencl-icd)",
        ),
        warnings => Failure::failed(what, warnings.join("; ")),
    })
}
