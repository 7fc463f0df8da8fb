//! The jobs of `tasks.rec`, and the data of `data.rec`, in the form of GNU recutils: `Field: value`
//! lines, and records that blank lines separate.

use std::collections::HashMap;
use std::path::Path;
use std::str::{FromStr, SplitWhitespace};

use crate::graph::spec::SpecError;

/// Most bytes of a datum, so that sums are numbers.
const MOST_BYTES: u64 = 1 << 40;

/// A job of StarPU's: a task, or what StarPU adds between tasks.
pub(super) struct Job<'a> {
    pub line: usize,
    pub id: &'a str,
    pub name: &'a str,
    /// The symbol of its performance model.
    pub model: &'a str,
    /// Its place in the order of submission; the greatest number if the program did not submit it.
    pub submitted: u64,
    /// The jobs that it waits for.
    pub after: Vec<&'a str>,
    /// Tells tasks on data of other sizes apart; 0 without data.
    pub footprint: u32,
    pub flops: f64,
    pub accesses: Vec<Access>,
    /// Absent unless it ran a codelet.
    pub ran: Option<Ran>,
}

impl Job<'_> {
    /// Bytes of all its data.
    pub fn size(&self) -> f64 {
        self.accesses.iter().map(|access| access.bytes as f64).sum()
    }
}

/// Where and when a job ran, in seconds of the trace.
#[derive(Clone, Copy)]
pub(super) struct Ran {
    pub worker: u32,
    pub start: f64,
    pub end: f64,
}

/// What a task does with a datum.
pub(super) struct Access {
    pub handle: u64,
    pub bytes: u64,
    pub reads: bool,
    pub writes: bool,
}

/// A record: its fields with their lines.
struct Record<'a> {
    file: &'a Path,
    fields: Vec<(usize, &'a str, &'a str)>,
}

/// Calls `each` with the records of a file. A field that a record has already begins the next one:
/// where StarPU writes `EndDependencies`, the blank line after the record is missing.
fn records<'a>(
    file: &'a Path,
    text: &'a str,
    mut each: impl FnMut(&Record<'a>) -> Result<(), SpecError>,
) -> Result<(), SpecError> {
    let fields = Vec::new();
    let mut record = Record { file, fields };
    for (line, text) in (1..).zip(text.lines().chain([""])) {
        let field = text.split_once(':');
        if field.is_none() && !text.trim().is_empty() {
            return Err(SpecError::line(file, line, "it is no `Field: value`"));
        }
        let ends = field.is_none_or(|(name, _)| {
            record.get(name).is_some() || (name == "Name" && record.get("JobId").is_some())
        });
        if ends && !record.fields.is_empty() {
            each(&record)?;
            record.fields.clear();
        }
        let value = |value: &'a str| value.strip_prefix(' ').unwrap_or(value);
        (record.fields).extend(field.map(|(name, text)| (line, name, value(text))));
    }
    Ok(())
}

