//! `pdawl run` of an operation of the [catalogue](pdawl_api::catalogue), on one machine or over nodes.

use std::path::Path;
use std::sync::Arc;

use clap::builder::{
    PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use pdawl_api::catalogue::{Entry, Given, Kind, Made, OPERATIONS, Parameter, Unfit, Value, Values};
use pdawl_api::policy::NamedPolicy;
use pdawl_api::session::nodes::AskedOperation;
use pdawl_api::workload::cluster::Placement;

use super::args::{Format, MachineArgs};
use super::cluster::{
    ClusterJob, NodeOptions, OperationJob, Prepared, ResultArray, ResultFile, Work, run_job,
};
use super::failure::Failure;
use super::files::TraceFiles;
use super::paths::Paths;
use super::size::integer;

/// The policy by default.
pub const POLICY: &str = "locality";

/// How an operation runs.
#[derive(Clone, Debug, Args)]
pub struct OperationArgs {
    /// Seed of generated data, of a random order and of the policy's random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX))]
    pub seed: u64,

    /// The scheduling policy of one machine
    #[arg(long, value_name = "POLICY", default_value = POLICY, long_help = NamedPolicy::help(),
          help_heading = "Scheduling")]
    pub policy: NamedPolicy,

    #[command(flatten)]
    pub machine: MachineArgs,

    /// Compare the result with a reference in double precision, by random vectors or samples; a
    /// wrong one fails
    #[arg(long, help_heading = "Output")]
    pub verify: bool,

    /// How the report is printed
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,

    #[command(flatten)]
    pub files: TraceFiles,
}

/// An operation with what the command line says of it.
pub struct OperationCommand {
    entry: &'static Entry,
    values: Values,
    args: OperationArgs,
    nodes: NodeOptions,
}

impl std::fmt::Debug for OperationCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.entry.name)
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

impl Subcommand for OperationCommand {
    fn augment_subcommands(command: Command) -> Command {
        OPERATIONS.iter().fold(command, |command, entry| {
            command.subcommand(of_entry(entry))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        OPERATIONS.iter().any(|entry| entry.name == name)
    }
}

impl FromArgMatches for OperationCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let found = matches.subcommand().and_then(|(name, given)| {
            let entry = OPERATIONS.iter().find(|entry| entry.name == name)?;
            Some((*entry, given))
        });
        let Some((entry, given)) = found else {
            return Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand));
        };
        let parameters = entry.parameters.iter().chain(entry.results);
        let values = parameters.filter_map(|parameter| {
            let value = given.get_one::<Value>(parameter.name)?;
            Some((parameter.name, value.clone()))
        });
        Ok(Self {
            entry,
            values: Values(values.collect()),
            args: OperationArgs::from_arg_matches(given)?,
            nodes: match entry.nodes {
                Some(_) => NodeOptions::from_arg_matches(given)?,
                None => NodeOptions::default(),
            },
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The command of an operation.
fn of_entry(entry: &Entry) -> Command {
    let command = Command::new(entry.name).after_help(entry.examples);
    let command = command.args(entry.parameters.iter().map(argument));
    let command = OperationArgs::augment_args(command);
    let results = entry
        .results
        .iter()
        .map(|result| argument(result).help_heading("Output"));
    let command = command.args(results);
    let command = match entry.nodes {
        Some(_) => NodeOptions::augment_args(command),
        None => command,
    };
    // Groups of options bring words of their own.
    let command = command.about(entry.about).long_about(None);
    command.mut_arg("host_memory", |limit| limit.hide(true))
}

/// The option of a parameter.
fn argument(parameter: &'static Parameter) -> Arg {
    let arg = Arg::new(parameter.name)
        .long(parameter.name)
        .action(ArgAction::Set)
        .help(parameter.help)
        .conflicts_with_all(parameter.excludes);

    let arg = parameter
        .needs
        .iter()
        .fold(arg, |arg, needed| arg.requires(needed));
    let arg = match parameter.more {
        "" => arg,
        more => arg.long_help(format!("{}\n\n{more}", parameter.help)),
    };
    let arg = match parameter.default {
        "" => arg,
        default => arg.default_value(default),
    };
    match parameter.kind {
        Kind::Number(least, most) => {
            let number = integer(least..=most);
            let parse = move |text: &str| number(text).map(Value::Number);
            arg.value_name("N").value_parser(ValueParser::new(parse))
        }
        Kind::Tile(least, most) => {
            let number = integer(least..=most);
            let parse = move |text: &str| match text.trim() {
                "auto" => Ok(Value::Auto),
                text => number(text)
                    .map(Value::Number)
                    .map_err(|error| format!("{error}; or write auto")),
            };
            arg.value_name("N|auto")
                .value_parser(ValueParser::new(parse))
        }
        Kind::Choice(choices) => {
            let values = choices.iter().map(|(name, help)| match *help {
                "" => PossibleValue::new(*name),
                help => PossibleValue::new(*name).help(help),
            });
            let parse = PossibleValuesParser::new(values).map(Value::Word);
            arg.value_name("NAME").value_parser(parse)
        }
        Kind::File => {
            let parse = PathBufValueParser::new().map(Value::File);
            arg.value_name("FILE").value_parser(parse)
        }
    }
}

impl From<Unfit> for Failure {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Value { what, remedy } => Self::usage(what, remedy),
            Unfit::Input { what, remedy } => Self::failed(what, remedy),
            Unfit::File(error) => Self::of(error),
        }
    }
}

