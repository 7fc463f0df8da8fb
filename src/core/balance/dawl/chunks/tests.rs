//! Tests of single decisions of the chunk scheduler: which chunk a device takes, and
//! whether it waits.

use super::*;

#[test]
fn exactly_one_device_is_first_for_any_least_chunks() {
    let mut chunks = ChunkScheduler::new(1000, 2);
    chunks.runners = vec![
        Runner {
            ready: 0.0,
            rate: 1.0,
        },
        Runner {
            ready: 5.0,
            rate: 10.0,
        },
    ];
    // The two least chunks order the devices differently: the second device is faster
    // for the first one's chunk, and the first for the second one's.
    for least in [[10, 1], [1, 10], [1, 1]] {
        chunks.min_chunk = least.to_vec();
        for left in [1, 5, 10, 1000] {
            let first = (0..2).filter(|d| chunks.is_first(*d, left)).count();
            assert_eq!(first, 1, "{least:?}, {left} left");
        }
    }
}

/// A step of `seconds` without streams, of a host and of a device that could stream.
fn unstreamed_intent(host: Expectation, gpu: Expectation, seconds: f64) -> StepIntent {
    let host = Expectation {
        works: true,
        ..host
    };
    let gpu = Expectation {
        works: true,
        streams: true,
        ..gpu
    };
    StepIntent {
        expected: vec![host, gpu],
        unstreamed: Some(seconds),
        moving: false,
        settled: true,
    }
}

/// The chunks that a device takes if it alone uses the pool, while another device
/// computes its held units until `held_until`.
fn chunks_alone(segment: u64, start: Option<f64>, held_until: f64) -> Vec<u64> {
    let mut granularity = [Granularity::new(false, 30), Granularity::new(true, 8)];
    granularity[0].suppose(start);
    let plan = StepPlan {
        held: vec![0, 900],
        pooled: vec![segment, 0],
    };
    let host = Expectation {
        rate: Some(1e6),
        ..Expectation::default()
    };
    let gpu = Expectation {
        held_until: Some(held_until),
        ..Expectation::default()
    };
    let intent = unstreamed_intent(host, gpu, held_until);
    let mut chunks = ChunkScheduler::new(segment + 900, 2);
    chunks.begin(&plan, &granularity, intent);
    let (mut left, mut taken) = ([segment, 0], Vec::new());
    while let Next::Take(units) = chunks.next(
        0,
        &StepState {
            step: 0,
            began: 0,
            now: 0,
            left: &left,
            in_flight: &[taken.iter().sum(), 900],
        },
    ) {
        let units = units.min(left[0]);
        left[0] -= units;
        taken.push(units);
    }
    taken
}

#[test]
fn a_segment_of_one_device_is_one_chunk_if_starting_a_chunk_is_expensive() {
    assert_eq!(chunks_alone(100, Some(8e-6), 1e-4), [100]);
    assert_eq!(chunks_alone(100, None, 1e-4), [50, 34, 16]);
}

#[test]
fn no_small_rest_of_a_segment_is_left() {
    assert_eq!(chunks_alone(62, None, 1e-4), [31, 31]);
    assert_eq!(chunks_alone(31, None, 1e-4), [31]);
}

#[test]
fn a_chunk_that_ends_after_a_later_one_counts_from_its_begin() {
    let chunk = |units, started, ended| ChunkDone {
        step: 0,
        device: 0,
        units,
        held: false,
        issued: started,
        started,
        ended,
    };
    let mut progress = Progress::default();
    progress.completed(&chunk(160, 740_000, 800_000), Some(0));
    progress.completed(&chunk(7040, 0, 900_000), Some(0));
    assert_eq!(progress.rate(), Some(7200.0 / seconds(900_000)));
    assert_eq!(progress.alone_rate(1), progress.rate());
}

