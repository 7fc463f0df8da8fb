//! The reasons why telemetry is missing.

/// What keeps telemetry away. None of these stops a run.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    #[error("NVIDIA's management library is not here: {0}")]
    Library(String),
    #[error("NVIDIA's management library does not start: {0}")]
    Driver(String),
    #[error("NVIDIA's management library shows no GPU")]
    NoGpu,
    #[error("of `{model}`, NVIDIA's management library shows {found}, and number {nth} is wanted")]
    NoSuchGpu {
        model: String,
        /// As counted by people, from 1.
        nth: usize,
        found: usize,
    },
    #[error("the sampling thread does not start: {0}")]
    Thread(std::io::Error),
}

impl Absent {
    /// A clause that says what to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Absent::Library(_) => {
                "install the GPU's NVIDIA driver; in a container, start it with `--gpus all` and \
                 the driver capability `utility`; other makers' GPUs have no telemetry here"
            }
            Absent::Driver(_) => "see that `nvidia-smi` works for this user",
            Absent::NoGpu => "see that `nvidia-smi` lists the GPU for this user",
            Absent::NoSuchGpu { .. } => "compare the names that `nvidia-smi -L` lists",
            Absent::Thread(_) => "raise the limit of processes, `ulimit -u`",
        }
    }
}
