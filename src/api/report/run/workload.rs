//! What was run.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::space::SpaceId;
use crate::graph::TaskGraph;
use crate::workload::cluster::{ClusterWorkload, Operation, Placed};
use crate::workload::kernel::UserKernel;
use crate::workload::spmv::{Form, Spmv};
use crate::workload::stencil::Stencil;
use crate::workload::task_set::{Order, TaskSet, Tasks};
use crate::workload::{Divisible, Supersteps};

/// The workload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Workload {
    /// As in `pdawl run NAME`.
    pub name: &'static str,
    /// A line for people, such as `stencil 4096 x 4096 f64`.
    pub title: String,
    pub parameters: Parameters,
}

/// The parameters of a workload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Parameters {
    Stencil(StencilParameters),
    Spmv(SpmvParameters),
    Kernel(KernelParameters),
    Transformer(TransformerParameters),
    Dag(DagParameters),
    Dense(DenseParameters),
    TaskSet(TaskSetParameters),
    Tasks(TasksParameters),
    Recording(RecordingParameters),
}

/// The parameters of a `stencil`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct StencilParameters {
    /// Points of a row, rows, and planes (null in 2-D).
    pub nx: u64,
    pub ny: u64,
    pub nz: Option<u64>,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// The factors of a point and of its neighbours in its next version: centre, north,
    /// south, west, east, and in 3-D below and above. Null for the mean of them.
    pub coefficients: Option<Vec<f64>>,
    /// File of the initial data; null for random ones.
    pub input: Option<String>,
    /// Requested steps.
    pub steps: u32,
    /// Steps between two barriers.
    pub superstep: u32,
    /// The largest change of a point in a step with which the run ends, and the steps after
    /// each multiple of which that is looked at; null if all steps are computed.
    pub until: Option<f64>,
    pub check_every: Option<u32>,
    /// Seed of random initial data, and of a simulation's noise.
    pub seed: u64,
}

/// The parameters of `spmv`, a product with a sparse matrix, and of `pagerank` on one
/// machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SpmvParameters {
    /// Name of the matrix, which says so if it is a look-alike.
    pub matrix: String,
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
    /// `product` (y = A x), `iteration` (x = A x / |A x|) or `ranks`.
    pub form: &'static str,
    /// Of `ranks`: the probability that a visitor follows a link.
    pub damping: Option<f64>,
    /// Of `ranks`: the sum of all changes in a step with which the run ends, if it was given.
    pub tolerance: Option<f64>,
    /// Fraction of the rows that may count as irregular, at most.
    pub irregular: f64,
    /// `f64` or `f32`.
    pub precision: &'static str,
    /// Requested steps.
    pub steps: u32,
    /// Seed of the first vector, and of a generated matrix.
    pub seed: u64,
}

/// The parameters of a `kernel` of the user.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct KernelParameters {
    /// Name of the kernel file, the kernel function, and name of its source file.
    pub file: String,
    pub kernel: String,
    pub source: String,
    /// Work-items along each dimension, in all and of a work-group (null: the driver
    /// chooses).
    pub global: Vec<u64>,
    pub local: Option<Vec<u64>>,
    /// The dimension along which it is divided.
    pub dimension: usize,
    /// The most parts that it can be divided into.
    pub units: u64,
    /// Bytes of all buffers.
    pub bytes: u64,
    /// Positions of the buffers that are divided along with the kernel. Every device has the
    /// others as a whole.
    pub sliced: Vec<usize>,
    /// `f64` if it uses any double precision, else `f32`.
    pub precision: &'static str,
    /// Requested steps.
    pub steps: u32,
    /// Seed of the buffers' initial contents.
    pub seed: u64,
}

/// The parameters of a `transformer`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TransformerParameters {
    /// Heads of a layer.
    pub heads: u32,
    /// Rows and columns of every matrix.
    pub beta: u32,
    /// Layers one after the other.
    pub layers: u32,
    /// Of all matrices: `f32`, `f16`, `bf16` or `tf32`.
    pub precision: &'static str,
    /// Whether all heads of a layer are one batch.
    pub batch: bool,
    /// Seed of inputs and weights.
    pub seed: u64,
    /// Operations of all kernels.
    pub flops: f64,
    /// Whether results stay on the devices.
    pub leave_results: bool,
}

/// The parameters of a `dag`, a graph of the user's kernels.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct DagParameters {
    /// Name of the graph's file.
    pub file: String,
    /// Seed of the buffers' initial contents.
    pub seed: u64,
}

