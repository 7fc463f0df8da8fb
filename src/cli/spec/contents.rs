//! Bytes of files for the buffers and values of kernels.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdawl::graph::spec::{Argument, Kernel};
use pdawl_profiler::file::bounded_input;

use crate::failure::Failure;

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
