//! The backend as the union drives it.

mod affinity;
mod memory;
mod shared;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};

use super::*;
use crate::codelet::{Codelet, Cost, HostCode, HostKernel, HostValue, Memory, Value};
use crate::machine::host::allowed_cores;
use crate::runtime::{
    Backend, Command, Completion, DeviceId, Devices, EventId, HostRegion, Launch, QueueId,
    RuntimeError, Status,
};

const PATIENCE: Duration = Duration::from_secs(300);

/// A pool of this many workers, on as many cores as there are.
fn pool(workers: usize) -> PoolSpec {
    let cores = allowed_cores(None);
    PoolSpec {
        name: format!("host:{workers}"),
        cores: cores.iter().copied().cycle().take(workers).collect(),
    }
}

fn open(pools: &[PoolSpec]) -> (HostBackend, Receiver<Completion>) {
    let (sender, receiver) = unbounded();
    let backend = HostBackend::open(pools, sender, Instant::now()).unwrap();
    (backend, receiver)
}

fn codelet(kernel: HostKernel) -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "test".into(),
        host: Some(HostCode::Kernel(kernel)),
        opencl: None,
        library: None,
    })
}

fn launch(codelet: &Arc<Codelet>, units: Range<u64>, args: &[Value]) -> Command {
    Command::Launch(Launch {
        codelet: Arc::clone(codelet),
        units,
        args: args.to_vec(),
        cost: Cost::default(),
    })
}

fn submit(
    backend: &mut HostBackend,
    queue: QueueId,
    command: Command,
    wait: &[EventId],
) -> EventId {
    let event = EventId::fresh();
    backend.submit(queue, command, wait, Some(event)).unwrap();
    event
}

fn next(receiver: &Receiver<Completion>) -> Completion {
    receiver.recv_timeout(PATIENCE).unwrap()
}

fn bytes_of(region: &mut HostRegion) -> &mut [u8] {
    // SAFETY: called only while no command is in flight, and the slice is
    // dropped before the next one is submitted.
    unsafe { std::slice::from_raw_parts_mut(region.address.as_ptr(), region.bytes as usize) }
}

/// The atomic counters in the first argument.
fn counters(args: &[HostValue]) -> &[AtomicU32] {
    match args[0] {
        // SAFETY: tests pass a live region, page-aligned, of zeroed counters.
        HostValue::Memory { address, bytes } => unsafe {
            std::slice::from_raw_parts(address.cast(), bytes as usize / 4)
        },
        _ => panic!("the first argument is memory"),
    }
}

