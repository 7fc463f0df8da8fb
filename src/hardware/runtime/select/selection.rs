//! Reads and writes a selection of devices, such as `host:8,opencl0.0`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::machine::host::Placement;
use crate::runtime::opencl::OWN;

/// Where a device comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The embedded host runtime.
    Host,
    /// An OpenCL device, by the numbers of its platform and of itself there.
    Opencl { platform: usize, device: usize },
    /// A GPU through CUDA's driver, by its number there.
    Cuda { device: usize },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Opencl { platform, device } => write!(f, "opencl{platform}.{device}"),
            Self::Cuda { device } => write!(f, "cuda{device}"),
        }
    }
}

/// A device, or with `units` a sub-device of so many cores or compute units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceSpec {
    pub source: Source,
    pub units: Option<u32>,
    /// Which of the host's cores; `None` for the first that are free.
    pub placement: Option<Placement>,
    /// Treat an OpenCL device that shares the host's memory as one with memory
    /// of its own: data is copied to it as to a discrete GPU.
    pub own_memory: bool,
}

impl DeviceSpec {
    /// The same device with so many units.
    pub(super) fn of(self, units: usize) -> Self {
        Self {
            units: u32::try_from(units).ok(),
            ..self
        }
    }

    /// The same device without `=own`.
    pub(super) fn shared(self) -> Self {
        Self {
            own_memory: false,
            ..self
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(units) = self.units {
            write!(f, ":{units}")?;
        }
        if let Some(placement) = self.placement {
            write!(f, "@{placement}")?;
        }
        f.write_str(if self.own_memory { OWN } else { "" })
    }
}

/// The devices that take part, in the user's order; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    devices: Vec<DeviceSpec>,
}

impl Selection {
    /// The devices, in the user's order.
    pub fn devices(&self) -> &[DeviceSpec] {
        &self.devices
    }

    /// Whether an OpenCL device is among them.
    pub fn names_opencl(&self) -> bool {
        let is_opencl = |spec: &DeviceSpec| matches!(spec.source, Source::Opencl { .. });
        self.devices.iter().any(is_opencl)
    }

    /// Whether a device through CUDA is among them.
    pub fn names_cuda(&self) -> bool {
        let is_cuda = |spec: &DeviceSpec| matches!(spec.source, Source::Cuda { .. });
        self.devices.iter().any(is_cuda)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, device) in self.devices.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{device}")?;
        }
        Ok(())
    }
}

/// Why a selection is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SelectionError {
    #[error("no device is named; write e.g. host or host:2,opencl0.0")]
    Empty,

    #[error(
        "`{item}` is no device; write host or host:N, with @compact or @spread for cores near or \
         far; openclP.D or openclP.D:N (platform P, its device D, a sub-device of N units), with \
         =own for memory of its own; or cudaD; separated by commas"
    )]
    Syntax { item: String },

    #[error("`{item}` asks for no units; ask for at least 1, or leave the device out")]
    NoUnits { item: String },

    #[error("`{item}`: only the host's cores are placed; write {source_name}")]
    Placed { item: String, source_name: String },

    #[error("there is no {item}; {exists}")]
    Unknown { item: String, exists: String },

    #[error("{item} asks for more than the {units} units of {device}; ask for at most {units}")]
    TooManyUnits {
        item: String,
        device: String,
        units: u32,
    },

    #[error("{device} cannot be divided into sub-devices; write {device} without `:{units}`")]
    Indivisible { device: String, units: u32 },

    #[error("{item} is named twice; name it once")]
    Twice { item: String },

    #[error(
        "{item}: the embedded runtime computes in the host's memory itself; write {source_name} \
         without =own, or an OpenCL CPU device with it"
    )]
    OwnHost { item: String, source_name: String },

    #[error("{item}: {model} has memory of its own anyway; write {source_name} without =own")]
    OwnAlready {
        item: String,
        source_name: String,
        model: String,
    },

    #[error("{cuda} and {opencl} are one GPU ({model}); name it once")]
    TwoDrivers {
        cuda: String,
        opencl: String,
        model: String,
    },

    #[error("no GPU can be opened through CUDA: {why}; or leave --runtime cuda out")]
    NoCuda { why: String },

    /// No simulated device can be this.
    #[error("{0}")]
    Simulated(String),

    #[error("host is named twice without a number of cores; write e.g. host:1,host:1")]
    TwoHosts,

    #[error("{names} name the same cores: {sum} cores asked of {cores}; {remedy}")]
    SameCores {
        names: String,
        sum: String,
        cores: usize,
        remedy: String,
    },

    #[error("{name} asks for {asked} cores of {cores}; use {remedy} at most")]
    TooManyCores {
        name: String,
        remedy: String,
        asked: usize,
        cores: usize,
    },

    #[error(
        "{item} ({model}) does not compute in double precision; leave it out or choose single \
         precision"
    )]
    NoFp64 { item: String, model: String },
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        if text.trim().is_empty() {
            return Err(SelectionError::Empty);
        }
        let devices = text.split(',').map(|item| item.trim().parse());
        Ok(Self {
            devices: devices.collect::<Result<_, _>>()?,
        })
    }
}

