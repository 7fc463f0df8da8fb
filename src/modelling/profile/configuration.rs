//! The configuration of a run: a grid, a device, and how the device is used.

use std::fmt;

use crate::codelet::stencil::Precision;
use crate::engine::corun::Stream;
use crate::machine::host::Placement;
use crate::model::DevicePart;
use crate::workload::stencil::{Stencil, StencilError};

/// The kind of device of a run, and of the model that learns from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModelKind {
    Cpu,
    Gpu,
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

/// A grid of `nx` points a row, `ny` rows, and `nz` planes in 3-D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    pub nx: u64,
    pub ny: u64,
    pub nz: Option<u64>,
    pub precision: Precision,
}

impl Grid {
    /// Points of the grid.
    pub fn points(&self) -> u64 {
        self.units() * self.unit_points()
    }

    /// Rows in 2-D, planes in 3-D: what is shared.
    pub fn units(&self) -> u64 {
        self.nz.unwrap_or(self.ny)
    }

    /// Bytes of a unit.
    pub fn unit_bytes(&self) -> u64 {
        self.unit_points() * self.precision.bytes()
    }

    /// Bytes of one version of the grid.
    pub fn bytes(&self) -> u64 {
        self.units() * self.unit_bytes()
    }

    fn unit_points(&self) -> u64 {
        match self.nz {
            None => self.nx,
            Some(_) => self.nx * self.ny,
        }
    }

    /// The workload.
    ///
    /// # Errors
    /// When there is no such stencil.
    pub fn stencil(&self, seed: u64) -> Result<Stencil, StencilError> {
        Stencil::new(self.nx, self.ny, self.nz, self.precision, seed)
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.nx, self.ny)?;
        if let Some(nz) = self.nz {
            write!(f, "x{nz}")?;
        }
        write!(f, " {}", self.precision.name())
    }
}

/// How a device is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// A pool of the host's cores.
    Host {
        workers: u32,
        /// Sockets that the workers are spread over.
        sockets: u32,
        /// `None` where all places are alike, or all are taken.
        placement: Option<Placement>,
        /// Units of a chunk; all units for a single chunk.
        chunk: u64,
    },
    /// A device that computes on the host's memory.
    Shared {
        /// Its compute units.
        workers: u32,
        chunk: u64,
    },
    /// The step of a device with device memory.
    Discrete {
        /// Bytes of its memory that are used.
        memory: u64,
        /// Units held; the others are streamed.
        held: u64,
        /// Most units of a streamed chunk.
        chunk: u64,
        queues: u32,
        /// Whether steps that need no barrier with the host go without.
        ahead: bool,
    },
}

impl Setting {
    /// The part in a step of a device that computes all `units`; device memory has a
    /// ring of `slots`.
    pub fn part(self, units: u64, slots: u64) -> DevicePart {
        match self {
            Self::Host {
                workers,
                sockets,
                chunk,
                ..
            } => DevicePart::Host {
                workers,
                sockets,
                units,
                chunk,
            },
            Self::Shared { workers, chunk } => DevicePart::Host {
                workers,
                sockets: 1,
                units,
                chunk,
            },
            Self::Discrete {
                held,
                chunk,
                queues,
                ahead,
                ..
            } => DevicePart::Discrete {
                held,
                slots,
                streamed: units - held,
                chunk,
                queues,
                solo: held == units && ahead,
            },
        }
    }

    /// Changes the length of chunks.
    pub fn with_chunk(mut self, length: u64) -> Self {
        match &mut self {
            Self::Host { chunk, .. } | Self::Shared { chunk, .. } => *chunk = length,
            Self::Discrete { chunk, .. } => *chunk = length,
        }
        self
    }

    /// The engine's stream options of a device that streams.
    pub fn stream(self) -> Stream {
        match self {
            Self::Discrete { chunk, queues, .. } => Stream {
                chunk: Some(chunk),
                queues: Some(queues),
            },
            _ => Stream::default(),
        }
    }

    /// Bytes of the device's own memory that are used.
    pub fn memory(self) -> Option<u64> {
        match self {
            Self::Discrete { memory, .. } => Some(memory),
            _ => None,
        }
    }
}

/// Everything but the device, as the end of a configuration's name.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { chunk, .. } | Self::Shared { chunk, .. } => write!(f, "chunk {chunk}"),
            Self::Discrete {
                memory,
                held,
                chunk,
                queues,
                ahead,
            } => {
                write!(
                    f,
                    "memory {memory}; held {held}; chunk {chunk}; queues {queues}"
                )?;
                f.write_str(if *ahead { "; ahead" } else { "" })
            }
        }
    }
}

/// The device of a run, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceUse {
    pub kind: ModelKind,
    /// `host`, or the name of the machine's device.
    pub device: String,
    pub setting: Setting,
    /// Whether it computes in double precision.
    pub fp64: bool,
}

impl DeviceUse {
    /// The device or sub-device as a selection says it: `host:4@spread`.
    pub fn selection(&self) -> String {
        match self.setting {
            Setting::Host {
                workers, placement, ..
            } => {
                let placement = placement.map_or(String::new(), |p| format!("@{p}"));
                format!("{}:{workers}{placement}", self.device)
            }
            Setting::Shared { .. } | Setting::Discrete { .. } => self.device.clone(),
        }
    }
}

/// The configuration of one run of a stencil.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    pub grid: Grid,
    pub device_use: DeviceUse,
}

impl Configuration {
    /// A grid on a device, `host` or the machine's of this name.
    pub fn new(grid: Grid, kind: ModelKind, device: &str, setting: Setting) -> Self {
        Self {
            device_use: DeviceUse {
                kind,
                device: device.to_owned(),
                setting,
                fp64: grid.precision == Precision::F64,
            },
            grid,
        }
    }
}

/// Everything but what is computed, as the end of a configuration's name.
impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.selection(), self.setting)
    }
}

/// The name has everything that was asked for, so that equal names mean equal runs.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.grid, self.device_use)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid {
        nx: 101,
        ny: 50,
        nz: None,
        precision: Precision::F64,
    };

    #[test]
    fn names_say_all_that_is_asked_for() {
        let setting = Setting::Host {
            workers: 4,
            sockets: 2,
            placement: Some(Placement::Spread),
            chunk: 25,
        };
        let configuration = Configuration::new(GRID, ModelKind::Cpu, "host", setting);
        assert_eq!(
            configuration.to_string(),
            "101x50 f64; host:4@spread; chunk 25"
        );
        let setting = Setting::Discrete {
            memory: 4096,
            held: 7,
            chunk: 2,
            queues: 3,
            ahead: false,
        };
        let grid = Grid {
            nz: Some(9),
            ..GRID
        };
        let configuration = Configuration::new(grid, ModelKind::Gpu, "gpu0", setting);
        assert_eq!(
            configuration.to_string(),
            "101x50x9 f64; gpu0; memory 4096; held 7; chunk 2; queues 3"
        );
    }

    #[test]
    fn a_grids_figures_are_its_stencils() {
        use crate::workload::{Divisible, Grid as _};
        for nz in [None, Some(12)] {
            let grid = Grid { nz, ..GRID };
            let stencil = grid.stencil(1).unwrap();
            assert_eq!(grid.units(), stencil.units());
            assert_eq!(grid.unit_bytes(), stencil.unit_bytes());
            assert_eq!(grid.points(), stencil.units() * stencil.unit_points());
            assert_eq!(grid.bytes(), grid.points() * 8);
        }
    }
}
