//! Telemetry of a GPU during a run: clocks, power, energy, and traffic over PCIe.
//!
//! This folder owns NVIDIA's management library (NVML). [`Telemetry`] opens
//! it, and a [`Sampler`] asks one GPU at intervals from a thread of its own, and
//! makes medians of the answers. A GPU or driver that does not tell
//! a figure just leaves it absent; a machine without the library says so
//! ([`Absent`]) and profiles without telemetry.
//!
//! Sampling goes through [`Sensor`], so that it is tested without a GPU.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use pdawl_profiler::telemetry::{Gpu, Sampler, Telemetry};
//!
//! let gpu = Gpu { model: "NVIDIA H200".into(), nth: 0 };
//! let sampler = Telemetry::open()
//!     .and_then(|telemetry| telemetry.sensor(&gpu))
//!     .and_then(|sensor| Sampler::start(sensor, Duration::from_millis(20)));
//! match sampler {
//!     Ok(sampler) => println!("{:?}", sampler.stop()),
//!     Err(absent) => println!("no telemetry: {absent}; {}", absent.remedy()),
//! }
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter};
use nvml_wrapper::error::NvmlError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::median;

/// The usual time between two readings.
pub const INTERVAL: Duration = Duration::from_millis(20);

/// The figure that a GPU counts by itself.
const ENERGY: &str = "telemetry.energy_joules";

/// A GPU that can be asked, from several threads.
pub trait Sensor: Send + Sync + 'static {
    /// How it goes now, by the features' names, which say the units; what it does not
    /// tell is absent. May take tens of milliseconds: PCIe throughput is averaged over
    /// 20 ms while the caller waits.
    fn read(&self) -> Vec<(&'static str, f64)>;

    /// Joules used since some moment in the past.
    fn energy(&self) -> Option<f64>;
}

/// A thread that polls a GPU until it is stopped; dropping it stops it as well.
pub struct Sampler {
    sensor: Arc<dyn Sensor>,
    energy: Option<f64>,
    /// Its end ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<Vec<(&'static str, f64)>>,
}

impl Sampler {
    /// Asks at once, and again `interval` after each answer. Answers may take
    /// longer than that ([`Sensor::read`]).
    ///
    /// # Errors
    /// [`Absent::Thread`] when the system starts no more threads.
    pub fn start(sensor: Arc<dyn Sensor>, interval: Duration) -> Result<Self, Absent> {
        // First, as a read under way might delay the answer.
        let energy = sensor.energy();
        let (stop, stopped) = channel::<()>();
        let asked = Arc::clone(&sensor);
        let thread = thread::Builder::new()
            .name("telemetry".into())
            .spawn(move || {
                let mut readings = Vec::new();
                loop {
                    readings.extend(asked.read());
                    if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                        return readings;
                    }
                }
            });
        let thread = thread.map_err(Absent::Thread)?;
        Ok(Self {
            energy,
            sensor,
            stop,
            thread,
        })
    }

    /// The medians since the start and the energy used, by feature name; what
    /// the GPU does not tell is absent. Waits for an answer under way, so
    /// take the time of a run before.
    pub fn stop(self) -> BTreeMap<String, f64> {
        let energy = self.sensor.energy();
        drop(self.stop);
        // A thread that died leaves no figures, which is what it has.
        let readings = self.thread.join().unwrap_or_default();
        figures(&readings, (self.energy, energy))
    }
}

