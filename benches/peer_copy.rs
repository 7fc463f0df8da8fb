//! Copies between every two devices with memory of their own, in GB/s: directly, where
//! that is possible, and through host memory; alone, and both directions at once.
//!
//! `cargo bench --bench peer_copy [-- DEVICES]`, where DEVICES is a list as for
//! `--devices`; without it all devices take part.

use std::time::Instant;

use pdawl_api::runtime::select::{self, Selection};
use pdawl_api::runtime::{
    Command, DeviceId, Location, PeerPath, Rows, Runtime, RuntimeError, Status,
};

/// Bytes of a small copy, a task's datum and a large copy.
const SIZES: [u64; 3] = [1 << 20, 14_745_600, 256 << 20];
const REPEATS: usize = 9;
/// Bytes that the devices write before a copy and read after it.
const TOUCHED: u64 = 64;

fn main() {
    // Cargo adds --bench.
    let list = std::env::args().skip(1).find(|a| !a.starts_with("--"));
    let selection: Option<Selection> = list.map(|list| list.parse().expect("a list of devices"));
    let opened = select::open(selection.as_ref(), false);
    let (mut runtime, notes) = opened.expect("the devices open");
    for note in notes {
        println!("{note}");
    }
    let devices = runtime.devices().iter().enumerate();
    let own: Vec<DeviceId> = devices
        .filter(|(_, device)| !device.shares_host_memory)
        .map(|(index, _)| DeviceId(index))
        .collect();
    if own.len() < 2 {
        println!("fewer than two devices have memory of their own");
    }
    for (n, one) in own.iter().enumerate() {
        for other in &own[n + 1..] {
            let name = |d: &DeviceId| runtime.devices()[d.0].name.clone();
            println!("{} and {}, GB/s:", name(one), name(other));
            for through_host in [false, true] {
                report(runtime.as_mut(), (*one, *other), through_host);
            }
        }
    }
}

fn report(runtime: &mut dyn Runtime, (one, other): (DeviceId, DeviceId), through_host: bool) {
    let way = match through_host {
        true => "through host memory",
        false => "directly",
    };
    let path = PeerPath {
        bandwidth: 0.0,
        through_host,
    };
    for (from, to) in [(one, other), (other, one)] {
        if let Err(error) = runtime.set_peer_path(from, to, path) {
            println!("  {way}: {error}");
            return;
        }
    }
    for bytes in SIZES {
        let mut show = |pairs| match rate(runtime, pairs, bytes) {
            Ok(rate) => format!("{:.2}", rate / 1e9),
            Err(error) => error.to_string(),
        };
        println!(
            "  {way}, {bytes} bytes: {} there, {} back, {} both at once",
            show(&[(one, other)]),
            show(&[(other, one)]),
            show(&[(one, other), (other, one)])
        );
    }
}

/// Bytes a second of all these copies at once, each on a queue of the device that gets
/// it: the median of several, timed by the host. The source writes something before, and
/// the target reads something afterwards, because some drivers move a buffer only where
/// it is used.
fn rate(
    runtime: &mut dyn Runtime,
    pairs: &[(DeviceId, DeviceId)],
    bytes: u64,
) -> Result<f64, RuntimeError> {
    let host = runtime.alloc_host(TOUCHED * pairs.len() as u64)?;
    let mut copies = Vec::new();
    for (from, to) in pairs {
        let buffers = (runtime.alloc(*from, bytes)?, runtime.alloc(*to, bytes)?);
        let queues = (runtime.queue(*from)?, runtime.queue(*to)?);
        copies.push((buffers, queues));
    }
    let mut rates = Vec::new();
    for _ in 0..=REPEATS {
        for (index, ((source, target), queues)) in copies.iter().enumerate() {
            let part = TOUCHED * index as u64..TOUCHED * (index as u64 + 1);
            let write = |to| Command::write(host, part.clone(), to, 0);
            runtime.enqueue(queues.0, write(*source), &[])?;
            runtime.enqueue(queues.1, write(*target), &[])?;
        }
        finish(runtime, 2 * copies.len())?;
        let begun = Instant::now();
        for (index, ((source, target), queues)) in copies.iter().enumerate() {
            let part = TOUCHED * index as u64..TOUCHED * (index as u64 + 1);
            let copy = Command::Copy {
                from: Location::device(*source, 0),
                to: Location::device(*target, 0),
                rows: Rows::one(bytes),
            };
            runtime.enqueue(queues.1, copy, &[])?;
            runtime.enqueue(queues.1, Command::read(*target, 0, host, part), &[])?;
        }
        finish(runtime, 2 * copies.len())?;
        let all = copies.len() as f64 * bytes as f64;
        rates.push(all / begun.elapsed().as_secs_f64());
    }
    for ((source, target), queues) in copies {
        runtime.free_queue(queues.0);
        runtime.free_queue(queues.1);
        runtime.free(source);
        runtime.free(target);
    }
    runtime.free_host(host);
    // The first one warms up.
    rates.remove(0);
    rates.sort_by(f64::total_cmp);
    Ok(rates[REPEATS / 2])
}

fn finish(runtime: &mut dyn Runtime, commands: usize) -> Result<(), RuntimeError> {
    for _ in 0..commands {
        let done = runtime.wait(None)?.expect("a completion");
        assert_eq!(done.status, Status::Done);
    }
    Ok(())
}
