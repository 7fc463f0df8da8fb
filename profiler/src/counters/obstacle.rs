//! The reasons why a counter does not open, and their remedies.

use std::io;

use super::environment::Environment;
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

    /// A clause that says what is in the way.
    pub fn why(self) -> String {
        match self {
            Obstacle::GuestWithoutPmu => {
                "this virtual machine is not shown the processor's performance monitoring unit \
                 (PMU)"
                    .into()
            }
            Obstacle::NoPmu => {
                "the kernel has no driver for this processor's performance monitoring unit (PMU)"
                    .into()
            }
            Obstacle::NoSuchEvent => "this processor's counters do not include them".into(),
            Obstacle::Paranoid { level, .. } => format!("kernel.perf_event_paranoid is {level}"),
            Obstacle::Container => "the container forbids the call perf_event_open".into(),
            Obstacle::Policy => {
                "a security policy (seccomp, SELinux, lockdown) forbids the call perf_event_open"
                    .into()
            }
            Obstacle::NoPerfEvents => "the kernel has no perf events".into(),
            Obstacle::Files => "too many files are open".into(),
            Obstacle::Busy => "another program uses the counters exclusively".into(),
            Obstacle::Other(errno) => io::Error::from_raw_os_error(errno).to_string(),
        }
    }

    /// A sentence that says what to do.
    pub fn remedy(self) -> String {
        match self {
            Obstacle::GuestWithoutPmu => {
                "let the hypervisor pass the PMU through (KVM: `-cpu host,pmu=on`; a cloud: a \
                 bare-metal instance)"
                    .into()
            }
            Obstacle::NoPmu => {
                "use a kernel with a driver for it (`dmesg | grep -i 'performance events'` tells \
                 what it found)"
                    .into()
            }
            Obstacle::NoSuchEvent => {
                "nothing helps on this processor, and the others suffice".into()
            }
            Obstacle::Paranoid { most, .. } => format!(
                "`sudo sysctl kernel.perf_event_paranoid={most}` (for a container, on its host), \
                 or run with the capability CAP_PERFMON"
            ),
            Obstacle::Container => {
                "start the container with `--cap-add PERFMON` and, if that is not enough, \
                 `--security-opt seccomp=unconfined`"
                    .into()
            }
            Obstacle::Policy => {
                "allow this program the call perf_event_open, or run it with the capability \
                 CAP_PERFMON"
                    .into()
            }
            Obstacle::NoPerfEvents => {
                "use a kernel with CONFIG_PERF_EVENTS, outside of sandboxes that replace the \
                 kernel"
                    .into()
            }
            Obstacle::Files => "raise the limit, `ulimit -n 4096`".into(),
            Obstacle::Busy => "end the other profiler".into(),
            Obstacle::Other(_) => "see what `man 2 perf_event_open` says of this error".into(),
        }
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
            Obstacle::of(EACCES, kind, false, &around(Some(level), false, false)).remedy()
        };
        let user = paranoid(Kind::Hardware, 4);
        assert!(user.contains("sudo sysctl kernel.perf_event_paranoid=2"));
        let kernel = paranoid(Kind::Scheduler, 2);
        assert!(kernel.contains("sudo sysctl kernel.perf_event_paranoid=1"));
        assert!(
            Obstacle::GuestWithoutPmu
                .remedy()
                .contains("hypervisor pass the PMU")
        );
        assert!(Obstacle::Container.remedy().contains("--cap-add PERFMON"));
        assert!(
            Obstacle::Other(ENOENT)
                .why()
                .contains("No such file or directory")
        );
    }
}
