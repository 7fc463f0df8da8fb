//! Stores of files that are found by a name: those in a user's directory hide those that
//! ship with the program.
//!
//! The stores of machine files, models and datasets are built on this one. This module
//! knows directories and names; those know what a file means.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use pdawl_profiler::file::make_folder;
use thiserror::Error;

/// A kind of files, with a directory and an ending of its own.
#[derive(Debug)]
pub struct StoreKind {
    /// What a file describes, for messages: `machine`, `model` or `dataset`.
    pub what: &'static str,
    /// The environment variable that names the directory.
    pub variable: &'static str,
    /// The directory within the user's configuration, if the variable is not set.
    pub folder: &'static str,
    /// The ending of file names, without the dot.
    pub ending: &'static str,
    /// Name and text of the files that ship with the program.
    pub shipped: &'static [(&'static str, &'static str)],
    /// How to get a file that is missing, for messages.
    pub remedy: &'static str,
    /// How to do without the directory, for messages; begins a list of remedies.
    pub instead: &'static str,
}

/// The files of one kind.
#[derive(Clone, Debug)]
pub struct FileStore {
    kind: &'static StoreKind,
    directory: Option<PathBuf>,
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredFile {
    /// The path of a user's file.
    File(PathBuf),
    /// The text of a shipped file.
    Shipped(&'static str),
}

/// Why a store has no file, or no place for a file, of a name.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error(
        "`{name}` cannot name a {what}: use 1 to 64 letters, digits, `-`, `_` or `.`, \
         beginning with a letter or digit"
    )]
    Name { what: &'static str, name: String },

    #[error("no {what} is called `{name}`; {}. {remedy}; {what}s are kept in {directory}", listed(.known))]
    Unknown {
        what: &'static str,
        name: String,
        known: Vec<String>,
        remedy: &'static str,
        directory: String,
    },

    #[error(
        "no directory for {what}s: neither {variable}, XDG_CONFIG_HOME nor HOME is set; set \
         {variable} to one"
    )]
    NoDirectory {
        what: &'static str,
        variable: &'static str,
    },

    #[error(
        "{directory}: cannot be made: {source}; {instead}set {variable} to a writable directory"
    )]
    Make {
        directory: String,
        source: io::Error,
        variable: &'static str,
        instead: &'static str,
    },
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "there are none".to_owned(),
        names => format!("known are {}", names.join(", ")),
    }
}

impl FileStore {
    /// The user's store: the directory that the kind's variable names, else
    /// `$XDG_CONFIG_HOME/pdawl`, else `~/.config/pdawl`.
    pub fn of_user(kind: &'static StoreKind) -> Self {
        Self {
            kind,
            directory: directory(kind, |name| std::env::var_os(name)),
        }
    }

    /// The store of this directory.
    pub fn at(kind: &'static StoreKind, directory: impl Into<PathBuf>) -> Self {
        Self {
            kind,
            directory: Some(directory.into()),
        }
    }

    /// All names, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        let shipped = self.kind.shipped.iter().map(|(name, _)| (*name).to_owned());
        let mut names: Vec<String> = self.of_directory().chain(shipped).collect();
        names.sort();
        names.dedup();
        names
    }

    /// All files with their names, sorted: the user's, then those that ship, hidden or not.
    pub fn all(&self) -> Vec<(String, StoredFile)> {
        let mut own: Vec<String> = self.of_directory().collect();
        own.sort();
        let own = own.into_iter().filter_map(|name| {
            let path = self.path(&name).ok()?;
            Some((name, StoredFile::File(path)))
        });
        let shipped = self.kind.shipped.iter();
        own.chain(shipped.map(|(name, text)| ((*name).to_owned(), StoredFile::Shipped(text))))
            .collect()
    }

    /// The file of this name. A user's file hides a shipped one.
    ///
    /// # Errors
    /// A text that cannot be a name, and an unknown name.
    pub fn find(&self, name: &str) -> Result<StoredFile, StoreError> {
        check_name(self.kind.what, name)?;
        self.get(name).ok_or_else(|| StoreError::Unknown {
            what: self.kind.what,
            name: name.to_owned(),
            known: self.names(),
            remedy: self.kind.remedy,
            directory: self.place(),
        })
    }

    /// The file of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<StoredFile> {
        if let Ok(path) = self.path(name)
            && path.exists()
        {
            return Some(StoredFile::File(path));
        }
        let shipped = self.kind.shipped.iter().find(|(each, _)| *each == name)?;
        Some(StoredFile::Shipped(shipped.1))
    }

    /// The path of the user's file of this name, whether it exists or not.
    ///
    /// # Errors
    /// A text that cannot be a name, and a user without a directory.
    pub fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        check_name(self.kind.what, name)?;
        let directory = self.directory.as_ref();
        let path = directory.map(|directory| directory.join(self.file(name)));
        path.ok_or(StoreError::NoDirectory {
            what: self.kind.what,
            variable: self.kind.variable,
        })
    }

    /// As [`Self::path`], and makes the directory.
    ///
    /// # Errors
    /// As [`Self::path`], and a directory that cannot be made.
    pub fn path_to_write(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.path(name)?;
        if let Some(directory) = path.parent() {
            make_folder(directory).map_err(|source| StoreError::Make {
                directory: directory.display().to_string(),
                source,
                variable: self.kind.variable,
                instead: self.kind.instead,
            })?;
        }
        Ok(path)
    }

    /// The name of the file of this name.
    pub fn file(&self, name: &str) -> String {
        format!("{name}.{}", self.kind.ending)
    }

    /// The directory, for messages.
    pub fn place(&self) -> String {
        match &self.directory {
            Some(directory) => directory.display().to_string(),
            None => format!("a directory that {} names", self.kind.variable),
        }
    }

    fn of_directory(&self) -> impl Iterator<Item = String> {
        let entries = self.directory.as_ref().and_then(|d| d.read_dir().ok());
        (entries.into_iter().flatten())
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == self.kind.ending))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| is_name(name))
    }
}

