//! The positions of logical cores in sockets and physical cores, and which cores to
//! take when not all are wanted.
//!
//! Parsers of the kernel's files.

use std::fmt;
use std::str::FromStr;

use super::{Cache, cpu};

/// Where the workers of a pool go when it has fewer than the machine has cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Close together: all hardware threads of a core, then the socket's other
    /// cores, then the next socket.
    Compact,
    /// Far apart: sockets in turn, and second hardware threads last.
    Spread,
}

impl Placement {
    pub const ALL: [Self; 2] = [Self::Compact, Self::Spread];
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compact => "compact",
            Self::Spread => "spread",
        })
    }
}

impl FromStr for Placement {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let named = |placement: &Self| placement.to_string() == text;
        Self::ALL.into_iter().find(named).ok_or(())
    }
}

/// A logical core and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreLocation {
    /// Its number, as the system counts.
    pub core: usize,
    /// The socket's number.
    pub socket: usize,
    /// The least number of the logical cores on the same physical core.
    pub physical: usize,
}

/// The locations of some logical cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    locations: Vec<CoreLocation>,
}

impl Topology {
    pub fn new(locations: Vec<CoreLocation>) -> Self {
        Self { locations }
    }

    /// Reads the kernel's files. A core without any counts as a physical core in
    /// socket 0.
    pub fn detect(cores: &[usize]) -> Self {
        let location = |core: &usize| {
            let number = |text: Option<String>| text?.trim().parse().ok();
            let siblings = cpu(*core, "topology/thread_siblings_list");
            CoreLocation {
                core: *core,
                socket: number(cpu(*core, "topology/physical_package_id")).unwrap_or(0),
                physical: siblings
                    .and_then(|text| list(&text)?.into_iter().min())
                    .unwrap_or(*core),
            }
        };
        Self::new(cores.iter().map(location).collect())
    }

    /// The topology of a described machine: `cores` physical cores, numbered socket by
    /// socket.
    pub fn described(sockets: u32, cores: u32) -> Self {
        let each = cores.div_ceil(sockets.max(1)).max(1) as usize;
        let location = |core| CoreLocation {
            core,
            socket: core / each,
            physical: core,
        };
        Self::new((0..cores as usize).map(location).collect())
    }

    /// Whether placements differ: several sockets, or several hardware threads
    /// on a core.
    pub fn is_uneven(&self) -> bool {
        let first = self.locations.first();
        self.locations.iter().any(|location| {
            first.is_some_and(|f| f.socket != location.socket) || location.core != location.physical
        })
    }

    /// Logical cores.
    pub fn cores(&self) -> usize {
        self.locations.len()
    }

    /// The logical cores' numbers.
    pub fn numbers(&self) -> Vec<usize> {
        self.locations
            .iter()
            .map(|location| location.core)
            .collect()
    }

    /// Takes `count` of `free`, or all of them; `None` takes the first. They
    /// come back with neighbours next to each other.
    pub fn take(&self, count: usize, placement: Option<Placement>, free: &[usize]) -> Vec<usize> {
        let Some(placement) = placement else {
            return free.iter().copied().take(count).collect();
        };
        let mut locations: Vec<CoreLocation> =
            free.iter().map(|core| self.location(*core)).collect();
        locations.sort_by_key(|location| (location.socket, location.physical, location.core));
        let mut taken = match placement {
            Placement::Compact => locations,
            Placement::Spread => spread(&locations),
        };
        taken.truncate(count);
        taken.sort_by_key(|location| (location.socket, location.physical, location.core));
        taken.iter().map(|location| location.core).collect()
    }

    /// The number of sockets of these cores.
    pub fn sockets_of(&self, cores: &[usize]) -> usize {
        let mut sockets: Vec<usize> = cores
            .iter()
            .map(|core| self.location(*core).socket)
            .collect();
        sockets.sort_unstable();
        sockets.dedup();
        sockets.len()
    }

    fn location(&self, core: usize) -> CoreLocation {
        let known = self.locations.iter().find(|location| location.core == core);
        known.copied().unwrap_or(CoreLocation {
            core,
            socket: 0,
            physical: core,
        })
    }
}