/// Whether a device starts to stream units of another device, at `late` times the
/// planned length of the step. It holds 900 units and streams 3 a microsecond. The
/// other device has 400 units left. It computes 4 a microsecond, and `contended` of
/// that while a device streams.
fn helps(contended: Option<f64>, late: f64) -> bool {
    let granularity = [Granularity::new(false, 10), Granularity::new(true, 10)];
    let plan = StepPlan {
        held: vec![0, 900],
        pooled: vec![400, 0],
    };
    let host = Expectation {
        rate: Some(4e6),
        contended,
        ..Expectation::default()
    };
    let gpu = Expectation {
        rate: Some(3e6),
        streamed_kernel: Some(1e-9),
        held_until: Some(1e-4),
        ..Expectation::default()
    };
    let intent = unstreamed_intent(host, gpu, 1e-4);
    let mut chunks = ChunkScheduler::new(1300, 2);
    chunks.begin(&plan, &granularity, intent);
    let state = StepState {
        step: 0,
        began: 0,
        now: (late * 1e5) as Nanos,
        left: &[400, 0],
        in_flight: &[0, 900],
    };
    matches!(chunks.next(1, &state), Next::Take(_))
}

#[test]
fn a_device_does_not_stream_if_that_slows_the_others_as_much() {
    // The other device needs the time of a step for its 400 units.
    assert!(
        !helps(None, 0.2),
        "the other device ends soon after the step"
    );
    assert!(helps(None, 1.2), "the other device is late");
    assert!(helps(Some(0.95), 1.2), "streams gain more than they cost");
    assert!(!helps(Some(0.3), 1.2), "streams cost as much as they gain");
}

/// Chunks of these units without gaps, at one unit a microsecond. Each chunk costs
/// `cost` microseconds more.
fn in_a_row(units: &[u64], cost: u64, unstreamed_since: [Option<Nanos>; 2]) -> Progress {
    let (mut progress, mut now) = (Progress::default(), 0);
    for (i, units) in units.iter().enumerate() {
        let ended = now + 1000 * (units + cost);
        let done = ChunkDone {
            step: 0,
            device: 0,
            units: *units,
            held: false,
            issued: 0,
            started: now,
            ended,
        };
        progress.completed(&done, unstreamed_since[usize::from(i > 0)]);
        now = ended;
    }
    progress
}

#[test]
fn the_cost_of_a_chunk_is_estimated_from_large_and_small_chunks() {
    let unstreamed = [Some(0); 2];
    let micros = |progress: Progress| progress.chunk_cost().map(|cost| (cost * 1e6).round());
    for cost in [0, 10, 77] {
        let of = |units: &[u64]| micros(in_a_row(units, cost, unstreamed));
        assert_eq!(of(&[400, 200, 100]), Some(cost as f64));
        assert_eq!(of(&[4041, 2125, 1016, 531, 239, 131]), Some(cost as f64));
        assert_eq!(of(&[400, 200]), None, "two chunks are too few");
        assert_eq!(of(&[100, 100, 100]), None, "a few equal chunks are too few");
    }
    // Other devices' streams slow every chunk; that is not the cost of a chunk.
    assert_eq!(
        micros(in_a_row(&[400, 200, 100], 10, [None, Some(0)])),
        None
    );
    assert_eq!(
        micros(in_a_row(&[400, 200, 100], 10, [None; 2])),
        Some(10.0)
    );
}

/// A settled step in which cores and a device that streams share a pool. Each
/// chunk costs the cores 8 us, and their steps differ by `jitter`.
fn beside_streams(jitter: f64) -> ChunkScheduler {
    let mut granularity = [Granularity::new(false, 1), Granularity::new(true, 8)];
    granularity[0].suppose(Some(8e-6));
    let plan = StepPlan {
        held: vec![0, 0],
        pooled: vec![1000, 200],
    };
    let host = Expectation {
        rate: Some(1e6),
        jitter,
        ..Expectation::default()
    };
    let gpu = Expectation {
        rate: Some(2e5),
        ..Expectation::default()
    };
    let intent = StepIntent {
        unstreamed: None,
        ..unstreamed_intent(host, gpu, 0.0)
    };
    let mut chunks = ChunkScheduler::new(1200, 2);
    chunks.begin(&plan, &granularity, intent);
    chunks
}

