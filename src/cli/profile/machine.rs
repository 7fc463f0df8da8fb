//! The machine that is profiled: this one, or a simulated one.

use std::fs;

use pdawl_api::machine::MachineStore;
use pdawl_api::profile::ProfiledMachine;
use pdawl_api::session::{NamedMachine, this_machine as here};

use super::SessionOptions;
use crate::failure::{Failure, refused};
use crate::size::ByteSize;
use crate::terminal;

/// Noise of a simulated machine, if none is asked for.
const NOISE: f64 = 0.02;

/// Copies that this machine is measured with, if there is no file of it.
const COPIES: ByteSize = ByteSize(1 << 30);

/// What this machine is called if its host has no name that a file can have.
const NAMELESS: &str = "this-machine";

/// The machine that is asked for, and notes on how it was found.
///
/// # Errors
/// When there is no such machine, or this one cannot be measured.
pub fn find(options: &SessionOptions) -> Result<(ProfiledMachine, Vec<String>), Failure> {
    let mut notes = Vec::new();
    let machine = match &options.machine {
        Some(name) => NamedMachine::find(name)?,
        None => this_machine(&mut notes)?,
    };
    if machine.is_simulated() {
        notes.push(machine.simulated_note());
        let noise = options.noise.unwrap_or(NOISE);
        return Ok((ProfiledMachine::simulated(machine.file, noise), notes));
    }
    if options.noise.is_some() {
        return Err(Failure::usage(
            "--noise is for simulated machines, and this profile is on real devices",
            "--machine NAME of another machine; `pdawl machine list` shows them",
        ));
    }
    let devices = here::beside_host().map_err(refused)?;
    Ok((ProfiledMachine::real(machine.file, devices), notes))
}

/// The file of this machine: one whose fingerprint is its, or else one that is
/// measured now.
fn this_machine(notes: &mut Vec<String>) -> Result<NamedMachine, Failure> {
    if let Some(machine) = NamedMachine::here() {
        notes.push(format!(
            "this machine is `{}`, as its machine file says",
            machine.file.name
        ));
        return Ok(machine);
    }
    terminal::message(
        "there is no file of this machine: it is measured first, once, which takes about a minute \
         and does not count in --budget",
    );
    let store = MachineStore::of_user();
    let name = free_name(&store);
    let bar = terminal::spinner();
    let file = here::measure(&name, COPIES.0, &mut |device, what| {
        bar.set_message(format!("measuring this machine first: {device}: {what}"));
    });
    bar.finish_and_clear();
    let file = file?;
    let path = store.save(&file).map_err(Failure::of)?;
    notes.push(format!(
        "there was no file of this machine: it was measured, and is `{name}` from now on ({})",
        path.display()
    ));
    Ok(NamedMachine::find(&name)?)
}

/// The host's name, or one like it that no file has yet.
fn free_name(store: &MachineStore) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = slug(&host);
    let taken = store.names();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names
        .find(|name| !taken.contains(name))
        .unwrap_or_else(|| name.clone())
}

/// A text as a file's name: letters, digits and single dashes.
fn slug(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    match words.join("-") {
        name if name.is_empty() || name.len() > 40 => NAMELESS.to_owned(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_become_file_names() {
        for (host, name) in [
            ("vm\n", "vm"),
            ("Node_17.example.org\n", "node-17-example-org"),
            ("--", NAMELESS),
            ("", NAMELESS),
            (&"x".repeat(41), NAMELESS),
        ] {
            assert_eq!(slug(host), name);
        }
    }

    #[test]
    fn a_name_that_is_taken_is_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let store = MachineStore::at(folder.path());
        let first = free_name(&store);
        std::fs::write(folder.path().join(format!("{first}.toml")), "").unwrap();
        assert_eq!(free_name(&store), format!("{first}-2"));
    }
}
