//! The sensors of a GPU, and their readings.

/// A figure of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    SmClock,
    MemoryClock,
    Power,
    PcieRx,
    PcieTx,
    Energy,
}

impl Figure {
    /// Those that are sampled; energy is counted by the GPU.
    pub const SAMPLED: [Figure; 5] = [
        Figure::SmClock,
        Figure::MemoryClock,
        Figure::Power,
        Figure::PcieRx,
        Figure::PcieTx,
    ];

    /// The feature's name, which says the unit.
    pub fn name(self) -> &'static str {
        match self {
            Figure::SmClock => "telemetry.sm_clock_mhz",
            Figure::MemoryClock => "telemetry.memory_clock_mhz",
            Figure::Power => "telemetry.power_watts",
            Figure::PcieRx => "telemetry.pcie_rx_bytes_per_second",
            Figure::PcieTx => "telemetry.pcie_tx_bytes_per_second",
            Figure::Energy => "telemetry.energy_joules",
        }
    }
}

/// The figures of a GPU at one moment, in the units of [`Figure::name`]; unknown
/// figures are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SensorReading {
    pub sm_clock: Option<f64>,
    pub memory_clock: Option<f64>,
    pub power: Option<f64>,
    /// Into the GPU.
    pub pcie_rx: Option<f64>,
    /// Out of the GPU.
    pub pcie_tx: Option<f64>,
}

impl SensorReading {
    /// One of the sampled figures.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::SmClock => self.sm_clock,
            Figure::MemoryClock => self.memory_clock,
            Figure::Power => self.power,
            Figure::PcieRx => self.pcie_rx,
            Figure::PcieTx => self.pcie_tx,
            Figure::Energy => None,
        }
    }
}

/// A GPU that can be asked, from several threads.
pub trait Sensor: Send + Sync + 'static {
    /// How it goes now. May take tens of milliseconds: PCIe throughput is
    /// averaged over 20 ms while the caller waits.
    fn read(&self) -> SensorReading;

    /// Joules used since some moment in the past.
    fn energy(&self) -> Option<f64>;
}
