//! The host: processor, caches and memory, as Linux describes them.
//!
//! [`Host::detect`] reads the kernel's files; `parse` understands their formats,
//! `memory` the available memory, and `topology` the position of cores in sockets.
//! What cannot be determined is `None` or 0, never a guess.
//!
//! The host's memory: how much is installed, and how much is available.

mod topology;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};

pub use topology::{CoreLocation, Placement, Topology};

/// One instance of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    pub bytes: u64,
    /// Logical cores that share it.
    pub cores: u32,
}

/// The host that the process runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// What the vendor calls the processor.
    pub model: String,
    /// Logical cores that the process may use, by number.
    pub cores: Vec<usize>,
    /// Logical cores that are online.
    pub online: u32,
    pub sockets: u32,
    pub numa_nodes: u32,
    /// Highest clock in MHz, or the present one where that is not reported.
    pub clock_mhz: Option<u32>,
    pub l1d: Option<Cache>,
    pub l2: Option<Cache>,
    pub l3: Option<Cache>,
    pub memory: Memory,
    /// Cores' worth of time that the control group grants, where limited.
    pub cpu_quota: Option<f64>,
}

impl Host {
    /// Asks the kernel.
    pub fn detect() -> Self {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let text = |key| topology::cpuinfo(&cpuinfo, key);
        let cores = allowed_cores(None);
        let online = listed("/sys/devices/system/cpu/online").unwrap_or_else(|| cores.clone());
        let first = cores.first().copied().unwrap_or(0);
        let [l1d, l2, l3] = [1, 2, 3].map(|level| cache(first, level));
        Self {
            model: text("model name").unwrap_or("unknown processor").to_owned(),
            sockets: sockets(&online),
            online: count(online.len()),
            numa_nodes: listed("/sys/devices/system/node/online")
                .map_or(1, |nodes| count(nodes.len())),
            clock_mhz: max_clock(first).or_else(|| {
                let mhz: f64 = text("cpu MHz")?.parse().ok()?;
                Some(mhz.round() as u32)
            }),
            l1d,
            l2,
            l3,
            memory: Memory::read().unwrap_or_default(),
            cpu_quota: cpu_quota(),
            cores,
        }
    }

    /// Limits that make runs slower than the hardware allows, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(quota) = self.cpu_quota
            && quota < self.cores.len() as f64
        {
            warnings.push(format!(
                "the control group grants {quota} cores' worth of time to {} cores: host has {} \
                 unless a number is given; more are halted now and then",
                self.cores.len(),
                whole_cores(quota)
            ));
        }
        if let Some(limit) = self.memory.limit
            && limit < self.memory.installed
        {
            warnings.push(format!(
                "the control group allows {limit} of the {} bytes of memory",
                self.memory.installed
            ));
        }
        warnings
    }
}

/// The number of cores that can work all the time, where a control group limits it; at
/// least 1.
pub fn granted_cores() -> Option<usize> {
    cpu_quota().map(whole_cores)
}

fn whole_cores(quota: f64) -> usize {
    (quota as usize).max(1)
}

/// The logical cores that a thread may use (`None`: the calling one), in
/// ascending order; never empty.
pub fn allowed_cores(thread: Option<Pid>) -> Vec<usize> {
    let cores: Vec<usize> = match sched_getaffinity(thread) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect(),
        Err(_) => Vec::new(),
    };
    if cores.is_empty() {
        // More processors than a plain mask can name.
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        return (0..count).collect();
    }
    cores
}

/// A file of the kernel, which does not tell its length: it is read at once.
fn read(path: &str) -> Option<String> {
    let mut text = String::with_capacity(4096);
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}

fn listed(path: &str) -> Option<Vec<usize>> {
    topology::list(&read(path)?)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn cpu(core: usize, file: &str) -> Option<String> {
    read(&format!("/sys/devices/system/cpu/cpu{core}/{file}"))
}

fn sockets(online: &[usize]) -> u32 {
    let mut packages: Vec<String> = online
        .iter()
        .filter_map(|core| cpu(*core, "topology/physical_package_id"))
        .collect();
    packages.sort_unstable();
    packages.dedup();
    count(packages.len()).max(1)
}

fn max_clock(core: usize) -> Option<u32> {
    let khz: u32 = cpu(core, "cpufreq/cpuinfo_max_freq")?.trim().parse().ok()?;
    Some(khz / 1000)
}

fn cache(core: usize, level: u32) -> Option<Cache> {
    (0..8).find_map(|index| {
        let file = |name: &str| cpu(core, &format!("cache/index{index}/{name}"));
        if file("level")?.trim() != level.to_string() {
            return None;
        }
        topology::cache(&file("type")?, &file("size")?, &file("shared_cpu_list")?)
    })
}

/// The least value that `limit` finds in the control groups around the process.
fn cgroup_least<T: PartialOrd>(controller: &str, limit: impl Fn(&str) -> Option<T>) -> Option<T> {
    topology::cgroup_directories(&read("/proc/self/cgroup")?, controller)
        .iter()
        .filter_map(|directory| limit(&format!("/sys/fs/cgroup/{directory}")))
        .reduce(|least, other| if other < least { other } else { least })
}

fn cpu_quota() -> Option<f64> {
    cgroup_least("cpu", |directory| {
        let file = |name: &str| read(&format!("{directory}/{name}"));
        match file("cpu.max") {
            Some(text) => topology::cpu_max(&text),
            None => topology::cpu_quota(&file("cpu.cfs_quota_us")?, &file("cpu.cfs_period_us")?),
        }
    })
}

/// The host's memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub installed: u64,
    /// What the kernel believes can be had without swapping.
    pub available: u64,
    pub swap_free: u64,
    /// The control group's limit, where there is one.
    pub limit: Option<u64>,
    /// What limits of the process leave, of its address space (`ulimit -v`) and of its data
    /// (`ulimit -d`), where there are some.
    #[serde(default)]
    pub process: Option<u64>,
}

