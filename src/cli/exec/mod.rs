//! `pdawl exec`: runs an OpenCL program with pdawl's layer in front of the OpenCL loader.
//!
//! * `layer` finds the layer's library, and `environment` says what the program gets.
//! * `examine` asks the loader before the program runs, in another process.
//! * `program` starts the program, forwards signals to it and waits.
//! * `collect` reads what the layer wrote in each process of the program.

mod collect;
mod environment;
mod examine;
mod program;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use pdawl_api::report::exec::{self, ExecReport};

use super::args::Format;
use super::failure::Failure;
use super::output::Output;
use super::paths::Paths;
use super::terminal;

use collect::Collected;
use program::Ended;

pub use examine::examine_loader;
pub use program::attended;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  pdawl exec ./program --its-own-option\n  \
                        pdawl exec --policy round-robin --report run.json ./program\n  \
                        pdawl exec --virtual 2 --devices gpu,cpu -- ./program\n  \
                        pdawl exec --policy divide --exact ./program\n\n\
                        The exit status is the program's, or 128 and the signal that ended it. \
                        It is 127 for a program that is not found, 126 for one that cannot be \
                        started, 2 for wrong usage and 1 for what fails before the start.")]
pub struct Args {
    /// Devices that the program sees, each of which stands for all; 0 shows the real ones
    ///
    /// A program for several devices makes a queue for each of them. pdawl maps each queue
    /// to a real device.
    #[arg(long = "virtual", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(0..=64))]
    virtual_devices: u8,

    /// How queues get devices
    #[arg(long, value_enum, default_value_t)]
    policy: Policy,

    /// Which device each queue has, in the order in which queues are made, instead of a
    /// policy: 0,1 are the first and the second of --devices, in turns
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "policy",
          value_parser = clap::value_parser!(u8).range(0..=63))]
    map: Vec<u8>,

    /// Divide launches only between devices whose results agree bit for bit
    ///
    /// Each device runs a kernel on the same data before its launches are divided.
    #[arg(long)]
    exact: bool,

    /// The type that a device says it has, if it stands for several
    #[arg(long, value_enum, default_value_t)]
    device_type: DeviceType,

    /// Devices to use: names as `pdawl devices` shows them, cpu, gpu [default: all]
    #[arg(long, value_name = "LIST")]
    devices: Option<String>,

    /// The layer's library [default: libpdawl_opencl.so near this program, or one that is
    /// built once]
    #[arg(long, value_name = "FILE")]
    layer: Option<PathBuf>,

    /// Write the report as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,

    /// Write a Chrome trace of all commands, for ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    trace: Option<PathBuf>,

    /// How the report is printed on standard error after the program's end
    ///
    /// Text is printed on a terminal only. Standard output is the program's.
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,

    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

/// How queues get devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Every launch has the next device
    RoundRobin,
    /// The map from queues to devices with the least predicted time
    #[default]
    AutoFit,
    /// As auto-fit, and single launches are divided over devices where that is faster
    Divide,
    /// Every launch that can be is divided into equal parts: to test a program
    #[value(name = "divide:equal")]
    DivideEqually,
    /// All queues have the first device
    Off,
}

/// What a device says it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DeviceType {
    #[default]
    Gpu,
    Cpu,
}

/// The name of a value, as users type it.
fn typed(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let divides = matches!(args.policy, Policy::Divide | Policy::DivideEqually);
    if args.exact && !divides {
        return Err(Failure::usage(
            "--exact is for launches that are divided",
            "--policy divide, or no --exact",
        ));
    }
    let mut paths = Paths::default();
    let mut output = |path: &Option<PathBuf>| match path {
        Some(path) => paths.output(path).map(Some),
        None => Ok(None),
    };
    let (report, trace) = (output(&args.report)?, output(&args.trace)?);
    let layer = environment::find_layer(args.layer.as_deref())?;
    let folder = collect::folder()?;
    let environment = environment::of(args, &layer, folder.path());
    for note in examine::check(&layer, &environment)? {
        terminal::message(&format!("pdawl: {note}"));
    }
    let ended = program::run(&args.command, &environment)?;
    let collected = Collected::read(folder.path(), &ended);
    let made = build(args, &layer, &ended, &collected);
    // A failure of one output does not keep the others from being written.
    let written = write_report(report, &made);
    let traced = write_trace(trace, &collected);
    print(args.format, &made);
    let status = ended.shell_status();
    match written.and(traced) {
        Err(failure) if status == 0 => Err(failure),
        Err(failure) => {
            // The program's own failure is what the caller must learn.
            failure.print();
            Err(Failure::Program(status))
        }
        Ok(()) if status == 0 => Ok(()),
        Ok(()) => Err(Failure::Program(status)),
    }
}

fn build(
    args: &Args,
    layer: &environment::Layer,
    ended: &Ended,
    collected: &Collected,
) -> ExecReport {
    let shown = |text: &OsString| text.to_string_lossy().into_owned();
    let mut notes = collected.notes.clone();
    if collected.processes.is_empty() {
        notes.push(
            "no process of the program asked the loader for OpenCL's platforms: it uses no \
             OpenCL, or a loader of its own (`ldd PROGRAM`), or it has more rights than its user"
                .to_owned(),
        );
    }
    ExecReport {
        format: exec::FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        command: args.command.iter().map(shown).collect(),
        status: ended.status,
        signal: ended.signal,
        seconds: ended.seconds,
        settings: exec::Settings {
            layer: layer.path.display().to_string(),
            virtual_devices: (args.virtual_devices > 0).then_some(args.virtual_devices),
            policy: typed(&args.policy),
            map: args.map.clone(),
            exact: args.exact,
            device_type: typed(&args.device_type),
            devices: args.devices.clone(),
        },
        processes: collected.processes.clone(),
        notes,
    }
}

fn json(report: &ExecReport) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(report)?;
    text.push(b'\n');
    Ok(text)
}

fn write_report(output: Option<Output>, report: &ExecReport) -> Result<(), Failure> {
    match output {
        Some(output) => output.write(|out| out.write_all(&json(report)?)),
        None => Ok(()),
    }
}

fn write_trace(output: Option<Output>, collected: &Collected) -> Result<(), Failure> {
    match output {
        Some(output) => output.write(|out| collected.write_trace(out)),
        None => Ok(()),
    }
}

/// Prints the report on standard error: standard output is the program's. If standard
/// error is closed, the report is lost there.
fn print(format: Format, report: &ExecReport) {
    let text = match format {
        Format::Json => json(report).unwrap_or_default(),
        Format::Text if io::stderr().is_terminal() => exec::render(report).into_bytes(),
        // Whoever reads standard error gets what must be known.
        Format::Text => return report.notes.iter().for_each(|note| terminal::warn(note)),
    };
    let _ = anstream::stderr().lock().write_all(&text);
}
