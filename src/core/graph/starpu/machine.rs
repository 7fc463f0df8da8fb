//! The machine of a recording: StarPU's workers, and the links that it has measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::model::PerfModel;
use super::read;
use crate::graph::spec::SpecError;
use crate::machine::file::FORMAT;
use crate::machine::{DeviceKind, DeviceSpec, HostSpec, LinkSpec, MachineFile, Noise, PeerSpec};

/// Kinds of workers, as `activity.data` and the bus files name them, with their numbers in
/// performance models (`starpu_worker.h`).
const KINDS: [(&str, u32); 6] = [
    ("CPU", CPU),
    ("CUDA", 1),
    ("OpenCL", 2),
    ("FPGA", 4),
    ("HIP", 7),
    ("SYCL", 8),
];
pub(super) const CPU: u32 = 0;

/// What StarPU records no figure of limits nothing: bytes, and bytes a second.
const BYTES: u64 = 1_000_000_000_000_000;
const BANDWIDTH: f64 = 1e15;

/// A bandwidth between two GPUs that is no more than this much above the one through the host's
/// memory is no direct one: StarPU composes it of both ways.
const ABOVE_HOST: f64 = 1.02;

/// A worker, which computes one task at a time.
pub(super) struct Worker {
    pub number: u32,
    /// The number of its kind in performance models.
    pub kind: u32,
    /// The number of its device among those of its kind.
    pub device: u32,
    label: &'static str,
    name: String,
}

/// The workers that `activity.data` names, by their numbers.
pub(super) fn workers(folder: &Path) -> Result<Vec<Worker>, SpecError> {
    let file = folder.join("activity.data");
    let mut all: BTreeMap<u32, Worker> = BTreeMap::new();
    for (line, text) in (1..).zip(read(&file)?.lines()) {
        let Some(text) = text.strip_prefix("name\t") else {
            continue;
        };
        let found = text.split_once('\t').and_then(|(number, worker)| {
            let (kind, device) = worker.rsplit_once(' ')?;
            // Other versions say `Max FPGA`.
            let known = KINDS.iter().find(|(label, _)| kind.ends_with(label))?;
            Some((number.parse().ok()?, known, device.parse().ok()?))
        });
        let Some((number, (label, kind), device)) = found else {
            let known = KINDS.map(|(label, _)| label).join(", ");
            let why = format!("`{text}` is no worker of a kind that is known: {known}");
            return Err(SpecError::line(&file, line, why));
        };
        let mut name = format!("{}{device}", label.to_lowercase());
        if all.values().any(|other| other.name == name) {
            name = format!("{name}-worker{number}");
        }
        let worker = Worker {
            number,
            kind: *kind,
            device,
            label,
            name,
        };
        all.insert(number, worker);
    }
    match all.is_empty() {
        true => Err(SpecError::file(
            &file,
            "it names no worker; convert the trace again",
        )),
        false => Ok(all.into_values().collect()),
    }
}

/// StarPU's measurements of a machine.
pub(super) struct Sampling {
    folder: PathBuf,
    /// What StarPU calls the machine; `None` if there are no measurements.
    host: Option<String>,
}

impl Sampling {
    /// Those in `sampling` of a folder.
    pub fn find(folder: &Path) -> Result<Self, SpecError> {
        let folder = folder.join("sampling");
        let bus = folder.join("bus");
        let files = std::fs::read_dir(&bus).into_iter().flatten().flatten();
        let mut hosts: Vec<String> = files
            .filter_map(|file| {
                Some(
                    file.file_name()
                        .to_str()?
                        .strip_suffix(".config")?
                        .to_owned(),
                )
            })
            .collect();
        hosts.sort();
        if hosts.len() > 1 {
            let why = format!(
                "it has files of several machines ({}); leave those of the recorded one",
                hosts.join(", ")
            );
            return Err(SpecError::file(&bus, why));
        }
        Ok(Self {
            folder,
            host: hosts.pop(),
        })
    }

    /// The performance model of a symbol; `None` if there is none.
    pub fn model(&self, symbol: &str) -> Result<Option<PerfModel>, SpecError> {
        let Some(host) = self
            .host
            .as_ref()
            .filter(|_| !symbol.is_empty() && !symbol.contains('/'))
        else {
            return Ok(None);
        };
        // As in StarPU, a symbol with a dot is a whole name.
        let name = match symbol.contains('.') {
            true => symbol.to_owned(),
            false => format!("{symbol}.{host}"),
        };
        let file = self.folder.join("codelets/45").join(name);
        match file.is_file() {
            true => PerfModel::parse(&file, &read(&file)?).map(Some),
            false => Ok(None),
        }
    }

