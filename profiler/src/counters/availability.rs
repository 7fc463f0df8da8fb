//! The counters that this machine has.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::event::{Event, Kind};
use super::obstacle::{Environment, Obstacle};
use super::reading::Source;

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
    use super::*;

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
