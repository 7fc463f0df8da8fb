//! StarPU's performance models: the time of a codelet on each kind of worker, measured for data of
//! each size, or fitted to them.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

use super::machine::{CPU, Worker};
use crate::graph::spec::SpecError;

/// The version of the files that are read, that of StarPU 1.4.
const VERSION: &str = "45";

/// Least measurements of a fit, and the part by which a size may lie outside of theirs, as in
/// StarPU (`perfmodel_history.c`).
const LEAST_SAMPLES: f64 = 10.0;
const OUTSIDE: f64 = 0.1;

/// Most implementations, devices and kinds of workers of a file.
const MOST: usize = 10_000;

/// A model: by kind of worker and number of the device.
pub(super) struct PerfModel(Vec<(u32, u32, Vec<Implementation>)>);

struct Implementation {
    /// Mean microseconds by footprint.
    history: HashMap<u32, f64>,
    fit: Option<Fit>,
}

/// Microseconds `a * size^b + c`, for sizes between these.
struct Fit {
    a: f64,
    b: f64,
    c: f64,
    sizes: (f64, f64),
}

impl Fit {
    /// The fit of a line `sumlnx sumlnx2 sumlny sumlnxlny alpha beta n minx maxx` and of `a b c`,
    /// which StarPU prefers. Neither has numbers in a model that is not fitted.
    fn of(line: &[f64], [a, b, c]: [f64; 3]) -> Option<Self> {
        let [.., alpha, beta, samples, least, most] = line else {
            return None;
        };
        let is_known = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
        let (a, b, c) = match is_known(&[a, b, c]) {
            true => (a, b, c),
            false => (*alpha, *beta, 0.0),
        };
        let is_valid =
            is_known(&[a, b, c]) && *samples >= LEAST_SAMPLES && *least < (1.0 - OUTSIDE) * most;
        is_valid.then_some(Self {
            a,
            b,
            c,
            sizes: ((1.0 - OUTSIDE) * least, (1.0 + OUTSIDE) * most),
        })
    }

    fn at(&self, size: f64) -> Option<f64> {
        let is_inside = self.sizes.0 <= size && size <= self.sizes.1;
        is_inside.then(|| self.a * size.powf(self.b) + self.c)
    }
}

impl PerfModel {
    /// The model of a file.
    pub fn parse(file: &Path, text: &str) -> Result<Self, SpecError> {
        let mut lines = Lines {
            file,
            lines: Box::new((1..).zip(text.lines())),
        };
        let (line, words) = lines.next("a version")?;
        if words != [VERSION] {
            let why = format!(
                "its version is {}; version {VERSION} is read",
                words.join(" ")
            );
            return Err(SpecError::line(file, line, why));
        }
        let mut all = Vec::new();
        for _ in 0..lines.count("a number of combinations")? {
            let mut devices = Vec::new();
            for _ in 0..lines.count("a number of devices")? {
                let kind = lines.count("a kind of device")? as u32;
                let number = lines.count("the number of a device")? as u32;
                devices.push((kind, number, lines.count("a number of cores")?));
            }
            let mut implementations = Vec::new();
            for _ in 0..lines.count("a number of implementations")? {
                implementations.push(lines.implementation()?);
            }
            // Tasks of several devices or cores at once are not simulated.
            if let [(kind, number, 1)] = devices[..] {
                all.push((kind, number, implementations));
            }
        }
        Ok(Self(all))
    }

    /// Seconds of a task on a worker by its fastest implementation, of which one measurement is
    /// enough; `None` if none was measured. A device without any has those of another one of its
    /// kind.
    pub fn seconds(&self, worker: &Worker, footprint: u32, size: f64) -> Option<f64> {
        let alike = || self.0.iter().filter(|(kind, ..)| *kind == worker.kind);
        let own = alike().filter(|(kind, number, _)| *kind == CPU || *number == worker.device);
        let micros = own.chain(alike()).find_map(|(_, _, implementations)| {
            let seconds = implementations.iter().filter_map(|one| {
                let measured = one.history.get(&footprint).copied();
                measured.or_else(|| one.fit.as_ref()?.at(size))
            });
            seconds
                .filter(|micros| *micros > 0.0 && *micros < 1e14)
                .reduce(f64::min)
        });
        micros.map(|micros| micros / 1e6)
    }
}

/// The lines that have values.
struct Lines<'a> {
    file: &'a Path,
    lines: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
}

impl<'a> Lines<'a> {
    /// The words of the next line, and its number.
    fn next(&mut self, what: &str) -> Result<(usize, Vec<&'a str>), SpecError> {
        for (line, text) in self.lines.by_ref() {
            let text = text.split('#').next().unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            if !words.is_empty() {
                return Ok((line, words));
            }
        }
        let why = format!("it ends where {what} is expected; let StarPU write it again");
        Err(SpecError::file(self.file, why))
    }

    fn wrong(&self, line: usize, what: &str) -> SpecError {
        SpecError::line(
            self.file,
            line,
            format!("it is not {what}, which StarPU has here"),
        )
    }

    fn count(&mut self, what: &str) -> Result<usize, SpecError> {
        let (line, words) = self.next(what)?;
        let count = words[0].parse().ok().filter(|count| *count <= MOST);
        count.ok_or_else(|| self.wrong(line, what))
    }

    /// So many numbers of a line.
    fn numbers(&mut self, count: usize, what: &str) -> Result<Vec<f64>, SpecError> {
        let (line, words) = self.next(what)?;
        let numbers = words.iter().map(|word| f64::from_str(word).ok());
        let numbers: Option<Vec<f64>> = numbers.collect();
        let numbers = numbers.filter(|numbers| numbers.len() == count);
        numbers.ok_or_else(|| self.wrong(line, what))
    }

    fn implementation(&mut self) -> Result<Implementation, SpecError> {
        let entries = self.count("a number of entries")?;
        let line = self.numbers(9, "the nine numbers of a regression")?;
        let curve = self.numbers(3, "a, b and c of a regression")?;
        // The arguments of multiple regressions are not in the file.
        let (_, multiple) = self.next("a number of coefficients")?;
        let mut history = HashMap::new();
        for _ in 0..entries {
            let what = "a line hash, size, flops, mean, deviation, sum, sum2, n";
            let (line, words) = self.next(what)?;
            // Old files have no flops.
            let (hash, mean, number) = match words[..] {
                [hash, _, _, mean, _, _, _, number] => (hash, mean, number),
                [hash, _, mean, _, _, _, number] => (hash, mean, number),
                _ => return Err(self.wrong(line, what)),
            };
            let hash = u32::from_str_radix(hash, 16).ok();
            let measured = hash
                .zip(mean.parse::<f64>().ok())
                .zip(number.parse::<u64>().ok());
            let ((hash, mean), number) = measured.ok_or_else(|| self.wrong(line, what))?;
            if number > 0 {
                history.insert(hash, mean);
            }
        }
        let fit = (multiple[0] == "0").then(|| Fit::of(&line, [curve[0], curve[1], curve[2]]));
        Ok(Implementation {
            history,
            fit: fit.flatten(),
        })
    }
}
