//! What a program's text tells, with the files that it includes.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::Arc;

use opencl_sys::*;
use pdawl_api::graph::spec::source::{self, Divisible, KernelInfo, Source, Target};
use pdawl_profiler::file::bounded;

use super::{Origin, Program, State};

use crate::drivers::RealDevice;
use crate::known::Known;
use crate::lock::SEPARATE_GROUPS;

/// Bytes of an included file, at most.
const MOST_INCLUDED: u64 = 16 << 20;

/// What a text tells of its kernels. It is read once: reading takes a millisecond, and a
/// program may have many kernels.
#[derive(Default)]
pub(super) struct Facts {
    /// The text as compilers see it; several if unlike devices see unlike texts. None without
    /// a text.
    readings: Vec<Reading>,
    /// The language, if the options tell it.
    language: Option<String>,
    /// Whether there is volatile memory.
    volatile: bool,
    /// By kernel.
    separate_groups: Known<CString, SeparateGroups, SEPARATE_GROUPS>,
}

/// A text as a compiler sees it.
struct Reading {
    source: Source,
    /// None if it cannot be read.
    kernels: Vec<KernelInfo>,
}

impl Reading {
    fn of(text: &str, macros: &BTreeMap<String, String>) -> Self {
        let source = Source::with_macros(text, macros);
        let kernels = source.kernels().unwrap_or_default();
        Self { source, kernels }
    }
}

/// How a kernel uses memory, as its text tells. All that may be is taken to be so without one.
#[derive(Default)]
pub struct Accesses {
    /// By argument: whether the kernel may read through it.
    pub reads: Vec<bool>,
    /// By argument: whether it may write through it.
    pub writes: Vec<bool>,
    /// Whether its groups may wait for one another: by atomics or volatile memory.
    pub waits: bool,
}

/// What decides which bytes a kernel's groups write, or why they must not run separately.
pub type SeparateGroups = Result<Divisible, String>;

impl Facts {
    fn of(text: &str, options: &str, targets: &[Target]) -> Self {
        let given = source::macros_of(options);
        let mut unlike: Vec<BTreeMap<String, String>> = Vec::new();
        for target in targets {
            let mut macros = target.macros(&given);
            macros.retain(|name, _| text.contains(name.as_str()));
            if !unlike.contains(&macros) {
                unlike.push(macros);
            }
        }
        let mut options = options.split_whitespace();
        let language = options.find_map(|option| option.strip_prefix("-cl-std="));
        Self {
            readings: unlike
                .iter()
                .map(|macros| Reading::of(text, macros))
                .collect(),
            language: language.map(str::to_owned),
            volatile: text.contains("volatile"),
            separate_groups: Known::default(),
        }
    }

    /// A kernel in each reading; none if one lacks it, or it has another number of arguments.
    fn kernel(&self, name: &CStr, count: usize) -> Vec<&KernelInfo> {
        let name = name.to_string_lossy();
        let is_it = |kernel: &&KernelInfo| kernel.name == name && kernel.accesses.len() == count;
        let readings = self.readings.iter();
        let all = readings.map(|reading| reading.kernels.iter().find(is_it));
        all.collect::<Option<_>>().unwrap_or_default()
    }

    /// Whether it is known which statements count.
    fn is_certain(&self) -> bool {
        self.readings
            .iter()
            .all(|reading| reading.source.is_certain())
    }

    /// Whether and how the groups of a kernel may run separately.
    fn division(&self, kernel: &CStr) -> Result<Divisible, String> {
        let (first, others) = (self.readings.split_first()).ok_or("its program has no text")?;
        let language = self.language.as_deref();
        if let Some(language) = language.filter(|name| !name.starts_with("CL1.")) {
            return Err(format!(
                "its program is in {language}, which has more than OpenCL C 1.2"
            ));
        }
        let divisible = |reading: &Reading| {
            let divisible = reading.source.divisible(&kernel.to_string_lossy());
            divisible.map_err(|why| why.to_string())
        };
        let division = divisible(first)?;
        match others
            .iter()
            .all(|other| divisible(other).as_ref() == Ok(&division))
        {
            true => Ok(division),
            false => Err("its program has other text for other devices (#if)".to_owned()),
        }
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
        let targets = || self.targets();
        let facts = readable.map(|(text, options)| Facts::of(&text, &options, &targets()));
        let facts = Arc::new(facts.unwrap_or_default());
        state.facts = Some(Arc::clone(&facts));
        facts
    }

