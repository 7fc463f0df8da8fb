//! Products, factorisations and Fourier transforms of 4096 rows on a pool of all cores, in
//! seconds: the operations that libraries such as OpenBLAS and pocketfft are known for.
//!
//! `cargo bench --bench host_pool` measures each several times. With the argument `ask` it
//! reads names of operations, a line each, runs each once, and answers with its seconds:
//! `scripts/host-libraries.py` so measures them in turns with those libraries. Only the
//! memory of the latest operation is kept, which ran once before it was first measured.

use std::io::BufRead;
use std::sync::Arc;

use pdawl_api::codelet::fft::{Along, Fft};
use pdawl_api::codelet::lu::LuPanel;
use pdawl_api::codelet::tile::{GemmTile, PotrfTile};
use pdawl_api::codelet::{Codelet, Cost, Memory, Precision, Value};
use pdawl_api::runtime::select;
use pdawl_api::runtime::{Command, DeviceId, HostMemoryId, Launch, QueueId, Runtime, Status};

const ROWS: u32 = 4096;
const REPEATS: usize = 5;
const OPERATIONS: [&str; 7] = [
    "product f32",
    "product f64",
    "LU f32",
    "LU f64",
    "Cholesky f32",
    "Cholesky f64",
    "FFT c64",
];

/// Launches one after the other.
struct Operation {
    launches: Vec<Launch>,
    /// The memory that is overwritten, and with what it begins.
    begin: Option<(HostMemoryId, Vec<u8>)>,
    memories: Vec<HostMemoryId>,
}

struct Pool {
    runtime: Box<dyn Runtime>,
    queue: QueueId,
}

fn main() {
    let selection = format!(
        "host:{}",
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    let selection = selection.parse().expect("a list of devices");
    let (mut runtime, _) = select::open(Some(&selection), false).expect("the host opens");
    let queue = runtime.queue(DeviceId(0)).expect("a queue");
    let mut pool = Pool { runtime, queue };
    if std::env::args().any(|argument| argument == "ask") {
        let mut latest: Option<(String, Operation)> = None;
        for line in std::io::stdin().lock().lines() {
            let line = line.expect("a line");
            if let Some((_, other)) = latest.take_if(|(name, _)| *name != line) {
                pool.free(other);
            }
            let (_, operation) = latest.get_or_insert_with(|| {
                let mut operation = pool.operation(&line);
                pool.run(&mut operation);
                (line, operation)
            });
            println!("{}", pool.run(operation));
        }
        return;
    }
    for name in OPERATIONS {
        let mut operation = pool.operation(name);
        let mut seconds: Vec<f64> = (0..=REPEATS).map(|_| pool.run(&mut operation)).collect();
        seconds.remove(0);
        seconds.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.4} s, best {:.4} s",
            seconds[REPEATS / 2],
            seconds[0]
        );
        pool.free(operation);
    }
}

