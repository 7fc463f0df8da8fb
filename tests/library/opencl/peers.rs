//! Copies between two devices with memory of their own: of one context, of two backends,
//! and where there is a second platform of two contexts in one backend.

use std::time::{Duration, Instant};

use fastrand::Rng;
use pdawl_api::runtime::opencl::{self, Selected, discover};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{
    Backend, BufferId, Command, CommandKind, Completion, DeviceId, Devices, HostMemoryId, Location,
    PeerPath, QueueKind, Rows, Runtime, RuntimeError, Status,
};

use super::harness::select;

/// Many pieces, and an odd length.
const BYTES: u64 = (9 << 20) + 5;

/// A part of the CPU device, as one with memory of its own.
fn part() -> Selected {
    Selected {
        own_memory: true,
        ..select(Some(1))
    }
}

/// These devices, in so many backends.
fn united(all: [Selected; 2], backends: usize) -> Union {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let epoch = Instant::now();
    let open = |devices: &[Selected]| -> Box<dyn Backend> {
        let backend = opencl::open(devices, sender.clone(), epoch);
        backend.expect("the devices open")
    };
    Union::new(
        all.chunks(2 / backends).map(open).collect(),
        receiver,
        epoch,
    )
}

fn completions(runtime: &mut Union, count: usize) -> Vec<Completion> {
    let completion = |_| {
        let completion = runtime.wait(Some(Duration::from_secs(60)));
        completion.expect("no error").expect("a completion")
    };
    (0..count).map(completion).collect()
}

/// A buffer of a device and host memory of the same length, with random contents.
fn pair(runtime: &mut Union, device: usize, rng: &mut Rng) -> (BufferId, HostMemoryId) {
    let host = runtime.alloc_host(BYTES).expect("memory");
    rng.fill(runtime.host_bytes(host).expect("idle"));
    let buffer = runtime.alloc(DeviceId(device), BYTES).expect("a buffer");
    (buffer, host)
}

fn copies_are_right(runtime: &mut Union, rng: &mut Rng) {
    let pairs = [0, 1].map(|device| pair(runtime, device, rng));
    let back = [(); 2].map(|()| runtime.alloc_host(BYTES).expect("memory"));
    let kind = |rng: &mut Rng| match rng.bool() {
        true => QueueKind::Profiled,
        false => QueueKind::Plain,
    };
    let queues = [0, 1].map(|device| {
        let kind = kind(rng);
        runtime.open_queue(DeviceId(device), kind).expect("a queue")
    });
    // Both directions at once, each on a queue of either device, into new buffers.
    let written = [0, 1].map(|device| {
        let (buffer, host) = pairs[device];
        let write = Command::write(host, 0..BYTES, buffer, 0);
        runtime
            .enqueue(queues[device], write, &[])
            .expect("a write")
    });
    for from in [0, 1] {
        let to = 1 - from;
        let target = runtime.alloc(DeviceId(to), BYTES).expect("a buffer");
        let copy = Command::Copy {
            from: Location::device(pairs[from].0, 3),
            to: Location::device(target, 0),
            rows: Rows::one(BYTES - 3),
        };
        let queue = queues[rng.usize(0..2)];
        let copied = runtime
            .enqueue(queue, copy, &[written[from]])
            .expect("a copy");
        let read = Command::read(target, 0, back[from], 0..BYTES - 3);
        runtime
            .enqueue(queues[to], read, &[copied])
            .expect("a read");
        runtime.free(target);
    }
    for done in completions(runtime, 6) {
        assert_eq!(done.status, Status::Done);
        assert!(
            done.queued <= done.submitted && done.submitted <= done.started,
            "{done:?}"
        );
        assert!(
            done.started <= done.ended && done.ended <= runtime.now(),
            "{done:?}"
        );
        if done.kind == CommandKind::Copy {
            assert_eq!(done.bytes, BYTES - 3);
        }
    }
    for device in [0, 1] {
        let given = runtime.host_bytes(pairs[device].1).expect("idle")[3..].to_vec();
        let found = runtime
            .host_range(back[device], 0..BYTES - 3)
            .expect("idle");
        assert!(given == found, "from device {device}");
        runtime.free(pairs[device].0);
        runtime.free_host(pairs[device].1);
        runtime.free_host(back[device]);
        runtime.free_queue(queues[device]);
    }
}

#[test]
fn through_host_memory_between_two_backends() {
    let mut runtime = united([part(); 2], 2);
    let mut rng = Rng::with_seed(1);
    for _ in 0..4 {
        copies_are_right(&mut runtime, &mut rng);
    }
    let direct = PeerPath {
        bandwidth: 1e9,
        through_host: false,
    };
    let set = runtime.set_peer_path(DeviceId(0), DeviceId(1), direct);
    assert!(matches!(set, Err(RuntimeError::Unsupported { .. })));
}

#[test]
fn both_ways_within_one_context() {
    let mut runtime = united([part(); 2], 1);
    let mut rng = Rng::with_seed(2);
    for round in 0..6 {
        for (from, to) in [(0, 1), (1, 0)] {
            let path = PeerPath {
                bandwidth: 1e9,
                through_host: (round + from) % 2 == 0,
            };
            let set = runtime.set_peer_path(DeviceId(from), DeviceId(to), path);
            set.expect("a way");
        }
        copies_are_right(&mut runtime, &mut rng);
    }
}

#[test]
fn through_host_memory_between_two_platforms() {
    let one = part();
    let devices = discover().devices;
    let other = devices.iter().find(|found| found.platform != one.platform);
    let Some(other) = other else {
        println!("there is one platform only");
        return;
    };
    let other = Selected {
        platform: other.platform,
        device: other.device,
        ..part()
    };
    let mut runtime = united([one, other], 1);
    let mut rng = Rng::with_seed(3);
    for _ in 0..4 {
        copies_are_right(&mut runtime, &mut rng);
    }
}
