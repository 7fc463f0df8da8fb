//! Reading a specification that a user names: a file, values of its symbols, and the
//! folder of sources.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pdawl_api::expression::{Expression, Number, Symbols};
use pdawl_api::graph::spec::{self, Argument, Described, Kernel, SpecError, Specification};
use pdawl_profiler::file::bounded_input;

use crate::failure::Failure;

/// The options of a specification.
#[derive(Clone, Debug, Args)]
pub struct Values {
    /// The value of a symbol, such as dataset=1048576 or n=2**20
    ///
    /// It replaces the file's value. May be given several times.
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = symbol)]
    symbols: Vec<(String, Number)>,

    /// The folder of the kernels' sources [default: the file's, and `kernels`
    /// beside it]
    #[arg(long, value_name = "FOLDER")]
    sources: Option<PathBuf>,
}

fn symbol(text: &str) -> Result<(String, Number), String> {
    let wrong = || "write NAME=VALUE, such as dataset=1048576".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let name = name.trim();
    if !is_name(name) {
        return Err(wrong());
    }
    let value: Expression = value.parse().map_err(|e| format!("{e}"))?;
    let value = value.value(&Symbols::new()).map_err(|e| e.to_string())?;
    Ok((name.to_owned(), value))
}

/// Whether a symbol or a macro may have this name.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl Values {
    /// The symbols' values.
    pub fn symbols(&self) -> Symbols {
        self.symbols.iter().cloned().collect()
    }

    /// The folder of sources, if the user names one.
    pub fn sources(&self) -> Option<&Path> {
        self.sources.as_deref()
    }

    /// Reads a file of any form.
    ///
    /// # Errors
    /// When it has an error, when it lacks a symbol that a value is given to, and when
    /// there is no such folder of sources.
    pub fn load(&self, file: &Path) -> Result<Specification, Failure> {
        if let Some(folder) = self.sources().filter(|folder| !folder.is_dir()) {
            return Err(Failure::usage(
                format!("--sources: there is no folder {}", folder.display()),
                "the folder of the kernels' sources, or no --sources",
            ));
        }
        let specification = spec::load(file).map_err(refused)?;
        let known = specification.symbol_names();
        if let Some((name, _)) = self.symbols.iter().find(|(name, _)| !known.contains(name)) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(Failure::usage(
                format!("-D {name}: {} has no symbol `{name}`", file.display()),
                format!("one of {}", known.join(", ")),
            ));
        }
        Ok(specification)
    }

    /// Reads a file that must describe a single kernel.
    ///
    /// # Errors
    /// As [`Self::load`] and [`KernelSpec::describe`](pdawl_api::graph::spec::KernelSpec::describe), and when it is a graph.
    pub fn kernel(&self, file: &Path) -> Result<Described, Failure> {
        match self.load(file)? {
            Specification::Kernel(spec) => {
                (spec.describe(&self.symbols(), self.sources())).map_err(refused)
            }
            Specification::Dag(_) => Err(Failure::usage(
                format!("{}: it is a graph of kernels, not a kernel", file.display()),
                "`pdawl run dag` with it, or a kernel file",
            )),
        }
    }
}

/// The failure of a specification's error, which has its own remedy.
pub fn refused(error: SpecError) -> Failure {
    Failure::of(error)
}

/// A place and a file, from `PLACE=FILE`.
///
/// # Errors
/// When the text is not of this form.
pub fn assigned<T>(
    text: &str,
    form: &str,
    place: impl FnOnce(&str) -> Option<T>,
) -> Result<(T, PathBuf), String> {
    let parts = text.split_once('=').filter(|(_, file)| !file.is_empty());
    let parts = parts.and_then(|(at, file)| Some((place(at.trim())?, file.into())));
    parts.ok_or_else(|| format!("write {form}"))
}

/// Refuses a place to which two files are given.
///
/// # Errors
/// When there is one.
pub fn once<T: PartialEq>(
    load: &[(T, PathBuf)],
    shown: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    for (index, (place, _)) in load.iter().enumerate() {
        if load[..index].iter().any(|(other, _)| other == place) {
            return Err(Failure::usage(
                format!("--load: two files are given for {}", shown(place)),
                "one file a position",
            ));
        }
    }
    Ok(())
}

/// Gives a value the bytes of a file. Those of a buffer are returned.
///
/// # Errors
/// When the kernel has neither at a position, or the file cannot be read or has more or fewer
/// bytes.
pub fn load(
    kernel: &mut Kernel,
    position: usize,
    file: &Path,
) -> Result<Option<Arc<[u8]>>, Failure> {
    let given = bytes(kernel, position, file)?;
    Ok(match kernel.arguments.get_mut(position) {
        Some(Argument::Scalar { bytes, .. }) => {
            *bytes = given;
            None
        }
        _ => Some(given.into()),
    })
}

fn bytes(kernel: &Kernel, position: usize, file: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |what: String| {
        Failure::usage(
            format!("--load: {what}"),
            "positions and sizes as `pdawl spec check` shows them",
        )
    };
    let (what, wanted) = match kernel.arguments.get(position) {
        Some(Argument::Buffer(buffer)) => ("buffer", buffer.bytes()),
        Some(Argument::Scalar { bytes, .. }) => ("value", bytes.len() as u64),
        _ => {
            return Err(wrong(format!(
                "the kernel has no buffer and no value at position {position}"
            )));
        }
    };
    let shown = file.display();
    let other = |given: &str| {
        wrong(format!(
            "{shown} has {given} bytes, and the {what} at position {position} has {wanted}"
        ))
    };
    let bytes = bounded_input(file, wanted).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => match file.metadata().map(|about| about.len()) {
            Ok(given) if given > wanted => other(&given.to_string()),
            // Not a regular file; a device, say, has no length.
            _ => other("more"),
        },
        _ => Failure::failed(
            format!("--load: cannot read {shown}: {error}"),
            "a file with its bytes",
        ),
    })?;
    match bytes.len() as u64 == wanted {
        true => Ok(bytes),
        false => Err(other(&bytes.len().to_string())),
    }
}
