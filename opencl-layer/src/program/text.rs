//! What a program's text tells, with the files that it includes.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use pdawl::graph::spec::source::{self, Divisible, KernelInfo, Source};
use pdawl_profiler::file::bounded;

use super::{Origin, Program, State};

use crate::lock::{Mutex, SEPARATE_GROUPS};

/// Bytes of an included file, at most.
const MOST_INCLUDED: u64 = 16 << 20;

/// What a text tells of its kernels. It is read once: reading takes a millisecond, and a
/// program may have many kernels.
#[derive(Default)]
pub(super) struct Facts {
    /// `None` without a text.
    source: Option<Source>,
    /// None if there is no text that can be read.
    kernels: Vec<KernelInfo>,
    /// The language, if the options tell it.
    language: Option<String>,
    /// Whether there is volatile memory.
    volatile: bool,
    /// Whether files are included that were not read.
    includes: bool,
    /// By kernel.
    separate_groups: Mutex<HashMap<CString, Arc<SeparateGroups>>, SEPARATE_GROUPS>,
}

/// What a kernel's text tells of running its groups separately.
pub struct SeparateGroups {
    /// Why they must not, or what decides which bytes they write.
    pub division: Result<Divisible, String>,
    /// By argument: whether the kernel may read through it.
    pub reads: Vec<bool>,
}

impl Facts {
    fn of(text: &str, options: &str) -> Self {
        let source = Source::new(text, &source::macros_of(options));
        let mut options = options.split_whitespace();
        let language = options.find_map(|option| option.strip_prefix("-cl-std="));
        Self {
            kernels: source.kernels().unwrap_or_default(),
            source: Some(source),
            language: language.map(str::to_owned),
            volatile: text.contains("volatile"),
            includes: includes(text),
            separate_groups: Mutex::default(),
        }
    }

    fn kernel(&self, name: &CStr) -> Option<&KernelInfo> {
        let name = name.to_string_lossy();
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Whether and how the groups of a kernel may run separately.
    fn division(&self, kernel: &CStr) -> Result<Divisible, String> {
        let source = self.source.as_ref().ok_or("its program has no text")?;
        let language = self.language.as_deref();
        if let Some(language) = language.filter(|name| !name.starts_with("CL1.")) {
            return Err(format!(
                "its program is in {language}, which has more than OpenCL C 1.2"
            ));
        }
        let divisible = source.divisible(&kernel.to_string_lossy());
        divisible.map_err(|why| why.to_string())
    }
}

impl Program {
    /// The text with the files that it includes, and the options.
    fn readable(&self, state: &State) -> Option<(Arc<str>, String)> {
        let Origin::Source(text) = &self.origin else {
            return None;
        };
        let included = state.included.clone();
        let text = included.unwrap_or_else(|| text.to_string_lossy().into());
        Some((text, state.options.to_string_lossy().into_owned()))
    }

    fn facts(&self) -> Arc<Facts> {
        let mut state = self.state();
        if let Some(facts) = &state.facts {
            return Arc::clone(facts);
        }
        let readable = self.readable(&state);
        let facts = readable.map(|(text, options)| Facts::of(&text, &options));
        let facts = Arc::new(facts.unwrap_or_default());
        state.facts = Some(Arc::clone(&facts));
        facts
    }

    /// What the text tells of running the groups of a kernel separately, which has so many
    /// arguments.
    pub fn separate_groups(&self, kernel: &CStr, count: usize) -> Arc<SeparateGroups> {
        let facts = self.facts();
        let mut known = facts.separate_groups.lock();
        if let Some(separate_groups) = known.get(kernel) {
            return Arc::clone(separate_groups);
        }
        let info = facts.kernel(kernel);
        let accesses = info.map_or(&[][..], |info| &info.accesses);
        let separate_groups = Arc::new(SeparateGroups {
            division: match accesses.len() == count {
                true => facts.division(kernel),
                false => Err("its program's text has no such kernel that can be read".to_owned()),
            },
            reads: (accesses.iter())
                .map(|access| access.read || access.guessed)
                .collect(),
        });
        known.insert(kernel.to_owned(), Arc::clone(&separate_groups));
        separate_groups
    }

    /// By argument of a kernel: whether it may write through it.
    pub fn written_by(&self, kernel: &CStr, count: usize) -> Vec<bool> {
        let facts = self.facts();
        let info = facts.kernel(kernel);
        let Some(info) = info.filter(|info| info.accesses.len() == count) else {
            return vec![true; count];
        };
        // A file that was not read may define what the text's conditions ask for, so it is
        // not known which statements count.
        let whole = !facts.includes;
        let both = info.parameters.iter().zip(&info.accesses);
        both.map(|(parameter, access)| !parameter.read_only && (access.written || !whole))
            .collect()
    }

    /// Whether a kernel's groups may wait for one another.
    pub fn may_wait(&self, kernel: &CStr) -> bool {
        let facts = self.facts();
        let info = facts.kernel(kernel);
        info.is_none_or(|info| info.atomics || facts.volatile)
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
