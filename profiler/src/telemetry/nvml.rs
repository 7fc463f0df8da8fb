//! NVIDIA's management library.

use std::sync::Arc;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter};
use nvml_wrapper::error::NvmlError;

use super::absent::Absent;
use super::sampler::Sampler;
use super::sensor::{Sensor, SensorReading};

/// Which GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The model's name, as the GPU's runtime reports it.
    pub model: String,
    /// Its number among the GPUs of this model, from 0, in the order of PCI
    /// addresses. `CUDA_VISIBLE_DEVICES` does not change it.
    pub nth: usize,
}

/// The open library.
pub struct Telemetry {
    nvml: Arc<Nvml>,
    /// The models' names, by the library's index.
    models: Vec<String>,
}

impl Telemetry {
    /// Loads the library (`libnvidia-ml.so.1`), which is part of NVIDIA's
    /// driver. Takes tens of milliseconds where there is one.
    ///
    /// # Errors
    /// [`Absent`] says what is missing; no run needs to stop for it.
    pub fn open() -> Result<Self, Absent> {
        let nvml = Nvml::init().map_err(|error| match error {
            NvmlError::LibloadingError(error) => Absent::Library(error.to_string()),
            error => Absent::Driver(error.to_string()),
        })?;
        let count = (nvml.device_count()).map_err(|error| Absent::Driver(error.to_string()))?;
        // One that cannot be asked for its name keeps its place.
        let model = |index| nvml.device_by_index(index).and_then(|gpu| gpu.name());
        let models: Vec<String> = (0..count).map(|i| model(i).unwrap_or_default()).collect();
        match models.is_empty() {
            true => Err(Absent::NoGpu),
            false => Ok(Self {
                nvml: Arc::new(nvml),
                models,
            }),
        }
    }

    /// The models of the GPUs, in the library's order.
    pub fn models(&self) -> &[String] {
        &self.models
    }

    /// A GPU that can be asked.
    ///
    /// # Errors
    /// [`Absent::NoSuchGpu`].
    pub fn sensor(&self, gpu: &Gpu) -> Result<Arc<dyn Sensor>, Absent> {
        Ok(self.gauge_at(index_of(&self.models, gpu)?))
    }

    /// The GPU at one of the library's indices.
    pub(super) fn gauge_at(&self, index: u32) -> Arc<dyn Sensor> {
        Arc::new(NvmlSensor {
            nvml: Arc::clone(&self.nvml),
            index,
        })
    }

    /// Samples a GPU until the sampler is stopped.
    ///
    /// # Errors
    /// [`Absent::NoSuchGpu`], [`Absent::Thread`].
    pub fn sample(&self, gpu: &Gpu, interval: Duration) -> Result<Sampler, Absent> {
        Sampler::start(self.sensor(gpu)?, interval)
    }
}

/// The library's index of a GPU.
fn index_of(models: &[String], gpu: &Gpu) -> Result<u32, Absent> {
    let wanted = plain(&gpu.model);
    let alike: Vec<usize> = (0..models.len())
        .filter(|i| plain(&models[*i]) == wanted)
        .collect();
    let index = alike
        .get(gpu.nth)
        .and_then(|index| u32::try_from(*index).ok());
    index.ok_or_else(|| Absent::NoSuchGpu {
        model: gpu.model.clone(),
        nth: gpu.nth + 1,
        found: alike.len(),
    })
}

/// A model's name without what drivers of different years write differently.
fn plain(model: &str) -> String {
    let lower = model.trim().to_lowercase();
    let name = lower.strip_prefix("nvidia").unwrap_or(&lower);
    name.trim().to_owned()
}

struct NvmlSensor {
    nvml: Arc<Nvml>,
    index: u32,
}

impl Sensor for NvmlSensor {
    fn read(&self) -> SensorReading {
        let Ok(gpu) = self.nvml.device_by_index(self.index) else {
            return SensorReading::default();
        };
        let clock = |clock| gpu.clock_info(clock).ok().map(f64::from);
        // In kilobytes a second.
        let pcie = |way| gpu.pcie_throughput(way).ok().map(|kb| f64::from(kb) * 1e3);
        SensorReading {
            sm_clock: clock(Clock::SM),
            memory_clock: clock(Clock::Memory),
            // In milliwatts.
            power: gpu.power_usage().ok().map(|mw| f64::from(mw) * 1e-3),
            pcie_rx: pcie(PcieUtilCounter::Receive),
            pcie_tx: pcie(PcieUtilCounter::Send),
        }
    }

    fn energy(&self) -> Option<f64> {
        let gpu = self.nvml.device_by_index(self.index).ok()?;
        // In millijoules, since the driver was loaded.
        gpu.total_energy_consumption()
            .ok()
            .map(|mj| mj as f64 * 1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(model: &str, nth: usize) -> Gpu {
        Gpu {
            model: model.into(),
            nth,
        }
    }

    #[test]
    fn gpus_are_found_by_model_and_number() {
        let models = ["NVIDIA H200", "Tesla K40c", "NVIDIA H200"].map(String::from);
        assert_eq!(index_of(&models, &gpu("NVIDIA H200", 0)).unwrap(), 0);
        assert_eq!(index_of(&models, &gpu("nvidia h200 ", 1)).unwrap(), 2);
        assert_eq!(index_of(&models, &gpu("H200", 1)).unwrap(), 2);
        assert_eq!(index_of(&models, &gpu("Tesla K40c", 0)).unwrap(), 1);
        assert!(index_of(&models, &gpu("Tesla K40", 0)).is_err());
        let absent = index_of(&models, &gpu("NVIDIA H200", 2)).unwrap_err();
        assert_eq!(
            absent.to_string(),
            "of `NVIDIA H200`, NVIDIA's management library shows 2, and number 3 is wanted"
        );
    }

    #[test]
    fn here_the_library_opens_or_says_why_not() {
        match Telemetry::open() {
            Ok(telemetry) => {
                assert!(!telemetry.models().is_empty());
                let unknown = telemetry.sensor(&gpu("a GPU of no maker", 0));
                assert!(matches!(unknown, Err(Absent::NoSuchGpu { found: 0, .. })));
            }
            Err(absent) => {
                assert!(
                    absent
                        .to_string()
                        .starts_with("NVIDIA's management library")
                );
                assert!(!absent.remedy().is_empty());
            }
        }
    }
}