    fn bus(&self, ending: &str) -> PathBuf {
        let host = self.host.as_deref().unwrap_or("HOST");
        self.folder.join("bus").join(format!("{host}.{ending}"))
    }
}

/// The measured links of a machine.
struct Bus {
    file: PathBuf,
    /// By label: the node of its first device in the matrices. Main memory is node 0.
    first: BTreeMap<String, usize>,
    /// From node to node: bytes a second, and seconds of no bytes.
    bandwidth: Vec<Vec<f64>>,
    latency: Vec<Vec<f64>>,
    /// SimGrid's description, which has the sizes of memories.
    platform: String,
}

impl Bus {
    fn read(sampling: &Sampling) -> Result<Self, SpecError> {
        let mut first = BTreeMap::new();
        // Old files do not count main memory.
        let mut next = 1;
        for line in read(&sampling.bus("config"))?.lines() {
            let found = line.split_once(" # Number of ");
            let found = found.and_then(|(count, label)| Some((count.parse().ok()?, label)));
            match found {
                Some((count, label)) if label.starts_with("NUMA") => next = usize::max(count, 1),
                Some((count, label)) if !label.starts_with("CPU") => {
                    let label = label
                        .split(' ')
                        .find(|word| *word != "Max")
                        .unwrap_or_default();
                    first.insert(label.to_owned(), next);
                    next = next.saturating_add(count);
                }
                _ => {}
            }
        }
        let matrix = |ending: &str, unit: f64| -> Result<Vec<Vec<f64>>, SpecError> {
            let file = sampling.bus(ending);
            let text = read(&file)?;
            let rows = (1..)
                .zip(text.lines())
                .filter(|(_, row)| !row.starts_with('#'));
            let rows = rows.map(|(line, row)| {
                let number = |word: &str| word.parse().map(|number: f64| number * unit);
                let row: Result<Vec<f64>, _> = row.split_whitespace().map(number).collect();
                row.map_err(|_| SpecError::line(&file, line, "it is no row of numbers"))
            });
            rows.collect()
        };
        let platforms = ["platform.v4.xml", "platform.xml"].map(|ending| sampling.bus(ending));
        let platform = platforms
            .iter()
            .find(|file| file.is_file())
            .map(|file| read(file));
        Ok(Self {
            file: sampling.bus("bandwidth"),
            first,
            bandwidth: matrix("bandwidth", 1e6)?,
            latency: matrix("latency", 1e-6)?,
            platform: platform.transpose()?.unwrap_or_default(),
        })
    }

    fn node(&self, worker: &Worker) -> usize {
        let first = self.first.get(worker.label).copied().unwrap_or(usize::MAX);
        first.saturating_add(worker.device as usize)
    }

    /// Bytes a second and nanoseconds of no bytes from node to node, if they were measured.
    fn link(&self, from: usize, to: usize) -> Option<(f64, u64)> {
        let bandwidth = *self.bandwidth.get(from)?.get(to)?;
        let latency = *self.latency.get(from)?.get(to)?;
        let is_known = (1e6..1e15).contains(&bandwidth) && (0.0..1.0).contains(&latency);
        is_known.then(|| (bandwidth, (1e9 * latency).round() as u64))
    }

    /// The ways to a worker's memory and back.
    fn ways(&self, worker: &Worker) -> Result<[(f64, u64); 2], SpecError> {
        let node = self.node(worker);
        match (self.link(0, node), self.link(node, 0)) {
            (Some(to), Some(back)) => Ok([to, back]),
            _ => {
                let what = format!("{} {}", worker.label, worker.device);
                let why = format!(
                    "it has no bandwidth between main memory and {what}; starpu_calibrate_bus \
                     measures it"
                );
                Err(SpecError::file(&self.file, why))
            }
        }
    }

    /// A property of a worker's device in SimGrid's description.
    fn property(&self, worker: &Worker, name: &str) -> Option<&str> {
        let host = format!("<host id=\"{}{}\"", worker.label, worker.device);
        let (_, host) = self.platform.split_once(&host)?;
        let (host, _) = host.split_once("</host>")?;
        let (_, value) = host.split_once(&format!("<prop id=\"{name}\" value=\""))?;
        Some(value.split_once('"')?.0)
    }
}