impl Pool {
    fn operation(&mut self, name: &str) -> Operation {
        let (what, precision) = name.split_once(' ').expect("an operation and a precision");
        let precision = match precision {
            "f32" | "c64" => Precision::F32,
            _ => Precision::F64,
        };
        let square = precision.bytes() * u64::from(ROWS) * u64::from(ROWS);
        match what {
            "product" => {
                let tile = GemmTile::new(precision, ROWS, ROWS, ROWS);
                let memories = [(); 3].map(|()| self.matrix(precision, square, 0.0));
                let args = arguments(&memories, &tile.values());
                let launch = launch(tile.codelet(), tile.units(), args, tile.cost());
                operation(vec![launch], None, &memories)
            }
            "LU" => {
                let panel = LuPanel {
                    precision,
                    rows: ROWS,
                    columns: ROWS,
                    first: 0,
                };
                let memory = self.matrix(precision, square, 0.0);
                let pivots = self
                    .runtime
                    .alloc_host(4 * u64::from(ROWS))
                    .expect("memory");
                let memories = [memory, pivots];
                let args = arguments(&memories, &panel.values());
                let codelet = LuPanel::codelet(precision);
                let launch = launch(codelet, panel.units(), args, panel.cost());
                operation(vec![launch], Some(self.copy(memory)), &memories)
            }
            "Cholesky" => {
                let tile = PotrfTile {
                    precision,
                    rows: ROWS,
                };
                let memory = self.matrix(precision, square, f64::from(ROWS));
                let args = arguments(&[memory], &tile.values());
                let launch = launch(tile.codelet(), tile.units(), args, tile.cost());
                operation(vec![launch], Some(self.copy(memory)), &[memory])
            }
            _ => {
                let memories = [(); 3].map(|()| self.matrix(precision, 2 * square, 0.0));
                let lines = |along, of: &[HostMemoryId]| {
                    let fft = Fft {
                        rows: ROWS,
                        columns: ROWS,
                        along,
                        precision: Precision::F32,
                    };
                    let args = arguments(of, &fft.values());
                    launch(fft.codelet(), fft.units(), args, fft.cost())
                };
                let launches = vec![
                    lines(Along::Rows, &memories[..2]),
                    lines(Along::Columns, &memories[1..]),
                ];
                operation(launches, None, &memories)
            }
        }
    }

    /// Memory with random numbers between -0.5 and 0.5, and more on the diagonal.
    fn matrix(&mut self, precision: Precision, bytes: u64, diagonal: f64) -> HostMemoryId {
        let memory = self.runtime.alloc_host(bytes).expect("memory");
        let mut random = fastrand::Rng::with_seed(bytes);
        let all = self.runtime.host_bytes(memory).expect("its bytes");
        let each = precision.bytes() as usize;
        for (at, number) in all.chunks_exact_mut(each).enumerate() {
            let on_diagonal = at.is_multiple_of(ROWS as usize + 1);
            let value = random.f64() - 0.5 + if on_diagonal { diagonal } else { 0.0 };
            match precision {
                Precision::F32 => number.copy_from_slice(&(value as f32).to_ne_bytes()),
                Precision::F64 => number.copy_from_slice(&value.to_ne_bytes()),
            }
        }
        memory
    }

    fn copy(&mut self, memory: HostMemoryId) -> (HostMemoryId, Vec<u8>) {
        let bytes = self.runtime.host_bytes(memory).expect("its bytes").to_vec();
        (memory, bytes)
    }

    /// The seconds of an operation.
    fn run(&mut self, operation: &mut Operation) -> f64 {
        if let Some((memory, bytes)) = &operation.begin {
            let all = self.runtime.host_bytes(*memory).expect("its bytes");
            all.copy_from_slice(bytes);
        }
        let begun = self.runtime.now();
        for launch in &operation.launches {
            let command = Command::Launch(launch.clone());
            self.runtime
                .enqueue(self.queue, command, &[])
                .expect("it is queued");
        }
        let ends = operation.launches.iter().map(|_| {
            let end = self.runtime.wait(None).expect("it ends").expect("an end");
            assert_eq!(end.status, Status::Done);
            end.ended
        });
        let ended = ends.max().unwrap_or(begun);
        (ended - begun) as f64 / 1e9
    }

    fn free(&mut self, operation: Operation) {
        for memory in operation.memories {
            self.runtime.free_host(memory);
        }
    }
}

fn operation(
    launches: Vec<Launch>,
    begin: Option<(HostMemoryId, Vec<u8>)>,
    memories: &[HostMemoryId],
) -> Operation {
    Operation {
        launches,
        begin,
        memories: memories.to_vec(),
    }
}

fn arguments(memories: &[HostMemoryId], values: &[Value]) -> Vec<Value> {
    let memories = memories.iter().map(|of| Value::Memory(Memory::Host(*of)));
    memories.chain(values.iter().copied()).collect()
}

fn launch(codelet: Codelet, units: u64, args: Vec<Value>, cost: Cost) -> Launch {
    Launch {
        codelet: Arc::new(codelet),
        units: 0..units,
        args,
        cost,
    }
}