impl Memory {
    /// Reads `/proc/meminfo`, and at the first time the control group; `None` where there is no
    /// such file.
    pub fn read() -> Option<Self> {
        static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
        let mut memory = Self::parse(&read("/proc/meminfo")?)?;
        memory.limit = *LIMIT.get_or_init(|| {
            cgroup_least("memory", |directory| {
                let file = |name: &str| read(&format!("{directory}/{name}"));
                let text = file("memory.max").or_else(|| file("memory.limit_in_bytes"));
                topology::memory_limit(&text?)
            })
        });
        memory.process = left();
        Some(memory)
    }

    /// The figures of `/proc/meminfo`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self {
            installed: topology::meminfo(text, "MemTotal")?,
            available: topology::meminfo(text, "MemAvailable")?,
            swap_free: topology::meminfo(text, "SwapFree").unwrap_or(0),
            limit: None,
            process: None,
        })
    }

    /// The most that the process can ever have.
    pub fn total(&self) -> u64 {
        self.limit
            .map_or(self.installed, |limit| limit.min(self.installed))
    }

    /// The most that a process can have altogether, of which it has already
    /// touched `touched` bytes.
    pub fn obtainable(&self, touched: u64) -> u64 {
        let free = self.available.saturating_add(self.swap_free);
        let process = self.process.map(|left| left.saturating_add(touched));
        let limits = [self.limit, process].into_iter().flatten();
        limits.fold(free.saturating_add(touched), u64::min)
    }

    /// What this process can have beside what it has already touched; 0 where nobody knows.
    pub fn obtainable_now() -> u64 {
        Self::read().unwrap_or_default().obtainable(0)
    }

    /// Bytes of anonymous memory that this process has touched.
    pub fn resident() -> Option<u64> {
        topology::meminfo(&read("/proc/self/status")?, "RssAnon")
    }
}

/// What the limits of this process leave, if it has some.
fn left() -> Option<u64> {
    let limits = [(Resource::As, "VmSize"), (Resource::Data, "VmData")];
    let left = limits.into_iter().filter_map(|(resource, used)| {
        let limit = getrlimit(resource).current?;
        let used = topology::meminfo(&read("/proc/self/status")?, used)?;
        Some(limit.saturating_sub(used))
    });
    left.min()
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes of {} are available",
            self.available, self.installed
        )?;
        if let Some(limit) = self.limit {
            write!(f, ", and the control group allows {limit}")?;
        }
        if let Some(left) = self.process {
            write!(f, ", and limits of the process leave {left}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_described() {
        let host = Host::detect();
        assert!(!host.cores.is_empty());
        assert!(host.online as usize >= host.cores.len());
        assert!(host.memory.available > 0);
        assert!(host.memory.available <= host.memory.installed);
        let text = serde_json::to_string(&host).unwrap();
        assert_eq!(serde_json::from_str::<Host>(&text).unwrap(), host);
    }

    #[test]
    fn limits_are_warned_of() {
        let mut host = Host::detect();
        host.cores = vec![0, 1, 2, 3];
        host.cpu_quota = Some(1.5);
        host.memory.limit = Some(host.memory.installed / 2);
        let warnings = host.warnings();
        assert!(warnings[0].contains("1.5 cores' worth of time to 4 cores"));
        assert!(warnings[0].contains("host has 1 unless"));
        assert_eq!(warnings.len(), 2);
        host.cpu_quota = None;
        host.memory.limit = None;
        assert_eq!(host.warnings(), Vec::<String>::new());
    }

    #[test]
    fn touched_memory_counts_as_resident() {
        let before = Memory::resident().unwrap();
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(Memory::resident().unwrap() > before);
        drop(touched);
    }

    #[test]
    fn the_least_of_what_limits_counts() {
        let text = "MemTotal: 100 kB\nMemAvailable: 60 kB\nSwapFree: 10 kB\n";
        let mut memory = Memory::parse(text).unwrap();
        assert_eq!(memory.total(), 100 << 10);
        assert_eq!(memory.obtainable(0), 70 << 10);
        assert_eq!(memory.obtainable(5 << 10), 75 << 10);
        memory.limit = Some(50 << 10);
        assert_eq!(memory.total(), 50 << 10);
        assert_eq!(memory.obtainable(5 << 10), 50 << 10);
        assert_eq!(
            memory.to_string(),
            "61440 bytes of 102400 are available, and the control group allows 51200"
        );
        memory.process = Some(30 << 10);
        assert_eq!(memory.obtainable(0), 30 << 10);
        assert_eq!(memory.obtainable(5 << 10), 35 << 10);
        assert!(
            memory
                .to_string()
                .ends_with("limits of the process leave 30720")
        );
        assert_eq!(Memory::parse("MemTotal: 1 kB"), None);
    }
}