/// The decision for the host at `now`.
fn host_at(chunks: &mut ChunkScheduler, now: Nanos, left: [u64; 2], in_flight: [u64; 2]) -> Next {
    let state = StepState {
        step: 0,
        began: 0,
        now,
        left: &left,
        in_flight: &in_flight,
    };
    chunks.next(0, &state)
}

#[test]
fn a_segment_is_one_chunk_if_a_second_one_costs_more_than_the_noise() {
    let first = |jitter| host_at(&mut beside_streams(jitter), 0, [1000, 200], [0, 0]);
    assert_eq!(first(0.001), Next::Take(1000));
    assert_eq!(first(0.05), Next::Take(900));
}

#[test]
fn busy_cores_do_not_take_units_that_another_device_streams_in_time() {
    let mut chunks = beside_streams(0.001);
    assert_eq!(
        host_at(&mut chunks, 0, [1000, 200], [0, 0]),
        Next::Take(1000)
    );
    // The cores are busy until 1000 us, and the other device needs at least as long.
    for now in [0, 500_000, 900_000] {
        assert_eq!(host_at(&mut chunks, now, [0, 150], [1000, 50]), Next::Wait);
    }
    let late = host_at(&mut chunks, 980_000, [0, 150], [1000, 50]);
    assert!(matches!(late, Next::Take(1..=150)), "{late:?}");
}

#[test]
fn the_rate_of_a_stream_includes_the_gaps_between_its_chunks() {
    // Chunks of 100 units that take 100 us each, every 150 us.
    let rate = |streams: bool, waits: bool| {
        let mut progress = Progress::of_step(0, streams);
        for chunk in 0..4 {
            let issued = chunk * 150_000;
            progress.given(100, issued);
            let done = ChunkDone {
                step: 0,
                device: 0,
                units: 100,
                held: false,
                issued,
                started: issued,
                ended: issued + 100_000,
            };
            progress.completed(&done, None);
            progress.waits = waits;
        }
        (400.0 / progress.rate().unwrap() * 1e6).round()
    };
    assert_eq!(rate(true, false), 550.0);
    assert_eq!(rate(true, true), 400.0, "the balancer made it wait");
    assert_eq!(
        rate(false, false),
        400.0,
        "the starts of a host pool's chunks are measured"
    );
}

#[test]
fn quotas_are_the_floor_of_the_ratio() {
    let mut counts = [0; 3];
    quotas(100, &[2.0, 1.0, 0.0], &mut counts);
    assert_eq!(counts, [66, 33, 0]);
    quotas(100, &[0.0; 3], &mut counts);
    assert_eq!(counts, [0; 3]);
}

fn chunk(units: u64, issued: Nanos) -> ChunkDone {
    ChunkDone {
        step: 0,
        device: 0,
        units,
        held: false,
        issued,
        started: issued,
        ended: issued + 100,
    }
}

#[test]
fn what_a_later_chunk_has_overtaken_is_nearly_done() {
    let mut order = Order::default();
    order.hand(700, 1);
    order.hand(20, 5);
    order.end(&chunk(20, 6));
    assert_eq!(order.overtaken(), 700);
    order.hand(30, 50);
    assert_eq!(order.overtaken(), 700);
    order.end(&chunk(700, 2));
    assert_eq!(order.overtaken(), 0);
    order.end(&chunk(30, 51));
    assert_eq!((order.overtaken(), order.handed()), (0, 750));
}

#[test]
fn chunks_that_end_in_their_order_overtake_nothing() {
    let mut order = Order::default();
    order.hand(10, 1);
    order.hand(10, 3);
    order.end(&chunk(10, 2));
    assert_eq!(order.overtaken(), 0);
    order.end(&chunk(10, 4));
    assert_eq!(order.overtaken(), 0);
    // Nor do those that were handed out at the same time.
    let mut order = Order::default();
    order.hand(10, 1);
    order.hand(10, 1);
    order.end(&chunk(10, 1));
    assert_eq!(order.overtaken(), 0);
}
