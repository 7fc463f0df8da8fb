//! The report of a program under `pdawl exec`, `pdawl-exec/1`. The OpenCL layer writes
//! one [`Process`] for each process of the program; the command adds what it knows.

#[cfg(feature = "text")]
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "text")]
pub use text::render;

/// The format of this version.
pub const FORMAT: &str = "pdawl-exec/1";

/// What an OpenCL program did; exec.md explains the terms.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ExecReport {
    pub format: &'static str,
    pub version: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The program's exit status; null after a signal.
    pub status: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// From its start to its end.
    pub seconds: f64,
    pub settings: Settings,
    /// Those that used OpenCL, in the order of their start.
    pub processes: Vec<Process>,
    pub notes: Vec<String>,
}

/// What the command set.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Settings {
    /// The layer's library.
    pub layer: String,
    /// Devices that the program sees, each of which stands for all; null: the real ones.
    pub virtual_devices: Option<u8>,
    pub policy: String,
    /// The device of each queue, in the order in which they are made, again and again; empty:
    /// as the policy says.
    pub map: Vec<u8>,
    /// Whether launches are divided only between devices whose results agree bit for bit.
    pub exact: bool,
    pub device_type: String,
    /// Names of the devices to use; null: all.
    pub devices: Option<String>,
}

/// A process of the program.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Its program file.
    pub executable: String,
    /// When it first asked for OpenCL's platforms, in seconds since 1970.
    pub began: f64,
    /// From then to the last figure.
    pub seconds: f64,
    /// Whether it ended by itself; otherwise the figures may lack its last second.
    pub complete: bool,
    /// The real devices.
    pub devices: Vec<Device>,
    pub queues: Vec<Queue>,
    pub kernels: Vec<Kernel>,
    /// Bytes that were copied because commands ran where their data were not.
    pub moved: Vec<Moved>,
    pub own: OwnTime,
    /// Commands that a trace lacks, since it would be too large.
    pub untraced: u64,
}

/// A real device.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Device {
    pub name: String,
    pub model: String,
    pub driver: String,
}

/// A command queue of the program.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Queue {
    pub number: usize,
    /// The device of its last kernel.
    pub device: Option<String>,
    /// The devices that it used.
    pub devices: Vec<QueueDevice>,
}

/// What a queue did at a device.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct QueueDevice {
    pub name: String,
    /// Commands of all kinds, and kernels among them.
    pub commands: u64,
    pub launches: u64,
    /// Epochs with kernels: what the queue does from one wait of the program to the next.
    pub epochs: u64,
    /// Seconds of these epochs.
    pub measured_seconds: f64,
    /// Epochs for which the chosen map had a predicted time, the sum of these times, and
    /// what these epochs took.
    pub predicted_epochs: u64,
    pub predicted_seconds: f64,
    pub predicted_measured_seconds: f64,
}

/// A kernel of one shape.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Kernel {
    pub name: String,
    /// Its key in the kernel profiles.
    pub key: String,
    pub devices: Vec<KernelDevice>,
    /// Whether and how its launches are divided, under a policy that divides. Launches with
    /// unlike scalars may be divided in unlike ways.
    #[serde(default)]
    pub division: Vec<Division>,
}

/// Whether and how launches of a kernel are divided.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Division {
    /// `sliced`, `merged`, `refused`, or `unknown` for a kernel that was not examined.
    pub verdict: String,
    /// Why its launches, or the last of them, were not divided, or their results are
    /// merged.
    pub reason: Option<String>,
    /// The dimension along which they are divided.
    pub axis: Option<usize>,
    /// Launches that were divided, and those of them whose parts clashed.
    pub divided: u64,
    pub clashes: u64,
    /// The parts of their groups that each device ran, 0 to 1.
    pub shares: Vec<Share>,
}

/// What a device ran of divided launches.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Share {
    pub device: String,
    pub share: f64,
}

/// A kernel at a device.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct KernelDevice {
    pub name: String,
    pub launches: u64,
    /// Parts of launches that ran for their time.
    pub samples: u64,
    /// The seconds of a launch, if they are known.
    pub seconds: Option<f64>,
}

/// Copies from one memory to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Moved {
    /// A device, or `host`.
    pub from: String,
    pub to: String,
    pub copies: u64,
    pub bytes: u64,
}

/// The time of the layer's own code.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OwnTime {
    /// Commands that were enqueued, and how many of them were timed.
    pub commands: u64,
    pub timed: u64,
    /// The estimate for all commands, without the drivers' time.
    pub seconds: f64,
    /// Seconds for which the program waited for samples.
    pub waited_seconds: f64,
}

#[cfg(all(test, feature = "text"))]
mod tests {
    use super::*;

    /// A report with one queue, one kernel and one copy.
    fn report() -> ExecReport {
        let device = Device {
            name: "opencl0.0".into(),
            model: "A100".into(),
            driver: "CUDA".into(),
        };
        let process = Process {
            pid: 7,
            complete: true,
            devices: vec![device],
            queues: vec![Queue {
                number: 0,
                device: Some("opencl0.0".into()),
                devices: vec![QueueDevice {
                    name: "opencl0.0".into(),
                    commands: 12,
                    launches: 10,
                    epochs: 2,
                    measured_seconds: 0.25,
                    predicted_epochs: 1,
                    predicted_seconds: 0.1,
                    predicted_measured_seconds: 0.125,
                }],
            }],
            kernels: vec![Kernel {
                name: "add".into(),
                key: "k add 64/* 4".into(),
                devices: vec![KernelDevice {
                    name: "opencl0.0".into(),
                    launches: 10,
                    samples: 1,
                    seconds: Some(0.01),
                }],
                division: vec![Division {
                    verdict: "sliced".into(),
                    axis: Some(0),
                    divided: 9,
                    shares: vec![Share {
                        device: "opencl0.0".into(),
                        share: 0.75,
                    }],
                    ..Division::default()
                }],
            }],
            moved: vec![Moved {
                from: "host".into(),
                to: "opencl0.0".into(),
                copies: 3,
                bytes: 4096,
            }],
            own: OwnTime {
                commands: 12,
                timed: 2,
                seconds: 12e-6,
                waited_seconds: 0.0,
            },
            ..Process::default()
        };
        ExecReport {
            format: FORMAT,
            version: "0",
            command: vec!["./add".into()],
            status: Some(0),
            signal: None,
            seconds: 1.5,
            settings: Settings {
                layer: "libpdawl_opencl.so".into(),
                virtual_devices: Some(1),
                policy: "auto-fit".into(),
                map: Vec::new(),
                exact: false,
                device_type: "gpu".into(),
                devices: None,
            },
            processes: vec![process],
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn the_text_has_the_figures() {
        let text = anstream::adapter::strip_str(&render(&report())).to_string();
        for part in [
            "./add",
            "1.50 s",
            "status 0",
            "opencl0.0",
            "100 ms",
            "125 ms",
            "250 ms",
            "add",
            "10.0 ms",
            "host to opencl0.0",
            "4.00 KiB",
            "12.0 us",
            "9 divided along 0, 75 % opencl0.0",
            "a note",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_process_is_read_back() {
        let process = report().processes.remove(0);
        let text = serde_json::to_string(&process).unwrap();
        assert_eq!(serde_json::from_str::<Process>(&text).unwrap(), process);
    }
}
