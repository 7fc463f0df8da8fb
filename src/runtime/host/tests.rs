//! The backend as the union drives it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use proptest::prelude::*;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use super::*;
use crate::codelet::{Codelet, Cost, HostKernel, HostValue, Memory, Value};
use crate::machine::host::allowed_cores;
use crate::runtime::{
    Backend, Command, Completion, DeviceId, DeviceSpan, EventId, HostRegion, HostSpan, Launch,
    QueueId, RuntimeError, Status, Tag,
};
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Ring};

const PATIENCE: Duration = Duration::from_secs(20);

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
        name: "test",
        host: Some(kernel),
        opencl: None,
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
    let tag = Tag {
        step: 0,
        label: "test",
        units: 0..0,
    };
    backend.submit(queue, command, wait, tag, event).unwrap();
    event
}

fn next(receiver: &Receiver<Completion>) -> Completion {
    receiver.recv_timeout(PATIENCE).unwrap()
}

fn bytes_of(region: &HostRegion) -> &mut [u8] {
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
        let memory = backend.alloc_host(4 * 1000).unwrap();
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
        let counted: &[u32] = bytemuck::cast_slice(bytes_of(&memory));
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
        panic!("the panic was not told");
    };
    assert!(why.contains("unit 5 is unlucky"), "{why}");
    let passed_on = Status::Failed("a command it waited for failed".to_owned());
    assert_eq!(status(behind), passed_on);
    assert_eq!(status(waiting), passed_on);
    assert_eq!(status(beside), Status::Done);
    // A failure that has long been told still counts.
    submit(&mut backend, third, launch(&nothing, 0..9, &[]), &[waiting]);
    assert_eq!(next(&receiver).status, passed_on);
}

#[test]
fn data_goes_to_the_pools_memory_and_back() {
    let (mut backend, receiver) = open(&[pool(2)]);
    let size = 3 * (1 << 20) + 17;
    let host = backend.alloc_host(size).unwrap();
    for (i, byte) in bytes_of(&host).iter_mut().enumerate() {
        *byte = (i * 31 >> 7) as u8;
    }
    let expected = bytes_of(&host).to_vec();
    let buffer = backend.alloc(DeviceId(0), size).unwrap();
    let queue = backend.queue(DeviceId(0)).unwrap();
    let span = |offset, bytes| HostSpan {
        memory: host.id,
        offset,
        bytes,
    };
    let own = |offset| DeviceSpan { buffer, offset };
    let write = Command::Write {
        from: span(0, size),
        to: own(0),
    };
    submit(&mut backend, queue, write, &[]);
    let completion = next(&receiver);
    assert_eq!(completion.bytes, size);
    bytes_of(&host).fill(0);
    let read = Command::Read {
        from: own(5),
        to: span(5, size - 5),
    };
    submit(&mut backend, queue, read, &[]);
    assert_eq!(next(&receiver).status, Status::Done);
    assert_eq!(bytes_of(&host)[5..], expected[5..]);
    assert_eq!(bytes_of(&host)[..5], [0; 5]);
}

