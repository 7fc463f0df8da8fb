//! `pdawl devices`: lists the devices, and the counters and sensors that profiles can
//! use.

use comfy_table::ContentArrangement;
use pdawl_api::machine::{Device, RuntimeKind, SubDeviceSupport};
use pdawl_api::quantity::Bytes;
use pdawl_api::report::Printed;
use pdawl_api::report::instruments::{self, Instruments};
use pdawl_api::report::table;
use pdawl_api::session::this_machine::{self, GpuDriver, ThisMachine};
use pdawl_profiler::{counters, telemetry};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::Format;
use super::failure::Failure;
use super::terminal;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  pdawl devices --format json")]
pub struct Args {
    /// How the devices are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The devices of this machine. Processor counters count user code only; unprivileged users see
/// context switches and migrations only with `kernel.perf_event_paranoid` at 1 or below.
#[derive(JsonSchema, Serialize)]
pub struct Listing {
    devices: Vec<Device>,
    /// GPUs that CUDA offers, and the driver that opens them where no devices are named.
    gpu_drivers: Vec<GpuDriver>,
    profiling: Instruments,
    /// Conditions that would harm runs.
    warnings: Vec<String>,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let ThisMachine {
        devices,
        gpu_drivers,
        warnings,
    } = this_machine::devices()?;
    // Every counter is tried, and every GPU is asked for its sensors.
    let profiling = Instruments {
        counters: counters::availability(),
        telemetry: telemetry::availability(),
    };
    match args.format {
        Format::Json => terminal::print_json(&Printed::from(&Listing {
            devices,
            gpu_drivers,
            profiling,
            warnings,
        })),
        Format::Text => {
            let profiling = instruments::render(&profiling);
            terminal::print(&format!("{}\n{profiling}", listing(&devices)))?;
            for gpu in &gpu_drivers {
                terminal::message(&gpu.to_string());
            }
            for warning in &warnings {
                terminal::warn(warning);
            }
            Ok(())
        }
    }
}

fn listing(devices: &[Device]) -> String {
    let header = [
        "Device",
        "Kind",
        "Runtime",
        "Units",
        "Memory",
        "Clock",
        "fp64",
        "Queues",
        "Divisible",
        "Model",
        "Driver",
    ];
    let mut table = table::plain(&header, |column| matches!(column, 3..=5 | 7));
    // On a narrow terminal, long names wrap within their column.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(columns) = terminal::columns() {
        table.set_width(columns);
    }
    for device in devices {
        table.add_row(vec![
            device.name.clone(),
            device.kind.name().into(),
            runtime(device.runtime).into(),
            device.compute_units.to_string(),
            Bytes(device.memory).to_string(),
            device
                .clock_mhz
                .map_or_else(|| "-".into(), |mhz| format!("{mhz} MHz")),
            if device.fp64 { "yes" } else { "no" }.into(),
            device.queues.to_string(),
            divisible(device.sub_devices),
            device.model.clone(),
            device.driver.clone(),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}

fn runtime(kind: RuntimeKind) -> &'static str {
    match kind {
        RuntimeKind::Host => "host",
        RuntimeKind::Opencl => "opencl",
        RuntimeKind::Cuda => "cuda",
        RuntimeKind::Sim => "sim",
    }
}

/// The ways to divide a device into sub-devices.
fn divisible(support: SubDeviceSupport) -> String {
    let ways = [
        (support.equally, "equally"),
        (support.by_counts, "counts"),
        (support.by_affinity, "numa"),
    ];
    let names: Vec<&str> = ways.iter().filter(|w| w.0).map(|w| w.1).collect();
    match names.is_empty() {
        true => "no".into(),
        false => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use pdawl_api::machine::DeviceKind;

    use super::*;

    #[test]
    fn everything_that_matters_is_shown() {
        let text = listing(&[Device {
            name: "opencl0.0".into(),
            model: "A GPU".into(),
            kind: DeviceKind::Gpu,
            runtime: RuntimeKind::Opencl,
            compute_units: 132,
            memory: 139 << 30,
            max_allocation: 35 << 30,
            clock_mhz: Some(1980),
            shares_host_memory: false,
            fp64: true,
            sub_devices: SubDeviceSupport {
                equally: true,
                by_counts: true,
                by_affinity: false,
            },
            queues: 3,
            driver: "CUDA 535.1".into(),
            link_bandwidth: None,
            one_way: None,
        }]);
        for part in [
            "opencl0.0",
            "gpu",
            "opencl",
            "132",
            "139 GiB",
            "1980 MHz",
            "yes",
            "3",
            "equally, counts",
            "A GPU",
            "CUDA 535.1",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
