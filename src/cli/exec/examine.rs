//! Asks the OpenCL loader before the program runs, in a process that has the program's
//! environment: a driver that fails there harms nobody.

use std::path::Path;
use std::process::{Output, Stdio};

use pdawl_api::executable;
use pdawl_api::runtime::opencl::{self, Loader};

use super::environment::{Environment, Layer};
use crate::failure::Failure;
use crate::terminal;

/// The name of the layer's platform.
const PLATFORM: &str = "pdawl";
/// The variable by which pdawl's own OpenCL calls use another loader. Programs do not
/// know it.
const OWN_LOADER: &str = "OPENCL_DYLIB_PATH";

/// The remedy for missing drivers.
const NO_DRIVER: &str = "install pocl-opencl-icd for the CPU, or your GPU vendor's OpenCL driver; \
                         `pdawl devices` says what is wrong";

/// `pdawl examine-loader`: prints what the loader lists.
pub fn examine_loader() -> Result<(), Failure> {
    terminal::print_json(&opencl::examine_loader())
}

/// Checks that the program will see pdawl's platform. Returns what the user should know.
pub fn check(layer: &Layer, environment: &Environment) -> Result<Vec<String>, Failure> {
    let output = ask(environment)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let Ok(loader) = serde_json::from_slice::<Loader>(&output.stdout) else {
        return Err(Failure::failed(
            format!(
                "the OpenCL loader ends the process that asks it ({}): {}",
                output.status,
                said.trim()
            ),
            "`pdawl devices` for what is wrong with a driver, or --devices with others",
        ));
    };
    if let Some(unknown) = said
        .lines()
        .find(|line| line.contains("no OpenCL device is called"))
    {
        let what = unknown.strip_prefix("pdawl: ").unwrap_or(unknown);
        return Err(Failure::usage(
            format!("--devices: {}", what.split(';').next().unwrap_or(what)),
            "cpu, gpu, or a name of an OpenCL device that `pdawl devices` shows",
        ));
    }
    verdict(&loader, layer, environment, &said)?;
    let others: Vec<String> = environment
        .others
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    Ok(match others.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "OPENCL_LAYERS has other layers ({}); they stay in use, between the program and pdawl",
            others.join(", ")
        )],
    })
}

fn ask(environment: &Environment) -> Result<Output, Failure> {
    let unable = |error| {
        Failure::failed(
            format!("this program cannot start itself to ask the OpenCL loader: {error}"),
            "the same where processes may be started",
        )
    };
    let mut command = executable::again().map_err(unable)?;
    command
        .arg("examine-loader")
        .stdin(Stdio::null())
        .env_remove(OWN_LOADER);
    environment.give(&mut command);
    // The examination is no part of the program's report.
    command.env_remove("PDAWL_REPORT").env_remove("PDAWL_TRACE");
    command.output().map_err(unable)
}

fn verdict(
    loader: &Loader,
    layer: &Layer,
    environment: &Environment,
    said: &str,
) -> Result<(), Failure> {
    if let Some(fault) = &loader.fault {
        return Err(Failure::failed(
            format!("no program can use OpenCL: {fault}"),
            "`pdawl devices`, which says what else is wrong",
        ));
    }
    if !loader.found {
        return Err(Failure::failed(
            "there is no OpenCL loader (libOpenCL.so.1), so no program can use OpenCL",
            "install ocl-icd-libopencl1 (Debian, Ubuntu) or ocl-icd (Fedora, Arch), version 2.3 or \
             newer",
        ));
    }
    if loader.platforms.is_empty() && loader.knows_layers && environment.others.is_empty() {
        return Err(Failure::failed(
            "the OpenCL loader finds no driver",
            NO_DRIVER,
        ));
    }
    let file = loader
        .file
        .as_deref()
        .unwrap_or(Path::new("libOpenCL.so.1"))
        .display();
    let Some(platform) = loader
        .platforms
        .iter()
        .find(|platform| platform.name == PLATFORM)
    else {
        return Err(match (loader.knows_layers, environment.others.is_empty()) {
            (false, _) => Failure::failed(
                format!(
                    "the OpenCL loader {file} knows no layers, so pdawl cannot be put before programs"
                ),
                "install ocl-icd 2.3 or Khronos's loader 2022.01.04, or newer; LD_LIBRARY_PATH may \
                 name the folder of another loader",
            ),
            (true, false) => Failure::failed(
                format!(
                    "a layer in OPENCL_LAYERS hides pdawl's platform: {}",
                    environment
                        .others
                        .join(std::ffi::OsStr::new(":"))
                        .to_string_lossy()
                ),
                "the same with OPENCL_LAYERS unset",
            ),
            (true, true) => Failure::failed(
                format!(
                    "the OpenCL loader {file} does not use the layer {}: {}",
                    layer.path.display(),
                    said.trim()
                ),
                "`cargo build --release -p pdawl-opencl-layer` for this system; a loader of another \
                 architecture cannot use it",
            ),
        });
    };
    if platform.devices.is_empty() {
        return Err(Failure::failed("no OpenCL driver has a device", NO_DRIVER));
    }
    Ok(())
}