#[test]
fn what_can_be_told_at_once_is_refused() {
    let (mut backend, _receiver) = open(&[pool(1)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let host = backend.alloc_host(100).unwrap();
    let buffer = backend.alloc(DeviceId(0), 100).unwrap();
    let mut refused = |queue, command| {
        let tag = Tag {
            step: 0,
            label: "test",
            units: 0..0,
        };
        let event = EventId::fresh();
        backend
            .submit(queue, command, &[], tag, event)
            .unwrap_err()
            .to_string()
    };
    let write = |offset, bytes| Command::Write {
        from: HostSpan {
            memory: host.id,
            offset,
            bytes,
        },
        to: DeviceSpan { buffer, offset: 0 },
    };
    assert!(refused(queue, write(50, 51)).contains("51 bytes from byte 50 on"));
    assert!(refused(queue, write(u64::MAX, 2)).contains("do not lie within"));
    assert!(refused(QueueId::fresh(), write(0, 1)).contains("no queue"));
    let mut foreign = Codelet::clone(&codelet(nothing));
    foreign.host = None;
    let foreign = launch(&Arc::new(foreign), 0..1, &[]);
    assert!(refused(queue, foreign).contains("no implementation"));
    assert!(matches!(
        backend.alloc(DeviceId(1), 1),
        Err(RuntimeError::Unknown { what: "device" })
    ));
}

#[test]
fn freed_memory_lives_until_its_commands_have_ended() {
    let (mut backend, receiver) = open(&[pool(1)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let memory = backend.alloc_host(4 << 20).unwrap();
    let id = memory.id;
    let keeper = Arc::downgrade(&memory.keeper);
    drop(memory);
    let args = [Value::Memory(Memory::Host(id))];
    let count = codelet(count);
    for _ in 0..20 {
        submit(&mut backend, queue, launch(&count, 0..1 << 20, &args), &[]);
    }
    backend.forget_host(id);
    for _ in 0..20 {
        assert_eq!(next(&receiver).status, Status::Done);
    }
    drop(backend);
    assert_eq!(keeper.strong_count(), 0);
}

static SLOW_TILES: AtomicU64 = AtomicU64::new(0);

unsafe fn slow(_args: &[HostValue], _first: u64, _units: Range<u64>) {
    SLOW_TILES.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(5));
}

#[test]
fn dropping_ends_promptly_with_commands_pending() {
    let (mut backend, _receiver) = open(&[pool(2)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let slow = codelet(slow);
    for _ in 0..1000 {
        submit(&mut backend, queue, launch(&slow, 0..100, &[]), &[]);
    }
    while SLOW_TILES.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    let begin = Instant::now();
    drop(backend);
    assert!(begin.elapsed() < Duration::from_secs(2));
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
        let memory = backend.alloc_host(4 * CpuSet::MAX_CPU as u64).unwrap();
        let args = [Value::Memory(Memory::Host(memory.id))];
        submit(backend, queue, launch(&note, 0..400, &args), &[]);
        assert_eq!(next(&receiver).status, Status::Done);
        let counts: &[u32] = bytemuck::cast_slice(bytes_of(&memory));
        assert_eq!(counts.iter().sum::<u32>(), 400);
        (0..counts.len())
            .filter(|core| counts[*core] > 0)
            .collect::<Vec<_>>()
    };
    set(&all[1..2]);
    backend.mark_step(1);
    assert_eq!(cores_used(&mut backend), all[1..2]);
    set(&all);
    backend.mark_step(2);
    let used = cores_used(&mut backend);
    assert!(used.iter().all(|core| all[..2].contains(core)));
    // A busy machine may keep one worker from its core for a while.
    let both = (0..50).any(|_| cores_used(&mut backend) == all[..2]);
    assert!(both, "the worker whose core came back does nothing");
}

/// One step of a stencil by a scalar loop, as `codelet::stencil` defines it.
fn scalar_step(stencil: &Stencil, from: &[f64]) -> Vec<f64> {
    let (nx, ny, nz) = stencil.shape();
    let (nx, ny, planes) = (nx as usize, ny as usize, nz.unwrap_or(1) as usize);
    let mut to = from.to_vec();
    let plane = nx * ny;
    let inner = |i: usize, n: usize| i > 0 && i + 1 < n;
    for z in 0..planes {
        for y in 0..ny {
            for x in 0..nx {
                let i = z * plane + y * nx + x;
                if !inner(x, nx) || !inner(y, ny) || (nz.is_some() && !inner(z, planes)) {
                    continue;
                }
                let flat = (from[i - nx] + from[i + nx]) + (from[i - 1] + from[i + 1]);
                to[i] = match nz {
                    None => (flat + from[i]) * (1.0 / 5.0),
                    Some(_) => {
                        (flat + ((from[i - plane] + from[i + plane]) + from[i])) * (1.0 / 7.0)
                    }
                };
            }
        }
    }
    to
}

fn stencil_matches(stencil: &Stencil, workers: usize, chunks: u64, steps: usize) {
    let (mut backend, receiver) = open(&[pool(workers)]);
    let bytes = stencil.units() * stencil.unit_bytes();
    let grids = [(); 2].map(|()| backend.alloc_host(bytes).unwrap());
    stencil.initial(0..stencil.units(), bytes_of(&grids[0]));
    let mut expected: Vec<f64> = bytemuck::cast_slice(bytes_of(&grids[0])).to_vec();
    let queues = [(); 2].map(|()| backend.queue(DeviceId(0)).unwrap());
    let ring = |grid: &HostRegion| Ring {
        memory: Memory::Host(grid.id),
        slots: stencil.units(),
        unit: 0,
        slot: 0,
    };
    let mut before: Vec<EventId> = Vec::new();
    for step in 0..steps {
        let (from, to) = (ring(&grids[step % 2]), ring(&grids[(step + 1) % 2]));
        let chunk = stencil.units().div_ceil(chunks);
        let mut events = Vec::new();
        for (n, begin) in (0..stencil.units()).step_by(chunk as usize).enumerate() {
            let units = begin..(begin + chunk).min(stencil.units());
            let command = Command::Launch(Launch {
                codelet: stencil.codelet(),
                units: units.clone(),
                args: stencil.args(units.clone(), &from, &to),
                cost: stencil.cost(units.end - units.start),
            });
            events.push(submit(&mut backend, queues[n % 2], command, &before));
        }
        before = events;
        expected = scalar_step(stencil, &expected);
    }
    for _ in 0..steps * stencil.units().div_ceil(stencil.units().div_ceil(chunks)) as usize {
        assert_eq!(next(&receiver).status, Status::Done);
    }
    let result: &[f64] = bytemuck::cast_slice(bytes_of(&grids[steps % 2]));
    let same = result
        .iter()
        .zip(&expected)
        .all(|(a, b)| a.to_bits() == b.to_bits());
    assert!(same, "{:?} on {workers} workers", stencil.shape());
}

fn stencil(nx: u64, ny: u64, nz: Option<u64>) -> Stencil {
    let precision = crate::codelet::stencil::Precision::F64;
    Stencil::new(nx, ny, nz, precision, 7).unwrap()
}

#[test]
fn stencils_agree_bit_for_bit_with_a_scalar_loop() {
    for (nx, ny, nz) in [
        (3, 3, None),
        (17, 4099, None),
        (4099, 17, None),
        (3, 3, Some(3)),
        (31, 37, Some(41)),
    ] {
        for workers in [1, 2, 3] {
            stencil_matches(&stencil(nx, ny, nz), workers, 3, 4);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn stencils_agree_however_they_are_cut(
        nx in 3u64..200, ny in 3u64..200, nz in proptest::option::of(3u64..12),
        workers in 1usize..4, chunks in 1u64..9, steps in 1usize..4,
    ) {
        stencil_matches(&stencil(nx, ny, nz), workers, chunks, steps);
    }
}
