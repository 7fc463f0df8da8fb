//! Copies between host memory and each device with memory of its own, in GB/s: of
//! memory that the runtime allocated (pinned where the driver can), of the user's memory
//! adopted in place, and of the user's memory through a copy into the runtime's.
//!
//! `cargo bench --bench adopted_memory [-- DEVICES]`, where DEVICES is a list as for
//! `--devices`, such as `opencl0.0:1=own`; without it all devices take part.

use std::time::Instant;

use pdawl_api::runtime::select::{self, Selection};
use pdawl_api::runtime::{
    AdoptedMemory, BufferId, Command, DeviceId, HostMemoryId, QueueId, Runtime, RuntimeError,
    Status,
};

/// Bytes of a small copy and of large ones.
const SIZES: [u64; 3] = [1 << 20, 64 << 20, 1 << 30];
const REPEATS: usize = 7;

fn main() {
    // Cargo adds --bench.
    let list = std::env::args().skip(1).find(|a| !a.starts_with("--"));
    let selection: Option<Selection> = list.map(|list| list.parse().expect("a list of devices"));
    let opened = select::open(selection.as_ref(), false);
    let (mut runtime, notes) = opened.expect("the devices open");
    for note in notes {
        println!("{note}");
    }
    let devices: Vec<_> = runtime.devices().iter().cloned().enumerate().collect();
    for (index, device) in devices.iter().filter(|(_, d)| !d.shares_host_memory) {
        println!("{} ({}), GB/s to it and back:", device.name, device.model);
        for bytes in SIZES {
            if let Err(error) = report(runtime.as_mut(), DeviceId(*index), bytes) {
                println!("  {bytes} bytes: {error}");
            }
        }
    }
}

fn report(runtime: &mut dyn Runtime, device: DeviceId, bytes: u64) -> Result<(), RuntimeError> {
    let (queue, buffer) = (runtime.queue(device)?, runtime.alloc(device, bytes)?);
    let mut users = vec![1u8; bytes as usize];
    let allocated = runtime.alloc_host(bytes)?;
    let [to, from] = rates(runtime, (queue, buffer), allocated, bytes, None)?;
    println!("  {bytes} bytes: {to:.2} and {from:.2} of allocated memory");
    let staged = Some(&mut users[..]);
    let [to, from] = rates(runtime, (queue, buffer), allocated, bytes, staged)?;
    println!("  {bytes} bytes: {to:.2} and {from:.2} through allocated memory");
    let begun = Instant::now();
    let adopted = runtime.adopt_host(AdoptedMemory::from(users))?;
    let adopting = begun.elapsed();
    let [to, from] = rates(runtime, (queue, buffer), adopted, bytes, None)?;
    let begun = Instant::now();
    drop(runtime.take_host(adopted)?);
    let taking = begun.elapsed();
    println!("  {bytes} bytes: {to:.2} and {from:.2} of adopted memory");
    println!("  {bytes} bytes: {adopting:.1?} to adopt it, {taking:.1?} to take and drop it");
    runtime.free_host(allocated);
    runtime.free(buffer);
    runtime.free_queue(queue);
    Ok(())
}

/// GB/s of copies to the device and back, timed by the host: the medians of several.
/// `staged` is copied to the host memory before and from there afterwards.
fn rates(
    runtime: &mut dyn Runtime,
    (queue, buffer): (QueueId, BufferId),
    host: HostMemoryId,
    bytes: u64,
    mut staged: Option<&mut [u8]>,
) -> Result<[f64; 2], RuntimeError> {
    let mut rates = [const { Vec::new() }; 2];
    for _ in 0..=REPEATS {
        let begun = Instant::now();
        if let Some(users) = &staged {
            runtime.host_bytes(host)?.copy_from_slice(users);
        }
        runtime.enqueue(queue, Command::write(host, 0..bytes, buffer, 0), &[])?;
        assert_eq!(runtime.wait(None)?.expect("its end").status, Status::Done);
        rates[0].push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e9);
        let begun = Instant::now();
        runtime.enqueue(queue, Command::read(buffer, 0, host, 0..bytes), &[])?;
        assert_eq!(runtime.wait(None)?.expect("its end").status, Status::Done);
        if let Some(users) = &mut staged {
            users.copy_from_slice(runtime.host_bytes(host)?);
        }
        rates[1].push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e9);
    }
    Ok(rates.map(|mut rates| {
        // The first one warms up.
        rates.remove(0);
        rates.sort_by(f64::total_cmp);
        rates[REPEATS / 2]
    }))
}
