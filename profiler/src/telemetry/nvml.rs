//! NVIDIA's management library, and why it is missing.

use std::sync::Arc;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter};
use nvml_wrapper::error::NvmlError;

use schemars::JsonSchema;
use serde::Serialize;

use super::{ENERGY, Sensor};

/// What keeps telemetry away. None of these stops a run.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    #[error("NVIDIA's management library is not here: {0}")]
    Library(String),
    #[error("NVIDIA's management library does not start: {0}")]
    Driver(String),
    #[error("NVIDIA's management library shows no GPU")]
    NoGpu,
    #[error("of `{model}`, NVIDIA's management library shows {found}, and number {nth} is wanted")]
    NoSuchGpu {
        model: String,
        /// As counted by people, from 1.
        nth: usize,
        found: usize,
    },
    #[error("the sampling thread does not start: {0}")]
    Thread(std::io::Error),
}

impl Absent {
    /// A clause that says what to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Absent::Library(_) => {
                "install the GPU's NVIDIA driver; in a container, start it with `--gpus all` and \
                 the driver capability `utility`; other makers' GPUs have no telemetry here"
            }
            Absent::Driver(_) => "see that `nvidia-smi` works for this user",
            Absent::NoGpu => "see that `nvidia-smi` lists the GPU for this user",
            Absent::NoSuchGpu { .. } => "compare the names that `nvidia-smi -L` lists",
            Absent::Thread(_) => "raise the limit of processes, `ulimit -u`",
        }
    }
}

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

    /// A GPU that can be asked.
    ///
    /// # Errors
    /// [`Absent::NoSuchGpu`].
    pub fn sensor(&self, gpu: &Gpu) -> Result<Arc<dyn Sensor>, Absent> {
        Ok(self.sensor_at(index_of(&self.models, gpu)?))
    }

    /// The GPU at one of the library's indices.
    fn sensor_at(&self, index: u32) -> Arc<dyn Sensor> {
        Arc::new(NvmlSensor {
            nvml: Arc::clone(&self.nvml),
            index,
        })
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
    fn read(&self) -> Vec<(&'static str, f64)> {
        let Ok(gpu) = self.nvml.device_by_index(self.index) else {
            return Vec::new();
        };
        // Power is in milliwatts, throughput in kilobytes a second.
        let clock = |clock| gpu.clock_info(clock).ok().map(f64::from);
        let pcie = |way| gpu.pcie_throughput(way).ok().map(|kb| f64::from(kb) * 1e3);
        let watts = gpu.power_usage().ok().map(|mw| f64::from(mw) * 1e-3);
        let figures = [
            ("telemetry.sm_clock_mhz", clock(Clock::SM)),
            ("telemetry.memory_clock_mhz", clock(Clock::Memory)),
            ("telemetry.power_watts", watts),
            (
                "telemetry.pcie_rx_bytes_per_second",
                pcie(PcieUtilCounter::Receive),
            ),
            (
                "telemetry.pcie_tx_bytes_per_second",
                pcie(PcieUtilCounter::Send),
            ),
        ];
        let known = figures.into_iter();
        known
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }

    fn energy(&self) -> Option<f64> {
        let gpu = self.nvml.device_by_index(self.index).ok()?;
        // In millijoules, since the driver was loaded.
        let energy = gpu.total_energy_consumption().ok()?;
        Some(energy as f64 * 1e-3)
    }
}

/// The GPUs with sensors, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Availability {
    pub gpus: Vec<Described>,
    /// Why there is none at all, and what to do.
    pub why: Option<String>,
    pub remedy: Option<String>,
}

/// A GPU and the figures of its sensors.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Described {
    pub model: String,
    /// Feature names.
    pub figures: Vec<String>,
}

/// Asks every GPU once, which takes some tens of milliseconds each.
pub fn availability() -> Availability {
    match Telemetry::open() {
        Ok(telemetry) => Availability {
            gpus: (telemetry.models.iter().zip(0..))
                .map(|(model, index)| Described {
                    model: model.clone(),
                    figures: figure_names(&*telemetry.sensor_at(index)),
                })
                .collect(),
            why: None,
            remedy: None,
        },
        Err(absent) => Availability {
            gpus: Vec::new(),
            why: Some(absent.to_string()),
            remedy: Some(absent.remedy().to_owned()),
        },
    }
}

/// The names of the figures of a GPU's sensors.
fn figure_names(sensor: &dyn Sensor) -> Vec<String> {
    let mut names: Vec<&str> = sensor.read().into_iter().map(|(name, _)| name).collect();
    names.extend(sensor.energy().map(|_| ENERGY));
    names.sort_unstable();
    names.into_iter().map(str::to_owned).collect()
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
                assert!(!telemetry.models.is_empty());
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

    struct Old;

    impl Sensor for Old {
        fn read(&self) -> Vec<(&'static str, f64)> {
            vec![
                ("telemetry.sm_clock_mhz", 745.0),
                ("telemetry.power_watts", 60.0),
            ]
        }

        fn energy(&self) -> Option<f64> {
            None
        }
    }

    #[test]
    fn a_gpu_is_described_by_what_it_tells() {
        assert_eq!(
            figure_names(&Old),
            ["telemetry.power_watts", "telemetry.sm_clock_mhz"]
        );
    }

    #[test]
    fn here_no_telemetry_has_a_reason_and_a_remedy() {
        let found = availability();
        assert_eq!(found.gpus.is_empty(), found.why.is_some());
        assert_eq!(found.why.is_some(), found.remedy.is_some());
    }
}
