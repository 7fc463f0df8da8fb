//! Arrays of the user's that are on a GPU: they are copied there, and what is host memory otherwise
//! is there, too.

use std::slice;

use pdawl_api::matrix::Shared;
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{Command, Devices, Notice, Runtime};
use pdawl_api::session::{DeviceOptions, GpuBytes, Session, Task};
use pdawl_base::parallel;

use crate::library::{Fake, fake};
use crate::machine::{ONE, PTX, enqueue, finish, machine};

/// An array of these numbers on a device: its address.
fn array(fake: &Fake, device: i32, numbers: &[u32]) -> u64 {
    let address = fake.array(device, 4 * numbers.len());
    at(address, numbers.len()).copy_from_slice(numbers);
    address
}

/// The numbers of an array, whose memory is the host's with this driver.
fn at<'a>(address: u64, count: usize) -> &'a mut [u32] {
    // SAFETY: the fake driver has allocated so many, which live as long as the process.
    unsafe { slice::from_raw_parts_mut(address as *mut u32, count) }
}

fn counted(count: u32) -> Vec<u32> {
    (0..count)
        .map(|number| number.wrapping_mul(0x9e37_79b9))
        .collect()
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

#[test]
fn bytes_are_found_on_their_gpu_or_refused() {
    let fake = fake();
    for device in [0, 1] {
        let address = array(&fake, device, &counted(1000));
        let found = GpuBytes::at(address, 4000).expect("all of it");
        assert_eq!(found.gpu(), device as usize);
        GpuBytes::at(address + 400, 3600).expect("the rest of it");
        for (address, length) in [(address, 4001), (address + 4, 4000), (address, usize::MAX)] {
            let error = GpuBytes::at(address, length).expect_err("too many");
            assert!(error.to_string().contains("more than are there"), "{error}");
        }
    }
    let here = [0u32; 10];
    for address in [0, 8, here.as_ptr() as u64, u64::MAX] {
        let error = GpuBytes::at(address, 4).expect_err("it is no GPU's");
        assert!(error.to_string().contains("is not on a GPU"), "{error}");
    }
}

#[test]
fn arrays_are_copied_where_they_are_and_the_thread_keeps_its_context() {
    let fake = fake();
    let before = fake.allocated(1);
    let (given, other) = (counted(5000), counted(10_000)[5000..].to_vec());
    let address = array(&fake, 1, &given);
    let held = fake.allocated(1);
    let array = GpuBytes::at(address, 20_000).expect("an array");
    // SAFETY: nobody else knows it.
    let region = unsafe { array.load() }.expect("room");
    assert!(fake.allocated(1) >= held + 20_000 && fake.current() == 0);
    // SAFETY: it is so long, mapped and of this test.
    let copy = unsafe { slice::from_raw_parts_mut(region.address.as_ptr(), 20_000) };
    assert_eq!(copy, bytes(&given));
    at(address, 5000).fill(7);
    assert_eq!(copy, bytes(&given), "it is a copy");
    copy.copy_from_slice(&bytes(&other));
    // SAFETY: as above.
    unsafe { array.store(copy) }.expect("it is written");
    assert_eq!(at(address, 5000), other);
    drop(region);
    assert_eq!((fake.allocated(1), fake.current()), (held, 0));
    assert_eq!(held, before + 20_000);

    fake.fail("cuMemAllocManaged", 2, 1);
    // SAFETY: as above.
    let error = unsafe { array.load() }.map(|_| ()).expect_err("no room");
    for part in ["20000 bytes", "cuda1", "give smaller arrays"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    fake.fail("cuMemcpyAsync", 1, 1);
    // SAFETY: as above.
    unsafe { array.load() }.map(|_| ()).expect_err("no copy");
    assert_eq!(fake.allocated(1), held);
}

fn on_gpu(gpu: usize) -> Union {
    let mut machine = machine("cuda0,cuda1");
    machine.notify(Notice::HostMemoryOn(gpu));
    machine
}

#[test]
fn host_memory_on_a_gpu_is_copied_and_filled_by_the_driver() {
    let fake = fake();
    let mut machine = on_gpu(1);
    let (before, numbers) = (fake.allocated(1), counted(1 << 18));
    let host = machine.alloc_host(1 << 20).expect("room");
    assert!(fake.allocated(1) >= before + (1 << 20));
    let copies = fake.calls("cuMemcpyAsync");
    parallel::copy(machine.host_bytes(host).expect("free"), &bytes(&numbers));
    assert_eq!(fake.calls("cuMemcpyAsync"), copies + 1);

    let queue = machine.queue(ONE).expect("a queue");
    let buffer = machine.alloc(ONE, 1 << 20).expect("a buffer");
    enqueue(
        &mut machine,
        queue,
        Command::write(host, 0..1 << 20, buffer, 0),
        &[],
    );
    finish(&mut machine);
    parallel::fill(machine.host_bytes(host).expect("free"), 9);
    assert_eq!(fake.calls("cuMemsetD8Async"), 1);
    assert!(
        machine
            .host_bytes(host)
            .unwrap()
            .iter()
            .all(|byte| *byte == 9)
    );
    // Half of it returns, and goes to other host memory.
    enqueue(
        &mut machine,
        queue,
        Command::read(buffer, 0, host, 0..1 << 19),
        &[],
    );
    finish(&mut machine);
    let other = machine.alloc_host(1 << 20).expect("room");
    machine
        .host_copy(host, other, 1 << 20)
        .expect("both are free");
    let (back, rest) = machine.host_bytes(other).unwrap().split_at(1 << 19);
    assert!(*back == bytes(&numbers)[..1 << 19] && rest.iter().all(|byte| *byte == 9));

    // Where the driver refuses, the host does it.
    fake.fail("cuMemsetD8Async", 1, 1);
    parallel::fill(machine.host_bytes(host).expect("free"), 3);
    fake.fail("cuMemcpyAsync", 1, 1);
    machine
        .host_copy(host, other, 1 << 20)
        .expect("both are free");
    assert!(
        machine
            .host_bytes(other)
            .unwrap()
            .iter()
            .all(|byte| *byte == 3)
    );
    drop(machine);
    assert!(fake.allocated(1) <= before);
}

#[test]
fn a_graph_on_arrays_of_a_gpu_passes_nothing_through_the_host() {
    let fake = fake();
    let given = [counted(64), counted(128)[64..].to_vec()];
    let arrays = [0, 1].map(|which| array(&fake, 0, &given[which]));
    let mut session = Session::with(DeviceOptions {
        list: Some("cuda0,cuda1".to_owned()),
        arrays_on: Some(0),
        ..DeviceOptions::default()
    })
    .expect("it opens");
    let loaded = arrays.map(|address| {
        let array = GpuBytes::at(address, 256).expect("an array");
        // SAFETY: nobody else knows it.
        unsafe { session.load(array) }.expect("room")
    });
    let mut made = None;
    let run = session.graph(|graph| {
        let [one, other] = loaded.each_ref().map(|bytes: &Shared<u8>| bytes.clone());
        let data = [
            graph.given_bytes("one", one),
            graph.given_bytes("other", other),
        ];
        let result = graph.result::<u8>("sum", 256);
        let task = Task::without_function("sum").reads(data[0]).reads(data[1]);
        // SAFETY: it stays within its data.
        let task = unsafe { task.writes(result).kernel_unchecked(PTX, "sum", &[64]) };
        graph.task(task);
        made = Some(result);
    });
    let results = run.run().expect("it runs");
    let found = results.bytes(made.expect("a result")).expect("its bytes");
    let sums = given[0]
        .iter()
        .zip(&given[1])
        .map(|(one, other)| one.wrapping_add(*other));
    assert_eq!(*found, *bytes(&sums.collect::<Vec<u32>>()));
    let moved: u64 = results
        .run()
        .devices
        .iter()
        .map(|of| {
            assert_eq!((of.bytes_h2d, of.bytes_d2h), (Some(0), Some(0)));
            of.bytes_peer.expect("a number")
        })
        .sum();
    assert_eq!(moved, 3 * 256);
    // No host memory was taken from the system.
    let pinned = ["cuMemHostAlloc", "cuMemHostRegister"].map(|call| fake.calls(call));
    assert!(pinned == [0, 0] && fake.calls("cuMemAllocManaged") >= 4);
}
