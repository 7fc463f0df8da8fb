//! Files that are found by a name: those in a user's directory, before those
//! that ship with the program.
//!
//! Machine files, models and datasets each have a shelf of their own on top of
//! this: here are directories and names, there is what a file means.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use pdawl_profiler::atomic_file;

/// What sort of files a shelf has.
#[derive(Debug)]
pub(crate) struct Sort {
    /// The environment variable that names the directory.
    pub variable: &'static str,
    /// The directory in the user's configuration, when the variable is not set.
    pub folder: &'static str,
    /// What follows a file's name, without the dot.
    pub ending: &'static str,
    /// The files that ship with the program: name and text.
    pub shipped: &'static [(&'static str, &'static str)],
}

/// Files of one sort.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    sort: &'static Sort,
    directory: Option<PathBuf>,
}

/// What has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file of the user's.
    File(PathBuf),
    /// A shipped one's text.
    Shipped(&'static str),
}

impl Files {
    /// The user's: in the directory that the sort's variable names, else in
    /// `$XDG_CONFIG_HOME/pdawl`, else in `~/.config/pdawl`.
    pub fn of_user(sort: &'static Sort) -> Self {
        Self {
            sort,
            directory: directory(sort, |name| std::env::var_os(name)),
        }
    }

    /// Those in this directory, before the shipped ones.
    pub fn at(sort: &'static Sort, directory: impl Into<PathBuf>) -> Self {
        Self {
            sort,
            directory: Some(directory.into()),
        }
    }

    /// All names, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        let shipped = self.sort.shipped.iter().map(|(name, _)| (*name).to_owned());
        let mut names: Vec<String> = self.of_directory().chain(shipped).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What has this name; the user's hides a shipped one.
    pub fn find(&self, name: &str) -> Option<Found> {
        if let Some(path) = self.path(name).filter(|path| path.exists()) {
            return Some(Found::File(path));
        }
        let shipped = self.sort.shipped.iter().find(|(each, _)| *each == name)?;
        Some(Found::Shipped(shipped.1))
    }

    /// Where a file of this name lies, or would lie; `None` for what is no
    /// name, or without a directory.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let directory = self.directory.as_ref().filter(|_| is_name(name))?;
        Some(directory.join(self.file(name)))
    }

    /// A file's name.
    pub fn file(&self, name: &str) -> String {
        format!("{name}.{}", self.sort.ending)
    }

    /// The directory, for messages.
    pub fn place(&self) -> String {
        match &self.directory {
            Some(directory) => directory.display().to_string(),
            None => format!("a directory that {} names", self.sort.variable),
        }
    }

    fn of_directory(&self) -> impl Iterator<Item = String> {
        let entries = self.directory.as_ref().and_then(|d| d.read_dir().ok());
        (entries.into_iter().flatten())
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == self.sort.ending))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| is_name(name))
    }
}

/// Writes a file whole or not at all; makes the directory if there is none.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::create_dir_all(atomic_file::folder(path))?;
    atomic_file::write(path, |out| out.write_all(text.as_bytes()))
}

/// The user's directory of a sort of files, from the environment.
fn directory(sort: &Sort, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let under = |name, path: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(Path::new(&value).join(path))
    };
    let folder = format!("pdawl/{}", sort.folder);
    under(sort.variable, "")
        .or_else(|| under("XDG_CONFIG_HOME", &folder))
        .or_else(|| under("HOME", &format!(".config/{folder}")))
}

/// Whether a thing can have this name: it becomes a file's name, so it has no
/// separators and no leading dot or dash.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    static NOTES: Sort = Sort {
        variable: "PDAWL_NOTES",
        folder: "notes",
        ending: "txt",
        shipped: &[("first", "one"), ("second", "two")],
    };

    #[test]
    fn a_users_file_hides_a_shipped_one() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::at(&NOTES, folder.path().join("deep"));
        assert_eq!(files.find("first"), Some(Found::Shipped("one")));
        assert_eq!(files.find("third"), None);

        let path = files.path("first").unwrap();
        write(&path, "mine").unwrap();
        write(&files.path("third").unwrap(), "mine").unwrap();
        std::fs::write(folder.path().join("deep/.hidden.txt"), "").unwrap();
        std::fs::write(folder.path().join("deep/other.md"), "").unwrap();
        assert_eq!(files.find("first"), Some(Found::File(path)));
        assert_eq!(files.names(), ["first", "second", "third"]);
    }

    #[test]
    fn what_is_no_name_has_no_path() {
        let files = Files::at(&NOTES, "/nowhere");
        for odd in ["", "../first", ".hidden", "-x", "a/b", "a b", "a\0b"] {
            assert_eq!(files.path(odd), None, "{odd:?}");
            assert_eq!(files.find(odd), None, "{odd:?}");
        }
        assert_eq!(files.path("a.b-1_c"), Some("/nowhere/a.b-1_c.txt".into()));
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
