//! What the user wants, as `pdawl exec` says it in the environment.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use opencl_sys::{CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, cl_device_type};

/// How command queues get devices, where the program does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// All queues have the first device.
    Off,
    /// The next device whenever a kernel is launched.
    RoundRobin,
    /// The map with the least predicted time.
    AutoFit,
    /// The map by the devices' profiles, made once.
    Static,
}

/// Which launches are divided over several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    None,
    /// Those that are predicted to take less time.
    IfItPays,
    /// All that can be, into parts of the same size.
    Equal,
}

/// The settings of this process.
pub struct Settings {
    /// The policy as the user names it.
    pub policy: String,
    pub mapping: Mapping,
    /// By queue, in the order in which they are made, again and again: its device, as an
    /// index. Empty: the mapping decides.
    pub map: Vec<usize>,
    pub division: Division,
    /// By device: the weights of its parts where all that can be is divided; empty for equal
    /// ones.
    pub shares: Vec<f64>,
    /// Whether only devices whose results agree bit for bit share a launch.
    pub exact: bool,
    /// How many devices that stand for all of them are shown; `None` shows the real ones.
    pub virtual_devices: Option<usize>,
    /// What a device that stands for several says it is.
    pub device_type: cl_device_type,
    /// Names of the devices to use; all if empty.
    pub devices: Vec<String>,
    pub report: Option<PathBuf>,
    pub trace: Option<PathBuf>,
}

impl Settings {
    /// Whether anything is noted for a report or a trace.
    pub fn reports(&self) -> bool {
        self.report.is_some() || self.traces()
    }

    /// Whether the times of all commands are noted.
    pub fn traces(&self) -> bool {
        self.trace.is_some()
    }
}

/// The settings, read once.
pub fn settings() -> &'static Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| read(|name| env::var(name).ok()));
    &SETTINGS
}

/// Reads the settings. What is not understood is said and left out: an OpenCL program
/// must not fail for it, and `pdawl exec` has checked its own.
fn read(variable: impl Fn(&str) -> Option<String>) -> Settings {
    let mut settings = Settings {
        policy: "auto-fit".to_owned(),
        mapping: Mapping::AutoFit,
        map: Vec::new(),
        division: Division::None,
        shares: Vec::new(),
        exact: false,
        virtual_devices: None,
        device_type: CL_DEVICE_TYPE_GPU,
        devices: Vec::new(),
        report: variable("PDAWL_REPORT").map(PathBuf::from),
        trace: variable("PDAWL_TRACE").map(PathBuf::from),
    };
    let policies = [
        ("off", (Mapping::Off, Division::None)),
        ("round-robin", (Mapping::RoundRobin, Division::None)),
        ("auto-fit", (Mapping::AutoFit, Division::None)),
        ("divide", (Mapping::AutoFit, Division::IfItPays)),
        ("divide:equal", (Mapping::AutoFit, Division::Equal)),
    ];
    if let Some((name, policy)) = chosen(&variable, "PDAWL_POLICY", &policies) {
        settings.policy = name;
        (settings.mapping, settings.division) = policy;
    }
    if let Some(map) = variable("PDAWL_MAP") {
        match list(&map) {
            Some(places) => {
                settings.policy = format!("map {map}");
                (settings.map, settings.mapping) = (places, Mapping::Off);
            }
            None => complain("PDAWL_MAP", &map, "lists of numbers, such as 0,1"),
        }
    }
    if let Some(shares) = variable("PDAWL_SHARES") {
        match list::<f64>(&shares) {
            Some(weights) if weights.iter().all(|w| *w >= 0.0 && w.is_finite()) => {
                settings.shares = weights;
            }
            _ => complain("PDAWL_SHARES", &shares, "lists of weights, such as 3,1"),
        }
    }
    let answers = [("0", false), ("1", true)];
    if let Some((_, exact)) = chosen(&variable, "PDAWL_EXACT", &answers) {
        settings.exact = exact;
    }
    if let Some(count) = variable("PDAWL_VIRTUAL") {
        match count.parse() {
            Ok(count @ 1..=64) => settings.virtual_devices = Some(count),
            _ => complain("PDAWL_VIRTUAL", &count, "1 to 64"),
        }
    }
    let kinds = [("gpu", CL_DEVICE_TYPE_GPU), ("cpu", CL_DEVICE_TYPE_CPU)];
    if let Some((_, kind)) = chosen(&variable, "PDAWL_DEVICE_TYPE", &kinds) {
        settings.device_type = kind;
    }
    if let Some(names) = variable("PDAWL_DEVICES") {
        settings.devices = list(&names).unwrap_or_default();
    }
    settings
}

/// The values of a list; `None` if one is not understood.
fn list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    let values = text.split(',').map(|value| value.trim().parse().ok());
    values.collect()
}

/// The name and the value that a variable chooses.
fn chosen<T: Copy>(
    variable: impl Fn(&str) -> Option<String>,
    name: &str,
    known: &[(&str, T)],
) -> Option<(String, T)> {
    let value = variable(name).filter(|value| !value.is_empty())?;
    if let Some((_, chosen)) = known.iter().find(|(name, _)| *name == value) {
        return Some((value, *chosen));
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    complain(name, &value, &names.join(", "));
    None
}

fn complain(name: &str, value: &str, known: &str) {
    eprintln!("pdawl: {name}={value} is not understood and has no effect; known are {known}");
}
