//! The reasons why a counter does not open, as far as the environment tells, and their
//! remedies; and the counters that this machine has.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Event, Kind, Source};

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
enum Obstacle {
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

/// Which events open here, and why others do not.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Availability {
    /// The best that readings will rest on.
    pub source: Source,
    /// `kernel.perf_event_paranoid`, where there is one.
    pub paranoid: Option<i32>,
    /// Feature names of the events that open.
    pub counted: Vec<String>,
    /// The others, by what is in their way.
    pub missing: Vec<Missing>,
}

/// Events that do not open, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Missing {
    /// Their feature names.
    pub names: Vec<String>,
    /// What is in their way.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// Tries every event on the calling thread.
pub fn availability() -> Availability {
    let probes: Vec<(Event, Option<i32>)> = Event::ALL
        .into_iter()
        .map(|event| {
            let errno = event
                .probe()
                .err()
                .map(|e| e.raw_os_error().unwrap_or_default());
            (event, errno)
        })
        .collect();
    found(&probes, &Environment::detect())
}

/// The availability that follows from the errors of events; `None` for events that
/// opened.
fn found(probes: &[(Event, Option<i32>)], around: &Environment) -> Availability {
    let opened = |kind| {
        let open = |(event, errno): &(Event, Option<i32>)| event.kind() == kind && errno.is_none();
        probes.iter().any(open)
    };
    let pmu = opened(Kind::Hardware);
    let source = match (pmu, opened(Kind::Software) || opened(Kind::Scheduler)) {
        (true, _) => Source::Hardware,
        (false, true) => Source::Software,
        (false, false) => Source::None,
    };
    let mut counted = Vec::new();
    let mut missing: BTreeMap<Obstacle, Vec<String>> = BTreeMap::new();
    for (event, errno) in probes {
        let name = event.name().to_owned();
        match errno {
            None => counted.push(name),
            Some(errno) => {
                let obstacle = Obstacle::of(*errno, event.kind(), pmu, around);
                missing.entry(obstacle).or_default().push(name);
            }
        }
    }
    let missing = missing.into_iter().map(|(obstacle, names)| {
        let (why, remedy) = obstacle.words();
        Missing { names, why, remedy }
    });
    Availability {
        source,
        paranoid: around.paranoid,
        counted,
        missing: missing.collect(),
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

    /// The answers of a machine, by the source of counts.
    fn probes(answer: impl Fn(Event) -> Option<i32>) -> Vec<(Event, Option<i32>)> {
        Event::ALL
            .into_iter()
            .map(|event| (event, answer(event)))
            .collect()
    }

    #[test]
    fn a_guest_counts_in_software_and_reports_the_pmu() {
        let guest = Environment {
            paranoid: Some(2),
            virtual_machine: true,
            container: false,
        };
        let hardware = |event: Event| (event.kind() == Kind::Hardware).then_some(2);
        let found = found(&probes(hardware), &guest);
        assert_eq!(found.source, Source::Software);
        assert_eq!(found.counted.len(), 4);
        assert_eq!(found.missing.len(), 1);
        assert_eq!(found.missing[0].names.len(), 8);
        assert!(found.missing[0].why.contains("virtual machine"));
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["source"], "software");
        assert_eq!(json["paranoid"], 2);
    }

    #[test]
    fn a_processor_without_one_event_is_no_machine_without_counters() {
        let bare = Environment::default();
        let all_but_one = |event| (event == Event::LlcReadMisses).then_some(2);
        let found = found(&probes(all_but_one), &bare);
        assert_eq!(found.source, Source::Hardware);
        assert_eq!(found.missing.len(), 1);
        assert_eq!(found.missing[0].names, ["counter.llc_read_misses_count"]);
        assert!(found.missing[0].why.contains("do not include"));
    }

    #[test]
    fn a_user_without_privileges_lacks_what_the_scheduler_does() {
        let bare = Environment {
            paranoid: Some(2),
            ..Environment::default()
        };
        let scheduler = |event: Event| (event.kind() == Kind::Scheduler).then_some(13);
        let found = found(&probes(scheduler), &bare);
        assert_eq!(found.source, Source::Hardware);
        assert_eq!(found.missing.len(), 1);
        assert!(found.missing[0].remedy.contains("perf_event_paranoid=1"));
    }

    #[test]
    fn where_nothing_opens_the_source_is_none() {
        let container = Environment {
            container: true,
            ..Environment::default()
        };
        let found = found(&probes(|_| Some(1)), &container);
        assert_eq!(found.source, Source::None);
        assert_eq!(found.counted, [] as [String; 0]);
        assert_eq!(found.missing.len(), 1);
        assert_eq!(found.missing[0].names.len(), Event::ALL.len());
        assert!(found.missing[0].why.contains("container"));
    }

    #[test]
    fn here_every_event_is_either_counted_or_missing() {
        let here = availability();
        let missing = here.missing.iter().map(|missing| missing.names.len());
        assert_eq!(
            here.counted.len() + missing.sum::<usize>(),
            Event::ALL.len()
        );
    }
}
