//! Transfers, and memory that is released or not there.

use super::*;
use crate::runtime::{Location, Rows, RuntimeError};

#[test]
fn data_goes_to_the_pools_memory_and_back() {
    let (mut backend, receiver) = open(&[pool(2)]);
    let size = 3 * (1 << 20) + 17;
    let mut host = backend.alloc_host(size).unwrap();
    for (i, byte) in bytes_of(&mut host).iter_mut().enumerate() {
        *byte = ((i * 31) >> 7) as u8;
    }
    let expected = bytes_of(&mut host).to_vec();
    let buffer = backend.alloc(DeviceId(0), size).unwrap();
    let queue = backend.queue(DeviceId(0)).unwrap();
    let memory = host.id;
    let write = Command::write(memory, 0..size, buffer, 0);
    submit(&mut backend, queue, write, &[]);
    let completion = next(&receiver);
    assert_eq!(completion.bytes, size);
    bytes_of(&mut host).fill(0);
    let read = Command::read(buffer, 5, memory, 5..size);
    submit(&mut backend, queue, read, &[]);
    assert_eq!(next(&receiver).status, Status::Done);
    assert_eq!(bytes_of(&mut host)[5..], expected[5..]);
    assert_eq!(bytes_of(&mut host)[..5], [0; 5]);
}

#[test]
fn what_is_known_at_once_is_refused() {
    let (mut backend, _receiver) = open(&[pool(1)]);
    let queue = backend.queue(DeviceId(0)).unwrap();
    let host = backend.alloc_host(100).unwrap();
    let buffer = backend.alloc(DeviceId(0), 100).unwrap();
    let mut refused = |queue, command| {
        backend
            .submit(queue, command, &[], None)
            .unwrap_err()
            .to_string()
    };
    let write = |offset, bytes| Command::Copy {
        from: Location::host(host.id, offset),
        to: Location::device(buffer, 0),
        rows: Rows::one(bytes),
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
