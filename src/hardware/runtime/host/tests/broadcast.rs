//! Tasks on every worker.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::ThreadId;

use super::super::worker_threads::WorkerThreads;
use super::*;
use crate::runtime::BroadcastTask;

/// A task that notes who did it, and the notes.
fn noted() -> (BroadcastTask, Arc<Mutex<Vec<ThreadId>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::clone(&notes);
    let task = move || inside.lock().unwrap().push(std::thread::current().id());
    (Arc::new(task), notes)
}

/// Who did a task, each once, when `all` are told of it.
fn who(all: impl FnOnce(&BroadcastTask)) -> HashSet<ThreadId> {
    let (task, notes) = noted();
    all(&task);
    let notes = notes.lock().unwrap();
    let unlike: HashSet<ThreadId> = notes.iter().copied().collect();
    assert_eq!(notes.len(), unlike.len(), "some worker did it twice");
    unlike
}

#[test]
fn every_worker_of_every_pool_does_it_once() {
    let (mut backend, _receiver) = open(&[pool(3), pool(2)]);
    let first = who(|task| backend.on_each_worker(task));
    assert_eq!(first.len(), 5);
    assert!(!first.contains(&std::thread::current().id()));
    // Those who have long gone to sleep do it as well, and they are the same.
    std::thread::sleep(100 * SPIN);
    assert_eq!(who(|task| backend.on_each_worker(task)), first);
}

#[test]
fn workers_without_a_core_do_it_as_well() {
    let (sender, _receiver) = unbounded();
    let threads = Arc::new(WorkerThreads::new(&[3], sender, Instant::now()));
    let workers = [0, 1, 2].map(|index| {
        let threads = Arc::clone(&threads);
        std::thread::spawn(move || threads.work(index))
    });
    threads.arrange(&[true, false, false], true);
    assert_eq!(who(|task| threads.on_each_worker(task)).len(), 3);
    threads.close();
    for worker in workers {
        worker.join().unwrap();
    }
}

#[test]
fn commands_in_flight_are_neither_lost_nor_done_twice() {
    let (mut backend, receiver) = open(&[pool(3)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let mut memory = backend.alloc_host(4 * 5000).unwrap();
    let args = [Value::Memory(Memory::Host(memory.id))];
    let counted = codelet(count);
    for _ in 0..20 {
        submit(&mut backend, queue, launch(&counted, 0..5000, &args), &[]);
        assert_eq!(who(|task| backend.on_each_worker(task)).len(), 3);
    }
    for _ in 0..20 {
        assert_eq!(next(&receiver).status, Status::Done);
    }
    let counts: &[u32] = bytemuck::cast_slice(bytes_of(&mut memory));
    assert!(counts[..5000].iter().all(|count| *count == 20));
}

#[test]
fn one_that_panics_takes_no_worker_away() {
    let (mut backend, receiver) = open(&[pool(2)]);
    let task: BroadcastTask = Arc::new(|| panic!("a test's panic"));
    backend.on_each_worker(&task);
    assert_eq!(who(|task| backend.on_each_worker(task)).len(), 2);
    let queue = backend.queue(DeviceId(0)).unwrap();
    submit(
        &mut backend,
        queue,
        launch(&codelet(nothing), 0..9, &[]),
        &[],
    );
    assert_eq!(next(&receiver).status, Status::Done);
}
