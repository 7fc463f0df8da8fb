//! Commands: their order over queues and events, and failures.

use std::sync::Arc;

use pdawl_api::codelet::{Codelet, Memory, Value};
use pdawl_api::runtime::{CommandKind, EventId, QueueId, RuntimeError, Status};

use super::harness::{Bench, codelet, contents, launch, read, write};
use crate::own_process::in_own_process;

const ADD: &str = "__kernel void add(__global uint *a, uint n) { a[get_global_id(0)] += n; }";

/// Runs long enough for a second launch to be enqueued meanwhile.
const SLOW: &str = "__kernel void slow(__global uint *a, uint n)
{
    uint s = a[get_global_id(0)];
    for (uint i = 0; i < n; i++)
        s = s * 1664525u + 1013904223u;
    a[get_global_id(0)] = s;
}";

fn slow(mut s: u32, n: u32) -> u32 {
    for _ in 0..n {
        s = s.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    s
}

fn on(buffer: pdawl_api::codelet::BufferId, n: u32) -> Vec<Value> {
    vec![Value::Memory(Memory::Device(buffer)), Value::U32(n)]
}

#[test]
fn a_chain_over_two_queues_keeps_its_order() {
    let mut bench = Bench::cpu();
    let add = codelet(ADD, "add");
    let slow_kernel = codelet(SLOW, "slow");
    let (first, second) = (bench.queue(), bench.queue());
    let input = bench.host(&[1u32; 100]);
    let output = bench.host(&[0u32; 100]);
    let buffer = bench.buffer(400);
    let rounds = 3_000_000;
    let written = bench.submit(first, write(&input, buffer), &[]);
    let slowed = bench.submit(
        second,
        launch(&slow_kernel, 100, on(buffer, rounds)),
        &[written],
    );
    let added = bench.submit(first, launch(&add, 100, on(buffer, 5)), &[slowed]);
    let back = bench.submit(second, read(buffer, &output), &[added]);
    let last = bench.done(back);
    assert_eq!(last.kind, CommandKind::Read);
    assert_eq!((last.bytes, last.queue), (400, second));
    assert_eq!(
        contents::<u32>(&output),
        [slow(1, rounds).wrapping_add(5); 100]
    );

    let order: Vec<_> = [written, slowed, added, back]
        .map(|event| bench.done(event))
        .into();
    // Both queues have the device's clock, whose offset from the host's is
    // corrected between commands: a millisecond is allowed for that.
    assert!(
        order
            .windows(2)
            .all(|w| w[0].ended <= w[1].started + 1_000_000)
    );
    assert!(
        order[1].ended - order[1].started > 1_000_000,
        "{:?}",
        order[1]
    );
}

#[test]
fn an_event_can_be_waited_for_long_after_it_ended() {
    let mut bench = Bench::cpu();
    let add = codelet(ADD, "add");
    let (first, second) = (bench.queue(), bench.queue());
    let input = bench.host(&[0u32; 8]);
    let output = bench.host(&[9u32; 8]);
    let buffer = bench.buffer(32);
    let written = bench.submit(first, write(&input, buffer), &[]);
    bench.done(written);
    // The backend forgets the first event while it runs other commands.
    for _ in 0..50 {
        let event = bench.submit(first, launch(&add, 8, on(buffer, 1)), &[written]);
        bench.done(event);
    }
    let back = bench.submit(second, read(buffer, &output), &[written]);
    bench.done(back);
    assert_eq!(contents::<u32>(&output), [50; 8]);
}

/// Submits a launch that must be refused.
fn refused(bench: &mut Bench, queue: QueueId, codelet: &Arc<Codelet>) -> RuntimeError {
    let buffer = bench.buffer(64);
    bench
        .try_submit(queue, launch(codelet, 4, on(buffer, 1)), &[])
        .expect_err("refused")
}

#[test]
fn a_kernel_that_does_not_compile_shows_the_compilers_log() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let broken = codelet(
        "__kernel void broken(__global uint *a, uint n) { a[0] = no_such_name; }",
        "broken",
    );
    let error = refused(&mut bench, queue, &broken);
    let text = error.to_string();
    assert!(matches!(error, RuntimeError::Build { .. }), "{text}");
    assert!(
        text.contains("no_such_name") && text.contains("test.cl"),
        "{text}"
    );
    assert!(text.contains("opencl"), "{text}");

    let misnamed = codelet(ADD, "subtract");
    let text = refused(&mut bench, queue, &misnamed).to_string();
    assert!(text.contains("no kernel named `subtract`"), "{text}");

    let missing = Arc::new(Codelet {
        name: "only-native".into(),
        host: None,
        opencl: None,
        library: None,
    });
    let text = refused(&mut bench, queue, &missing).to_string();
    assert!(text.contains("only-native"), "{text}");

    // The queue can be used after a refusal.
    let buffer = bench.buffer(64);
    let good = bench.submit(queue, launch(&codelet(ADD, "add"), 4, on(buffer, 1)), &[]);
    bench.done(good);
}