/// Sorted locations in the order in which they are farthest apart: by the hardware
/// thread's rank on its core, by the core's rank in its socket, by socket.
fn spread(sorted: &[CoreLocation]) -> Vec<CoreLocation> {
    let rank = |location: &CoreLocation| {
        let before = sorted.iter().take_while(|other| *other != location);
        let mut cores: Vec<usize> = (before.clone())
            .filter(|other| other.socket == location.socket && other.physical != location.physical)
            .map(|other| other.physical)
            .collect();
        cores.dedup();
        let thread = before.filter(|other| other.physical == location.physical);
        (thread.count(), cores.len(), location.socket)
    };
    let mut order = sorted.to_vec();
    order.sort_by_cached_key(rank);
    order
}

/// The figure of a line such as `MemAvailable:   24268624 kB`, in bytes.
pub fn meminfo(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value)
    })?;
    let mut words = value.split_whitespace();
    let kib: u64 = words.next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The first value of a key of `/proc/cpuinfo`.
pub fn cpuinfo<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

/// A list such as `0-3,8,10-11`, as in sysfs and cpusets.
pub fn list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // No machine has more; a broken file should not fill the memory.
        if last < first || last - first > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// A size such as `48K`, `32768K` or `2M`, in bytes.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (digits, text.as_bytes()[text.len() - 1]),
        None => (text, b' '),
    };
    let shift = match unit {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A cache out of its sysfs files `type`, `size` and `shared_cpu_list`; `None`
/// for an instruction cache.
pub fn cache(kind: &str, bytes: &str, shared: &str) -> Option<Cache> {
    if kind.trim() == "Instruction" {
        return None;
    }
    Some(Cache {
        bytes: size(bytes)?,
        cores: u32::try_from(list(shared)?.len()).ok()?,
    })
}

/// The directories, below the control groups' root, that may limit a process
/// by `controller`: its own and those around it, innermost first. `text` is
/// `/proc/self/cgroup`; version 2 has one hierarchy, version 1 one for each
/// controller.
pub fn cgroup_directories(text: &str, controller: &str) -> Vec<String> {
    let mut directories = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let root = if controllers.is_empty() {
            String::new()
        } else if controllers.split(',').any(|name| name == controller) {
            format!("{controller}/")
        } else {
            continue;
        };
        let mut path = path.trim_matches('/');
        loop {
            directories.push(format!("{root}{path}"));
            if path.is_empty() {
                break;
            }
            path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }
    directories
}

/// Version 2's `cpu.max`, `200000 100000` or `max 100000`, in cores.
pub fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cpu_quota(quota, period)
}

