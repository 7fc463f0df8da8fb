//! The command-line options of profiles.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pdawl_api::codelet::stencil::{self, Dimensions, Precision, Rule};
use pdawl_api::profile::ModelKind;

use crate::args::noise;
use crate::grid::{PrecisionArg, points};
use crate::size::ByteSize;
use crate::size::integer;

/// The options of every profile: where it runs, how long, and where rows are kept.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Profile")]
pub struct SessionOptions {
    /// A machine by name; simulated unless it is this one [default: this one]
    ///
    /// This machine is measured first if there is no file of it.
    /// `pdawl machine list` shows the names; the path of a machine file works, too.
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,

    /// Time that it may take: 90s, 5m, 1h30m
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        allow_hyphen_values = true
    )]
    pub budget: Budget,

    /// The part of that time in which no run may be made, since models are fitted then.
    #[arg(skip)]
    pub fitting: Duration,

    /// Which devices: cpu, gpu [default: both, where there are both]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub kinds: Vec<KindArg>,

    /// Steps of each run [default: 10 in a simulation, else as many as 0.3 s allow
    /// (80 ms of a product), 3 to 100]
    #[arg(long, value_name = "N", value_parser = integer(1u32..=100_000),
          allow_negative_numbers = true)]
    pub steps: Option<u32>,

    /// The seed of the order of runs, of generated matrices, and of a simulation's
    /// noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = integer(0..=u64::MAX),
          allow_negative_numbers = true)]
    pub seed: u64,

    /// Floating-point type
    #[arg(long, value_enum, default_value_t, help_heading = "Workload")]
    pub precision: PrecisionArg,

    /// Use at most this much of each GPU's memory: 2GiB, 512MiB
    #[arg(long, value_name = "SIZE", help_heading = "Machine")]
    pub gpu_memory: Option<ByteSize>,

    /// Memory of the host that may be used [default: what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Machine")]
    pub host_memory: Option<ByteSize>,

    /// Relative standard deviation of simulated times [default: 0.02]
    #[arg(long, value_name = "FRACTION", value_parser = noise, help_heading = "Machine")]
    pub noise: Option<f64>,

    /// The dataset [default: the machine's, in the directory of datasets]
    ///
    /// The directory is $PDAWL_DATASETS, else pdawl/datasets in
    /// $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Measure everything again; the old file is kept as FILE.bak
    #[arg(long, help_heading = "Output")]
    pub fresh: bool,
}

/// The options of a profile of stencils.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Profile")]
pub struct ProfileOptions {
    #[command(flatten)]
    pub session: SessionOptions,

    /// Runs of each configuration
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = integer(1u32..=1000), allow_negative_numbers = true)]
    pub repeats: u32,

    /// Configurations of each kind of device
    #[arg(long, value_name = "N", default_value_t = 130,
          value_parser = integer(1u32..=10_000), allow_negative_numbers = true)]
    pub configurations: u32,

    /// Points along each axis, instead of the design's own sizes: 1000,3000
    ///
    /// Sizes of your own give held-out runs, to try a model on.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = points,
          allow_negative_numbers = true, help_heading = "Workload")]
    pub sizes: Vec<u64>,

    /// Points along each axis at most [default: 20000 in 2-D, 737 in 3-D, or
    /// what fits into memory]
    #[arg(long, value_name = "N", value_parser = points, conflicts_with = "sizes",
          allow_negative_numbers = true, help_heading = "Workload")]
    pub max_size: Option<u64>,

    /// 2: 5-point, 3: 7-point
    #[arg(long, value_name = "2|3", default_value_t = 2,
          value_parser = integer(2u8..=3), allow_negative_numbers = true, help_heading = "Workload")]
    pub dims: u8,
}

impl ProfileOptions {
    /// The stencil's codelet.
    pub fn codelet(&self) -> &'static str {
        let dimensions = match self.dims {
            3 => Dimensions::Three,
            _ => Dimensions::Two,
        };
        stencil::name(dimensions, self.session.precision(), Rule::Mean)
    }
}

impl SessionOptions {
    /// The floating-point type.
    pub fn precision(&self) -> Precision {
        self.precision.into()
    }

    /// Whether it is double precision.
    pub fn fp64(&self) -> bool {
        self.precision().bytes() == 8
    }

    /// The kinds of devices that the user named, or all that there are.
    pub fn kinds(&self, has_gpu: bool) -> Vec<ModelKind> {
        match self.kinds.is_empty() {
            true if has_gpu => vec![ModelKind::Cpu, ModelKind::Gpu],
            true => vec![ModelKind::Cpu],
            false => ([ModelKind::Cpu, ModelKind::Gpu].into_iter())
                .filter(|kind| self.kinds.iter().any(|arg| ModelKind::from(*arg) == *kind))
                .collect(),
        }
    }
}

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindArg {
    Cpu,
    Gpu,
}

impl From<KindArg> for ModelKind {
    fn from(arg: KindArg) -> Self {
        match arg {
            KindArg::Cpu => Self::Cpu,
            KindArg::Gpu => Self::Gpu,
        }
    }
}

/// A time above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub Duration);

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(Duration::ZERO) => Err("nothing can be measured in no time; write 5m, say".into()),
            Ok(time) => Ok(Self(time)),
            Err(_) => Err("this is no time; write a number and a unit: 90s, 5m, 1h30m".into()),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let seconds = |text: &str| text.parse::<Budget>().map(|b| b.0.as_secs_f64());
        assert_eq!(seconds("5m"), Ok(300.0));
        assert_eq!(seconds("1h30m"), Ok(5400.0));
        assert_eq!(seconds("1h 30m"), Ok(5400.0));
        assert_eq!(seconds("250ms"), Ok(0.25));
        for wrong in ["", "5", "-5m", "soon", "5 parsecs"] {
            assert!(seconds(wrong).unwrap_err().contains("90s, 5m"), "{wrong}");
        }
        assert!(seconds("0s").unwrap_err().contains("in no time"));
    }
}
