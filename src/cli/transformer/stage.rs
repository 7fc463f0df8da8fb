//! Where transformers run: this machine's devices, or a simulated machine.

use pdawl::machine::Host;
use pdawl::report::schema::{HostInfo, Machine};
use pdawl::runtime::Runtime;
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::sim::{Sim, SimOptions};
use pdawl::workload::transformer::Transformer;

use crate::cli::args;
use crate::cli::failure::{Failure, refused, wrong_devices};
use crate::cli::here::fingerprint;
use crate::cli::session::{machine_file, sim_devices};

/// Where a graph runs.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub struct Stage {
    /// Devices to use, `:N` for a part of N cores: host:8,opencl0.0
    ///
    /// Without it all cores of the CPU, through the embedded runtime, and every
    /// OpenCL device that is not the same CPU. `pdawl devices` lists them.
    #[arg(long, value_name = "LIST")]
    devices: Option<String>,

    /// A machine by name; simulated unless it is this one
    ///
    /// `pdawl machine list` shows the names; a path of a machine file works, too.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Relative standard deviation of simulated times, such as 0.02
    #[arg(long, value_name = "FRACTION", value_parser = args::noise,
          allow_negative_numbers = true, requires = "machine")]
    noise: Option<f64>,
}

/// Devices, open.
pub struct Open {
    pub runtime: Box<dyn Runtime>,
    pub machine: Machine,
    pub notes: Vec<String>,
}

impl Stage {
    /// Opens the devices. `data`: a simulation computes, too.
    ///
    /// # Errors
    /// When there is no such machine or device.
    pub fn open(&self, data: bool, seed: u64) -> Result<Open, Failure> {
        if let Some(name) = &self.machine {
            let file = machine_file(name)?;
            let here = fingerprint();
            if !here.is(file.fingerprint.as_deref()) {
                let options = SimOptions {
                    seed,
                    noise: self.noise,
                    data,
                    faults: Vec::new(),
                    devices: self.devices.as_deref().map(sim_devices).transpose()?,
                };
                let sim = Sim::new(&file, options).map_err(refused)?;
                return Ok(Open {
                    machine: Machine {
                        name: file.name.clone(),
                        simulated: true,
                        host: HostInfo {
                            cpu: file.host.model.clone(),
                            cores: file.host.cores,
                            memory: file.host.memory,
                        },
                        devices: sim.devices().to_vec(),
                    },
                    runtime: Box::new(sim),
                    notes: vec![format!(
                        "every time is simulated: machine {} is not this one, which is {here}",
                        file.name
                    )],
                });
            }
        }
        self.real()
    }

    fn real(&self) -> Result<Open, Failure> {
        if self.noise.is_some() {
            return Err(Failure::usage(
                "--noise is for simulated machines, and this run is on real devices",
                "--machine NAME of another machine; `pdawl machine list` shows them",
            ));
        }
        let selection = (self.devices.as_deref())
            .map(str::parse::<Selection>)
            .transpose()
            .map_err(wrong_devices)?;
        let (runtime, notes) = select::open(selection.as_ref(), false).map_err(refused)?;
        let host = Host::detect();
        Ok(Open {
            machine: Machine {
                name: self.machine.clone().unwrap_or("this machine".into()),
                simulated: false,
                host: HostInfo {
                    cpu: host.model,
                    cores: host.cores.len() as u32,
                    memory: host.memory.total(),
                },
                devices: runtime.devices().to_vec(),
            },
            runtime,
            notes,
        })
    }
}

/// Refuses a transformer whose data do not fit this machine's memory, `times`
/// over.
///
/// # Errors
/// With what it needs and what there is.
pub fn check_memory(transformer: &Transformer, times: u64) -> Result<(), Failure> {
    let needed = transformer.memory().saturating_mul(times);
    let free = Host::detect().memory.obtainable(0);
    if needed <= free {
        return Ok(());
    }
    Err(Failure::failed(
        format!(
            "{} heads of {} x {} in {} layers need {needed} bytes of host memory, and {free} are \
             free",
            transformer.heads, transformer.beta, transformer.beta, transformer.layers
        ),
        "a smaller --beta, fewer --heads or --layers",
    ))
}
