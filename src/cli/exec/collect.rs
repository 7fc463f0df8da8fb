//! What the layer wrote: a report, and a trace if one is wanted, for each process of the
//! program that used OpenCL. They lie in a folder that is removed afterwards.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pdawl_api::report::exec::Process;
use pdawl_profiler::file;
use serde_json::Value;
use tempfile::TempDir;

use super::program::Ended;
use crate::failure::Failure;

/// Processes in one trace are this far apart in the numbers of their tracks.
const TRACKS: u64 = 1000;

/// Bytes of a report or a trace, at most.
const MOST: u64 = 4 << 30;

/// The folder for the layer's files, which is the user's alone.
pub fn folder() -> Result<TempDir, Failure> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("pdawl-exec-");
    builder.permissions(Permissions::from_mode(0o700));
    let folder = builder.tempdir();
    folder.map_err(|error| {
        Failure::failed(
            format!("no folder can be made for the layer's reports: {error}"),
            "TMPDIR with a folder that can be written",
        )
    })
}

/// What was found.
pub struct Collected {
    /// In the order of their start.
    pub processes: Vec<Process>,
    traces: Vec<PathBuf>,
    pub notes: Vec<String>,
}

impl Collected {
    /// Reads the folder, of a program that has ended.
    pub fn read(folder: &Path, ended: &Ended) -> Self {
        let (mut processes, mut notes) = (Vec::<Process>::new(), Vec::new());
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
        files.sort();
        let ends = |file: &Path, end: &str| {
            file.file_name()
                .is_some_and(|name| name.to_string_lossy().ends_with(end))
        };
        let traces = files
            .iter()
            .filter(|file| ends(file, ".trace.json"))
            .cloned()
            .collect();
        for file in files.iter().filter(|file| ends(file, ".report.json")) {
            let read = read(file).and_then(|text| Ok(serde_json::from_slice(&text)?));
            match read {
                Ok(process) => processes.push(process),
                Err(error) => notes.push(format!(
                    "a process's report, {}, cannot be read: {error}",
                    file.file_name().unwrap_or_default().to_string_lossy()
                )),
            }
        }
        processes.sort_by(|a, b| a.began.total_cmp(&b.began));
        let killed = ended.killed_by();
        let has_report = processes.iter().any(|process| process.pid == ended.pid);
        if let Some(signal) = killed.as_ref().filter(|_| !has_report) {
            notes.push(format!("the program was ended by {signal}"));
        }
        for process in &processes {
            if !process.complete {
                let how = match &killed {
                    Some(signal) if process.pid == ended.pid => format!("was ended by {signal}"),
                    _ => "was ended by a signal, or by `_exit`".to_owned(),
                };
                let pid = process.pid;
                notes.push(format!(
                    "process {pid} {how}; its figures may lack its last second"
                ));
            }
            if process.untraced > 0 {
                let untraced = process.untraced;
                notes.push(format!(
                    "the trace lacks {untraced} commands, since it is full"
                ));
            }
        }
        Self {
            processes,
            traces,
            notes,
        }
    }

    /// Writes the trace: that of the only process, or the events of all.
    pub fn write_trace(&self, out: &mut dyn Write) -> io::Result<()> {
        if let [only] = &self.traces[..] {
            return io::copy(&mut file::found(only)?, out).map(drop);
        }
        let mut events = Vec::new();
        for (number, file) in self.traces.iter().enumerate() {
            let mut trace: Value = serde_json::from_slice(&read(file)?)?;
            let own = trace["traceEvents"].as_array_mut().map(std::mem::take);
            for mut event in own.unwrap_or_default() {
                for field in ["pid", "id"] {
                    if let Some(id) = event[field].as_u64() {
                        event[field] = (id + number as u64 * TRACKS).into();
                    }
                }
                events.push(event);
            }
        }
        let all = serde_json::json!({"displayTimeUnit": "ns", "traceEvents": events});
        Ok(serde_json::to_writer(out, &all)?)
    }
}

/// The content of a file that a process wrote, or any program that it started.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    file::content(file::found(path)?, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_users_alone() {
        let folder = folder().unwrap_or_else(|failure| panic!("{failure:?}"));
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    fn write(folder: &Path, name: &str, value: &Value) {
        fs::write(folder.join(name), value.to_string()).unwrap();
    }

    #[test]
    fn processes_are_in_the_order_of_their_start() {
        let folder = tempfile::tempdir().unwrap();
        let process = |pid, began, complete| {
            serde_json::to_value(Process {
                pid,
                began,
                complete,
                ..Process::default()
            })
            .unwrap()
        };
        write(folder.path(), "7.report.json", &process(7, 2.0, true));
        write(folder.path(), "9.report.json", &process(9, 1.0, false));
        fs::write(folder.path().join("8.report.json"), "{").unwrap();
        let ended = Ended {
            pid: 9,
            status: None,
            signal: Some(11),
            seconds: 1.0,
        };
        let fifo = folder.path().join("1.report.json");
        let status = std::process::Command::new("mkfifo").arg(fifo).status();
        assert!(status.unwrap().success());
        let link = folder.path().join("2.report.json");
        std::os::unix::fs::symlink(folder.path().join("7.report.json"), link).unwrap();
        let collected = Collected::read(folder.path(), &ended);
        let pids: Vec<u32> = collected
            .processes
            .iter()
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids, [9, 7]);
        let says = |notes: &[String], part: &str| notes.iter().any(|note| note.contains(part));
        let notes = collected.notes;
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert!(
            says(&notes, "process 9 was ended by SIGSEGV, signal 11"),
            "{notes:?}"
        );
        let by_exit = Ended {
            status: Some(3),
            signal: None,
            ..ended
        };
        let notes = Collected::read(folder.path(), &by_exit).notes;
        assert!(says(&notes, "`_exit`"), "{notes:?}");
    }

    #[test]
    fn traces_of_several_processes_are_one() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1.trace.json", "2.trace.json"] {
            let event = serde_json::json!({"traceEvents": [{"ph": "X", "pid": 1}]});
            write(folder.path(), name, &event);
        }
        let mut text = Vec::new();
        let ended = Ended {
            pid: 1,
            status: Some(0),
            signal: None,
            seconds: 1.0,
        };
        Collected::read(folder.path(), &ended)
            .write_trace(&mut text)
            .unwrap();
        let trace: Value = serde_json::from_slice(&text).unwrap();
        let pids: Vec<_> = trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["pid"].clone())
            .collect();
        assert_eq!(pids, [1, 1001]);
    }
}