/// The parameters of `dag --starpu`, the tasks of a recorded run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct RecordingParameters {
    /// Name of the recording's folder.
    pub recording: String,
    /// Number of tasks.
    pub tasks: usize,
    /// Operations of all tasks; 0 unless they are recorded of each.
    pub flops: f64,
    /// Seconds that the recorded run took, from the first task's begin to the last one's end.
    pub recorded_seconds: f64,
    /// Seed of the policy's random choices and of a simulation's noise.
    pub seed: u64,
}

/// The parameters of `matmul` and `cholesky`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct DenseParameters {
    /// Of the result.
    pub rows: u64,
    pub columns: u64,
    /// Columns of A; null for `cholesky`.
    pub depth: Option<u64>,
    /// `f32` or `f64`; of `matmul` also `f16`, `bf16` or `tf32`, the format of A and B.
    pub precision: &'static str,
    /// Rows and columns of a tile, which is smaller at the edges.
    pub tile: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// Operations: 2 rows columns depth, or LAPACK's n^3/3 + n^2/2 + n/6.
    pub flops: f64,
    /// Files of the given matrices; empty if they were generated.
    pub inputs: Vec<String>,
    /// Order of the tasks: `natural` or `random`.
    pub order: &'static str,
    /// Seed of generated matrices and of the order.
    pub seed: u64,
}

/// The parameters of `tasks`, a set of tasks that share data.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TaskSetParameters {
    /// `matmul2d`, `matmul3d`, `cholesky`, `sparse` or `random`.
    pub set: &'static str,
    /// Tiles along a matrix; of random tasks their number.
    pub n: u32,
    /// Rows and columns of a tile; null for random tasks.
    pub tile: Option<u32>,
    /// Whether the tasks write results, add up their tiles, and depend on one another.
    pub outputs: bool,
    pub sum: bool,
    pub dependencies: bool,
    /// Order of the tasks: `natural` or `random`.
    pub order: &'static str,
    /// Number of tasks.
    pub tasks: usize,
    /// Operations of all tasks.
    pub flops: f64,
    /// Seed of the order, of random tasks and of the policy's random choices.
    pub seed: u64,
}

/// How a product or a factorisation was computed, beside its sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DenseAsked {
    /// Files of the given matrices.
    pub inputs: Vec<String>,
    pub order: Order,
    pub seed: u64,
}

/// The size of a workload over spaces.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct TasksParameters {
    /// Its sizes, in words.
    pub size: String,
    /// Tasks that were run, and subtasks of all of them. A co-run over nodes has steps, and no
    /// subtasks.
    pub tasks: u64,
    pub subtasks: u64,
    /// Operations of all subtasks; 0 if they are not known, as of a `kernel`.
    pub flops: f64,
}

impl TasksParameters {
    /// What was done, for people: a co-run over nodes has steps, and no subtasks.
    pub fn work(&self) -> String {
        match self.subtasks {
            0 => format!("{} steps", self.tasks),
            subtasks => format!("{subtasks} subtasks in {} tasks", self.tasks),
        }
    }
}

impl Workload {
    /// A co-run's or an operation's workload, with the title that its parameters give.
    pub fn new(name: &'static str, parameters: Parameters) -> Self {
        Self {
            name,
            title: parameters.title(name),
            parameters,
        }
    }

    /// A stencil with its steps, and what a step may change at most at its end. `input` is the
    /// file of its first version.
    pub fn of_stencil(
        stencil: &Stencil,
        supersteps: Supersteps,
        until: Option<f64>,
        (input, seed): (Option<String>, u64),
    ) -> Self {
        let (nx, ny, nz) = stencil.shape();
        Self::new(
            stencil.name(),
            Parameters::Stencil(StencilParameters {
                nx,
                ny,
                nz,
                precision: stencil.precision().name(),
                coefficients: stencil.coefficients().map(<[f64]>::to_vec),
                input,
                steps: supersteps.steps(),
                superstep: supersteps.size(),
                until,
                check_every: until.map(|_| supersteps.period()),
                seed,
            }),
        )
    }

    /// A product with its steps, and the sum of changes in a step that ends ranks.
    pub fn of_product(spmv: &Spmv, steps: u32, tolerance: Option<f64>, seed: u64) -> Self {
        let (matrix, options) = (spmv.matrix(), spmv.options());
        Self::new(
            spmv.name(),
            Parameters::Spmv(SpmvParameters {
                matrix: spmv.matrix_name().to_owned(),
                rows: matrix.rows().into(),
                columns: matrix.columns().into(),
                nonzeros: matrix.nonzeros(),
                form: match options.form {
                    Form::Product => "product",
                    Form::Iteration => "iteration",
                    Form::Ranks => "ranks",
                },
                damping: (options.form == Form::Ranks).then_some(options.damping),
                tolerance,
                irregular: options.irregular,
                precision: options.precision.name(),
                steps,
                seed,
            }),
        )
    }

