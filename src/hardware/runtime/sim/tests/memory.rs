//! Capacity, and the life of memory.

use super::*;
use crate::runtime::Rows;

#[test]
fn memory_ends_at_its_capacity_and_comes_back() {
    let mut sim = sim("k40");
    let gpu = DeviceId(1);
    let most = sim.alloc(gpu, 11_999_999_999).expect("it fits");
    sim.alloc(gpu, 1).expect("it fits exactly");
    let message = sim.alloc(gpu, 1).expect_err("full").to_string();
    assert!(message.contains("gpu0"), "{message}");
    assert!(message.contains("0 of its 12000000000 bytes"), "{message}");
    sim.free(most);
    sim.alloc(gpu, 1_000)
        .expect("freed memory can be taken again");
    assert!(matches!(
        sim.alloc_host(16_000_000_001),
        Err(RuntimeError::OutOfMemory { .. })
    ));
    assert!(matches!(
        sim.alloc(DeviceId(0), 8),
        Err(RuntimeError::Call { .. })
    ));
}

#[test]
fn freed_memory_lives_until_its_commands_end() {
    let options = SimOptions {
        data: true,
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine("k40"), options).expect("a simulator");
    let (pair, back) = (
        Pair::new(&mut sim, 1, 4096),
        sim.alloc_host(4096).expect("memory"),
    );
    sim.host_bytes(pair.host).expect("bytes").fill(9);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    for command in [pair.write(), Command::read(pair.buffer, 0, back, 0..4096)] {
        sim.enqueue(queue, command, &[]).expect("submitted");
    }
    sim.free(pair.buffer);
    sim.free_host(pair.host);
    assert!(matches!(
        sim.enqueue(queue, pair.write(), &[]),
        Err(RuntimeError::Unknown { .. })
    ));
    drain(&mut sim);
    assert_eq!(sim.host_bytes(back).expect("bytes"), [9; 4096]);
}

#[test]
fn without_data_nothing_is_allocated() {
    let mut sim = sim("k20-40");
    let memory = sim.alloc_host(200_000_000_000).expect("only a number");
    assert!(matches!(sim.host_bytes(memory), Err(RuntimeError::NoData)));
}

#[test]
fn host_memory_is_page_aligned_poisoned_and_closed_while_commands_fly() {
    let options = SimOptions {
        data: true,
        ..SimOptions::default()
    };
    let mut sim = Sim::new(&machine("k40"), options).expect("a simulator");
    let pair = Pair::new(&mut sim, 1, 4096);
    let bytes = sim.host_bytes(pair.host).expect("bytes");
    assert_eq!(bytes.as_ptr() as usize % 4096, 0);
    assert!(
        bytemuck::cast_slice::<u8, f64>(bytes)
            .iter()
            .all(|x| x.is_nan())
    );
    assert!(
        bytemuck::cast_slice::<u8, f32>(bytes)
            .iter()
            .all(|x| x.is_nan())
    );
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    sim.enqueue(queue, pair.write(), &[]).expect("submitted");
    assert!(matches!(sim.host_bytes(pair.host), Err(RuntimeError::Busy)));
    drain(&mut sim);
    assert!(sim.host_bytes(pair.host).is_ok());
}

#[test]
fn transfers_stay_within_memory() {
    let mut sim = sim("k40");
    let pair = Pair::new(&mut sim, 1, 4096);
    let queue = sim.queue(DeviceId(1)).expect("a queue");
    for (offset, bytes) in [(0, 4097), (4096, 1), (u64::MAX, 2)] {
        let write = Command::Copy {
            from: Location::host(pair.host, offset),
            to: Location::device(pair.buffer, 0),
            rows: Rows::one(bytes),
        };
        let refused = sim.enqueue(queue, write, &[]);
        let message = refused.expect_err("refused").to_string();
        assert!(message.contains("leave memory of 4096 bytes"), "{message}");
    }
}
