//! Real counters against work that is known.

use std::fs;
use std::sync::mpsc::channel;
use std::thread;

use super::session::this_thread;
use super::*;

const MIB: usize = 1 << 20;

/// Nanoseconds for which the calling thread has run, by another account.
fn ran() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Bytes of a page.
fn page() -> usize {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("KernelPageSize:"));
    let kib = line.unwrap().split_whitespace().next().unwrap();
    kib.parse::<usize>().unwrap() * 1024
}

/// Touches that many fresh MiB, a mapping at a time, so that no huge page
/// serves several. They are never freed, or later ones would not be fresh.
fn touch(mebibytes: usize) {
    let page = page();
    for _ in 0..mebibytes {
        let fresh = Box::leak(vec![0_u8; MIB].into_boxed_slice());
        for byte in fresh.iter_mut().step_by(page) {
            *byte = 1;
        }
        std::hint::black_box(fresh);
    }
}

/// Computes for so many nanoseconds of the thread's own time.
fn burn(nanoseconds: u64) {
    let until = ran() + nanoseconds;
    let mut x = 1_u64;
    while ran() < until {
        for _ in 0..100_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }
}

/// Whether this test's machine lets the kernel count; else nothing is.
fn countable(event: Event) -> bool {
    event.probe().is_ok()
}

#[test]
fn another_thread_is_counted_while_it_runs_and_only_then() {
    let (sender, receiver) = channel();
    let (go, goes) = channel::<()>();
    let (done, is_done) = channel();
    let worker = thread::spawn(move || {
        sender.send(this_thread().unwrap()).unwrap();
        while goes.recv().is_ok() {
            touch(16);
            burn(20_000_000);
            done.send(()).unwrap();
        }
    });
    let mut counters = Counters::open(&[receiver.recv().unwrap()]);
    // Not counted: it lies before the start.
    go.send(()).unwrap();
    is_done.recv().unwrap();
    counters.start();
    let idle = counters.stop();
    let mut readings = Vec::new();
    for _ in 0..2 {
        counters.start();
        go.send(()).unwrap();
        is_done.recv().unwrap();
        readings.push(counters.stop());
    }
    drop(go);
    worker.join().unwrap();

    if !countable(Event::TaskClock) {
        assert_eq!(readings, [Reading::default(), Reading::default()]);
        return;
    }
    assert_eq!(counters.threads(), 1);
    assert_eq!(counters.notes(), [] as [String; 0]);
    let pages = (16 * MIB / page()) as f64;
    let name = Event::PageFaults.name();
    assert!(idle.values[name] < 100.0, "{idle:?}");
    for reading in readings {
        let clock = reading.values[Event::TaskClock.name()];
        assert!((0.02..10.0).contains(&clock), "{reading:?}");
        let faults = reading.values[name];
        assert!(
            (pages..2.0 * pages).contains(&faults),
            "{pages} {reading:?}"
        );
        let ratio = reading.values[SCALED_RATIO];
        assert!(ratio > 0.0 && ratio <= 1.0, "{reading:?}");
        assert_ne!(reading.source, Source::None);
    }
}

#[test]
fn waiting_switches_contexts_wherever_that_is_counted() {
    let mut counters = Counters::open(&[this_thread().unwrap()]);
    counters.start();
    // Long enough that no timer has run out before the thread gives way.
    for _ in 0..20 {
        thread::sleep(std::time::Duration::from_millis(2));
    }
    let reading = counters.stop();
    let switches = reading.values.get(Event::ContextSwitches.name());
    assert_eq!(switches.is_some(), countable(Event::ContextSwitches));
    assert!(
        switches.is_none_or(|switches| *switches >= 20.0),
        "{reading:?}"
    );
}

#[test]
fn every_event_that_opens_is_in_the_reading_and_no_other() {
    let mut counters = Counters::open(&[this_thread().unwrap()]);
    counters.start();
    burn(1_000_000);
    let reading = counters.stop();
    for event in Event::ALL {
        let counted = reading.values.contains_key(event.name());
        assert_eq!(counted, countable(event), "{event:?} {reading:?}");
    }
    let hardware = Event::ALL
        .into_iter()
        .filter(|event| event.kind() == Kind::Hardware);
    let any = hardware.into_iter().any(countable);
    assert_eq!(reading.source == Source::Hardware, any);
}

#[test]
fn threads_that_cannot_be_watched_are_left_out_and_said() {
    let ended = thread::spawn(|| this_thread().unwrap()).join().unwrap();
    let here = this_thread().unwrap();
    // A thread is joined before the system has quite forgotten it.
    while fs::exists(format!("/proc/self/task/{ended}")).unwrap() {
        thread::yield_now();
    }
    let mut counters = Counters::open(&[ended, here, here, 0, -1]);
    let notes = counters.notes().join("\n");
    assert!(
        notes.contains("threads -1, 0 are not counted: this is no"),
        "{notes}"
    );
    counters.start();
    let reading = counters.stop();
    if countable(Event::TaskClock) {
        let ended = format!("thread {ended} is not counted: there is no such thread");
        assert!(notes.contains(&ended), "{notes}");
        assert_eq!(counters.threads(), 1);
        assert!(reading.values.contains_key(Event::TaskClock.name()));
    }
}

