//! StarPU's performance models: the time of a codelet on each kind of worker, measured for data of
//! each size, or fitted to them.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

use super::machine::{CPU, Worker};
use crate::graph::spec::SpecError;

/// The version of the files that are read, that of StarPU 1.4.
const VERSION: u32 = 45;

/// Least measurements of a fit, and the part by which a size may lie outside of theirs, as in
/// StarPU (`perfmodel_history.c`).
const LEAST_SAMPLES: f64 = 10.0;
const OUTSIDE: f64 = 0.1;

/// A model: by kind of worker and number of the device, each implementation.
pub(super) struct PerfModel(Vec<(u32, u32, Implementation)>);

struct Implementation {
    /// Mean microseconds by footprint.
    history: HashMap<u32, f64>,
    /// Microseconds `a * size^b + c`, for sizes between these.
    fit: Option<([f64; 3], [f64; 2])>,
}

impl Implementation {
    fn micros(&self, footprint: u32, size: f64) -> Option<f64> {
        let fit = self
            .fit
            .filter(|(_, [least, most])| *least <= size && size <= *most);
        let fitted = fit.map(|([a, b, c], _)| a * size.powf(b) + c);
        let micros = self.history.get(&footprint).copied().or(fitted);
        micros.filter(|micros| *micros > 0.0 && *micros < 1e14)
    }
}

impl PerfModel {
    /// The model of a file.
    pub fn parse(file: &Path, text: &str) -> Result<Self, SpecError> {
        let lines = (1..).zip(text.lines());
        let words = lines.flat_map(|(line, text)| {
            let words = text
                .split('#')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            words.map(move |word| (line, word))
        });
        let mut words = Words { file, words };
        let version: u32 = words.next()?;
        if version != VERSION {
            let why = format!("its version is {version}; version {VERSION} is read");
            return Err(SpecError::file(file, why));
        }
        let mut all = Vec::new();
        for _ in 0..words.next()? {
            let mut devices: Vec<[u32; 3]> = Vec::new();
            for _ in 0..words.next()? {
                devices.push([words.next()?, words.next()?, words.next()?]);
            }
            for _ in 0..words.next()? {
                let implementation = words.implementation()?;
                // Tasks of several devices or cores at once are not simulated.
                if let [[kind, number, 1]] = devices[..] {
                    all.push((kind, number, implementation));
                }
            }
        }
        Ok(Self(all))
    }

    /// Seconds of a task on a worker by its fastest implementation, of which one measurement is
    /// enough; `None` if none was measured. A device without any has those of others of its kind.
    pub fn seconds(&self, worker: &Worker, footprint: u32, size: f64) -> Option<f64> {
        let least = |is_own: bool| {
            let all = self.0.iter().filter(|(kind, number, _)| {
                *kind == worker.kind && (!is_own || *kind == CPU || *number == worker.device)
            });
            all.filter_map(|(_, _, one)| one.micros(footprint, size))
                .reduce(f64::min)
        };
        least(true)
            .or_else(|| least(false))
            .map(|micros| micros / 1e6)
    }
}

/// The words of a file, without comments, with their lines.
struct Words<'a, I> {
    file: &'a Path,
    words: I,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Words<'_, I> {
    fn next<T: FromStr>(&mut self) -> Result<T, SpecError> {
        let ended = || SpecError::file(self.file, "it ends early; let StarPU write it again");
        let (line, word) = self.words.next().ok_or_else(ended)?;
        let wrong =
            |_| SpecError::line(self.file, line, format!("`{word}` is no number of a model"));
        word.parse().map_err(wrong)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[f64; N], SpecError> {
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = self.next()?;
        }
        Ok(numbers)
    }

    fn implementation(&mut self) -> Result<Implementation, SpecError> {
        let entries: u32 = self.next()?;
        let [_, _, _, _, alpha, beta, samples, least, most] = self.numbers()?;
        let curve: [f64; 3] = self.numbers()?;
        // Without the arguments of multiple regressions, which the file lacks, these tell nothing.
        let coefficients: u32 = self.next()?;
        for _ in 0..coefficients {
            self.numbers::<1>()?;
        }
        let mut history = HashMap::new();
        for _ in 0..entries {
            let hash: String = self.next()?;
            let [_, _, mean, _, _, _, number] = self.numbers()?;
            let hash = u32::from_str_radix(&hash, 16);
            let wrong = |_| SpecError::file(self.file, "the hash of an entry is no number");
            let hash = hash.map_err(wrong)?;
            if number > 0.0 {
                history.insert(hash, mean);
            }
        }
        // StarPU prefers the second one. Models without fits have NaN in both.
        let mut fits = [curve, [alpha, beta, 0.0]].into_iter();
        let fit = fits.find(|fit| fit.iter().all(|number| number.is_finite()));
        let (low, high) = (1.0 - OUTSIDE, 1.0 + OUTSIDE);
        let fit = fit.filter(|_| samples >= LEAST_SAMPLES && least < low * most);
        let fit = fit.map(|fit| (fit, [low * least, high * most]));
        Ok(Implementation { history, fit })
    }
}