impl<'a> Record<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let mut fields = self.fields.iter();
        fields.find_map(|(_, known, value)| (*known == name).then_some(*value))
    }

    fn words(&self, name: &str) -> SplitWhitespace<'a> {
        self.get(name).unwrap_or_default().split_whitespace()
    }

    /// The values of a field.
    fn values<T>(&self, name: &str, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, SpecError> {
        let wrong = |word| self.wrong(name, format!("`{word}` is not what StarPU writes here"));
        let value = |word| of(word).ok_or_else(|| wrong(word));
        self.words(name).map(value).collect()
    }

    /// The only value of a field.
    fn value<T: FromStr>(&self, name: &str) -> Result<Option<T>, SpecError> {
        let mut values = self.values(name, |word| word.parse().ok())?;
        Ok(values.pop())
    }

    fn wrong(&self, name: &str, why: impl Into<String>) -> SpecError {
        let mut own = self.fields.iter().filter(|(_, known, _)| *known == name);
        let (line, ..) = own.next().unwrap_or(&self.fields[0]);
        SpecError::field(self.file, name, why).at(Some(*line))
    }
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// The jobs of a file. Records of data that are not used any more are passed over.
pub(super) fn jobs<'a>(file: &'a Path, text: &'a str) -> Result<Vec<Job<'a>>, SpecError> {
    let (mut jobs, mut rank) = (Vec::new(), None);
    records(file, text, |record| {
        let own = record.get("MPIRank");
        if *rank.get_or_insert(own) != own {
            let why = "it has tasks of several MPI ranks; convert the trace of one";
            return Err(record.wrong("MPIRank", why));
        }
        if record.get("Control").is_none() {
            jobs.push(job(record)?);
        }
        Ok(())
    })?;
    Ok(jobs)
}

fn job<'a>(record: &Record<'a>) -> Result<Job<'a>, SpecError> {
    let missing = || record.wrong("JobId", "it is missing, and every task of StarPU has one");
    let (start, end) = (record.value("StartTime")?, record.value("EndTime")?);
    let ran = match (start.zip(end), record.value("WorkerId")?) {
        (Some((start, end)), Some(worker)) if 0.0 <= start && start <= end && end < 1e15 => {
            let (start, end) = (start / 1e3, end / 1e3);
            Some(Ran { worker, start, end })
        }
        (Some(_), Some(_)) => {
            return Err(record.wrong("EndTime", "it is no time in milliseconds after StartTime"));
        }
        _ => None,
    };
    let footprint = record.values("Footprint", hexadecimal)?;
    let billions = record.value::<f64>("GFlop")?.unwrap_or(0.0);
    Ok(Job {
        line: record.fields[0].0,
        id: record.get("JobId").ok_or_else(missing)?,
        name: record.get("Name").unwrap_or("unknown"),
        model: record.get("Model").unwrap_or_default(),
        submitted: record.value("SubmitOrder")?.unwrap_or(u64::MAX),
        after: record.words("DependsOn").collect(),
        footprint: footprint.first().map_or(0, |footprint| *footprint as u32),
        flops: 1e9 * billions,
        accesses: accesses(record)?,
        ran,
    })
}

/// What a task does with its data, each handle once. Scratch memory and parts of a reduction, which
/// each worker has for itself, are neither read nor written.
fn accesses(record: &Record) -> Result<Vec<Access>, SpecError> {
    let handles = record.values("Handles", hexadecimal)?;
    let size = |word: &str| word.parse().ok().filter(|bytes| *bytes < MOST_BYTES);
    let sizes = record.values("Sizes", size)?;
    if handles.len() != sizes.len() {
        let why = format!("{} sizes of {} handles", sizes.len(), handles.len());
        return Err(record.wrong("Sizes", why));
    }
    // A mode may be an empty word.
    let mut modes = record.get("Modes").unwrap_or_default().split(' ');
    let mut all: Vec<Access> = Vec::new();
    for (handle, bytes) in handles.into_iter().zip(sizes) {
        let mode = modes.next().unwrap_or_default();
        let is = |letter| mode.contains(letter) && !mode.contains(['S', 'X']);
        let (reads, writes) = (is('R'), is('W'));
        match all.iter_mut().find(|known| known.handle == handle) {
            Some(known) => {
                (known.reads, known.writes) = (known.reads | reads, known.writes | writes);
            }
            None => all.push(Access {
                handle,
                bytes,
                reads,
                writes,
            }),
        }
    }
    Ok(all)
}

/// The names of handles, and whether they are anywhere when the run begins. Of an address that
/// StarPU has used again, the first one counts.
pub(super) fn data(file: &Path, text: &str) -> Result<HashMap<u64, (String, bool)>, SpecError> {
    let mut all = HashMap::new();
    records(file, text, |record| {
        for handle in record.values("Handle", hexadecimal)? {
            let name = record.get("Name").map(str::to_owned);
            let mut name = name.unwrap_or_else(|| format!("{handle:x}"));
            for place in record.words("Coordinates") {
                name = format!("{name}.{place}");
            }
            let home = record.value::<i64>("HomeNode")?.unwrap_or(0);
            all.entry(handle).or_insert((name, home >= 0));
        }
        Ok(())
    })?;
    Ok(all)
}