impl OperationCommand {
    /// Runs it.
    ///
    /// # Errors
    /// Values and files that do not suit, what a run refuses, and a wrong result.
    pub fn run(&self) -> Result<(), Failure> {
        let mut args = self.args.clone();
        if self.entry.hosts_only {
            self.check_hosts()?;
            if self.nodes.cluster.is_none() {
                args.machine
                    .devices
                    .get_or_insert_with(|| "host".to_owned());
            }
        }
        let job = ClusterJob {
            devices: args.machine.devices.as_deref(),
            nodes: &self.nodes,
            alone: Some(&args),
            noise: args.machine.noise,
            seed: args.seed,
            verify: args.verify,
            format: args.format,
            files: &args.files,
        };
        run_job(&job, |_| self.prepared())
    }

    /// The operation, of files if some are named, and the files of its results.
    fn prepared(&self) -> Result<Prepared, Failure> {
        let (entry, seed) = (self.entry, self.args.seed);
        let usual = entry.nodes.unwrap_or(Placement::Grid);
        let Made { operation, arrays } = entry.made(&Given {
            values: &self.values,
            seed,
            placement: self.nodes.spread.placement(usual, seed),
        })?;
        let inputs: Vec<&Path> = self.values.files(entry.parameters).collect();
        let machine = self.args.machine.machine_path();
        let mut paths = Paths::reading(inputs.iter().copied().chain(machine));
        let mut results = Vec::new();
        let spaces = operation.outputs.iter().zip(&arrays);
        for (result, (space, (shape, element))) in entry.results.iter().zip(spaces) {
            let array = ResultArray {
                space: *space,
                shape,
                element: *element,
            };
            let path = self.values.file(result.name);
            results.extend(ResultFile::prepare(path, &mut paths, &array)?);
        }
        let asked = AskedOperation {
            operation: Arc::new(operation),
            tile: self.values.tile(),
            inputs: (inputs.iter())
                .map(|path| path.display().to_string())
                .collect(),
            seed,
        };
        let values = self.values.clone();
        let work = Work::Operation(OperationJob { asked, values });
        Ok(Prepared::new(work, results, paths))
    }

    /// Refuses devices that do not compute it.
    fn check_hosts(&self) -> Result<(), Failure> {
        let devices = self
            .args
            .machine
            .devices
            .iter()
            .flat_map(|list| list.split(','));
        match devices
            .into_iter()
            .find(|device| !device.starts_with("host"))
        {
            None => Ok(()),
            Some(device) => Err(Failure::usage(
                format!(
                    "--devices: {device} does not {}; only hosts do",
                    self.entry.name
                ),
                "host, or host:N for N cores",
            )),
        }
    }
}
