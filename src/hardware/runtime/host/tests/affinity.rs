//! Workers and their cores.

use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use super::*;
use crate::runtime::Notice;

#[test]
fn a_core_that_no_machine_has_is_warned_of_and_the_pool_works() {
    let spec = PoolSpec {
        name: "host:1".to_owned(),
        cores: vec![100_000],
    };
    let (mut backend, receiver) = open(&[spec]);
    assert!(backend.warnings()[0].contains("could not be bound to core 100000"));
    let queue = backend.queue(DeviceId(0)).unwrap();
    submit(
        &mut backend,
        queue,
        launch(&codelet(nothing), 0..1, &[]),
        &[],
    );
    assert_eq!(next(&receiver).status, Status::Done);
}

/// Notes in the first argument, by logical core, who computed a unit.
unsafe fn note_core(args: &[HostValue], _first: u64, units: Range<u64>) {
    for _ in units {
        counters(args)[rustix::thread::sched_getcpu()].fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn workers_leave_cores_that_are_taken_away_and_return_with_them() {
    let all = allowed_cores(None);
    assert!(all.len() >= 2, "this test needs two cores to take one away");
    let set = |cores: &[usize]| {
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        sched_setaffinity(None, &set).unwrap();
    };
    let (sender, receiver) = unbounded();
    // This thread stands for the process, so that other tests keep their cores.
    let mut backend = HostBackend::watching(gettid(), &[pool(2)], sender, Instant::now()).unwrap();
    let queue = backend.queue(DeviceId(0)).unwrap();
    let note = codelet(note_core);
    let cores_used = |backend: &mut HostBackend| {
        let mut memory = backend.alloc_host(4 * CpuSet::MAX_CPU as u64).unwrap();
        let args = [Value::Memory(Memory::Host(memory.id))];
        submit(backend, queue, launch(&note, 0..400, &args), &[]);
        assert_eq!(next(&receiver).status, Status::Done);
        let counts: &[u32] = bytemuck::cast_slice(bytes_of(&mut memory));
        assert_eq!(counts.iter().sum::<u32>(), 400);
        (0..counts.len())
            .filter(|core| counts[*core] > 0)
            .collect::<Vec<_>>()
    };
    set(&all[1..2]);
    backend.notify(Notice::PhaseBegins(1));
    assert_eq!(cores_used(&mut backend), all[1..2]);
    set(&all);
    backend.notify(Notice::PhaseBegins(2));
    let used = cores_used(&mut backend);
    assert!(used.iter().all(|core| all[..2].contains(core)));
    // A busy machine may keep one worker from its core for a while.
    let both = (0..50).any(|_| cores_used(&mut backend) == all[..2]);
    assert!(both, "the worker whose core came back does nothing");
}

#[test]
fn whoever_drives_stays_on_the_spare_cores_and_makes_way() {
    let all = allowed_cores(None);
    assert!(all.len() >= 2, "this test needs two cores to spare one");
    let (sender, _receiver) = unbounded();
    let spec = PoolSpec {
        name: "host:1".to_owned(),
        cores: all[..1].to_vec(),
    };
    // Another thread stands for the process, whose cores it says.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (id_sender, id_receiver) = std::sync::mpsc::channel();
    let process = std::thread::spawn(move || {
        id_sender.send(gettid()).unwrap();
        let _ = stopped.recv();
    });
    let watched = id_receiver.recv().unwrap();
    let allow = |cores: &[usize]| {
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        sched_setaffinity(Some(watched), &set).unwrap();
    };
    let backend = HostBackend::watching(watched, &[spec], sender, Instant::now()).unwrap();
    let mut backend = backend.sparing(all[1..2].to_vec());
    backend.notify(Notice::DrivingBegins);
    assert_eq!(allowed_cores(None), all[1..2]);
    // The worker's core is taken away: it moves to the one that was spared.
    allow(&all[1..2]);
    backend.notify(Notice::PhaseBegins(1));
    assert_eq!(allowed_cores(None), all[1..2]);
    allow(&all[..1]);
    backend.notify(Notice::PhaseBegins(2));
    assert_eq!(allowed_cores(None), all[..1]);
    allow(&all);
    backend.notify(Notice::PhaseBegins(3));
    assert_eq!(allowed_cores(None), all[1..2]);
    backend.notify(Notice::DrivingEnds);
    assert_eq!(allowed_cores(None), all);
    drop(stop);
    process.join().unwrap();
}

#[test]
fn whose_mask_is_watched_is_never_bound() {
    let all = allowed_cores(None);
    let (sender, _receiver) = unbounded();
    let backend = HostBackend::watching(gettid(), &[pool(1)], sender, Instant::now()).unwrap();
    let mut backend = backend.sparing(all[1..].to_vec());
    backend.notify(Notice::DrivingBegins);
    assert_eq!(allowed_cores(None), all);
}
