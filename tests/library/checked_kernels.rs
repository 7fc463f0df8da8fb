//! Kernels of users' through a session: they run right, or are refused before they touch
//! anything of this process.

use std::fmt::Write as _;

use fastrand::Rng;
use pdawl::Session;
use pdawl::session::{Error, Kernel, Task};
use pdawl_api::machine::DeviceKind;

use crate::pocl::cpu_device;

/// Two parts of a device, or the devices of PDAWL_TEST_DEVICES.
fn session() -> Session {
    let name = cpu_device().info.name;
    let devices = std::env::var("PDAWL_TEST_DEVICES");
    let devices = devices.unwrap_or_else(|_| format!("{name}:1,{name}:1=own"));
    Session::open_devices(&devices).unwrap()
}

fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("it is an error"),
        Err(error) => error.to_string(),
    }
}

const SAXPY: &str = "__kernel void saxpy(__global const float *x, __global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] += a * x[i];
}";

#[test]
fn buffers_that_are_too_short_are_refused() {
    let mut session = session();
    let mut saxpy = session.kernel(SAXPY).unwrap();
    for (given, written, part) in [
        (
            1000,
            10,
            "past the end of buffer `y` (argument 1, 40 bytes)",
        ),
        (
            10,
            1000,
            "past the end of buffer `x` (argument 0, 40 bytes)",
        ),
        (
            999,
            1000,
            "past the end of buffer `x` (argument 0, 3996 bytes) by",
        ),
    ] {
        let (x, mut y) = (vec![1.0f32; given], vec![2.0f32; written]);
        let launch = session
            .launch(&mut saxpy, &[1000])
            .reads(&x)
            .updates(&mut y);
        let said = message(launch.value(3.0f32).run());
        for part in ["kernel `saxpy`", part, "give larger buffers"] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        assert!(y.iter().all(|y| *y == 2.0), "nothing was touched");
    }
    // The same kernel runs with buffers that suffice.
    let (x, mut y) = (vec![1.0f32; 1000], vec![2.0f32; 1000]);
    let launch = session
        .launch(&mut saxpy, &[1000])
        .reads(&x)
        .updates(&mut y);
    launch.value(3.0f32).run().unwrap();
    assert!(y.iter().all(|y| *y == 5.0));
}

#[test]
fn types_sizes_and_groups_are_checked_first() {
    let mut session = session();
    let mut saxpy = session.kernel(SAXPY).unwrap();
    let (doubles, floats) = (vec![1.0f64; 8], vec![1.0f32; 8]);
    let mut y = vec![2.0f32; 8];
    let said = message(
        session
            .launch(&mut saxpy, &[8])
            .reads(&doubles)
            .updates(&mut y)
            .value(1f32)
            .run(),
    );
    assert!(
        said.contains("x is of type float, and double is given"),
        "{said}"
    );
    let said = message(
        session
            .launch(&mut saxpy, &[8])
            .reads(&floats)
            .updates(&mut y)
            .value(1i32)
            .run(),
    );
    assert!(
        said.contains("a is of type float, and int is given"),
        "{said}"
    );
    for (items, groups, part) in [
        (
            &[8][..],
            &[0][..],
            "groups: 0 work-items of a group do not divide the 8",
        ),
        (
            &[8],
            &[3],
            "groups: 3 work-items of a group do not divide the 8",
        ),
        (&[8], &[4, 1], "more dimensions"),
        (&[], &[], "1 to 3 dimensions"),
        (&[0], &[], "1 to 3 dimensions"),
        (&[1 << 40, 1 << 40], &[], "more than 2**48"),
    ] {
        let mut launch = session.launch(&mut saxpy, items);
        if !groups.is_empty() {
            launch = launch.groups(groups);
        }
        let said = message(launch.reads(&floats).updates(&mut y).value(1f32).run());
        assert!(said.contains(part), "no {part} in {said}");
    }
    let local = "__kernel void k(__global int *y, __local int *t) { y[get_global_id(0)] = 1; }";
    let mut local = session.kernel(local).unwrap();
    let (mut y, t) = (vec![0i32; 8], vec![0i32; 8]);
    let said = message(
        session
            .launch(&mut local, &[8])
            .updates(&mut y)
            .reads(&t)
            .run(),
    );
    assert!(said.contains("t is local memory"), "{said}");
    let fixed = "__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
        void k(__global int *y) { y[get_global_id(0)] = 1; }";
    let mut fixed = session.kernel(fixed).unwrap();
    let said = message(session.launch(&mut fixed, &[6]).updates(&mut y).run());
    assert!(said.contains("no multiple of the 4"), "{said}");
    let said = message(
        session
            .launch(&mut fixed, &[8])
            .groups(&[2])
            .updates(&mut y)
            .run(),
    );
    assert!(said.contains("requires groups of [4, 1, 1]"), "{said}");
    // Vectors take their numbers, and any type of the user's of their size.
    let add = "__kernel void add(__global const float4 *x, __global float4 *y) {
        size_t i = get_global_id(0);
        y[i] += x[i];
    }";
    let mut add = session.kernel(add).unwrap();
    let (four, mut y) = ([[1.0f32; 4]; 2], vec![2.0f32; 8]);
    session
        .launch(&mut add, &[2])
        .reads(&four)
        .updates(&mut y)
        .run()
        .unwrap();
    assert_eq!(y, [3.0; 8]);
    let said = message(
        session
            .launch(&mut add, &[8])
            .reads(&four)
            .updates(&mut y)
            .run(),
    );
    assert!(said.contains("past the end"), "{said}");
}

