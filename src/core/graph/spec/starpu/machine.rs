//! The machine of a recording: StarPU's workers, and the links that it has measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::model::PerfModel;
use super::read;
use crate::graph::spec::SpecError;
use crate::machine::MachineFile;
use crate::machine::file::FORMAT;

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
            let known = KINDS.into_iter().find(|(label, _)| kind.ends_with(label))?;
            Some((number.parse().ok()?, known, device.parse().ok()?))
        });
        let known = KINDS.map(|(label, _)| label).join(", ");
        let why = || format!("`{text}` is no worker of a kind that is known: {known}");
        let found = found.ok_or_else(|| SpecError::line(&file, line, why()));
        let (number, (label, kind), device) = found?;
        let mut name = format!("{}{device}", label.to_lowercase());
        if all.values().any(|other| other.name == name) {
            name = format!("{name}-worker{number}");
        }
        all.insert(
            number,
            Worker {
                number,
                kind,
                device,
                label,
                name,
            },
        );
    }
    Ok(all.into_values().collect())
}

/// StarPU's measurements of a machine.
pub(super) struct Sampling {
    folder: PathBuf,
    /// What StarPU calls the machine.
    host: String,
}

impl Sampling {
    /// Those in `sampling` of a folder, if there are some.
    pub fn find(folder: &Path) -> Result<Self, SpecError> {
        let folder = folder.join("sampling");
        let bus = folder.join("bus").read_dir();
        let files = bus.into_iter().flatten().flatten();
        let hosts = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            Some(name.strip_suffix(".config")?.to_owned())
        });
        let mut hosts: Vec<String> = hosts.collect();
        hosts.sort();
        if hosts.len() > 1 {
            let (why, hosts) = ("leave those of the recorded one", hosts.join(", "));
            let why = format!("it has files of several machines ({hosts}); {why}");
            return Err(SpecError::file(&folder, why));
        }
        let host = hosts.pop().unwrap_or_else(|| "starpu".to_owned());
        Ok(Self { folder, host })
    }

    /// The performance model of a symbol; `None` if there is none.
    pub fn model(&self, symbol: &str) -> Result<Option<PerfModel>, SpecError> {
        // As in StarPU, a symbol with a dot is a whole name.
        let name = match symbol.contains('.') {
            true => symbol.to_owned(),
            false => format!("{symbol}.{}", self.host),
        };
        let file = self.folder.join("codelets/45").join(name);
        match file.is_file() && !symbol.contains('/') {
            true => PerfModel::parse(&file, &read(&file)?).map(Some),
            false => Ok(None),
        }
    }

    fn bus(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("bus/{}.{ending}", self.host))
    }

    /// A matrix of the bus files, from node to node.
    fn matrix(&self, ending: &str) -> Result<Vec<Vec<f64>>, SpecError> {
        let file = self.bus(ending);
        let text = read(&file)?;
        let rows = (1..).zip(text.lines());
        let rows = rows.filter(|(_, row)| !row.starts_with('#'));
        let row = |(line, row): (usize, &str)| {
            let row: Result<Vec<f64>, _> = row.split_whitespace().map(str::parse).collect();
            row.map_err(|_| SpecError::line(&file, line, "it is no row of numbers"))
        };
        rows.map(row).collect()
    }

    /// By label of a kind: the node of its first device in the matrices. Main memory is node 0.
    fn nodes(&self) -> Result<BTreeMap<String, usize>, SpecError> {
        // Old files do not count main memory.
        let (mut nodes, mut next) = (BTreeMap::new(), 1);
        for line in read(&self.bus("config"))?.lines() {
            let found = line.split_once(" # Number of ");
            let found = found.and_then(|(count, label)| Some((count.parse().ok()?, label)));
            match found {
                Some((count, label)) if label.starts_with("NUMA") => next = usize::max(count, 1),
                Some((count, label)) if !label.starts_with("CPU") => {
                    let label = label.split(' ').find(|word| *word != "Max");
                    nodes.insert(label.unwrap_or_default().to_owned(), next);
                    next = next.saturating_add(count);
                }
                _ => {}
            }
        }
        Ok(nodes)
    }
}

