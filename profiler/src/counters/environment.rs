//! The environment that decides which counters the program may open.

use std::fs;
use std::path::Path;

/// What the machine is, as far as counters care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `kernel.perf_event_paranoid`: from 2 on, users without privileges may
    /// not count what the kernel does; from 3 on, where the distribution adds
    /// such levels, they may count nothing. Absent without perf events.
    pub paranoid: Option<i32>,
    pub virtual_machine: bool,
    pub container: bool,
}

impl Environment {
    /// Looks around.
    pub fn detect() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let there = |paths: &[&str]| paths.iter().any(|path| Path::new(path).exists());
        Self {
            paranoid: text("/proc/sys/kernel/perf_event_paranoid")
                .trim()
                .parse()
                .ok(),
            // Xen's guests, and those of Arm machines with a device tree.
            virtual_machine: there(&["/sys/hypervisor/type", "/proc/device-tree/hypervisor"])
                || flagged_virtual(&text("/proc/cpuinfo")),
            // Docker's mark, Podman's and systemd's.
            container: there(&[
                "/.dockerenv",
                "/run/.containerenv",
                "/run/systemd/container",
            ]) || contained(&text("/proc/self/cgroup")),
        }
    }
}

/// Whether `/proc/cpuinfo` has the flag that hypervisors set for guests (x86).
fn flagged_virtual(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Whether `/proc/self/cgroup` names a container's group, as it does with
/// cgroups of version 1.
fn contained(cgroup: &str) -> bool {
    let marks = ["docker", "kubepods", "containerd", "libpod", "lxc"];
    marks.iter().any(|mark| cgroup.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_known_by_its_processor() {
        assert!(flagged_virtual(
            "model name\t: X\nflags\t\t: fpu hypervisor avx2\n"
        ));
        assert!(!flagged_virtual(
            "flags\t\t: fpu avx2\nmodel name : hypervisor\n"
        ));
        assert!(!flagged_virtual(""));
    }

    #[test]
    fn a_container_is_known_by_its_group() {
        assert!(contained("12:cpu:/docker/0123abcd\n"));
        assert!(contained("3:memory:/kubepods/besteffort/pod1\n"));
        assert!(!contained(
            "0::/user.slice/user-1000.slice/session-2.scope\n"
        ));
    }

    #[test]
    fn this_machine_tells_its_level_where_it_has_perf_events() {
        let here = Environment::detect();
        let there = Path::new("/proc/sys/kernel/perf_event_paranoid").exists();
        assert_eq!(here.paranoid.is_some(), there);
    }
}