/// What was examined once is not examined again, unless data decide.
#[test]
fn kernels_whose_data_decide_are_examined_in_each_call() {
    let mut session = session();
    let gather = "__kernel void gather(__global const int *index, __global const float *x,
                                       __global float *y) {
        size_t i = get_global_id(0);
        y[i] = x[index[i]];
    }";
    let mut gather = session.kernel(gather).unwrap();
    let x = vec![7.0f32; 100];
    for (last, right) in [
        (99, true),
        (100, false),
        (0, true),
        (-1, false),
        (40_000_000, false),
    ] {
        let (mut index, mut y) = (vec![3i32; 64], vec![0.0f32; 64]);
        index[63] = last;
        let ran = session
            .launch(&mut gather, &[64])
            .reads(&index)
            .reads(&x)
            .writes(&mut y)
            .run();
        match right {
            true => {
                ran.unwrap();
                assert_eq!(y, [7.0; 64]);
            }
            false => {
                let said = message(ran);
                assert!(
                    said.contains("of buffer `x` (argument 1, 400 bytes)"),
                    "{said}"
                );
                assert_eq!(
                    said.contains("another buffer is meant"),
                    last > 100,
                    "{said}"
                );
                assert_eq!(y, [0.0; 64]);
            }
        }
    }
    // Indices that a step writes are those of the next one.
    let walk = "__kernel void walk(__global int *at, __global const float *x,
                                   __global float *seen) {
        size_t i = get_global_id(0);
        seen[i] = x[at[i]];
        at[i] += 40;
    }";
    let mut walk = session.kernel(walk).unwrap();
    for (steps, right) in [(1, true), (4, false)] {
        let (mut at, mut seen) = (vec![0i32; 64], vec![0.0f32; 64]);
        let launch = session.launch(&mut walk, &[64]).steps(steps);
        let ran = launch.updates(&mut at).reads(&x).writes(&mut seen).run();
        assert_eq!(ran.is_ok(), right, "{steps} steps");
    }
}

#[test]
fn an_endless_kernel_is_refused_and_unchecked_ones_run() {
    let mut session = session();
    let text = "__kernel void k(__global const int *n, __global int *y) {
        int k = 0;
        while (n[0] != 0) k++;
        y[get_global_id(0)] = k + 1;
    }";
    let mut kernel = session.kernel(text).unwrap();
    let (n, mut y) = ([1i32], vec![0i32; 4]);
    let said = message(
        session
            .launch(&mut kernel, &[4])
            .reads(&n)
            .writes(&mut y)
            .run(),
    );
    for part in ["took too long", "launch_unchecked"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    // SAFETY: each work-item writes its own number.
    let launch = unsafe { session.launch_unchecked(&mut kernel, &[4]) };
    launch.reads(&[0i32]).writes(&mut y).run().unwrap();
    assert_eq!(y, [1; 4]);
}

