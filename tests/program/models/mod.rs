//! `pdawl train` and `pdawl model` on simulated machines. A command that fails must
//! leave every file as it was.
//!
//! `training` trains models, `datasets` covers datasets that are refused, `files`
//! model files, `accuracy` errors of predictions, and `adapting` models of other
//! machines.

mod accuracy;
mod adapting;
mod datasets;
mod files;
mod training;

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::Home;

/// A home with a model of `k40`.
fn with_model() -> Home {
    Home::with_k40_model("k40")
}

/// Asserts that a command fails with a message that contains these words, and
/// that it leaves every file as it was.
fn refuses(home: &Home, line: &str, words: &[&str]) {
    let before = contents(home.folder());
    let assert = home.pdawl(line).assert().code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    for word in words {
        assert!(said.contains(word), "{line}: no {word:?} in {said}");
    }
    assert!(
        contents(home.folder()) == before,
        "{line}: files have changed"
    );
}

/// Paths and contents of all files below a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    files.sort();
    files
}
