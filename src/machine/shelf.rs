//! Where machine files are kept: the user's directory, then those that ship
//! with the program.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{MachineError, MachineFile};

/// The files that ship with the program, by name.
const SHIPPED: [(&str, &str); 6] = [
    ("h200", include_str!("../../datasets/machines/h200.toml")),
    (
        "k20-32",
        include_str!("../../datasets/machines/k20-32.toml"),
    ),
    (
        "k20-40",
        include_str!("../../datasets/machines/k20-40.toml"),
    ),
    ("k40", include_str!("../../datasets/machines/k40.toml")),
    (
        "laptop",
        include_str!("../../datasets/machines/laptop.toml"),
    ),
    ("titan", include_str!("../../datasets/machines/titan.toml")),
];

/// The machine files that can be found by name.
#[derive(Clone, Debug)]
pub struct Shelf {
    directory: Option<PathBuf>,
}

impl Shelf {
    /// The user's shelf: `$PDAWL_MACHINES`, else `$XDG_CONFIG_HOME/pdawl/machines`,
    /// else `~/.config/pdawl/machines`, before the shipped files.
    pub fn of_user() -> Self {
        Self {
            directory: directory(|name| std::env::var_os(name)),
        }
    }

    /// A shelf with this directory before the shipped files.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: Some(directory.into()),
        }
    }

    /// The names of all machine files, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();
        if let Some(entries) = self.directory.as_ref().and_then(|d| d.read_dir().ok()) {
            names.extend(
                entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| path.extension().is_some_and(|e| e == "toml"))
                    .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
                    .filter(|name| is_name(name)),
            );
        }
        names.sort();
        names.dedup();
        names
    }

    /// The machine of this name. A user's file hides a shipped one.
    ///
    /// # Errors
    /// An unknown name, with the known ones; a file that cannot be read or is
    /// wrong.
    pub fn find(&self, name: &str) -> Result<MachineFile, MachineError> {
        if !is_name(name) {
            return Err(MachineError::Name {
                name: name.to_owned(),
            });
        }
        if let Some(directory) = &self.directory {
            let path = directory.join(format!("{name}.toml"));
            if path.exists() {
                return load(&path);
            }
        }
        match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, text)) => MachineFile::parse(text, &format!("{name}.toml (shipped)")),
            None => Err(MachineError::Unknown {
                name: name.to_owned(),
                known: self.names(),
                directory: match &self.directory {
                    Some(directory) => directory.display().to_string(),
                    None => "a directory that PDAWL_MACHINES names".to_owned(),
                },
            }),
        }
    }

    /// Saves a machine under its name, and returns the file's path. The file
    /// is written beside its place and renamed, so that readers see it whole.
    ///
    /// # Errors
    /// A name or figure that [`Self::find`] would refuse, and a directory that
    /// cannot be written.
    pub fn save(&self, machine: &MachineFile) -> Result<PathBuf, MachineError> {
        let file = format!("{}.toml", machine.name);
        super::check::check(machine, &file)?;
        let text = machine.to_toml()?;
        let directory = self.directory.clone().ok_or(MachineError::NoDirectory)?;
        let path = directory.join(file);
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&directory)?;
            let mut beside = tempfile::NamedTempFile::new_in(&directory)?;
            beside.write_all(text.as_bytes())?;
            beside.as_file().sync_all()?;
            beside.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| MachineError::Write {
            file: path.clone(),
            source,
        })?;
        Ok(path)
    }
}

/// The user's directory of machine files, from the environment.
pub(super) fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let under = |name, path: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(Path::new(&value).join(path))
    };
    under("PDAWL_MACHINES", "")
        .or_else(|| under("XDG_CONFIG_HOME", "pdawl/machines"))
        .or_else(|| under("HOME", ".config/pdawl/machines"))
}

/// Reads a machine file.
///
/// # Errors
/// A file that cannot be read or is wrong.
pub fn load(path: &Path) -> Result<MachineFile, MachineError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| MachineError::Read {
        file: file.clone(),
        source,
    })?;
    MachineFile::parse(&text, &file)
}

/// Whether a machine can have this name: it becomes a file's name, so it has
/// no separators and no leading dot or dash.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(allowed)
}
