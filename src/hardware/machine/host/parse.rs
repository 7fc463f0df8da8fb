//! Parsers of the kernel's files.

use super::Cache;

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
