//! The jobs of `tasks.rec`, and the data of `data.rec`.

use std::collections::HashMap;
use std::path::Path;

use super::read;
use super::records::{Record, hexadecimal, records};
use crate::graph::spec::SpecError;

/// Most jobs of a recording, those that run no codelet included.
const MOST_JOBS: usize = 16 * super::MOST_TASKS;

/// A job of StarPU's: a task, or what StarPU adds between tasks.
pub(super) struct Job<'a> {
    pub line: usize,
    pub id: &'a str,
    pub name: &'a str,
    /// The symbol of its performance model.
    pub model: Option<&'a str>,
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

/// Where and when a job ran, in seconds of the trace.
pub(super) struct Ran {
    pub worker: u32,
    pub start: f64,
    pub end: f64,
}

/// What a task does with a datum.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub handle: u64,
    pub bytes: u64,
    pub reads: bool,
    pub writes: bool,
}

/// The jobs of a file. Records of data that are not used any more are passed over.
pub(super) fn jobs<'a>(file: &'a Path, text: &'a str) -> Result<Vec<Job<'a>>, SpecError> {
    let mut jobs = Vec::new();
    let mut rank = None;
    for record in records(file, text) {
        let record = record?;
        if record.get("Control").is_some() {
            continue;
        }
        let own = record.get("MPIRank").unwrap_or("-1");
        if *rank.get_or_insert(own) != own {
            let why = "it has tasks of several MPI ranks; convert the trace of one";
            return Err(record.error("MPIRank", why));
        }
        if jobs.len() == MOST_JOBS {
            let why = format!("it has more than {MOST_JOBS} jobs; record a smaller problem");
            return Err(SpecError::file(file, why));
        }
        jobs.push(job(&record)?);
    }
    Ok(jobs)
}

fn job<'a>(record: &Record<'a>) -> Result<Job<'a>, SpecError> {
    let Some(id) = record.get("JobId") else {
        return Err(record.error("JobId", "it is missing, and every task of StarPU has one"));
    };
    let seconds = |name| {
        let time: Option<f64> = record.number(name)?;
        match time {
            Some(time) if !(0.0..1e15).contains(&time) => {
                Err(record.error(name, format!("{time} is no time in milliseconds")))
            }
            time => Ok(time.map(|time| time / 1e3)),
        }
    };
    let (start, end, worker) = (
        seconds("StartTime")?,
        seconds("EndTime")?,
        record.number("WorkerId")?,
    );
    let ran = match (start, end, worker) {
        (Some(start), Some(end), Some(_)) if end < start => {
            return Err(record.error("EndTime", "it is before StartTime"));
        }
        (Some(start), Some(end), Some(worker)) => Some(Ran { worker, start, end }),
        _ => None,
    };
    let footprint = record.numbers("Footprint", |word| u32::from_str_radix(word, 16).ok())?;
    let flops: f64 = record.number("GFlop")?.unwrap_or(0.0);
    Ok(Job {
        line: record.line,
        id,
        name: record.get("Name").unwrap_or("unknown"),
        model: record.get("Model"),
        submitted: record.number("SubmitOrder")?.unwrap_or(u64::MAX),
        after: record
            .get("DependsOn")
            .unwrap_or_default()
            .split_whitespace()
            .collect(),
        footprint: footprint.first().copied().unwrap_or(0),
        flops: if flops.is_finite() {
            1e9 * flops.max(0.0)
        } else {
            0.0
        },
        accesses: accesses(record)?,
        ran,
    })
}

/// What a task does with its data, each handle once. Scratch memory and parts of a reduction, which
/// each worker has for itself, are neither read nor written.
fn accesses(record: &Record) -> Result<Vec<Access>, SpecError> {
    let handles = record.numbers("Handles", hexadecimal)?;
    let sizes = record.numbers("Sizes", |word| word.parse().ok())?;
    if handles.len() != sizes.len() {
        let why = format!("{} sizes of {} handles", sizes.len(), handles.len());
        return Err(record.error("Sizes", why));
    }
    // A mode may be an empty word.
    let mut modes = record.get("Modes").unwrap_or_default().split(' ');
    let mut all: Vec<Access> = Vec::new();
    for (handle, bytes) in handles.into_iter().zip(sizes) {
        let mode = modes.next().unwrap_or_default();
        let is_shared = !mode.contains(['S', 'X']);
        let access = Access {
            handle,
            bytes,
            reads: is_shared && mode.contains('R'),
            writes: is_shared && mode.contains('W'),
        };
        match all.iter_mut().find(|known| known.handle == handle) {
            Some(known) => {
                known.reads |= access.reads;
                known.writes |= access.writes;
            }
            None => all.push(access),
        }
    }
    Ok(all)
}

/// What is known of a handle.
pub(super) struct Handle {
    pub name: String,
    /// Whether it is somewhere when the run begins.
    pub has_home: bool,
}

/// The handles of a file; none if there is no such file. Of an address that StarPU used again, the
/// first one counts.
pub(super) fn data(file: &Path) -> Result<HashMap<u64, Handle>, SpecError> {
    let mut all = HashMap::new();
    if !file.exists() {
        return Ok(all);
    }
    for record in records(file, &read(file)?) {
        let record = record?;
        let Some(handle) = record.numbers("Handle", hexadecimal)?.first().copied() else {
            return Err(record.error("Handle", "it is missing, and every datum of StarPU has one"));
        };
        let home: Option<i64> = record.number("HomeNode")?;
        let name = record
            .get("Name")
            .map_or_else(|| format!("{handle:x}"), str::to_owned);
        let coordinates = record
            .get("Coordinates")
            .unwrap_or_default()
            .split_whitespace();
        all.entry(handle).or_insert(Handle {
            name: coordinates.fold(name, |name, at| format!("{name}.{at}")),
            has_home: home.is_none_or(|home| home >= 0),
        });
    }
    Ok(all)
}
