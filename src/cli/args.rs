//! Arguments that several subcommands share: output format, machine, and model.

use std::path::Path;

use clap::{Args, ValueEnum};
use pdawl_api::balance::Strategy;
use pdawl_api::machine::{MachineFile, store::with_changes};

use super::failure::Failure;
use super::size::ByteSize;
use pdawl_api::session::FaultSpec;

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs; docs/report.md describes it
    Json,
}

/// The machine and the devices that a workload runs on.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// Devices to use, `:N` for a part of N cores: host:8,opencl0.0
    ///
    /// The default is all cores of the CPU, through the embedded runtime, and every
    /// OpenCL device that is not the same CPU. `pdawl devices` lists them. host:8
    /// takes the first eight cores, host:8@compact eight that lie close together,
    /// and host:8@spread eight that lie far apart, over all sockets. With `=own`, an
    /// OpenCL device that shares the host's memory is treated as if it had memory of
    /// its own, and data is copied: opencl0.0:4=own
    #[arg(long, value_name = "LIST")]
    pub devices: Option<String>,

    /// A machine by name; simulated unless it is this one
    ///
    /// `pdawl machine list` shows the names. The path of a machine file works, too. Changes may
    /// follow: k40,gpu0.speed=2x,gpu0.link=0.5x,host.cores=2,gpu1=gpu0 (another device like gpu0)
    /// or gpu0=none. Keys are those of the file; a machine with changes is simulated.
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,

    /// A node of a described cluster, or the machine of a recording, which is simulated whatever
    /// machine this is.
    #[arg(skip)]
    pub node: Option<Box<MachineFile>>,

    /// Use at most this much of each GPU's memory: 2GiB, 512MiB
    ///
    /// The limit applies to every device with memory of its own, `=own` ones included.
    #[arg(long, value_name = "SIZE")]
    pub gpu_memory: Option<ByteSize>,

    /// Use at most this much of the host's memory [default: what is free]
    #[arg(long, value_name = "SIZE")]
    pub host_memory: Option<ByteSize>,

    /// Decide as if no run of this kind had been measured here
    #[arg(long)]
    pub fresh: bool,

    /// Inject a fault into a simulated device, such as gpu0:slow:2@10
    ///
    /// DEVICE:slow:FACTOR@STEP, DEVICE:lost@STEP, DEVICE:back@STEP,
    /// DEVICE:cores:N@STEP, DEVICE:fail:N@STEP (the next N commands). STEP is the step of
    /// the report, and FACTOR from 0.001 to 1e6. A time such as @1.5s can replace the step;
    /// it counts from the begin of the first. The option may be given several times.
    /// With `run matmul` and `run cholesky`, DEVICE:lost@1.5s also loses a real device, so
    /// long after the first run began. No run that is not timed then comes first.
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<FaultSpec>,

    /// Relative standard deviation of simulated times, such as 0.02
    #[arg(long, value_name = "FRACTION", value_parser = noise)]
    pub noise: Option<f64>,
}

impl MachineArgs {
    /// All devices of a node of a described cluster, whose times vary by so much.
    pub fn of_node(machine: MachineFile, noise: Option<f64>) -> Self {
        Self {
            node: Some(Box::new(machine)),
            noise,
            ..Self::default()
        }
    }

    /// The path of the machine file, if one is given.
    pub fn machine_path(&self) -> Option<&Path> {
        let name = self.machine.as_deref()?;
        let path = Path::new(with_changes(name).map_or(name, |(base, _)| base));
        path.is_file().then_some(path)
    }
}

/// The cost model that plans.
#[derive(Clone, Debug, Args)]
pub struct ModelArgs {
    /// The model to plan with, as `pdawl model list` shows it, or a file
    /// [default: the one of the machine]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    model: Option<String>,
}

/// The choice of a cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelChoice<'a> {
    None,
    /// The model that fits the machine.
    Fitting,
    Named(&'a str),
}

impl ModelArgs {
    /// The choice for a strategy; `None` is the best strategy there is.
    ///
    /// # Errors
    /// When a model is named for a strategy that needs none.
    pub fn for_strategy(&self, strategy: Option<&Strategy>) -> Result<ModelChoice<'_>, Failure> {
        match strategy {
            None | Some(Strategy::Pdawl) => Ok(self.choice()),
            Some(_) => self.unused("--strategy"),
        }
    }

    /// The choice for strategies, named by `option`, of which none needs a model.
    ///
    /// # Errors
    /// When a model is named.
    pub fn unused(&self, option: &str) -> Result<ModelChoice<'_>, Failure> {
        match &self.model {
            Some(_) => Err(Failure::usage(
                format!("--model is for strategy pdawl, which {option} does not name"),
                format!("{option} with pdawl, or no --model"),
            )),
            None => Ok(ModelChoice::None),
        }
    }

    /// The path of the model's file, if one is given.
    pub fn path(&self) -> Option<&Path> {
        let path = Path::new(self.model.as_deref()?);
        path.is_file().then_some(path)
    }

    pub fn choice(&self) -> ModelChoice<'_> {
        match &self.model {
            Some(name) => ModelChoice::Named(name),
            None => ModelChoice::Fitting,
        }
    }
}

/// Parses a relative standard deviation.
pub fn noise(text: &str) -> Result<f64, String> {
    (text.parse().ok())
        .filter(|noise| (0.0..=1.0).contains(noise))
        .ok_or_else(|| "noise is a fraction from 0 to 1, such as 0.02".to_owned())
}
