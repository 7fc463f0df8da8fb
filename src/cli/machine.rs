//! `pdawl machine`: measures this machine, and lists and shows machine files.

use clap::Subcommand;
use pdawl_api::machine::{MachineError, MachineFile, MachineStore, StoreError};
use pdawl_api::quantity::{Bytes, Count};
use pdawl_api::report::table;
use pdawl_api::session::this_machine;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::Format;
use super::failure::Failure;
use super::machine_session::machine_file;
use super::saved_report::SavedReport;
use super::size::{ByteSize, ByteSizeError};
use super::terminal;

/// Bytes of the smallest copy that can be timed.
const LEAST_COPY: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  pdawl machine save mine\n  pdawl machine list\n  \
                        pdawl machine show k40\n  pdawl run stencil --machine k40"
)]
pub struct Args {
    #[command(subcommand)]
    what: MachineCommand,
}

#[derive(Debug, Subcommand)]
enum MachineCommand {
    /// Measure this machine's links and memory, and save the figures in a file
    #[command(after_help = "Example:\n  pdawl machine save mine")]
    Save {
        /// Letters, digits, `-`, `_` and `.`
        name: String,
        /// Replace the machine file of this name, if there is one
        #[arg(long)]
        force: bool,
        /// Size of the largest copies, much larger than any cache
        #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = copy_size)]
        copy_size: ByteSize,
        /// How the result is printed
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// List the machines that --machine knows
    #[command(after_help = "Example:\n  pdawl machine list")]
    List {
        /// How the list is printed
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show a machine file
    #[command(after_help = "Example:\n  pdawl machine show k40")]
    Show {
        /// A name that `pdawl machine list` shows, or a file
        #[arg(value_name = "NAME|FILE")]
        name: String,
        /// TOML as in the file, or JSON
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// Parses a size of copies that can be timed.
pub fn copy_size(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse().map_err(|e: ByteSizeError| e.to_string())?;
    match size.0 < LEAST_COPY {
        true => Err("a copy of this size is too short to be timed; give at least 1MiB".to_owned()),
        false => Ok(size),
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let store = MachineStore::of_user();
    match &args.what {
        MachineCommand::Save {
            name,
            force,
            copy_size,
            format,
        } => save(&store, name, *force, *copy_size, *format),
        MachineCommand::List { format } => list(&store, *format),
        MachineCommand::Show { name, format } => {
            let machine = machine_file(name)?;
            let toml = machine.to_toml().map_err(Failure::of)?;
            terminal::print_file(*format, &machine, &toml)
        }
    }
}

fn save(
    store: &MachineStore,
    name: &str,
    force: bool,
    copy_size: ByteSize,
    format: Format,
) -> Result<(), Failure> {
    // Measuring takes long, so a wrong name is refused before.
    match store.find(name) {
        Err(error @ MachineError::Store(StoreError::Name { .. })) => {
            return Err(Failure::of(error));
        }
        Err(MachineError::Store(StoreError::Unknown { .. })) => {}
        // A broken file is one, too.
        _ if !force => {
            return Err(Failure::usage(
                format!("a machine is called `{name}` already"),
                "another name, or --force to replace its file",
            ));
        }
        _ => {}
    }
    let bar = terminal::spinner();
    let machine = this_machine::measure(name, copy_size.0, &mut |device, what| {
        bar.set_message(format!("{device}: {what}"));
    });
    bar.finish_and_clear();
    let machine = machine?;
    let path = store.save(&machine).map_err(Failure::of)?;
    let text = format!("{}saved in {}\n", list_text(&[machine]), path.display());
    let saved = SavedReport {
        kind: "machine",
        name,
        machine: name,
        simulated: false,
        file: &path,
    };
    saved.print(format, &text)
}

/// A machine in the list.
#[derive(JsonSchema, Serialize)]
pub struct MachineSummary {
    /// For `--machine`.
    name: String,
    /// A line about it.
    title: String,
    /// Of the host.
    cores: u32,
    /// Names of the others.
    devices: Vec<String>,
}

/// The known machines.
#[derive(JsonSchema, Serialize)]
pub struct Listing {
    machines: Vec<MachineSummary>,
}

fn list(store: &MachineStore, format: Format) -> Result<(), Failure> {
    let machines = terminal::readable(store.names(), |name| store.find(name));
    let machines: Vec<MachineFile> = machines.into_iter().map(|(_, machine)| machine).collect();
    let text = list_text(&machines);
    let entry = |machine: MachineFile| MachineSummary {
        name: machine.name,
        title: machine.title,
        cores: machine.host.cores,
        devices: machine.devices.into_iter().map(|d| d.name).collect(),
    };
    let listing = Listing {
        machines: machines.into_iter().map(entry).collect(),
    };
    terminal::print_report(format, &listing, |_| text)
}

fn list_text(machines: &[MachineFile]) -> String {
    let header = ["Machine", "Cores", "Host copy", "Devices", "Title"];
    let mut table = table::plain(&header, |column| matches!(column, 1 | 2));
    for machine in machines {
        let devices: Vec<String> = machine
            .devices
            .iter()
            .map(|d| format!("{} ({})", d.name, Bytes(d.memory)))
            .collect();
        table.add_row(vec![
            machine.name.clone(),
            machine.host.cores.to_string(),
            Count(machine.host.memory_bandwidth, "B/s").to_string(),
            devices.join(", "),
            machine.title.clone(),
        ]);
    }
    format!("{}\n", table.trim_fmt())
}
