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

mod nvml;

pub use nvml::{Absent, Availability, Described, Gpu, Telemetry, availability};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

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
}