/// The user's directory of a kind of files, from the environment.
fn directory(kind: &StoreKind, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let under = |name, path: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(Path::new(&value).join(path))
    };
    let folder = format!("pdawl/{}", kind.folder);
    under(kind.variable, "")
        .or_else(|| under("XDG_CONFIG_HOME", &folder))
        .or_else(|| under("HOME", &format!(".config/{folder}")))
}

/// Checks that a text can be a name. A name becomes the name of a file, so it has no
/// separators and no leading dot or dash.
///
/// # Errors
/// [`StoreError::Name`]; `what` is what would have the name.
pub fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(StoreError::Name {
            what,
            name: name.to_owned(),
        }),
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    static NOTES: StoreKind = StoreKind {
        what: "note",
        variable: "PDAWL_NOTES",
        folder: "notes",
        ending: "txt",
        shipped: &[("first", "one"), ("second", "two")],
        remedy: "Write one",
        instead: "",
    };

    #[test]
    fn a_users_file_hides_a_shipped_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::at(&NOTES, folder.path().join("deep"));
        assert_eq!(store.get("first"), Some(StoredFile::Shipped("one")));
        let error = store.find("third").unwrap_err().to_string();
        assert!(error.starts_with("no note is called `third`; known are first, second. Write one"));

        let path = store.path_to_write("first").unwrap();
        std::fs::write(&path, "mine").unwrap();
        std::fs::write(store.path("third").unwrap(), "mine").unwrap();
        std::fs::write(folder.path().join("deep/.hidden.txt"), "").unwrap();
        std::fs::write(folder.path().join("deep/other.md"), "").unwrap();
        assert_eq!(store.find("first").unwrap(), StoredFile::File(path));
        assert_eq!(store.names(), ["first", "second", "third"]);
    }

    #[test]
    fn what_is_no_name_has_no_path() {
        let store = FileStore::at(&NOTES, "/nowhere");
        for odd in ["", "../first", ".hidden", "-x", "a/b", "a b", "a\0b"] {
            assert!(matches!(store.path(odd), Err(StoreError::Name { .. })));
            assert!(matches!(store.find(odd), Err(StoreError::Name { .. })));
        }
        assert_eq!(
            store.path("a.b-1_c").unwrap(),
            Path::new("/nowhere/a.b-1_c.txt")
        );
    }

    #[test]
    fn the_directory_follows_the_environment() {
        let set = |set: &'static [(&str, &str)]| {
            directory(&NOTES, |name| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).into())
            })
        };
        for (variables, expected) in [
            (&[("PDAWL_NOTES", "/n"), ("HOME", "/home/u")][..], "/n"),
            (
                &[("XDG_CONFIG_HOME", "/c"), ("HOME", "/home/u")],
                "/c/pdawl/notes",
            ),
            (
                &[("PDAWL_NOTES", ""), ("HOME", "/home/u")],
                "/home/u/.config/pdawl/notes",
            ),
        ] {
            assert_eq!(set(variables), Some(expected.into()));
        }
        assert_eq!(set(&[]), None);
    }
}