/// A quota of processor time a period, in cores; version 1's is -1 where
/// there is no limit.
pub fn cpu_quota(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// A memory limit in bytes; version 2 says `max` where there is none, and
/// version 1 a number beyond all memory.
pub fn memory_limit(text: &str) -> Option<u64> {
    let limit: u64 = text.trim().parse().ok()?;
    (limit < 1 << 60).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of four cores with two hardware threads each, numbered as
    /// Linux does: first threads of both sockets, then second threads.
    fn two_sockets() -> Topology {
        let location = |core: usize| CoreLocation {
            core,
            socket: core % 8 / 4,
            physical: core % 8,
        };
        Topology::new((0..16).map(location).collect())
    }

    #[test]
    fn compact_fills_cores_and_then_sockets() {
        let topology = two_sockets();
        let take = |n| topology.take(n, Some(Placement::Compact), &topology.numbers());
        assert_eq!(take(1), [0]);
        assert_eq!(take(2), [0, 8]);
        assert_eq!(take(3), [0, 8, 1]);
        assert_eq!(take(9), [0, 8, 1, 9, 2, 10, 3, 11, 4]);
        assert_eq!(topology.sockets_of(&take(8)), 1);
        assert_eq!(topology.sockets_of(&take(9)), 2);
    }

    #[test]
    fn spread_uses_every_socket_and_core_before_second_threads() {
        let topology = two_sockets();
        let take = |n| topology.take(n, Some(Placement::Spread), &topology.numbers());
        assert_eq!(take(2), [0, 4]);
        assert_eq!(take(3), [0, 1, 4]);
        assert_eq!(take(8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(take(9), [0, 8, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(take(99).len(), 16);
        for n in 2..=16 {
            assert_eq!(topology.sockets_of(&take(n)), 2);
        }
    }

    #[test]
    fn only_free_cores_are_taken() {
        let topology = two_sockets();
        let free = [2, 3, 6, 10, 14];
        let take = |n, placement| topology.take(n, placement, &free);
        assert_eq!(take(3, Some(Placement::Compact)), [2, 10, 3]);
        assert_eq!(take(3, Some(Placement::Spread)), [2, 3, 6]);
        assert_eq!(take(3, None), [2, 3, 6]);
        assert_eq!(take(2, None), [2, 3]);
    }

    #[test]
    fn where_all_cores_are_alike_placements_agree() {
        let topology = Topology::described(1, 8);
        assert!(!topology.is_uneven());
        for n in 1..=8 {
            let take = |placement| topology.take(n, Some(placement), &topology.numbers());
            assert_eq!(take(Placement::Compact), take(Placement::Spread));
        }
        assert!(two_sockets().is_uneven());
        assert!(Topology::described(2, 8).is_uneven());
        let described = Topology::described(2, 9);
        assert_eq!(described.take(6, None, &described.numbers()).len(), 6);
        assert_eq!(described.sockets_of(&[0, 4]), 1);
        assert_eq!(described.sockets_of(&[0, 5]), 2);
    }

    #[test]
    fn this_machine_has_its_cores() {
        let cores = super::super::allowed_cores(None);
        let topology = Topology::detect(&cores);
        assert_eq!(topology.cores(), cores.len());
        let mut taken = topology.take(cores.len(), Some(Placement::Spread), &cores);
        taken.sort_unstable();
        assert_eq!(taken, cores);
    }

    #[test]
    fn placements_have_names() {
        for placement in Placement::ALL {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert_eq!("wide".parse::<Placement>(), Err(()));
    }

    #[test]
    fn meminfo_is_in_bytes() {
        let text = "MemTotal:       24684092 kB\nMemFree:  1 kB\nMemAvailable:   24268624 kB\n";
        assert_eq!(meminfo(text, "MemTotal"), Some(24_684_092 * 1024));
        assert_eq!(meminfo(text, "MemAvailable"), Some(24_268_624 * 1024));
        assert_eq!(meminfo(text, "SwapFree"), None);
        assert_eq!(meminfo("MemTotal: much kB", "MemTotal"), None);
    }

    #[test]
    fn cpuinfo_names_the_model() {
        let text = "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.124\n";
        assert_eq!(cpuinfo(text, "model name"), Some("AMD EPYC"));
        assert_eq!(cpuinfo(text, "cpu MHz"), Some("2596.124"));
        assert_eq!(cpuinfo(text, "siblings"), None);
    }

    #[test]
    fn lists_have_ranges() {
        assert_eq!(list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("\n"), Some(vec![]));
        assert_eq!(list("3-1"), None);
        assert_eq!(list("0-99999999999"), None);
        assert_eq!(list("a"), None);
    }

    #[test]
    fn caches_have_sizes_and_sharers() {
        let l3 = cache("Unified\n", "32768K\n", "0-1\n");
        assert_eq!(
            l3,
            Some(Cache {
                bytes: 32 << 20,
                cores: 2
            })
        );
        assert_eq!(cache("Instruction\n", "32K\n", "0\n"), None);
        assert_eq!(size("2M"), Some(2 << 20));
        assert_eq!(size("512"), Some(512));
        assert_eq!(size(""), None);
        assert_eq!(size("99999999999G"), None);
    }

    #[test]
    fn limits_of_both_versions_are_found() {
        let two = "0::/user.slice/run.scope\n";
        assert_eq!(
            cgroup_directories(two, "memory"),
            ["user.slice/run.scope", "user.slice", ""]
        );
        let one = "4:memory:/jobs/7\n2:cpu,cpuacct:/\n0::/\n";
        assert_eq!(
            cgroup_directories(one, "memory"),
            ["memory/jobs/7", "memory/jobs", "memory/", ""]
        );
        assert_eq!(cgroup_directories(one, "cpu"), ["cpu/", ""]);
    }

    #[test]
    fn quotas_are_in_cores_and_absent_without_limit() {
        assert_eq!(cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(cpu_max("max 100000\n"), None);
        assert_eq!(cpu_quota("-1\n", "100000\n"), None);
        assert_eq!(cpu_quota("50000\n", "100000\n"), Some(0.5));
        assert_eq!(memory_limit("max\n"), None);
        assert_eq!(memory_limit("9223372036854771712\n"), None);
        assert_eq!(memory_limit("2147483648\n"), Some(2 << 30));
    }
}