#[test]
fn kernels_of_tasks_are_examined() {
    let run = |text: &str, items: usize, unchecked: bool| {
        let mut session = session();
        let mut made = None;
        let run = session.graph(|graph| {
            let given = graph.given("numbers", &[1i32; 64]);
            let result = graph.result::<i32>("result", 64);
            let task = Task::new("copy", |data| {
                let from = data.read::<i32>(0).to_vec();
                data.write(0).copy_from_slice(&from);
            });
            let task = task.reads(given).writes(result);
            graph.task(match unchecked {
                // SAFETY: the callers' kernels stay within the data.
                true => unsafe { task.kernel_unchecked(text, "k", &[items]) },
                false => task.kernel(text, "k", &[items]),
            });
            made = Some(result);
        });
        run.run().map(|results| results.of(made.unwrap()))
    };
    let text = |statement: &str| {
        format!(
            "__kernel void k(__global const int *a, __global int *out) {{
                size_t i = get_global_id(0);
                {statement}
            }}"
        )
    };
    let (copy, gather) = (text("out[i] = a[i];"), text("out[i] = a[a[i]];"));
    assert_eq!(run(&copy, 64, false).unwrap(), [1; 64]);
    let said = message(run(&copy, 6400, false));
    assert!(said.contains("datum numbers (256 bytes)"), "{said}");
    let said = message(run(&gather, 64, false));
    assert!(said.contains("data decide"), "{said}");
    assert_eq!(run(&gather, 64, true).unwrap(), [1; 64]);
}

/// An index of a random kernel, of the work-item `i`.
#[derive(Clone, Copy, Debug)]
enum Index {
    Shifted(i64),
    Reversed,
    Strided(i64),
    Modulo(i64, i64),
    /// By the table of indices.
    Gathered,
}

impl Index {
    fn any(rng: &mut Rng, items: i64) -> Self {
        match rng.u32(..10) {
            0..4 => Self::Shifted(if rng.u32(..4) > 0 { 0 } else { rng.i64(-3..4) }),
            4..6 => Self::Reversed,
            6 => Self::Strided(rng.i64(1..3)),
            7..9 => Self::Modulo(rng.i64(1..9), rng.i64(1..=items)),
            _ => Self::Gathered,
        }
    }

    fn text(self, items: i64) -> String {
        match self {
            Self::Shifted(by) => format!("i + ({by})"),
            Self::Reversed => format!("{} - i", items - 1),
            Self::Strided(by) => format!("{by} * i"),
            Self::Modulo(factor, of) => format!("({factor} * i) % {of}"),
            Self::Gathered => "table[i]".to_owned(),
        }
    }

    fn at(self, i: i64, items: i64, table: &[i32]) -> i64 {
        match self {
            Self::Shifted(by) => i + by,
            Self::Reversed => items - 1 - i,
            Self::Strided(by) => by * i,
            Self::Modulo(factor, of) => factor * i % of,
            Self::Gathered => i64::from(table[i as usize]),
        }
    }
}

/// A kernel that adds numbers of two inputs, if the work-item is below a bound.
#[derive(Debug)]
struct RandomKernel {
    items: i64,
    below: i64,
    reads: [Index; 2],
    writes: Index,
    lengths: [usize; 3],
    kind: usize,
    factor: i32,
}