/// The machine of these workers: each is a device that computes one task at a time, in the host's
/// memory if it is a core. The figures of links are those that StarPU simulates with (SimGrid):
/// each way of a link by itself, and the fastest of them for all transfers together.
pub(super) fn machine(sampling: &Sampling, workers: &[Worker]) -> Result<MachineFile, SpecError> {
    let (mut devices, mut peers, mut bus) = (Vec::new(), Vec::new(), None::<f64>);
    let others: Vec<&Worker> = workers.iter().filter(|worker| worker.kind != CPU).collect();
    let links = (!others.is_empty())
        .then(|| Bus::read(sampling))
        .transpose()?;
    for worker in workers {
        let device = DeviceSpec {
            name: worker.name.clone(),
            model: format!("{} {} of StarPU", worker.label, worker.device),
            kind: DeviceKind::Cpu,
            compute_units: 1,
            clock_mhz: None,
            memory: BYTES,
            memory_bandwidth: BANDWIDTH,
            fp64: true,
            flops_f64: None,
            flops_f32: None,
            copy_engines: 2,
            queues: 1,
            concurrent_kernels: 1,
            launch_overhead_ns: 0,
            enqueue_ns: 0,
            completion_latency_ns: 0,
            shares_host_memory: true,
            efficiency: BTreeMap::new(),
            seconds: BTreeMap::new(),
            link: None,
        };
        let Some(links) = links.as_ref().filter(|_| worker.kind != CPU) else {
            devices.push(device);
            continue;
        };
        let [(h2d, latency), (d2h, _)] = links.ways(worker)?;
        bus = Some(bus.unwrap_or(0.0).max(h2d).max(d2h));
        let memory = links
            .property(worker, "memsize")
            .and_then(|bytes| bytes.parse().ok());
        let model = links.property(worker, "model").map(str::to_owned);
        devices.push(DeviceSpec {
            model: model.unwrap_or_else(|| device.model.clone()),
            kind: match worker.label {
                "FPGA" => DeviceKind::Accelerator,
                _ => DeviceKind::Gpu,
            },
            memory: memory
                .filter(|bytes| (1 << 20..BYTES).contains(bytes))
                .unwrap_or(BYTES),
            queues: 3,
            shares_host_memory: false,
            link: Some(LinkSpec {
                h2d,
                d2h,
                both_ways: (h2d + d2h) / 2.0,
                latency_ns: latency,
                launch_delay_ns: 0,
            }),
            ..device
        });
        let own = links.node(worker);
        for other in others.iter().filter(|other| links.node(other) != own) {
            let [(onward, _), _] = links.ways(other)?;
            let through_host = 1.0 / (1.0 / d2h + 1.0 / onward);
            let link = links.link(own, links.node(other));
            let direct = link.filter(|(bandwidth, _)| *bandwidth > ABOVE_HOST * through_host);
            peers.extend(direct.map(|(bandwidth, latency_ns)| PeerSpec {
                from: worker.name.clone(),
                to: other.name.clone(),
                bandwidth,
                latency_ns,
                through_host: false,
            }));
        }
    }
    let cores = workers
        .iter()
        .filter(|worker| worker.kind == CPU)
        .count()
        .max(1) as u32;
    let name = sampling.host.clone().unwrap_or_else(|| "starpu".to_owned());
    let source = [
        (
            "device.seconds",
            "StarPU's performance models, else the recorded run",
        ),
        (
            "device.link, peer, host.bus_bandwidth",
            "StarPU's bus files",
        ),
        (
            "memory_bandwidth, core_bandwidth, host.memory",
            "not recorded: they limit nothing",
        ),
    ];
    Ok(MachineFile {
        format: FORMAT.to_owned(),
        title: format!("StarPU's machine {name}, {} workers", workers.len()),
        description: "The machine of a recorded run of StarPU, a device a worker.".to_owned(),
        name,
        fingerprint: None,
        host: HostSpec {
            model: "the CPU of StarPU's machine".to_owned(),
            sockets: 1,
            cores,
            clock_mhz: None,
            l2: None,
            l3: None,
            memory: BYTES,
            memory_bandwidth: BANDWIDTH,
            shared_bandwidth: None,
            core_bandwidth: BANDWIDTH,
            bus_bandwidth: bus,
            flops: None,
            launch_overhead_ns: 0,
            completion_latency_ns: 0,
            efficiency: BTreeMap::new(),
        },
        devices,
        peers,
        noise: Noise::default(),
        source: source
            .map(|(key, from)| (key.to_owned(), from.to_owned()))
            .into(),
    })
}
