//! Which implementation serves: the faster one, as known from earlier runs, and ours where the
//! library is absent or fails.

use std::sync::Arc;

use pdawl_api::codelet::lu::LuRow;
use pdawl_api::codelet::tile::GemmTile;
use pdawl_api::codelet::{Codelet, NdRange, OpenClKernel, Precision, Shape, Value};
use pdawl_api::runtime::select::{Libraries, choose_libraries};
use pdawl_api::runtime::union::Union;
use pdawl_api::runtime::{Command, Comparison, Devices, Implementation, QueueId};

use super::{
    BLAS, Memories, bytes, fake_kernel, launch, numbers, places, random, refused, served, sizes,
    with_fake_kernels,
};
use crate::library::{fake, without_functions};
use crate::machine::{ONE, enqueue, finish, machine};

const SIZE: usize = 6;

/// A product of which ours takes 100 ms.
pub fn product() -> (Arc<Codelet>, Vec<Value>) {
    let tile = GemmTile::new(Precision::F32, SIZE as u32, SIZE as u32, SIZE as u32);
    let mut codelet = tile.codelet();
    codelet.opencl = Some(OpenClKernel {
        source: fake_kernel("product", Precision::F32),
        fp64: false,
        shape: Shape::Of(|_, _| NdRange::new(vec![1])),
    });
    (Arc::new(codelet), tile.values().to_vec())
}

