//! What a program's text tells, with the files that it includes.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use pdawl::graph::spec::source::{self, Divisible, KernelInfo};
use pdawl_profiler::file::bounded;

use super::{Origin, Program};

/// Bytes of an included file, at most.
const MOST_INCLUDED: u64 = 16 << 20;

impl Program {
    /// The text with the files that it includes, and the options.
    fn readable(&self) -> Option<(Arc<str>, String)> {
        let Origin::Source(text) = &self.origin else {
            return None;
        };
        let state = self.state();
        let included = state.included.clone();
        let text = included.unwrap_or_else(|| text.to_string_lossy().into());
        Some((text, state.options.to_string_lossy().into_owned()))
    }

    /// What the text says of a kernel; `None` without a text that can be read.
    fn facts(&self, kernel: &CStr) -> Option<(Arc<str>, KernelInfo)> {
        let (text, options) = self.readable()?;
        let kernels = source::kernels(&text, &source::macros_of(&options)).ok()?;
        let name = kernel.to_string_lossy();
        let info = kernels.into_iter().find(|kernel| kernel.name == name)?;
        Some((text, info))
    }

    /// Whether and how the groups of a kernel may run apart, as far as its text tells.
    pub fn division(&self, kernel: &CStr) -> Result<Divisible, String> {
        let (text, options) = self.readable().ok_or("its program has no text")?;
        let language = options
            .split_whitespace()
            .find_map(|o| o.strip_prefix("-cl-std="));
        if let Some(language) = language.filter(|name| !name.starts_with("CL1.")) {
            return Err(format!(
                "its program is in {language}, which has more than OpenCL C 1.2"
            ));
        }
        let macros = source::macros_of(&options);
        source::divisible(&text, &macros, &kernel.to_string_lossy()).map_err(|why| why.to_string())
    }

    /// By argument of a kernel: whether it may read through it.
    pub fn read_by(&self, kernel: &CStr) -> Vec<bool> {
        let info = self.facts(kernel).map(|(_, info)| info);
        let accesses = info.into_iter().flat_map(|info| info.accesses);
        accesses
            .map(|access| access.read || access.guessed)
            .collect()
    }

    /// By argument of a kernel: whether it may write through it.
    pub fn written_by(&self, kernel: &CStr, count: usize) -> Vec<bool> {
        let facts = self.facts(kernel);
        let Some((text, info)) = facts.filter(|(_, info)| info.accesses.len() == count) else {
            return vec![true; count];
        };
        // A file that was not read may define what the text's conditions ask for, so it is
        // not known which statements count.
        let whole = !includes(&text);
        let both = info.parameters.iter().zip(&info.accesses);
        both.map(|(parameter, access)| !parameter.read_only && (access.written || !whole))
            .collect()
    }

    /// Whether a kernel's groups may wait for one another.
    pub fn may_wait(&self, kernel: &CStr) -> bool {
        let waits =
            |(text, info): (Arc<str>, KernelInfo)| info.atomics || text.contains("volatile");
        self.facts(kernel).is_none_or(waits)
    }
}

/// Whether a text includes files.
fn includes(text: &str) -> bool {
    let is_include = |line: &str| {
        let rest = line.trim_start().strip_prefix('#');
        rest.is_some_and(|rest| rest.trim_start().starts_with("include"))
    };
    text.lines().any(is_include)
}

/// A text with the files that it includes.
pub(super) fn included(text: &str, options: &str) -> Option<Arc<str>> {
    let read = |path: &Path| {
        let bytes = bounded(path, MOST_INCLUDED).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    includes(text).then(|| source::with_included(text, options, &read).into())
}
