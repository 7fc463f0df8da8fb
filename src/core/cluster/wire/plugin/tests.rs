//! A small library in C: its run has two ranks, and the other one sends everything back.
//! The tests need a C compiler.

use std::path::PathBuf;
use std::process::Command;
use std::{fs, thread};

use tempfile::TempDir;

use super::*;
use crate::cluster::wire::{Arrived, Wire};
use crate::installed;

/// A library compiled from `echo.c` with these definitions.
struct Compiled {
    _folder: TempDir,
    library: PathBuf,
}

fn compile(definitions: &[&str]) -> Compiled {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    fs::write(path("pdawl_wire.h"), include_str!("pdawl_wire.h")).unwrap();
    fs::write(path("echo.c"), include_str!("echo.c")).unwrap();
    let library = path("libecho.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-std=c11", "-D_DEFAULT_SOURCE"]);
    compiler.args(["-Wall", "-Wextra", "-Werror"]);
    for definition in definitions {
        compiler.arg(format!("-D{definition}"));
    }
    compiler.arg("-o").arg(&library).arg(path("echo.c"));
    let compiled = compiler.status().expect("a C compiler");
    assert!(compiled.success(), "echo.c is not compiled");
    Compiled {
        _folder: folder,
        library,
    }
}

fn error_of(definitions: &[&str]) -> WireError {
    let compiled = compile(definitions);
    let opened = Plugin::open(&compiled.library);
    opened.err().expect("an error")
}

/// The next event, however many polls it takes.
fn next(plugin: &mut Plugin) -> Result<Event, WireError> {
    loop {
        if let Some(event) = plugin.poll()? {
            return Ok(event);
        }
        thread::yield_now();
    }
}

#[test]
fn a_wire_works_over_a_library() {
    let compiled = compile(&[]);
    let mut wire = PluginWire::join(&compiled.library, Pulse::default()).unwrap();
    assert_eq!((wire.rank(), wire.size()), (0, 2));
    assert_eq!(wire.host_name(), "echo");
    let sent: Vec<Vec<u8>> = [0usize, 1, 1000, 3_000_000]
        .iter()
        .map(|&size| (0..size).map(|byte| byte as u8).collect())
        .collect();
    for bytes in &sent {
        wire.send(1, bytes.clone()).unwrap();
    }
    let mut arrived = Vec::new();
    while arrived.len() < sent.len() {
        match wire.poll().unwrap() {
            Some(Arrived::Message { from: 1, bytes }) => arrived.push(bytes),
            Some(other) => panic!("{other:?}"),
            None => thread::yield_now(),
        }
    }
    assert!(arrived == sent);
    wire.send(1, vec![1; 100]).unwrap();
    wire.flush(std::time::Duration::from_secs(60)).unwrap();
    // The other rank's end is this one's, sent back.
    Box::new(wire).finish().unwrap();
}

#[test]
fn buffers_are_given_back() {
    let compiled = compile(&[]);
    let mut plugin = Plugin::open(&compiled.library).unwrap();
    plugin.send(1, Channel::Data, vec![5; 10]).unwrap();
    assert_eq!(plugin.unsent(), 1);
    let event = next(&mut plugin).unwrap();
    let (from, channel, bytes) = (1, Channel::Data, vec![5; 10]);
    assert_eq!(
        event,
        Event::Message {
            from,
            channel,
            bytes
        }
    );
    assert_eq!(plugin.unsent(), 0);
    plugin.send(1, Channel::Control, vec![6]).unwrap();
    // The library fails to close while a buffer is not given back.
    assert!(plugin.close(true).is_err());
}

#[test]
fn a_lost_rank_is_reported_with_the_reason() {
    let compiled = compile(&["LOSE"]);
    let mut plugin = Plugin::open(&compiled.library).unwrap();
    let why = "gone for good".to_owned();
    assert_eq!(next(&mut plugin), Ok(Event::Lost { rank: 1, why }));
    plugin.send(1, Channel::Data, vec![1]).unwrap();
    assert_eq!(plugin.unsent(), 1);
    plugin.lose(1);
    assert_eq!(plugin.unsent(), 0);
}

#[test]
fn failures_carry_the_reason() {
    let compiled = compile(&["FAIL"]);
    let mut plugin = Plugin::open(&compiled.library).unwrap();
    let error = plugin.poll().unwrap_err().to_string();
    assert!(error.contains("the cable is cut"), "{error}");
    let error = plugin.poll().unwrap_err().to_string();
    assert!(error.contains("no reason given"), "{error}");
}

#[test]
fn a_run_that_cannot_be_joined_is_refused() {
    let error = error_of(&["REFUSE"]);
    assert!(
        matches!(&error, WireError::Refused { why, .. } if why == "nobody is there"),
        "{error}"
    );
}

#[test]
fn another_version_is_refused() {
    let error = error_of(&["PDAWL_WIRE_VERSION_OF_LIBRARY=99"]);
    assert!(matches!(error, WireError::Version { .. }), "{error}");
}

#[test]
fn a_missing_symbol_is_reported() {
    let error = error_of(&["pdawl_wire_open=something_else"]);
    assert!(matches!(error, WireError::NoWire { .. }), "{error}");
}

#[test]
fn a_missing_function_is_reported() {
    let error = error_of(&["WITHOUT_LOSE"]);
    assert!(matches!(error, WireError::Misbehaved { .. }), "{error}");
}

#[test]
fn an_arrival_of_no_rank_is_refused() {
    let compiled = compile(&["OTHER=2"]);
    let mut plugin = Plugin::open(&compiled.library).unwrap();
    plugin.send(1, Channel::Data, vec![1]).unwrap();
    let error = next(&mut plugin).unwrap_err();
    assert!(matches!(error, WireError::Misbehaved { .. }), "{error}");
}

#[test]
fn files_that_are_no_libraries_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    assert!(matches!(
        find(Some(&text)),
        Err(WireError::Unreadable { .. })
    ));
    fs::write(&text, "text").unwrap();
    assert!(find(Some(&text)).is_ok());
    let error = Plugin::open(&text).err().unwrap();
    assert!(matches!(error, WireError::Load { .. }), "{error}");
}

#[test]
fn a_missing_library_names_the_command_that_builds_it() {
    let absent = installed::Library {
        file: "libpdawl_wire_absent.so",
        ..installed::WIRE
    };
    let missing = installed::library(absent).unwrap_err();
    let error = WireError::Absent(missing).to_string();
    assert!(
        error.contains("cargo build --release -p pdawl-wire-mpi"),
        "{error}"
    );
}
