//! The reasons why a counter does not open, as far as the environment tells, and their
//! remedies.

use std::path::Path;
use std::{fs, io};

use super::event::Kind;

/// System errors of `perf_event_open(2)`, with the numbers that they have on
/// x86 and Arm.
mod errno {
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EACCES: i32 = 13;
    pub const EBUSY: i32 = 16;
    pub const ENODEV: i32 = 19;
    pub const EINVAL: i32 = 22;
    pub const ENFILE: i32 = 23;
    pub const EMFILE: i32 = 24;
    pub const ENOSYS: i32 = 38;
    pub const EOPNOTSUPP: i32 = 95;
}

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

/// What keeps a counter from opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The guest is not shown the processor's counters.
    GuestWithoutPmu,
    /// The kernel knows no counters of this processor.
    NoPmu,
    /// There are counters, but none for this event.
    NoSuchEvent,
    /// `kernel.perf_event_paranoid` is at `level`, and may be at most `most`.
    Paranoid { level: i32, most: i32 },
    /// The container does not let the call through.
    Container,
    /// Something else forbids it.
    Policy,
    /// The kernel has no perf events at all.
    NoPerfEvents,
    /// Too many open files, of the process or of the system.
    Files,
    /// Someone else has the processor's counters for themselves.
    Busy,
    /// A system error that says no more than its text.
    Other(i32),
}

impl Obstacle {
    /// What the system's error `errno` means for an event of this kind here.
    /// `pmu` tells whether other events of the processor do open.
    pub fn of(errno: i32, kind: Kind, pmu: bool, around: &Environment) -> Self {
        use errno::*;
        match errno {
            ENOENT | ENODEV | EINVAL | EOPNOTSUPP if kind == Kind::Hardware => {
                match (pmu, around.virtual_machine) {
                    (true, _) => Obstacle::NoSuchEvent,
                    (false, true) => Obstacle::GuestWithoutPmu,
                    (false, false) => Obstacle::NoPmu,
                }
            }
            EPERM | EACCES => Self::forbidden(errno, kind, around),
            ENOSYS => Obstacle::NoPerfEvents,
            ENFILE | EMFILE => Obstacle::Files,
            EBUSY => Obstacle::Busy,
            other => Obstacle::Other(other),
        }
    }

    fn forbidden(errno: i32, kind: Kind, around: &Environment) -> Self {
        // A container's filter answers with EPERM before the kernel looks
        // at its own level, which answers with EACCES.
        if errno == errno::EPERM && around.container {
            return Obstacle::Container;
        }
        let most = match kind {
            Kind::Scheduler => 1,
            Kind::Hardware | Kind::Software => 2,
        };
        match around.paranoid {
            Some(level) if level > most => Obstacle::Paranoid { level, most },
            _ if around.container => Obstacle::Container,
            _ => Obstacle::Policy,
        }
    }

    /// A clause that says what is in the way, and a sentence that says what to do.
    pub fn words(self) -> (String, String) {
        let (why, remedy) = match self {
            Obstacle::GuestWithoutPmu => (
                "this virtual machine is not shown the processor's performance monitoring unit \
                 (PMU)",
                "let the hypervisor pass the PMU through (KVM: `-cpu host,pmu=on`; a cloud: a \
                 bare-metal instance)",
            ),
            Obstacle::NoPmu => (
                "the kernel has no driver for this processor's performance monitoring unit (PMU)",
                "use a kernel with a driver for it (`dmesg | grep -i 'performance events'` tells \
                 what it found)",
            ),
            Obstacle::NoSuchEvent => (
                "this processor's counters do not include them",
                "nothing helps on this processor, and the others suffice",
            ),
            Obstacle::Paranoid { level, most } => {
                let remedy = format!(
                    "`sudo sysctl kernel.perf_event_paranoid={most}` (for a container, on its \
                     host), or run with the capability CAP_PERFMON"
                );
                return (format!("kernel.perf_event_paranoid is {level}"), remedy);
            }
            Obstacle::Container => (
                "the container forbids the call perf_event_open",
                "start the container with `--cap-add PERFMON` and, if that is not enough, \
                 `--security-opt seccomp=unconfined`",
            ),
            Obstacle::Policy => (
                "a security policy (seccomp, SELinux, lockdown) forbids the call perf_event_open",
                "allow this program the call perf_event_open, or run it with the capability \
                 CAP_PERFMON",
            ),
            Obstacle::NoPerfEvents => (
                "the kernel has no perf events",
                "use a kernel with CONFIG_PERF_EVENTS, outside of sandboxes that replace the \
                 kernel",
            ),
            Obstacle::Files => (
                "too many files are open",
                "raise the limit, `ulimit -n 4096`",
            ),
            Obstacle::Busy => (
                "another program uses the counters exclusively",
                "end the other profiler",
            ),
            Obstacle::Other(errno) => {
                let remedy = "see what `man 2 perf_event_open` says of this error";
                let why = io::Error::from_raw_os_error(errno).to_string();
                return (why, remedy.into());
            }
        };
        (why.into(), remedy.into())
    }
}