#[test]
fn a_wrong_argument_is_named() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let buffer = bench.buffer(64);
    let args = vec![Value::Memory(Memory::Device(buffer)), Value::F64(1.0)];
    let add = codelet(ADD, "add");
    let error = bench.try_submit(queue, launch(&add, 4, args), &[]);
    let text = error.expect_err("an f64 is no uint").to_string();
    assert!(text.contains("argument 1 of `add`"), "{text}");
}

#[test]
fn unknown_ids_are_refused() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let region = bench.host(&[0u8; 16]);
    let buffer = bench.buffer(16);
    let unknown = bench.try_submit(QueueId::fresh(), write(&region, buffer), &[]);
    assert!(matches!(
        unknown,
        Err(RuntimeError::Unknown { what: "queue" })
    ));
    bench.backend.free(buffer);
    let freed = bench.try_submit(queue, write(&region, buffer), &[]);
    assert!(matches!(freed, Err(RuntimeError::Unknown { .. })));
    bench.backend.forget_host(region.id);
    let buffer = bench.buffer(16);
    let forgotten = bench.try_submit(queue, write(&region, buffer), &[]);
    assert!(matches!(forgotten, Err(RuntimeError::Unknown { .. })));
}

#[test]
fn empty_commands_complete() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let region = bench.host::<u8>(&[]);
    let buffer = bench.buffer(16);
    let events = [
        bench.submit(queue, write(&region, buffer), &[]),
        bench.submit(queue, launch(&codelet(ADD, "add"), 0, on(buffer, 1)), &[]),
        bench.submit(queue, read(buffer, &region), &[]),
    ];
    for event in events {
        assert_eq!(bench.done(event).bytes, 0);
    }
}

#[test]
fn ten_thousand_small_commands_leave_nothing_behind() {
    if !in_own_process(
        "opencl::commands::ten_thousand_small_commands_leave_nothing_behind",
        &[],
    ) {
        return;
    }
    let mut bench = Bench::cpu();
    let add = codelet(ADD, "add");
    let queues = [bench.queue(), bench.queue()];
    let input = bench.host(&[0u32; 16]);
    let output = bench.host(&[0u32; 16]);
    let buffer = bench.buffer(64);
    let mut last = bench.submit(queues[0], write(&input, buffer), &[]);
    let mut before = 0;
    for i in 0..20_000 {
        last = bench.submit(queues[i % 2], launch(&add, 16, on(buffer, 1)), &[last]);
        if i % 100 == 0 {
            bench.done(last);
            // The test's own memory must not count.
            bench.seen.clear();
        }
        if i == 10_000 {
            before = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    let back = bench.submit(queues[0], read(buffer, &output), &[last]);
    bench.done(back);
    assert_eq!(contents::<u32>(&output), [20_000; 16]);
    assert!(grown < 1 << 20, "{grown} bytes more after 10000 commands");
}

#[test]
fn a_thousand_queues_leave_nothing_behind() {
    if !in_own_process(
        "opencl::commands::a_thousand_queues_leave_nothing_behind",
        &[],
    ) {
        return;
    }
    let mut bench = Bench::cpu();
    let add = codelet(ADD, "add");
    let input = bench.host(&[0u32; 16]);
    let output = bench.host(&[0u32; 16]);
    let buffer = bench.buffer(64);
    let first = bench.queue();
    let mut last = bench.submit(first, write(&input, buffer), &[]);
    // Queues that exist at the same time may each need a program, which is kept.
    // Create as many here as the cycles below may have at the same time.
    let spare = bench.buffer(64);
    let mut warm = bench.submit(first, write(&input, spare), &[]);
    let queues: Vec<_> = (0..8).map(|_| bench.queue()).collect();
    for queue in &queues {
        warm = bench.submit(*queue, launch(&add, 16, on(spare, 1)), &[warm]);
    }
    bench.done(warm);
    for queue in queues {
        bench.backend.free_queue(queue);
    }
    let mut before = 0;
    for cycle in 0..2000 {
        if cycle == 1000 {
            before = resident_bytes();
        }
        let queue = bench.queue();
        last = bench.submit(queue, launch(&add, 16, on(buffer, 1)), &[last]);
        // The queue is released while it has a command.
        bench.backend.free_queue(queue);
        let refused = bench.try_submit(queue, launch(&add, 16, on(buffer, 1)), &[]);
        assert!(matches!(
            refused,
            Err(RuntimeError::Unknown { what: "queue" })
        ));
        bench.done(last);
        bench.seen.clear();
    }
    let grown = resident_bytes().saturating_sub(before);
    let back = bench.submit(first, read(buffer, &output), &[last]);
    bench.done(back);
    assert_eq!(contents::<u32>(&output), [2000; 16]);
    assert!(grown < 1 << 20, "{grown} bytes more after 1000 queues");
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .expect("resident pages");
    pages * 4096
}

#[test]
fn waiting_for_nothing_known_is_no_wait() {
    let mut bench = Bench::cpu();
    let queue = bench.queue();
    let region = bench.host(&[1u8; 16]);
    let buffer = bench.buffer(16);
    let event = bench.submit(queue, write(&region, buffer), &[EventId::fresh()]);
    assert_eq!(bench.done(event).status, Status::Done);
}