/// A type of OpenCL C, and how a whole number becomes its bytes.
type Kind = (&'static str, fn(i32) -> Vec<u8>);

const TYPES: [Kind; 5] = [
    ("int", |n| n.to_ne_bytes().to_vec()),
    ("float", |n| (n as f32).to_ne_bytes().to_vec()),
    ("double", |n| f64::from(n).to_ne_bytes().to_vec()),
    ("long", |n| i64::from(n).to_ne_bytes().to_vec()),
    ("short", |n| (n as i16).to_ne_bytes().to_vec()),
];

impl RandomKernel {
    fn any(rng: &mut Rng) -> Self {
        let items = rng.i64(1..700);
        let length = |rng: &mut Rng| match rng.u32(..8) {
            0 => rng.usize(1..2 * items as usize + 1),
            1 => items as usize,
            _ => 2 * items as usize + 4,
        };
        let writes = match rng.u32(..6) {
            0 => Index::Gathered,
            1 => Index::Reversed,
            2 => Index::Strided(2),
            _ => Index::Shifted(rng.i64(0..2)),
        };
        Self {
            items,
            below: if rng.bool() {
                items
            } else {
                rng.i64(0..=items)
            },
            reads: [Index::any(rng, items), Index::any(rng, items)],
            writes,
            lengths: [length(rng), length(rng), length(rng)],
            kind: rng.usize(..TYPES.len()),
            factor: rng.i32(-3..4),
        }
    }

    fn gathers(&self) -> bool {
        let all = [self.reads[0], self.reads[1], self.writes];
        all.iter().any(|index| matches!(index, Index::Gathered))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let kind = TYPES[self.kind].0;
        let [one, other] = self.reads.map(|index| index.text(self.items));
        let to = self.writes.text(self.items);
        let _ = write!(
            text,
            "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
            __kernel void k(__global const {kind} *a, __global const {kind} *b,
                            __global const int *table, __global {kind} *y, int factor, int below) {{
                int i = get_global_id(0);
                if (i < below) y[{to}] = a[{one}] * ({kind})factor + b[{other}];
            }}"
        );
        text
    }

    /// The result, or `None` where an index is out of bounds.
    fn result(&self, [a, b]: [&[i32]; 2], table: &[i32], begins: i32) -> Option<Vec<i32>> {
        let mut y = vec![begins; self.lengths[2]];
        for i in 0..self.below {
            let at = |index: Index| usize::try_from(index.at(i, self.items, table)).ok();
            let sum = a.get(at(self.reads[0])?)? * self.factor + b.get(at(self.reads[1])?)?;
            *y.get_mut(at(self.writes)?)? = sum;
        }
        Some(y)
    }

    /// Runs it once; `broken` has an index in the table that no buffer has.
    fn run(&self, session: &mut Session, kernel: &mut Kernel, rng: &mut Rng, broken: bool) -> bool {
        let encode = TYPES[self.kind].1;
        let bytes =
            |numbers: &[i32]| -> Vec<u8> { numbers.iter().flat_map(|n| encode(*n)).collect() };
        let numbers = |rng: &mut Rng, length: usize| -> Vec<i32> {
            (0..length).map(|_| rng.i32(-99..100)).collect()
        };
        let (a, b) = (numbers(rng, self.lengths[0]), numbers(rng, self.lengths[1]));
        // No two work-items write the same.
        let mut table: Vec<i32> = (0..self.items as i32).collect();
        rng.shuffle(&mut table);
        if broken {
            let wild = [
                -1,
                i32::MAX,
                i32::MIN,
                2 * self.items as i32 + 4,
                -30_000_000,
                40_000_000,
            ];
            let at = rng.usize(..table.len());
            table[at] = *rng.choice(wild.iter()).unwrap();
        }
        let wanted = self.result([&a, &b], &table, 5);
        // A GPU does not show all that a kernel touches.
        let mut devices = session.devices().iter();
        if wanted.is_none() && devices.any(|device| device.kind == DeviceKind::Gpu) {
            return false;
        }
        let mut y = bytes(&vec![5; self.lengths[2]]);
        let (a, b) = (bytes(&a), bytes(&b));
        let launch = session.launch(kernel, &[self.items as u64]);
        let launch = launch.reads(&a).reads(&b).reads(&table).writes(&mut y);
        let ran = launch.value(self.factor).value(self.below as i32).run();
        match (&wanted, ran) {
            (Some(wanted), Ok(_)) => assert!(y == bytes(wanted), "{self:?} {broken}"),
            (None, Err(Error::Kernel(_))) => {}
            (_, Ok(_)) => panic!("it ran: {self:?} {broken}"),
            (_, Err(error)) => panic!("{error}: {self:?} {broken}"),
        }
        wanted.is_some()
    }
}

/// Random kernels with random lengths; PDAWL_TEST_KERNELS has how many.
#[test]
fn random_kernels_are_right_or_refused() {
    let count = std::env::var("PDAWL_TEST_KERNELS").ok();
    let count = count.map_or(12, |count| count.parse().expect("a number"));
    let seed = std::env::var("PDAWL_TEST_SEED").ok();
    let mut rng = Rng::with_seed(seed.map_or(1, |seed| seed.parse().expect("a number")));
    let mut session = session();
    let (mut right, mut refused) = (0, 0);
    for _ in 0..count {
        let random = RandomKernel::any(&mut rng);
        let mut kernel = session.kernel(&random.text()).unwrap();
        let ends_wild = random.gathers() && rng.bool();
        for broken in [false, ends_wild] {
            match random.run(&mut session, &mut kernel, &mut rng, broken) {
                true => right += 1,
                false => refused += 1,
            }
        }
    }
    println!("{right} right, {refused} refused");
    assert!(count < 100 || 10 * right > 6 * (right + refused));
}
