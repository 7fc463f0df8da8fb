//! Files of what the process did.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, panic, process};

use pdawl_api::profile::kernels::Division as Verdict;
use pdawl_api::report::exec::{Division, Kernel, KernelDevice, Moved, Process, Share};
use pdawl_api::trace::{About, chrome};
use pdawl_profiler::atomic_file::AtomicFile;

use crate::own_time;
use crate::process_end;
use crate::records::{KernelRecord, UNKNOWN};
use crate::settings::settings;

use super::report;

/// The time between reports of a process that runs.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// Has the files written at the process's end.
pub fn at_exit() {
    // SAFETY: the function may be called when the process ends.
    unsafe { libc::atexit(end) };
}

extern "C" fn end() {
    let _ = panic::catch_unwind(|| now(true));
}

/// Writes the report, and the trace if the process ends.
pub fn now(complete: bool) {
    // A process that this one forked has no part in it.
    if process_end::is_forked() {
        return;
    }
    let written = (settings().report.as_deref()).map(|path| {
        file(path, "report", |out| {
            Ok(serde_json::to_writer(out, &made(complete))?)
        })
    });
    let traced = (settings().trace.as_deref())
        .filter(|_| complete)
        .map(|path| file(path, "trace", trace));
    for result in [written, traced].into_iter().flatten() {
        if let Err(error) = result {
            eprintln!("pdawl: the report cannot be written: {error}");
        }
    }
    report().written = Instant::now();
}

/// Writes a file whole or not at all. In a folder, each process has its own.
fn file(
    path: &Path,
    what: &str,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let path: PathBuf = match path.is_dir() {
        true => path.join(format!("{}.{what}.json", process::id())),
        false => path.to_owned(),
    };
    AtomicFile::create(&path)?.fill(|file| {
        let mut out = io::BufWriter::new(file);
        contents(&mut out)?;
        out.flush()
    })
}

fn trace(out: &mut dyn Write) -> io::Result<()> {
    let report = report();
    let about = About {
        workload: executable(),
        strategy: settings().policy.clone(),
        machine: "this machine".to_owned(),
        simulated: false,
    };
    chrome::write(&report.spans.trace(report.queues.len()), &about, None, out)
}

fn executable() -> String {
    env::current_exe().map_or_else(|_| "unknown".to_owned(), |path| path.display().to_string())
}

/// How launches of a kernel were divided: one entry for all that is alike.
fn division(kernel: &KernelRecord) -> Vec<Division> {
    let mut all: Vec<(Division, BTreeMap<String, u64>)> = Vec::new();
    let mut entries = kernel.divisions.all();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    for entry in entries {
        let figures = entry.figures();
        let is_unknown = figures.whole == Some(UNKNOWN);
        let whole = figures.whole.map(|why| why.to_string());
        let (verdict, axis, reason) = match entry.verdict().as_deref() {
            None if is_unknown => ("unknown", None, whole),
            None => ("refused", None, whole),
            Some(Verdict::Refused { reason }) => ("refused", None, Some(reason.clone())),
            Some(Verdict::Sliced { axis, .. }) => ("sliced", Some(*axis), whole),
            Some(Verdict::Merged { axis, reason, .. }) => {
                ("merged", Some(*axis), Some(reason.clone()))
            }
        };
        let known = all.iter().position(|(known, _)| {
            known.verdict == verdict && known.axis == axis && known.reason == reason
        });
        let index = known.unwrap_or_else(|| {
            let one = Division {
                verdict: verdict.to_owned(),
                reason,
                axis,
                ..Division::default()
            };
            all.push((one, BTreeMap::new()));
            all.len() - 1
        });
        let (one, groups) = &mut all[index];
        one.divided += figures.divided;
        one.clashes += figures.clashes;
        for (device, count) in figures.groups {
            *groups.entry(device).or_default() += count;
        }
    }
    let shared = |(mut one, groups): (Division, BTreeMap<String, u64>)| {
        let sum = groups.values().sum::<u64>().max(1) as f64;
        let share = |(device, count): (String, u64)| Share {
            device,
            share: count as f64 / sum,
        };
        one.shares = groups.into_iter().map(share).collect();
        one
    };
    all.into_iter().map(shared).collect()
}

fn made(complete: bool) -> Process {
    let report = report();
    let queues: Vec<_> = report.queues.iter().map(Arc::clone).collect();
    let mut process = Process {
        pid: report.pid,
        executable: executable(),
        began: report.since_1970,
        seconds: report.began.elapsed().as_secs_f64(),
        complete,
        devices: report.devices.clone(),
        untraced: report.spans.lost,
        ..Process::default()
    };
    for ((from, to), (copies, bytes)) in &report.moved {
        process.moved.push(Moved {
            from: from.clone(),
            to: to.clone(),
            copies: *copies,
            bytes: *bytes,
        });
    }
    let samples = report.samples.clone();
    // Who counts for a queue may want the report.
    drop(report);
    let mut kernels = BTreeMap::new();
    for queue in &queues {
        let counts = queue.lock();
        process.queues.push(counts.described());
        for counted in counts.launches.all() {
            let key = &counted.record.key;
            let (_, _, devices) = kernels.entry(key.clone()).or_insert_with(|| {
                (
                    counted.name.clone(),
                    Arc::clone(&counted.record),
                    BTreeMap::<String, KernelDevice>::new(),
                )
            });
            for place in 0..counts.places() {
                let device = counts.device(place);
                let sampled = samples.get(&(key.clone(), device.clone()));
                let seconds = counted.record.seconds(counts.profile(place));
                let entry = devices.entry(device.clone()).or_default();
                entry.name = device;
                entry.launches += counted.at[place];
                entry.samples = sampled.copied().unwrap_or(0);
                entry.seconds = seconds;
            }
        }
    }
    for (key, (name, record, devices)) in kernels {
        process.kernels.push(Kernel {
            name,
            key: key.as_str().to_owned(),
            devices: devices.into_values().collect(),
            division: division(&record),
        });
    }
    let commands = process.queues.iter().flat_map(|queue| &queue.devices);
    process.own = own_time::of(commands.map(|device| device.commands).sum());
    process
}