/// Adds one to each unit's counter.
unsafe fn count(args: &[HostValue], _first: u64, units: Range<u64>) {
    for unit in units {
        counters(args)[unit as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Panics unless counter 0 has the value of argument 1, then adds one.
unsafe fn in_turn(args: &[HostValue], _first: u64, _units: Range<u64>) {
    let HostValue::U32(turn) = args[1] else {
        panic!("the second argument is a number");
    };
    let before = counters(args)[0].fetch_add(1, Ordering::Relaxed);
    assert_eq!(before, turn, "out of turn");
}

unsafe fn nothing(_args: &[HostValue], _first: u64, _units: Range<u64>) {}

unsafe fn panics(_args: &[HostValue], _first: u64, units: Range<u64>) {
    panic!("unit {} is unlucky", units.start);
}

#[test]
fn every_unit_is_computed_once_by_pools_of_any_size() {
    for workers in [1, 2, 3, 7] {
        let (mut backend, receiver) = open(&[pool(workers)]);
        let mut memory = backend.alloc_host(4 * 1000).unwrap();
        let args = [Value::Memory(Memory::Host(memory.id))];
        let queue = backend.queue(DeviceId(0)).unwrap();
        let count = codelet(count);
        for units in [0..1000, 0..0, 3..4, 999..1000] {
            submit(&mut backend, queue, launch(&count, units, &args), &[]);
            let completion = next(&receiver);
            assert_eq!(completion.status, Status::Done);
            assert!(completion.queued <= completion.submitted);
            assert!(completion.submitted <= completion.started);
            assert!(completion.started <= completion.ended);
        }
        let counted: &[u32] = bytemuck::cast_slice(bytes_of(&mut memory));
        for (unit, times) in counted.iter().enumerate() {
            let twice = unit == 3 || unit == 999;
            assert_eq!(*times, 1 + u32::from(twice), "unit {unit}");
        }
    }
}

#[test]
fn thousands_of_tiny_commands_run_in_their_queues_order() {
    for workers in [1, 2, 5] {
        let (mut backend, receiver) = open(&[pool(workers)]);
        let in_turn = codelet(in_turn);
        let lanes: Vec<_> = (0..2)
            .map(|_| {
                let memory = backend.alloc_host(4).unwrap();
                (backend.queue(DeviceId(0)).unwrap(), memory.id)
            })
            .collect();
        let mut submitted = vec![Vec::new(); 2];
        for turn in 0..3000 {
            for (lane, (queue, memory)) in lanes.iter().enumerate() {
                let args = [Value::Memory(Memory::Host(*memory)), Value::U32(turn)];
                let command = launch(&in_turn, 0..1, &args);
                submitted[lane].push(submit(&mut backend, *queue, command, &[]));
            }
        }
        let mut completed = vec![Vec::new(); 2];
        for _ in 0..6000 {
            let completion = next(&receiver);
            assert_eq!(completion.status, Status::Done);
            let lane = usize::from(completion.queue == lanes[1].0);
            completed[lane].push(completion.event);
        }
        assert_eq!(completed, submitted);
        assert!(receiver.is_empty());
    }
}

static RELEASED: AtomicBool = AtomicBool::new(false);

unsafe fn waits_for_release(_args: &[HostValue], _first: u64, _units: Range<u64>) {
    let begin = Instant::now();
    while !RELEASED.load(Ordering::Acquire) {
        assert!(begin.elapsed() < PATIENCE, "nobody ran the other queue");
        std::thread::yield_now();
    }
}

unsafe fn releases(_args: &[HostValue], _first: u64, _units: Range<u64>) {
    RELEASED.store(true, Ordering::Release);
}

#[test]
fn idle_workers_go_on_to_another_queue() {
    let (mut backend, receiver) = open(&[pool(2)]);
    let first = backend.queue(DeviceId(0)).unwrap();
    let second = backend.queue(DeviceId(0)).unwrap();
    submit(
        &mut backend,
        first,
        launch(&codelet(waits_for_release), 0..1, &[]),
        &[],
    );
    submit(
        &mut backend,
        second,
        launch(&codelet(releases), 0..1, &[]),
        &[],
    );
    for _ in 0..2 {
        assert_eq!(next(&receiver).status, Status::Done);
    }
}

#[test]
fn a_released_queue_finishes_what_is_on_it_and_takes_no_more() {
    let (mut backend, receiver) = open(&[pool(1)]);
    let memory = backend.alloc_host(4).unwrap();
    let in_turn = codelet(in_turn);
    let mut turns = 0..3000;
    let args = |turn| [Value::Memory(Memory::Host(memory.id)), Value::U32(turn)];
    for _ in 0..1000 {
        // All on the same memory: each queue's commands after the last one's.
        let queue = backend.queue(DeviceId(0)).unwrap();
        let mut before = Vec::new();
        for turn in turns.by_ref().take(3) {
            let command = launch(&in_turn, 0..1, &args(turn));
            before = vec![submit(&mut backend, queue, command, &before)];
        }
        backend.free_queue(queue);
        let command = launch(&in_turn, 0..1, &args(0));
        let refused = backend.submit(queue, command, &[], None);
        assert!(matches!(
            refused,
            Err(RuntimeError::Unknown { what: "queue" })
        ));
        for _ in 0..3 {
            assert_eq!(next(&receiver).status, Status::Done);
        }
    }
}

#[test]
fn waits_reach_across_queues_and_pools() {
    let (mut backend, receiver) = open(&[pool(1), pool(2)]);
    let memory = backend.alloc_host(4).unwrap();
    let queues = [
        backend.queue(DeviceId(0)).unwrap(),
        backend.queue(DeviceId(1)).unwrap(),
        backend.queue(DeviceId(1)).unwrap(),
    ];
    let in_turn = codelet(in_turn);
    let mut before: Option<EventId> = None;
    for turn in 0..600 {
        let args = [Value::Memory(Memory::Host(memory.id)), Value::U32(turn)];
        let wait: Vec<EventId> = before.into_iter().collect();
        let queue = queues[turn as usize * 7 % 3];
        let command = launch(&in_turn, 0..1, &args);
        before = Some(submit(&mut backend, queue, command, &wait));
    }
    for _ in 0..600 {
        assert_eq!(next(&receiver).status, Status::Done);
    }
}

#[test]
fn a_panic_fails_the_command_and_what_waits_for_it_only() {
    let (mut backend, receiver) = open(&[pool(2)]);
    let [first, second, third] = [(); 3].map(|()| backend.queue(DeviceId(0)).unwrap());
    let (panics, nothing) = (codelet(panics), codelet(nothing));
    let failed = submit(&mut backend, first, launch(&panics, 5..6, &[]), &[]);
    let behind = submit(&mut backend, first, launch(&nothing, 0..9, &[]), &[]);
    let waiting = submit(&mut backend, second, launch(&nothing, 0..9, &[]), &[failed]);
    let beside = submit(&mut backend, third, launch(&nothing, 0..9, &[]), &[]);
    let mut ends = Vec::new();
    for _ in 0..4 {
        let completion = next(&receiver);
        ends.push((completion.event, completion.status));
    }
    let status = |event| {
        let found = ends.iter().find(|(ended, _)| *ended == event);
        found.unwrap().1.clone()
    };
    let Status::Failed(why) = status(failed) else {
        panic!("the panic was not reported");
    };
    assert!(why.contains("unit 5 is unlucky"), "{why}");
    assert_eq!(status(behind), Status::Skipped);
    assert_eq!(status(waiting), Status::Skipped);
    assert_eq!(status(beside), Status::Done);
    // A failure that was reported long ago still counts.
    submit(&mut backend, third, launch(&nothing, 0..9, &[]), &[waiting]);
    assert_eq!(next(&receiver).status, Status::Skipped);
}

static SLOW_TILES: AtomicU64 = AtomicU64::new(0);

unsafe fn slow(_args: &[HostValue], _first: u64, _units: Range<u64>) {
    SLOW_TILES.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(5));
}

#[test]
fn dropping_does_not_wait_for_pending_commands() {
    let (mut backend, _receiver) = open(&[pool(2)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let slow = codelet(slow);
    for _ in 0..1000 {
        submit(&mut backend, queue, launch(&slow, 0..100, &[]), &[]);
    }
    while SLOW_TILES.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    drop(backend);
    let ran = SLOW_TILES.load(Ordering::Relaxed);
    assert!(ran < 1000, "{ran} of 100000 units ran");
}

#[test]
fn a_pool_without_cores_is_refused() {
    let spec = PoolSpec {
        name: "host:0".to_owned(),
        cores: Vec::new(),
    };
    let (sender, _receiver) = unbounded();
    let Err(error) = HostBackend::open(&[spec], sender, Instant::now()) else {
        panic!("opened a pool of nobody");
    };
    assert!(error.to_string().contains("host:0 has no cores"));
}

#[test]
fn a_series_is_refused() {
    let (mut backend, _receiver) = open(&[pool(1)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let refused = backend.submit(queue, Command::Series(Vec::new()), &[], None);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("a series of commands with one completion"),
        "{message}"
    );
}
