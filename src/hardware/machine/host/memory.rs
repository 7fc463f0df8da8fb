//! The host's memory: how much is installed, and how much is available.

use std::fmt;

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use super::{cgroup_least, parse, read};

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
    /// Reads `/proc/meminfo` and the control group; `None` where there is no
    /// such file.
    pub fn read() -> Option<Self> {
        let mut memory = Self::parse(&read("/proc/meminfo")?)?;
        let by_name = |name: &'static str| {
            move |directory: &str| parse::memory_limit(&read(&format!("{directory}/{name}"))?)
        };
        let (two, one) = (by_name("memory.max"), by_name("memory.limit_in_bytes"));
        memory.limit = cgroup_least("memory", |directory| {
            two(directory).or_else(|| one(directory))
        });
        memory.process = left(&read("/proc/self/status")?);
        Some(memory)
    }

    /// The figures of `/proc/meminfo`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self {
            installed: parse::meminfo(text, "MemTotal")?,
            available: parse::meminfo(text, "MemAvailable")?,
            swap_free: parse::meminfo(text, "SwapFree").unwrap_or(0),
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

    /// Bytes of anonymous memory that this process has touched.
    pub fn resident() -> Option<u64> {
        parse::meminfo(&read("/proc/self/status")?, "RssAnon")
    }
}

/// What the limits of this process leave, whose status this is.
fn left(status: &str) -> Option<u64> {
    let limits = [(Resource::As, "VmSize"), (Resource::Data, "VmData")];
    let left = limits.into_iter().filter_map(|(resource, used)| {
        let limit = getrlimit(resource).current?;
        Some(limit.saturating_sub(parse::meminfo(status, used)?))
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
