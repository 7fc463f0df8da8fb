//! Choices of the process: whether CUDA's libraries may serve beside our kernels, and through which
//! driver NVIDIA's GPUs are opened. The latter is one choice of the process: a GPU
//! that was opened through both would have two contexts, whose commands and memory know
//! nothing of one another.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::runtime::cuda;
use crate::runtime::opencl::Discovery;

/// Through which driver GPUs are opened that both CUDA and OpenCL offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuRuntime {
    /// CUDA where that works.
    #[default]
    Auto,
    Cuda,
    Opencl,
}

impl GpuRuntime {
    /// All, by the names that users write.
    pub const NAMED: [(&'static str, Self); 3] = [
        ("auto", Self::Auto),
        ("cuda", Self::Cuda),
        ("opencl", Self::Opencl),
    ];

    /// Whether CUDA is to be asked for its devices.
    pub(super) fn asks_cuda(self) -> bool {
        self != Self::Opencl
    }

    /// Why a GPU that CUDA offers is not opened through it, if so.
    pub fn refusal(self, gpu: &cuda::FoundGpu, opencl: &Discovery) -> Option<String> {
        match self {
            Self::Opencl => Some("--runtime opencl was asked for".to_owned()),
            Self::Auto if cuda::compiler::name(gpu, opencl).is_none() => Some(
                "nothing compiles the kernels: neither NVIDIA's OpenCL nor NVRTC is here, or \
                 PDAWL_CUDA_COMPILER excludes it"
                    .to_owned(),
            ),
            Self::Auto | Self::Cuda => None,
        }
    }
}

impl fmt::Display for GpuRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, runtime)| runtime == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for GpuRuntime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        named.map(|(_, runtime)| *runtime).ok_or_else(|| {
            let names = Self::NAMED.map(|(name, _)| name);
            format!("`{text}` is no runtime; write {}", names.join(", "))
        })
    }
}

/// The index in [`GpuRuntime::NAMED`] of the process's choice.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// From now on GPUs are opened so. Devices that a selection names as `cuda0` or
/// `opencl0.0` are opened as they are named.
pub fn choose_gpu_runtime(runtime: GpuRuntime) {
    let named = GpuRuntime::NAMED.iter();
    let index = named.map(|(_, one)| *one).take_while(|one| *one != runtime);
    CHOSEN.store(index.count() as u8, Ordering::Relaxed);
}

/// How GPUs are opened.
pub fn gpu_runtime() -> GpuRuntime {
    let index = usize::from(CHOSEN.load(Ordering::Relaxed));
    GpuRuntime::NAMED
        .get(index)
        .map_or_else(GpuRuntime::default, |(_, runtime)| *runtime)
}

/// Whether libraries of a GPU's maker serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Libraries {
    /// Where they are found and faster.
    #[default]
    Auto,
    /// Nowhere: only our kernels do.
    Off,
}

impl Libraries {
    /// All, by the names that users write.
    pub const NAMED: [(&'static str, Self); 2] = [("auto", Self::Auto), ("off", Self::Off)];
}

impl fmt::Display for Libraries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(_, one)| one == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for Libraries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        named
            .map(|(_, one)| *one)
            .ok_or_else(|| format!("`{text}` is no choice of libraries; write auto or off"))
    }
}

static ARE_OFF: AtomicBool = AtomicBool::new(false);

/// Devices that are opened from now on use libraries so.
pub fn choose_libraries(libraries: Libraries) {
    ARE_OFF.store(libraries == Libraries::Off, Ordering::Relaxed);
}

/// How devices use libraries.
pub fn libraries() -> Libraries {
    match ARE_OFF.load(Ordering::Relaxed) {
        true => Libraries::Off,
        false => Libraries::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_read_and_written_alike() {
        for (name, runtime) in GpuRuntime::NAMED {
            assert_eq!(name.parse(), Ok(runtime));
            assert_eq!(runtime.to_string(), name);
        }
        let error = "Cuda".parse::<GpuRuntime>().unwrap_err();
        assert_eq!(error, "`Cuda` is no runtime; write auto, cuda, opencl");
    }

    #[test]
    fn a_choice_is_read_and_written_alike() {
        for (name, libraries) in Libraries::NAMED {
            assert_eq!(name.parse(), Ok(libraries));
            assert_eq!(libraries.to_string(), name);
        }
        let error = "on".parse::<Libraries>().unwrap_err();
        assert_eq!(error, "`on` is no choice of libraries; write auto or off");
    }
}