    /// An operation on one machine, of these sizes in words.
    pub fn of_operation(
        operation: &Operation,
        placed: &Placed,
        size: String,
        asked: DenseAsked,
    ) -> Self {
        let workload = &*placed.workload;
        let Some(sizes) = operation.dense else {
            return Self::of_tasks(workload, size, workload.tasks());
        };
        Self::new(
            workload.name(),
            Parameters::Dense(DenseParameters {
                rows: sizes.rows,
                columns: sizes.columns,
                depth: sizes.depth,
                precision: sizes.precision,
                tile: placed.tile,
                tasks: workload.tasks(),
                flops: sizes.flops,
                inputs: asked.inputs,
                order: asked.order.name(),
                seed: asked.seed,
            }),
        )
    }

    /// Of a set of tasks that share data, with its graph.
    pub fn of_set(set: &TaskSet, graph: &TaskGraph) -> Self {
        let (mut outputs, mut sum, mut dependencies) = (false, false, false);
        let n = match &set.tasks {
            Tasks::Matmul2d(of) => {
                outputs = of.outputs;
                of.n
            }
            Tasks::Matmul3d(of) => {
                sum = of.sum;
                of.rows
            }
            Tasks::Cholesky(of) => {
                dependencies = of.dependencies;
                of.rows
            }
            Tasks::Random(of) => {
                (outputs, dependencies) = (of.outputs, of.dependencies);
                of.tasks
            }
        };
        let parameters = TaskSetParameters {
            set: set.name(),
            n,
            tile: (!matches!(set.tasks, Tasks::Random(_))).then_some(set.tile),
            outputs,
            sum,
            dependencies,
            order: set.order.name(),
            tasks: graph.kernels().len(),
            flops: graph.kernels().iter().map(|kernel| kernel.cost.flops).sum(),
            seed: set.seed,
        };
        Self {
            name: "tasks",
            title: format!("tasks {}, n {n}", set.name()),
            parameters: Parameters::TaskSet(parameters),
        }
    }

    /// Tasks over spaces, of which so many have run, with their sizes in words.
    pub fn of_tasks(workload: &dyn ClusterWorkload, size: String, tasks: u64) -> Self {
        let spaces = workload.spaces().len() as u32;
        let ids: Vec<SpaceId> = (0..spaces).map(SpaceId).collect();
        let (mut subtasks, mut flops) = (0, 0.0);
        if let Some(bands) = workload.bands() {
            let all = 0..bands.workload.units();
            flops = bands.workload.cost(&all).flops * tasks as f64;
        }
        for number in 0..tasks {
            let task = workload.task(number, &ids);
            subtasks += task.count();
            let costs = (0..task.count()).map(|subtask| task.cost(subtask).flops);
            flops += costs.sum::<f64>();
        }
        let parameters = TasksParameters {
            size,
            tasks,
            subtasks,
            flops,
        };
        Self::new(workload.name(), Parameters::Tasks(parameters))
    }

