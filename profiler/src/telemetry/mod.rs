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
mod sampler;

pub use nvml::{Absent, Availability, Described, Gpu, Telemetry, availability};
pub use sampler::{INTERVAL, Sampler, Sensor};