#[test]
fn no_threads_give_no_figures() {
    let mut counters = Counters::open(&[]);
    counters.start();
    assert_eq!(counters.stop(), Reading::default());
    assert_eq!(counters.threads(), 0);
}

#[test]
fn a_thread_that_ends_meanwhile_keeps_its_counts() {
    let (sender, receiver) = channel();
    let (go, goes) = channel::<()>();
    let worker = thread::spawn(move || {
        sender.send(this_thread().unwrap()).unwrap();
        goes.recv().unwrap();
        touch(8);
    });
    let mut counters = Counters::open(&[receiver.recv().unwrap()]);
    counters.start();
    go.send(()).unwrap();
    worker.join().unwrap();
    let reading = counters.stop();
    if countable(Event::PageFaults) {
        let pages = (8 * MIB / page()) as f64;
        let faults = reading.values[Event::PageFaults.name()];
        assert!(faults >= pages, "{faults} of {pages}");
    }
}

#[test]
fn names_say_group_and_unit_and_are_unlike() {
    let mut names: Vec<&str> = Event::ALL.iter().map(|event| event.name()).collect();
    for name in &names {
        assert!(name.starts_with("counter."), "{name}");
        let seconds = *name == "counter.task_clock_seconds";
        assert!(seconds || name.ends_with("_count"), "{name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Event::ALL.len());
}

fn tick(count: u64, enabled: u64, running: u64) -> Option<Tick> {
    Some(Tick {
        count,
        enabled,
        running,
    })
}

#[test]
fn counts_of_threads_are_added_and_the_clock_is_in_seconds() {
    let reading = reading([
        (Event::PageFaults, tick(3, 100, 100)),
        (Event::PageFaults, tick(4, 50, 50)),
        (Event::TaskClock, tick(1_500_000_000, 100, 100)),
    ]);
    assert_eq!(reading.source, Source::Software);
    assert_eq!(reading.values["counter.page_faults_count"], 7.0);
    assert_eq!(reading.values["counter.task_clock_seconds"], 1.5);
    assert_eq!(reading.values[SCALED_RATIO], 1.0);
}

#[test]
fn a_counter_that_ran_half_of_the_time_counts_twice() {
    let reading = reading([
        (Event::Cycles, tick(1000, 100, 50)),
        (Event::Cycles, tick(10, 20, 20)),
        (Event::Instructions, tick(600, 120, 100)),
    ]);
    assert_eq!(reading.source, Source::Hardware);
    assert_eq!(reading.values["counter.cycles_count"], 2010.0);
    assert_eq!(reading.values["counter.instructions_count"], 720.0);
    assert_eq!(reading.values[SCALED_RATIO], 70.0 / 120.0);
}

/// Two threads, whose events took turns with others for different parts of
/// the time: what was counted stays in proportion.
#[test]
fn threads_are_scaled_each_by_their_own_times() {
    let reading = reading([
        (Event::Cycles, tick(300, 100, 25)),
        (Event::Instructions, tick(600, 100, 25)),
        (Event::Cycles, tick(1000, 200, 100)),
        (Event::Instructions, tick(2000, 200, 100)),
    ]);
    assert_eq!(reading.values["counter.cycles_count"], 3200.0);
    assert_eq!(reading.values["counter.instructions_count"], 6400.0);
    assert_eq!(reading.values[SCALED_RATIO], 125.0 / 300.0);
}

#[test]
fn a_thread_for_which_no_counter_was_free_is_filled_in_by_the_others() {
    let reading = reading([
        (Event::Branches, tick(90, 90, 90)),
        (Event::Branches, tick(0, 10, 0)),
    ]);
    assert_eq!(reading.values["counter.branches_count"], 100.0);
    assert_eq!(reading.values[SCALED_RATIO], 0.9);
}

#[test]
fn what_was_never_counted_is_absent_and_does_not_pass_for_0() {
    let reading = reading([
        (Event::Cycles, tick(0, 100, 0)),
        (Event::PageFaults, tick(1, 1, 1)),
    ]);
    assert!(!reading.values.contains_key("counter.cycles_count"));
    assert_eq!(reading.source, Source::Software);
    assert_eq!(reading.values[SCALED_RATIO], 1.0);
}

#[test]
fn a_thread_that_never_ran_did_nothing() {
    let reading = reading([(Event::Cycles, tick(0, 0, 0))]);
    assert_eq!(reading.values["counter.cycles_count"], 0.0);
    assert_eq!(reading.values[SCALED_RATIO], 1.0);
}

#[test]
fn a_sum_that_lacks_a_thread_is_not_given() {
    let reading = reading([
        (Event::Cycles, tick(5, 1, 1)),
        (Event::Cycles, None),
        (Event::Cycles, tick(5, 1, 1)),
    ]);
    assert_eq!(reading, Reading::default());
}

#[test]
fn only_what_was_added_since_the_start_matters() {
    let earlier = Tick {
        count: 10,
        enabled: 20,
        running: 5,
    };
    let later = Tick {
        count: 14,
        enabled: 30,
        running: 10,
    };
    let span = later.since(earlier);
    assert_eq!((span.count, span.enabled, span.running), (4, 10, 5));
    assert_eq!(earlier.since(later), Tick::default());
}