    /// A user's kernel, of a file, with its steps.
    pub fn of_kernel(user: &UserKernel, file: &str, steps: u32, seed: u64) -> Self {
        let kernel = user.kernel();
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        };
        let slices = user.slices();
        let mut sliced = [slices.read.clone(), slices.written.clone()].concat();
        sliced.sort_unstable();
        sliced.dedup();
        Self::new(
            "kernel",
            Parameters::Kernel(KernelParameters {
                file: name(Path::new(file)),
                kernel: kernel.name.clone(),
                source: name(&kernel.source),
                global: kernel.global.clone(),
                local: user.local().map(<[u64]>::to_vec),
                dimension: user.axis().dimension,
                units: user.units(),
                bytes: user.bytes(),
                sliced,
                precision: if user.fp64() { "f64" } else { "f32" },
                steps,
                seed,
            }),
        )
    }

    /// Requested steps of a co-run; 1 for others.
    pub fn steps(&self) -> u32 {
        match &self.parameters {
            Parameters::Stencil(grid) => grid.steps,
            Parameters::Spmv(product) => product.steps,
            Parameters::Kernel(kernel) => kernel.steps,
            _ => 1,
        }
    }

    /// Steps between two barriers of a co-run.
    pub fn superstep(&self) -> u32 {
        match &self.parameters {
            Parameters::Stencil(grid) => grid.superstep,
            _ => 1,
        }
    }

    /// What throughput counts, for one step of a co-run: points of a grid, nonzeros of a
    /// matrix, or work-items of a kernel.
    pub fn points(&self) -> u64 {
        match &self.parameters {
            Parameters::Stencil(StencilParameters { nx, ny, nz, .. }) => {
                nx.saturating_mul(*ny).saturating_mul(nz.unwrap_or(1))
            }
            Parameters::Spmv(product) => product.nonzeros,
            Parameters::Kernel(kernel) => kernel
                .global
                .iter()
                .fold(1, |all, items| all.saturating_mul(*items)),
            _ => 0,
        }
    }

    /// Operations of all; 0 if they are not known, or the workload is a co-run.
    pub fn flops(&self) -> f64 {
        match &self.parameters {
            Parameters::Transformer(of) => of.flops,
            Parameters::Dense(of) => of.flops,
            Parameters::TaskSet(of) => of.flops,
            Parameters::Recording(of) => of.flops,
            Parameters::Tasks(of) => of.flops,
            _ => 0.0,
        }
    }

    /// The throughput of computing `count` points in `seconds`.
    pub fn throughput(&self, count: u64, seconds: f64) -> Throughput {
        let unit = match &self.parameters {
            Parameters::Spmv(_) => "nonzeros/s",
            Parameters::Kernel(_) => "work-items/s",
            _ => "points/s",
        };
        Throughput::of(count as f64, unit, seconds)
    }

    /// The throughput of all operations; `None` if they are not known, or without seconds.
    pub(super) fn rate(&self, seconds: Option<f64>) -> Option<Throughput> {
        let flops = Some(self.flops()).filter(|flops| *flops > 0.0)?;
        Some(Throughput::of(flops, "flop/s", seconds?))
    }
}

impl Parameters {
    fn title(&self, name: &str) -> String {
        match self {
            Self::Stencil(grid) => {
                let depth = grid.nz.map_or_else(String::new, |nz| format!(" x {nz}"));
                let rule = match grid.coefficients {
                    None => "",
                    Some(_) => " with coefficients",
                };
                let (nx, ny, precision) = (grid.nx, grid.ny, grid.precision);
                format!("{name} {nx} x {ny}{depth} {precision}{rule}")
            }
            Self::Kernel(kernel) => {
                let sizes: Vec<String> = kernel.global.iter().map(u64::to_string).collect();
                format!("{name} {} of {}", kernel.kernel, sizes.join(" x "))
            }
            Self::Spmv(product) => {
                let form = match product.form {
                    "iteration" => ", iterated",
                    _ => "",
                };
                format!(
                    "{name} {} ({} x {}, {} nonzeros) {}{form}",
                    product.matrix,
                    product.rows,
                    product.columns,
                    product.nonzeros,
                    product.precision
                )
            }
            Self::Dense(of) => {
                let size = match of.depth {
                    Some(depth) => format!("{} x {depth} by {depth} x {}", of.rows, of.columns),
                    None => format!("{} x {}", of.rows, of.columns),
                };
                format!("{name} {size} {}", of.precision)
            }
            Self::Tasks(of) => format!("{name} {}", of.size),
            Self::Dag(dag) => format!("{name} {}", dag.file),
            Self::Recording(of) => format!("{name} of StarPU's recording {}", of.recording),
            Self::Transformer(_) | Self::TaskSet(_) => name.to_owned(),
        }
    }
}

/// Work per second.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Throughput {
    pub value: f64,
    /// `points/s`, `nonzeros/s`, `work-items/s` or `flop/s`.
    pub unit: &'static str,
}

impl Throughput {
    /// So much in `seconds`; 0 for 0 seconds.
    pub fn of(amount: f64, unit: &'static str, seconds: f64) -> Self {
        let value = if seconds > 0.0 { amount / seconds } else { 0.0 };
        Self { value, unit }
    }

    /// The unit in the singular, such as `point/s`.
    pub fn each(&self) -> &'static str {
        Self::singular(self.unit)
    }

    /// A unit in the singular.
    pub fn singular(unit: &str) -> &str {
        match unit {
            "nonzeros/s" => "nonzero/s",
            "work-items/s" => "work-item/s",
            "points/s" => "point/s",
            unit => unit,
        }
    }
}