/// The machine of these workers: each is a device that computes one task at a time, in the host's
/// memory if it is a core. The figures of links are those that StarPU simulates with (SimGrid):
/// each way of a link by itself, and the fastest of them for all transfers together.
pub(super) fn machine(sampling: &Sampling, workers: &[Worker]) -> Result<MachineFile, SpecError> {
    let has_links = workers.iter().any(|worker| worker.kind != CPU);
    let (mut nodes, mut bandwidth, mut latency) = (BTreeMap::new(), Vec::new(), Vec::new());
    if has_links {
        nodes = sampling.nodes()?;
        (bandwidth, latency) = (sampling.matrix("bandwidth")?, sampling.matrix("latency")?);
    }
    let node = |worker: &Worker| {
        let first = nodes.get(worker.label).copied().unwrap_or(usize::MAX);
        first.saturating_add(worker.device as usize)
    };
    // Bytes a second, and nanoseconds of no bytes.
    let link = |from: usize, to: usize| {
        let rate = 1e6 * bandwidth.get(from)?.get(to)?;
        let latency = 1e3 * latency.get(from)?.get(to)?;
        let is_known = (1e6..BANDWIDTH).contains(&rate) && (0.0..1e9).contains(&latency);
        is_known.then(|| (rate, latency.round() as u64))
    };
    // SimGrid's description has the sizes of memories.
    let files = ["platform.v4.xml", "platform.xml"].map(|ending| sampling.bus(ending));
    let file = files.iter().find(|file| has_links && file.is_file());
    let platform = file.map(|file| read(file)).transpose()?.unwrap_or_default();
    let memory = |worker: &Worker| {
        let (_, host) = platform.split_once(&format!("\"{}{}\"", worker.label, worker.device))?;
        let (host, _) = host.split_once("</host>")?;
        let (_, size) = host.split_once("\"memsize\" value=\"")?;
        let bytes: u64 = size.split_once('"')?.0.parse().ok()?;
        (1 << 20..BYTES).contains(&bytes).then_some(bytes)
    };
    let (mut devices, mut peers, mut bus) = (Vec::new(), Vec::new(), None::<f64>);
    for worker in workers {
        let mut device = json!({
            "name": worker.name, "model": format!("{} {} of StarPU", worker.label, worker.device),
            "kind": "cpu", "compute_units": 1, "memory": BYTES, "memory_bandwidth": BANDWIDTH,
            "copy_engines": 2, "queues": 3, "concurrent_kernels": 1, "launch_overhead_ns": 0,
            "enqueue_ns": 0, "completion_latency_ns": 0, "shares_host_memory": worker.kind == CPU,
        });
        if worker.kind != CPU {
            let own = node(worker);
            let (Some((h2d, ns)), Some((d2h, _))) = (link(0, own), link(own, 0)) else {
                let what = format!("{} {}", worker.label, worker.device);
                let why = format!("no bandwidth between main memory and {what} was measured");
                return Err(SpecError::file(&sampling.bus("bandwidth"), why));
            };
            bus = Some(bus.unwrap_or(0.0).max(h2d).max(d2h));
            device["kind"] = "gpu".into();
            device["memory"] = memory(worker).unwrap_or(BYTES).into();
            let both_ways = (h2d + d2h) / 2.0;
            device["link"] =
                json!({"h2d": h2d, "d2h": d2h, "both_ways": both_ways, "latency_ns": ns});
            let is_other = |of: &&Worker| of.kind != CPU && node(of) != own;
            for other in workers.iter().filter(is_other) {
                let through_host = link(0, node(other)).map(|(on, _)| 1.0 / (1.0 / d2h + 1.0 / on));
                let direct = link(own, node(other)).zip(through_host);
                let direct = direct.filter(|((rate, _), host)| *rate > ABOVE_HOST * host);
                peers.extend(direct.map(|((rate, ns), _)| {
                    json!({"from": worker.name, "to": other.name, "bandwidth": rate, "latency_ns": ns})
                }));
            }
        }
        devices.push(device);
    }
    let name = &sampling.host;
    let machine = json!({
        "format": FORMAT, "name": name, "title": format!("StarPU's machine {name}"),
        "description": "The machine of a recorded run of StarPU's, a device a worker.",
        "host": {
            "model": "the CPU of StarPU's machine", "sockets": 1, "cores": workers.len().max(1),
            "memory": BYTES, "memory_bandwidth": BANDWIDTH, "core_bandwidth": BANDWIDTH,
            "bus_bandwidth": bus, "launch_overhead_ns": 0, "completion_latency_ns": 0,
        },
        "device": devices, "peer": peers,
        "source": {
            "device.seconds": "StarPU's performance models, else the recorded run",
            "device.link, peer, host.bus_bandwidth": "StarPU's bus files",
            "memory, memory_bandwidth, core_bandwidth": "where not recorded, they limit nothing",
        },
    });
    serde_json::from_value(machine)
        .map_err(|error| SpecError::file(&sampling.folder, error.to_string()))
}