    /// What the text tells of running the groups of a kernel separately, which has so many
    /// arguments.
    pub fn separate_groups(&self, kernel: &CStr, count: usize) -> Arc<SeparateGroups> {
        let facts = self.facts();
        (facts.separate_groups).of(kernel.to_owned(), |kernel, _| {
            Arc::new(match facts.kernel(kernel, count).is_empty() {
                false => facts.division(kernel),
                true => Err("its program's text has no such kernel that can be read".to_owned()),
            })
        })
    }

    /// How a kernel of so many arguments uses memory.
    pub fn accesses(&self, kernel: &CStr, count: usize) -> Accesses {
        let facts = self.facts();
        let infos = facts.kernel(kernel, count);
        let whole = facts.is_certain();
        let may = |does: &dyn Fn(&KernelInfo) -> bool| {
            infos.is_empty() || infos.iter().any(|info| does(info))
        };
        let reads =
            |index: usize| may(&|info| info.accesses[index].read || info.accesses[index].guessed);
        let writes = |index: usize| {
            may(&|info| {
                !info.parameters[index].read_only && (info.accesses[index].written || !whole)
            })
        };
        Accesses {
            reads: (0..count).map(reads).collect(),
            writes: (0..count).map(writes).collect(),
            waits: facts.volatile || !whole || may(&|info| info.atomics),
        }
    }

    /// What the compilers of its devices may define. PoCL compiles OpenCL C 3.0 without an
    /// option that names the language, where others compile 1.2; and the version may be that of
    /// the device or of the language.
    fn targets(&self) -> Vec<Target> {
        let places = self.context.places.iter();
        let targets = places.flat_map(|place| {
            let reported = reported(&place.real);
            let (device, language) = (reported.version, reported.language);
            let ways = [(device, language), (device, device), (language, language)];
            ways.map(|(version, language)| Target {
                version,
                language,
                ..reported.clone()
            })
        });
        targets.collect()
    }
}

/// What a device reports that macros tell.
fn reported(real: &RealDevice) -> Target {
    let text = |what| real.text(what);
    let number = |what: cl_device_info, before: &str| {
        let said = text(what);
        let version = said.strip_prefix(before).unwrap_or_default();
        let mut parts = version
            .split(['.', ' '])
            .map(|part| part.parse().unwrap_or(0));
        parts.next().unwrap_or(0) * 100 + parts.next().unwrap_or(0) * 10
    };
    let is = |what: cl_device_info| {
        let flag = real.bytes(what);
        flag.is_ok_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    };
    let mut extensions = text(CL_DEVICE_EXTENSIONS);
    for feature in features(real) {
        extensions.push(' ');
        extensions.push_str(&feature);
    }
    Target {
        extensions,
        version: number(CL_DEVICE_VERSION, "OpenCL "),
        language: number(CL_DEVICE_OPENCL_C_VERSION, "OpenCL C ").min(120),
        has_images: is(CL_DEVICE_IMAGE_SUPPORT),
        is_little_endian: is(CL_DEVICE_ENDIAN_LITTLE),
        is_embedded: text(CL_DEVICE_PROFILE).starts_with("EMBEDDED"),
    }
}

/// The optional features of OpenCL C 3.0: versions of four bytes, each with a name of 64.
fn features(real: &RealDevice) -> Vec<String> {
    let list = real.bytes(CL_DEVICE_OPENCL_C_FEATURES);
    let name = |entry: &[u8]| {
        let bytes = entry[4..].iter().take_while(|byte| **byte != 0);
        bytes.map(|byte| char::from(*byte)).collect()
    };
    list.unwrap_or_default()
        .chunks_exact(68)
        .map(name)
        .collect()
}

/// A text with the files that it includes; `None` if it includes none.
pub(super) fn included(text: &str, options: &str) -> Option<Arc<str>> {
    let read = |path: &Path| {
        let bytes = bounded(path, MOST_INCLUDED).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    // Most texts include nothing, and are long.
    let included = (text.contains("include")).then(|| source::with_included(text, options, &read));
    included.flatten().map(Arc::from)
}