/// The median of each figure over the readings that have it, and the energy
/// used between two states of the GPU's counter.
fn figures(
    readings: &[(&'static str, f64)],
    energy: (Option<f64>, Option<f64>),
) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in readings.iter().filter(|(_, value)| value.is_finite()) {
        all.entry(name).or_default().push(*value);
    }
    let medians = all.into_iter();
    let mut figures: BTreeMap<String, f64> = medians
        .filter_map(|(name, values)| Some((name.to_owned(), median(values)?)))
        .collect();
    if let (Some(before), Some(after)) = energy {
        let used = after - before;
        // Its counter begins again with the driver.
        if used >= 0.0 {
            figures.insert(ENERGY.to_owned(), used);
        }
    }
    figures
}

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
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use super::*;

    /// A GPU that counts how often it is asked, up to three clocks.
    struct Fake {
        readings: AtomicU32,
        energies: AtomicU32,
        asked: Mutex<Sender<u32>>,
    }

    impl Fake {
        fn new() -> (Arc<Self>, std::sync::mpsc::Receiver<u32>) {
            let (sender, receiver) = channel();
            let fake = Self {
                readings: AtomicU32::new(0),
                energies: AtomicU32::new(0),
                asked: Mutex::new(sender),
            };
            (Arc::new(fake), receiver)
        }
    }

    impl Sensor for Fake {
        fn read(&self) -> Vec<(&'static str, f64)> {
            let number = self.readings.fetch_add(1, Ordering::SeqCst) + 1;
            // The test may have heard enough.
            let _ = self.asked.lock().unwrap().send(number);
            let clock = f64::from(number.min(3)) * 100.0;
            vec![("telemetry.memory_clock_mhz", clock)]
        }

        fn energy(&self) -> Option<f64> {
            Some(f64::from(self.energies.fetch_add(1, Ordering::SeqCst)) * 7.5)
        }
    }

    #[test]
    fn it_asks_again_and_again_until_it_is_stopped() {
        let (fake, receiver) = Fake::new();
        let sampler = Sampler::start(fake.clone(), Duration::from_millis(1)).unwrap();
        while receiver.recv().unwrap() < 9 {}
        let figures = sampler.stop();
        // At least 9 readings: 100, 200 and then always 300.
        let expected = [
            ("telemetry.energy_joules".to_owned(), 7.5),
            ("telemetry.memory_clock_mhz".to_owned(), 300.0),
        ];
        assert_eq!(figures, expected.into());
        let asked = fake.readings.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(fake.readings.load(Ordering::SeqCst), asked);
    }

    #[test]
    fn a_run_shorter_than_the_interval_has_one_glance_and_stops_at_once() {
        let (fake, receiver) = Fake::new();
        let sampler = Sampler::start(fake, Duration::from_secs(600)).unwrap();
        assert_eq!(receiver.recv(), Ok(1));
        let begin = Instant::now();
        let figures = sampler.stop();
        assert!(begin.elapsed() < Duration::from_secs(60));
        assert_eq!(figures["telemetry.memory_clock_mhz"], 100.0);
    }

    #[test]
    fn a_dropped_sampler_asks_no_more() {
        let (fake, receiver) = Fake::new();
        drop(Sampler::start(fake, Duration::from_millis(1)).unwrap());
        // The thread ends, and with it the last that could tell.
        while receiver.recv().is_ok() {}
    }

    /// A GPU whose driver panics when it is polled.
    struct Broken;

    impl Sensor for Broken {
        fn read(&self) -> Vec<(&'static str, f64)> {
            panic!("the driver's fault")
        }

        fn energy(&self) -> Option<f64> {
            None
        }
    }

    #[test]
    fn a_thread_that_dies_leaves_no_figures() {
        let sampler = Sampler::start(Arc::new(Broken), INTERVAL).unwrap();
        assert_eq!(sampler.stop(), BTreeMap::new());
    }

    #[test]
    fn medians_shrug_off_an_idle_moment() {
        const CLOCK: &str = "telemetry.sm_clock_mhz";
        let readings = [(CLOCK, 1980.0), (CLOCK, 345.0), (CLOCK, 1965.0)];
        let found = figures(&readings, (None, None));
        assert_eq!(found, [(CLOCK.into(), 1965.0)].into());
        let found = figures(&readings[..2], (None, None));
        assert_eq!(found[CLOCK], 1162.5);
    }

    #[test]
    fn a_figure_is_the_median_of_those_glances_that_have_it() {
        let readings = [
            ("telemetry.sm_clock_mhz", 1000.0),
            ("telemetry.power_watts", 300.0),
            ("telemetry.sm_clock_mhz", 1200.0),
            ("telemetry.pcie_rx_bytes_per_second", f64::NAN),
        ];
        let found = figures(&readings, (None, None));
        let expected = [
            ("telemetry.power_watts".to_owned(), 300.0),
            ("telemetry.sm_clock_mhz".to_owned(), 1100.0),
        ];
        assert_eq!(found, expected.into());
    }

    #[test]
    fn energy_is_a_difference_and_needs_both_ends() {
        let energy = |before, after| figures(&[], (before, after));
        let expected = [(ENERGY.to_owned(), 2.5)];
        assert_eq!(energy(Some(10.0), Some(12.5)), expected.into());
        for (before, after) in [(None, Some(1.0)), (Some(1.0), None), (Some(2.0), Some(1.0))] {
            assert_eq!(energy(before, after), BTreeMap::new());
        }
    }

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
