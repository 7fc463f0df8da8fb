//! Codelets that divide their work among the workers by themselves.

use super::*;
use crate::codelet::{SharedKernel, for_each_piece};

fn shared(kernel: SharedKernel) -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "shared".into(),
        host: Some(HostCode::Shared(kernel)),
        opencl: None,
        library: None,
    })
}

/// Adds one to each unit's counter, a piece a unit, and the threads to the last counter.
unsafe fn count_shared(args: &[HostValue], _first: u64, units: Range<u64>, threads: usize) {
    let counters = counters(args);
    counters[counters.len() - 1].fetch_add(threads as u32, Ordering::Relaxed);
    let count = (units.end - units.start) as usize;
    for_each_piece(threads, count, |piece| {
        counters[units.start as usize + piece].fetch_add(1, Ordering::Relaxed);
    });
}

unsafe fn panics_in_a_piece(_: &[HostValue], _: u64, units: Range<u64>, threads: usize) {
    for_each_piece(threads, units.end as usize, |piece| {
        assert_ne!(piece, 2, "an unlucky piece");
    });
}

/// Waits until another thread computes a piece, too.
unsafe fn meets(args: &[HostValue], _first: u64, _units: Range<u64>, threads: usize) {
    let counters = counters(args);
    let begun = Instant::now();
    for_each_piece(threads, 2, |_| {
        counters[0].fetch_add(1, Ordering::SeqCst);
        while counters[0].load(Ordering::SeqCst) < 2 {
            assert!(begun.elapsed() < PATIENCE, "nobody comes");
            std::thread::yield_now();
        }
    });
}

#[test]
fn shared_work_is_computed_once_beside_other_work() {
    for workers in [1, 2, 5] {
        let (mut backend, receiver) = open(&[pool(workers)]);
        let mut memories = [(); 2].map(|()| backend.alloc_host(4 * 1001).unwrap());
        let queues = [(); 2].map(|()| backend.queue(DeviceId(0)).unwrap());
        let codelets = [shared(count_shared), codelet(count)];
        for round in 0..20 {
            for (memory, queue) in memories.iter().zip(queues) {
                let args = [Value::Memory(Memory::Host(memory.id))];
                let codelet = &codelets[round % 2];
                submit(&mut backend, queue, launch(codelet, 3..1000, &args), &[]);
            }
        }
        for _ in 0..40 {
            assert_eq!(next(&receiver).status, Status::Done);
        }
        for memory in &mut memories {
            let numbers: Vec<u32> = bytemuck::pod_collect_to_vec(bytes_of(memory));
            assert_eq!(numbers[..3], [0; 3]);
            assert_eq!(numbers[3..1000], [20; 997]);
            assert_eq!(numbers[1000], 10 * workers as u32);
        }
    }
}

#[test]
fn workers_of_a_pool_compute_pieces_of_one_launch() {
    let (mut backend, receiver) = open(&[pool(2)]);
    let memory = backend.alloc_host(4).unwrap();
    let args = [Value::Memory(Memory::Host(memory.id))];
    let queue = backend.queue(DeviceId(0)).unwrap();
    submit(
        &mut backend,
        queue,
        launch(&shared(meets), 0..1, &args),
        &[],
    );
    assert_eq!(next(&receiver).status, Status::Done);
}

#[test]
fn a_panic_in_a_piece_fails_the_launch_alone() {
    let (mut backend, receiver) = open(&[pool(3)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let bad = shared(panics_in_a_piece);
    submit(&mut backend, queue, launch(&bad, 0..9, &[]), &[]);
    let Status::Failed(why) = next(&receiver).status else {
        panic!("it did not fail");
    };
    assert!(why.contains("an unlucky piece"), "{why}");
    let other = backend.queue(DeviceId(0)).unwrap();
    submit(
        &mut backend,
        other,
        launch(&codelet(nothing), 0..9, &[]),
        &[],
    );
    assert_eq!(next(&receiver).status, Status::Done);
}