#[cfg(test)]
mod tests {
    use super::errno::*;
    use super::*;

    const KINDS: [Kind; 3] = [Kind::Hardware, Kind::Software, Kind::Scheduler];

    fn around(paranoid: Option<i32>, virtual_machine: bool, container: bool) -> Environment {
        Environment {
            paranoid,
            virtual_machine,
            container,
        }
    }

    /// Every machine that decides anything.
    fn all() -> impl Iterator<Item = Environment> {
        let levels = [None, Some(-1), Some(0), Some(1), Some(2), Some(3), Some(4)];
        levels.into_iter().flat_map(|level| {
            [(false, false), (false, true), (true, false), (true, true)]
                .map(|(guest, container)| around(level, guest, container))
        })
    }

    #[test]
    fn a_missing_event_depends_on_the_processor_and_the_guest_alone() {
        for machine in all() {
            for errno in [ENOENT, ENODEV, EINVAL, EOPNOTSUPP] {
                let of = |pmu| Obstacle::of(errno, Kind::Hardware, pmu, &machine);
                assert_eq!(of(true), Obstacle::NoSuchEvent);
                assert_eq!(
                    of(false),
                    match machine.virtual_machine {
                        true => Obstacle::GuestWithoutPmu,
                        false => Obstacle::NoPmu,
                    }
                );
                for kind in [Kind::Software, Kind::Scheduler] {
                    let software = Obstacle::of(errno, kind, false, &machine);
                    assert_eq!(software, Obstacle::Other(errno));
                }
            }
        }
    }

    #[test]
    fn a_refusal_is_the_containers_the_levels_or_a_policys() {
        for machine in all() {
            for (kind, most) in KINDS.into_iter().zip([2, 2, 1]) {
                let over = machine.paranoid.filter(|level| *level > most);
                let level = over.map(|level| Obstacle::Paranoid { level, most });
                let rest = match machine.container {
                    true => Obstacle::Container,
                    false => Obstacle::Policy,
                };
                let of = |errno| Obstacle::of(errno, kind, false, &machine);
                assert_eq!(of(EACCES), level.unwrap_or(rest), "{machine:?} {kind:?}");
                let filtered = machine.container.then_some(Obstacle::Container);
                let expected = filtered.or(level).unwrap_or(rest);
                assert_eq!(of(EPERM), expected, "{machine:?} {kind:?}");
            }
        }
    }

    #[test]
    fn other_errors_mean_the_same_everywhere() {
        for machine in all() {
            for kind in KINDS {
                let of = |errno| Obstacle::of(errno, kind, true, &machine);
                assert_eq!(of(ENOSYS), Obstacle::NoPerfEvents);
                assert_eq!(of(EMFILE), Obstacle::Files);
                assert_eq!(of(ENFILE), Obstacle::Files);
                assert_eq!(of(EBUSY), Obstacle::Busy);
                assert_eq!(of(7), Obstacle::Other(7));
            }
        }
    }

    #[test]
    fn remedies_are_exact() {
        let paranoid = |kind, level| {
            Obstacle::of(EACCES, kind, false, &around(Some(level), false, false))
                .words()
                .1
        };
        let user = paranoid(Kind::Hardware, 4);
        assert!(user.contains("sudo sysctl kernel.perf_event_paranoid=2"));
        let kernel = paranoid(Kind::Scheduler, 2);
        assert!(kernel.contains("sudo sysctl kernel.perf_event_paranoid=1"));
        assert!(
            Obstacle::GuestWithoutPmu
                .words()
                .1
                .contains("hypervisor pass the PMU")
        );
        assert!(Obstacle::Container.words().1.contains("--cap-add PERFMON"));
        assert!(
            Obstacle::Other(ENOENT)
                .words()
                .0
                .contains("No such file or directory")
        );
    }

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
