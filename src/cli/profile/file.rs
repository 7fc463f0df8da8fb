//! The dataset that a profile writes.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pdawl::model::DatasetStore;
use pdawl::profile::ProfiledMachine;
use pdawl_profiler::atomic_file::target;
use pdawl_profiler::dataset::{Appender, Provenance};

use super::SessionOptions;
use crate::failure::Failure;
use crate::{invocation, terminal};

/// Opens the dataset of a profile, and returns its path.
///
/// # Errors
/// When it cannot be written, and when it is of another machine.
pub fn open(
    options: &SessionOptions,
    profiled: &ProfiledMachine,
) -> Result<(PathBuf, Appender), Failure> {
    let machine = profiled.machine();
    let path = match &options.out {
        Some(path) => path.clone(),
        None => {
            let store = DatasetStore::of_user();
            store.path_to_write(&machine.name).map_err(Failure::of)?
        }
    };
    if options.fresh {
        set_aside(&path)?;
    }
    let appender = Appender::open(&path, &provenance(profiled)).map_err(Failure::of)?;
    for note in appender.notes() {
        terminal::warn(note);
    }
    let samples = appender.samples();
    let remedy = "--out FILE for another one, or --fresh to begin anew";
    if let Some(other) = samples.iter().find(|s| s.machine != machine.name) {
        return Err(Failure::failed(
            format!(
                "{} has runs of machine {}, and this profile is of {}",
                path.display(),
                other.machine,
                machine.name
            ),
            remedy,
        ));
    }
    let origin = |simulated| if simulated { "simulated" } else { "measured" };
    let simulated = profiled.is_simulated();
    if samples.iter().any(|s| s.simulated != simulated) {
        return Err(Failure::failed(
            format!(
                "{} has {} runs, and those of this profile are {}",
                path.display(),
                origin(!simulated),
                origin(simulated)
            ),
            remedy,
        ));
    }
    Ok((path, appender))
}

/// Renames an existing regular file; leaves folders and devices alone.
fn set_aside(path: &Path) -> Result<(), Failure> {
    if !path.is_file() {
        return Ok(());
    }
    let path = &target(path).unwrap_or_else(|_| path.to_owned());
    let mut aside = path.as_os_str().to_owned();
    aside.push(".bak");
    std::fs::rename(path, &aside).map_err(|error| {
        Failure::failed(
            format!("{} cannot be set aside: {error}", path.display()),
            "--out FILE for another one",
        )
    })
}

/// The provenance of the rows.
pub fn provenance(profiled: &ProfiledMachine) -> Provenance {
    let machine = profiled.machine();
    let mut provenance = Provenance::default();
    let host = &machine.host;
    let hardware = std::iter::once(format!("{}, {} cores", host.model, host.cores));
    let devices = machine.devices.iter().map(|device| device.model.clone());
    let hardware: Vec<String> = hardware.chain(devices).collect();
    provenance.add("hardware", &hardware.join("; "));
    if profiled.is_simulated() {
        provenance.add("origin", "simulated; no such machine was measured");
    }
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    provenance.add("date", now.split('T').next().unwrap_or(&now));
    provenance.add("version", concat!("pdawl ", env!("CARGO_PKG_VERSION")));
    provenance.add("command", &invocation::command_line());
    provenance
}
