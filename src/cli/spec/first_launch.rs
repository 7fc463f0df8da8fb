//! Which devices survive the first launch of a user's kernels, in words for the user.

use pdawl::engine::first_launch::{FirstLaunchError, Tried, Verdict, examine};
use pdawl::graph::spec::KernelSpec;
use pdawl::runtime::select::{DeviceSpec, Selection};

use super::described::refused;
use crate::failure::{Failure, wrong_devices};
use crate::terminal;

/// The devices that take part.
pub struct Survivors {
    /// As a list of names.
    pub devices: String,
    /// Whether a compiler agrees with the files of all kernels.
    pub checked: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Launches kernels of a file on each device of a list that runs them in this process. The list
/// without those whose drivers do not survive that is returned. `specs` are the kernels' files,
/// in the order of the graph's kernels.
///
/// # Errors
/// When a compiler disagrees with a file, a kernel leaves its buffers, no device is left, or the
/// stop was set.
pub fn survivors(
    list: &str,
    file: &str,
    specs: &[&KernelSpec],
    tried: &Tried,
) -> Result<Survivors, Failure> {
    let selection: Selection = list.parse().map_err(wrong_devices)?;
    let waiting = terminal::spinner();
    waiting.set_message("launching the kernel once in a process of its own");
    let examined = examine(&selection, tried);
    waiting.finish_and_clear();
    let examined = examined.map_err(|error| match error {
        FirstLaunchError::Interrupted => Failure::Interrupted,
    })?;
    for (spec, arguments) in specs.iter().zip(&examined.arguments) {
        if let Some(arguments) = arguments {
            spec.agrees_with_compiler(arguments).map_err(refused)?;
        }
    }
    let mut left = selection.devices().to_vec();
    let (mut notes, mut reasons) = (Vec::new(), Vec::new());
    for (spec, device, verdict) in examined.verdicts {
        match verdict {
            Verdict::Fine => {}
            Verdict::Note(note) => notes.push(note),
            Verdict::LeaveOut(why) => {
                left.retain(|other| other.source != spec.source);
                reasons.push(format!("{device} is left out: {why}"));
            }
            Verdict::Fault(what) => {
                return Err(Failure::failed(
                    what,
                    format!(
                        "other sizes in {file}: of the buffer, or of the work; or other indices \
                         in the kernel"
                    ),
                ));
            }
        }
    }
    if left.is_empty() {
        return Err(Failure::failed(
            format!("no device is left for {file}: {}", reasons.join("; ")),
            "another version of the driver, or --devices with others",
        ));
    }
    notes.append(&mut reasons);
    let names: Vec<String> = left.iter().map(DeviceSpec::to_string).collect();
    Ok(Survivors {
        devices: names.join(","),
        checked: examined.arguments.iter().all(Option::is_some),
        notes,
    })
}