/// A machine with the memories of a product, C poisoned.
struct Bench {
    machine: Union,
    queue: QueueId,
    memories: Memories,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Bench {
    fn on(mut machine: Union) -> Self {
        let queue = machine.queue(ONE).expect("a queue");
        let (a, b) = (random(1, SIZE * SIZE), random(2, SIZE * SIZE));
        let c = vec![f64::NAN; SIZE * SIZE];
        let contents = [&a, &b, &c].map(|numbers| bytes(Precision::F32, numbers));
        let memories = Memories::new(&mut machine, queue, &contents);
        Self {
            machine,
            queue,
            memories,
            a,
            b,
        }
    }

    /// Launches once, and checks the result; with the handles that the launch has left.
    fn launch(&mut self, repeated: Option<&Arc<pdawl_api::runtime::Launch>>) {
        let (codelet, values) = product();
        let args = [self.memories.args.clone(), values].concat();
        let command = match repeated {
            Some(launch) => Command::Repeat(Arc::clone(launch)),
            None => Command::Launch(launch(&codelet, 0..1, args)),
        };
        enqueue(&mut self.machine, self.queue, command, &[]);
        let got = self.memories.read(&mut self.machine, self.queue);
        let got = numbers(Precision::F32, &got[2]);
        for row in 0..SIZE {
            for column in 0..SIZE {
                let terms = (0..SIZE).map(|k| self.a[row * SIZE + k] * self.b[k * SIZE + column]);
                let right: f64 = terms.sum();
                assert!((got[row * SIZE + column] - right).abs() < 1e-5);
            }
        }
    }

    /// What is known of the product.
    fn completion(&mut self) -> Comparison {
        let mut completion = self.machine.implementations();
        assert_eq!(completion.len(), 1, "{completion:?}");
        completion.remove(0)
    }
}

#[test]
fn the_faster_implementation_stays_and_every_result_is_right() {
    let fake = fake();
    for (delay, faster) in [(0, Implementation::Library), (400_000, Implementation::Own)] {
        fake.delay(delay);
        let mut bench = Bench::on(machine("cuda0"));
        for _ in 0..4 {
            bench.launch(None);
        }
        bench.launch(None);
        let completion = bench.completion();
        assert_eq!(completion.serves, Some(faster), "{completion:?}");
        assert_eq!(completion.library.as_deref(), Some(BLAS));
        assert_eq!(
            (completion.codelet.as_str(), completion.device.as_str()),
            ("gemm-tile-f32", "cuda0")
        );
        assert_eq!(completion.sizes, [8, 8, 8]);
        let (own, library) = (
            completion.own_seconds.unwrap(),
            completion.library_seconds.unwrap(),
        );
        assert!(own >= 0.1, "{own}");
        assert_eq!(library < own, faster == Implementation::Library);
        // The other one is not called any more.
        fake.fail("cublasGemm", 13, 1);
        if faster == Implementation::Own {
            bench.launch(None);
            assert_eq!(bench.completion().refusal, None);
        }
        fake.fail("", 0, 0);
    }
}

/// Ours takes 100 ms, of which the host has no part.
#[test]
fn what_the_host_takes_to_enqueue_is_not_measured() {
    let fake = fake();
    fake.hesitate(60_000);
    let mut bench = Bench::on(machine("cuda0"));
    for _ in 0..4 {
        bench.launch(None);
    }
    fake.hesitate(0);
    bench.launch(None);
    let completion = bench.completion();
    assert_eq!(
        completion.serves,
        Some(Implementation::Library),
        "{completion:?}"
    );
    assert!(completion.library_seconds.unwrap() < 0.05, "{completion:?}");
}

#[test]
fn repeated_launches_are_tried_alike_and_served_by_what_was_faster() {
    let _fake = fake();
    let mut bench = Bench::on(machine("cuda0"));
    let (codelet, values) = product();
    let args = [bench.memories.args.clone(), values].concat();
    let repeated = Arc::new(launch(&codelet, 0..1, args));
    for _ in 0..9 {
        bench.launch(Some(&repeated));
    }
    assert_eq!(bench.completion().serves, Some(Implementation::Library));
}

#[test]
fn what_is_known_serves_at_once_in_the_next_run() {
    let fake = fake();
    let mut bench = Bench::on(machine("cuda0"));
    for _ in 0..7 {
        bench.launch(None);
    }
    let known = bench.completion();
    assert_eq!(known.serves, Some(Implementation::Library));
    drop(bench);
    let mut next = machine("cuda0");
    next.know_implementations(std::slice::from_ref(&known));
    let mut bench = Bench::on(next);
    bench.launch(None);
    assert_eq!(bench.completion(), known);
    drop(bench);
    assert_eq!(fake.handles(), 0, "handles are given back");
    assert_eq!(fake.allocated(0), 0, "memory is given back");
}

#[test]
fn ours_serves_without_a_library_and_the_reason_is_reported() {
    let fake = fake();
    let folder = tempfile::tempdir().expect("a folder");
    let _there = fake.libraries_of(folder.path());
    let mut bench = Bench::on(machine("cuda0"));
    bench.launch(None);
    let completion = bench.completion();
    assert_eq!(
        (completion.serves, completion.library),
        (Some(Implementation::Own), None)
    );
    let why = completion.refusal.expect("a reason");
    assert!(
        why.starts_with("libcublas.so.13 is not found where PDAWL_CUDA_LIBRARIES"),
        "{why}"
    );
    // A library of another version, perhaps.
    without_functions(folder.path(), "libcublas.so.13");
    let mut bench = Bench::on(machine("cuda0"));
    bench.launch(None);
    let why = bench.completion().refusal.expect("a reason");
    assert!(
        why.starts_with("libcublas has no function cublasCreate_v2"),
        "{why}"
    );
}

#[test]
fn ours_serves_when_the_library_fails() {
    let fake = fake();
    for (call, code, part) in [
        (
            "cublasCreate",
            1,
            "cublasCreate answered 1: it is not initialised",
        ),
        ("cublasGemm", 13, "cublasGemmEx answered 13: the GPU failed"),
        ("cublasGemm", -5, "cublasGemmEx answered -5"),
    ] {
        fake.fail(call, code, 1);
        let mut bench = Bench::on(machine("cuda0"));
        for _ in 0..4 {
            bench.launch(None);
        }
        let completion = bench.completion();
        assert_eq!(completion.serves, Some(Implementation::Own));
        assert_eq!(
            completion
                .refusal
                .as_deref()
                .map(|why| why.starts_with(part)),
            Some(true),
            "{completion:?}"
        );
    }
}

#[test]
fn a_kept_launch_is_served_by_ours_once_the_library_fails() {
    let fake = fake();
    let mut bench = Bench::on(machine("cuda0"));
    let (codelet, values) = product();
    let args = [bench.memories.args.clone(), values].concat();
    let repeated = Arc::new(launch(&codelet, 0..1, args));
    for _ in 0..8 {
        bench.launch(Some(&repeated));
    }
    assert_eq!(bench.completion().serves, Some(Implementation::Library));
    fake.fail("cublasGemm", 14, 1);
    for _ in 0..2 {
        bench.launch(Some(&repeated));
    }
    let completion = bench.completion();
    assert_eq!(completion.serves, Some(Implementation::Own));
    assert_eq!(
        completion.refusal.as_deref(),
        Some("cublasGemmEx answered 14")
    );
}

#[test]
fn a_launch_that_has_begun_to_change_its_memory_ends_with_the_librarys_failure() {
    let fake = fake();
    let codelet = with_fake_kernels(LuRow::codelet(Precision::F32), Precision::F32);
    let (mut machine, queue) = served(&codelet, &[4, 2, 2], BLAS);
    let factors = bytes(Precision::F32, &[1.0, 0.5, 0.25, 1.0]);
    let pivots: Vec<u8> = [0u32, 1]
        .iter()
        .flat_map(|pivot| pivot.to_ne_bytes())
        .collect();
    let b = bytes(Precision::F32, &[1.0; 8]);
    let memories = Memories::new(&mut machine, queue, &[factors, pivots, b]);
    let values = [
        &memories.args[..],
        &sizes([4, 2, 2, 0]),
        &places([0]),
        &sizes([2]),
        &places([0, 0]),
        &sizes([2]),
    ]
    .concat();
    fake.fail("cublasTrsm", 13, 1);
    let command = Command::Launch(launch(&codelet, 0..1, values));
    let why = refused(&mut machine, queue, command).to_string();
    assert!(
        why.contains("cublasTrsm answered 13") && why.contains("--libraries off"),
        "{why}"
    );
    machine.finish(queue);
    finish(&mut machine);
    let completion = machine.implementations();
    assert_eq!(
        completion[0].serves,
        Some(Implementation::Own),
        "{completion:?}"
    );
}

#[test]
fn libraries_can_be_left_out() {
    let _fake = fake();
    choose_libraries(Libraries::Off);
    let opened = machine("cuda0");
    choose_libraries(Libraries::Auto);
    let mut bench = Bench::on(opened);
    bench.launch(None);
    assert_eq!(bench.machine.implementations(), []);
}
