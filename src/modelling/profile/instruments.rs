//! The instruments of a run: the processor's and the kernel's counters over all threads
//! of this process, and a GPU's sensors.
//!
//! They record from the begin of the first step to the last barrier; starting and
//! stopping them is not timed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pdawl_profiler::counters::{Counters, Reading, Source, threads_of_this_process};
use pdawl_profiler::telemetry::{INTERVAL, Sampler, Sensor};

use super::configuration::DeviceUse;
use super::machine::ProfiledMachine;

/// The instruments of one run; none over a simulated one.
pub struct RunInstruments {
    real: bool,
    counters: Option<Counters>,
    sensor: Option<Arc<dyn Sensor>>,
    sampler: Option<Sampler>,
    reading: Reading,
    sensors: BTreeMap<String, f64>,
    notes: Vec<String>,
}

impl RunInstruments {
    /// Instruments for a run on this machine.
    pub fn over(profiled: &mut ProfiledMachine, device_use: &DeviceUse) -> Self {
        Self {
            real: !profiled.is_simulated(),
            counters: None,
            sensor: profiled.sensor(device_use),
            sampler: None,
            reading: Reading::default(),
            sensors: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Opens the counters; all working threads must exist by now.
    pub fn open(&mut self) {
        if self.real {
            let counters = Counters::open(&threads_of_this_process());
            self.notes.extend_from_slice(counters.notes());
            self.counters = Some(counters);
        }
    }

    /// The first step begins.
    pub fn begin(&mut self) {
        if let Some(sensor) = self.sensor.take() {
            match Sampler::start(sensor, INTERVAL) {
                Ok(sampler) => self.sampler = Some(sampler),
                Err(absent) => (self.notes).push(format!("{absent}; {}", absent.remedy())),
            }
        }
        if let Some(counters) = &mut self.counters {
            counters.start();
        }
    }

    /// The last barrier is reached; a second call does nothing.
    pub fn end(&mut self) {
        if let Some(mut counters) = self.counters.take() {
            self.reading = counters.stop();
        }
        if let Some(sampler) = self.sampler.take() {
            self.sensors = sampler.stop();
        }
    }

    /// The source of the counters, the readings, and notes for the user.
    pub fn close(self) -> (Source, BTreeMap<String, f64>, Vec<String>) {
        let mut seen = self.reading.values;
        seen.extend(self.sensors);
        (self.reading.source, seen, self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::select::{Selection, open_union};

    #[test]
    fn every_worker_of_a_pool_counts_in_groups() {
        let mut watch = RunInstruments {
            real: true,
            counters: None,
            sensor: None,
            sampler: None,
            reading: Reading::default(),
            sensors: BTreeMap::new(),
            notes: Vec::new(),
        };
        let selection: Selection = "host:2".parse().unwrap();
        let (mut union, _) = open_union(Some(&selection), true).unwrap();
        watch.open(&mut union);
        watch.begin();
        let counters = watch.counters.as_ref().unwrap();
        let (threads, grouped) = (counters.threads(), counters.grouped_threads());
        watch.end();
        let (source, seen, notes) = watch.close();
        match source {
            Source::None => assert_eq!((threads, seen.len()), (0, 0), "{notes:?}"),
            // The two workers and this thread.
            _ => assert!(grouped >= 3, "{grouped} of {threads}: {notes:?}"),
        }
    }
}