impl FromStr for DeviceSpec {
    type Err = SelectionError;

    fn from_str(item: &str) -> Result<Self, SelectionError> {
        let wrong = || SelectionError::Syntax {
            item: item.to_owned(),
        };
        let (part, own_memory) = match item.strip_suffix(OWN) {
            Some(part) => (part, true),
            None => (item, false),
        };
        let (part, placement) = match part.split_once('@') {
            Some((part, word)) => (part, Some(word.parse().map_err(|()| wrong())?)),
            None => (part, None),
        };
        let (name, units) = match part.split_once(':') {
            Some((name, units)) => (name, Some(number(units).ok_or_else(wrong)?)),
            None => (part, None),
        };
        if units == Some(0) {
            return Err(SelectionError::NoUnits {
                item: item.to_owned(),
            });
        }
        let source = if let Some(numbers) = name.strip_prefix("opencl") {
            let (platform, device) = numbers.split_once('.').ok_or_else(wrong)?;
            Source::Opencl {
                platform: number(platform).ok_or_else(wrong)?,
                device: number(device).ok_or_else(wrong)?,
            }
        } else if let Some(device) = name.strip_prefix("cuda") {
            Source::Cuda {
                device: number(device).ok_or_else(wrong)?,
            }
        } else if name == "host" {
            Source::Host
        } else {
            return Err(wrong());
        };
        if own_memory && source == Source::Host {
            return Err(SelectionError::OwnHost {
                item: item.to_owned(),
                source_name: part.to_owned(),
            });
        }
        if placement.is_some() && source != Source::Host {
            return Err(SelectionError::Placed {
                item: item.to_owned(),
                source_name: part.to_owned(),
            });
        }
        Ok(Self {
            source,
            units,
            placement,
            own_memory,
        })
    }
}

/// Digits only: `+1` is no number here.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_read_and_written_alike() {
        let text = "host:8,opencl0.0,opencl12.3:4,host,opencl0.0=own,opencl1.0:2=own,host:2@spread,\
                    host@compact,cuda1";
        let selection: Selection = text.parse().unwrap();
        assert_eq!(selection.to_string(), text);
        let opencl = Source::Opencl {
            platform: 12,
            device: 3,
        };
        assert_eq!(
            selection.devices()[2],
            DeviceSpec {
                source: opencl,
                units: Some(4),
                placement: None,
                own_memory: false,
            }
        );
        let own: Vec<bool> = selection.devices().iter().map(|d| d.own_memory).collect();
        assert_eq!(
            own,
            [false, false, false, false, true, true, false, false, false]
        );
        assert_eq!(selection.devices()[6].placement, Some(Placement::Spread));
        assert_eq!(selection.devices()[7].placement, Some(Placement::Compact));
        assert_eq!(selection.devices()[3].units, None);
        assert_eq!(selection.devices()[8].source, Source::Cuda { device: 1 });
        assert!(selection.names_opencl() && selection.names_cuda());
        let hosts: Selection = "host:1, host:2".parse().unwrap();
        assert!(!hosts.names_opencl() && !hosts.names_cuda());
    }

    #[test]
    fn what_is_no_selection_is_refused_by_its_item() {
        let refused = |text: &str| text.parse::<Selection>().unwrap_err();
        assert_eq!(refused(" "), SelectionError::Empty);
        for item in [
            "gpu",
            "host:",
            "host:x",
            "host:-1",
            "host:+1",
            "opencl",
            "opencl0",
            "opencl0.",
            "opencl.0",
            "opencl0.0:",
            "Host",
            "host:99999999999",
            "opencl0.0.0",
            "cuda",
            "cuda.0",
            "cuda0.0",
            "opencl0.0=",
            "opencl0.0=mine",
            "opencl0.0=own:1",
            "opencl0.0=own=own",
            "host:2@wide",
            "host@",
            "host@spread:2",
            "=own",
            "",
        ] {
            let error = refused(&format!("host,{item}"));
            assert_eq!(
                error,
                SelectionError::Syntax {
                    item: item.to_owned()
                }
            );
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("`{item}` is no device"))
            );
        }
        assert_eq!(
            refused("opencl0.0:0").to_string(),
            "`opencl0.0:0` asks for no units; ask for at least 1, or leave the device out"
        );
        assert_eq!(
            refused("host:2=own").to_string(),
            "host:2=own: the embedded runtime computes in the host's memory itself; write host:2 \
             without =own, or an OpenCL CPU device with it"
        );
        assert_eq!(
            refused("opencl0.0:2@spread").to_string(),
            "`opencl0.0:2@spread`: only the host's cores are placed; write opencl0.0:2"
        );
    }
}
