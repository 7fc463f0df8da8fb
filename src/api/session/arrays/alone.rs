//! The run of an operation on the devices of a session, as one task graph.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::engine::cluster::{Alone, Control, Finished, Sink};
use crate::engine::graph::kernel_seconds::KernelSeconds;
use crate::engine::graph::{Division, PreparedGraph, largest_kernel};
use crate::graph::{Components, TaskGraph};
use crate::machine::{self, Device, Host};
use crate::policy::{NamedPolicy, Problem};
use crate::quantity::Bytes;
use crate::report::run::graph::MeasuredTasks;
use crate::report::run::nodes::report_alone;
use crate::report::{DenseAsked, Workload};
use crate::runtime::Runtime;
use crate::session::graph::{Executed, Progress};
use crate::session::parts::{self, Chosen, TakingPart};
use crate::session::rows::Row;
use crate::session::{Error, GraphJob, GraphOptions, Placed as PlacedBy, Run, Sample, Session};
use crate::workload::cluster::{Lone, Operation, OperationError, Place, Placed};
use crate::workload::task_set::Order;

/// Seconds that a sample of the larger tasks of a pool alone may take on all devices to be measured,
/// as expected by smaller tasks, which is much too long.
const SAMPLE: f64 = 100e-3;

/// How an operation runs on one machine.
pub struct OperationOptions {
    pub run: GraphOptions,
    /// In which the policy learns of the tasks.
    pub order: Order,
    /// Rows and columns of a part; by default those that suit the devices.
    pub tile: Option<u64>,
    /// Of generated data, of a random order and of the policy's random choices.
    pub seed: Option<u64>,
    /// The files of given data, for the report.
    pub inputs: Vec<String>,
}

impl From<GraphOptions> for OperationOptions {
    fn from(run: GraphOptions) -> Self {
        Self {
            run,
            order: Order::Natural,
            tile: None,
            seed: None,
            inputs: Vec::new(),
        }
    }
}

impl Session {
    /// Runs an operation; `outputs` take its spaces. A run that `stop` ends early says so in its
    /// report, and has no result. `progress` gets the tasks done, and all.
    ///
    /// # Errors
    /// What does not fit in memory, faults that do not suit, what the engine refuses or cannot
    /// recover from, and a matrix that has no such factors.
    pub fn operate(
        &mut self,
        operation: &Operation,
        outputs: Vec<(usize, &mut dyn Sink)>,
        mut options: OperationOptions,
        stop: &AtomicBool,
        progress: Progress,
    ) -> Result<Run, Error> {
        let began = Instant::now();
        let _running = self.running()?;
        let seed = options.seed.unwrap_or(0);
        let shuffled = (options.order == Order::Random).then_some(seed);
        options.run.seed = seed;
        let simulated = self.is_simulated();
        let has_data = !simulated || self.data;
        let bytes = u64::try_from(operation.bytes).unwrap_or(u64::MAX);
        self.check_data(&operation.title, bytes, has_data)?;
        let placed_on = |devices: &[Device]| {
            let place = Place::Alone(Lone::on(devices, options.run.gpu_memory));
            operation.at(place, options.tile)
        };
        let of_all = placed_on(self.devices())?;
        let policy = self.may_choose(&options.run, NamedPolicy::LOCALITY);
        let details = format!("{shuffled:?} {:?}", options.run.gpu_memory);
        let title = format!("{} {}", of_all.workload.name(), operation.size(&of_all));
        let row = (options.run.is_usual(NamedPolicy::LOCALITY))
            .then(|| Row::named(&title, &details, self.devices()));
        let known = row.as_ref().filter(|_| policy.is_some());
        let known = known.and_then(|row| self.devices.known(row));
        let (chosen, seconds) = match (known, policy) {
            (Some(known), _) => (known.chosen(self.devices()), None),
            (None, None) => (Chosen::all(self.devices().len()), None),
            (None, Some(policy)) => {
                let run = &options.run;
                self.best_part(policy, &of_all, &placed_on, (run, shuffled), stop)?
            }
        };
        let kept = || self.devices.known_tasks(row.as_ref()?, &chosen.part);
        let seconds = seconds.or_else(kept);
        let placed = match chosen.part.len() < self.devices().len() {
            true => placed_on(&self.of(&chosen.part))?,
            false => of_all,
        };
        let size = operation.described(&placed, &options.inputs, options.seed);
        let workload = &*placed.workload;
        let spaces = outputs.iter().map(|(space, _)| *space);
        let alone = Alone::new(workload, spaces, shuffled, stop);
        let alone = alone.map_err(|error| match error.is_stopped() {
            true => Error::Stopped,
            false => error.into(),
        })?;
        if has_data {
            let here = Host::detect().memory.obtainable(0);
            Error::unless_free(size.clone(), alone.host_bytes(self.devices()), here)?;
        }
        let sample = match seconds {
            Some(seconds) => Sample::Known(seconds),
            None => match alone.probe(self.devices())? {
                Some(few) => Sample::Tasks(few),
                None => Sample::Known(KernelSeconds::default()),
            },
        };
        let asked = DenseAsked {
            inputs: options.inputs.clone(),
            order: options.order,
            seed,
        };
        let job = GraphJob {
            workload: Workload::of_operation(operation, &placed, size, asked),
            graph: Arc::clone(alone.graph()),
            placed: PlacedBy::Set(sample),
            computes: true,
            reference: None,
        };
        let run = GraphOptions {
            // The bounds of a simulated run follow from its trace.
            traced: options.run.traced || simulated,
            part: TakingPart::Known(chosen.clone()),
            ..options.run
        };
        let (window, gpu_memory) = (run.window, run.gpu_memory);
        let mut quiet = |_| {};
        let mut control = Control {
            tile: placed.tile,
            verify: run.verify.then_some(seed),
            outputs: (outputs.into_iter())
                .map(|(space, sink)| (space, sink as &mut dyn Sink))
                .collect(),
            progress: &mut quiet,
        };
        let mut finished = Finished::default();
        let mut finish = |prepared: &PreparedGraph, runtime: &mut dyn Runtime, has_result| {
            let found = alone.finish(prepared, runtime, has_result, &mut control);
            finished = found.map_err(super::operations::stopped)?;
            Ok(())
        };
        let executed = self.execute(&job, run, &mut finish, (stop, progress))?;
        let Executed {
            mut ran,
            seconds,
            context,
            ..
        } = executed;
        let outcome = alone.outcome(&context.machine.name, &ran.last, finished);
        // A run that had ended, but whose result was not looked at.
        ran.last.interrupted |= stop.load(Ordering::Relaxed);
        if let (Some(row), Some(took)) = (row, ran.took()) {
            self.devices.note_tasks(&row, &chosen.part, seconds);
            self.devices.note(&row, &chosen, (took, Vec::new()), None);
        }
        let measured = MeasuredTasks {
            window,
            gpu_memory_bytes: gpu_memory,
            least_seconds: None,
            setup_seconds: ran.began.duration_since(began).as_secs_f64(),
        };
        let report = report_alone((&ran, &outcome), alone.graph(), context, measured);
        Ok(Run::new(report, ran.last.trace))
    }

    /// The devices of a part.
    fn of(&self, part: &[usize]) -> Vec<Device> {
        part.iter()
            .map(|device| self.devices()[*device].clone())
            .collect()
    }

    /// The part of the devices that is expected to run an operation fastest, in tiles that suit it,
    /// and the seconds of its tasks, if they are those of all devices, which run `of_all`.
    fn best_part(
        &mut self,
        policy: NamedPolicy,
        of_all: &Placed,
        placed_on: &dyn Fn(&[Device]) -> Result<Placed, OperationError>,
        (run, shuffled): (&GraphOptions, Option<u64>),
        stop: &AtomicBool,
    ) -> Result<(Chosen, Option<KernelSeconds>), Error> {
        let count = self.devices().len();
        let graph_of = |placed: &Placed| -> Option<(Arc<TaskGraph>, Option<Arc<TaskGraph>>)> {
            let alone = Alone::new(&*placed.workload, std::iter::empty(), shuffled, stop).ok()?;
            Some((Arc::clone(alone.graph()), alone.probe(self.devices()).ok()?))
        };
        let Some((graph, Some(few))) = graph_of(of_all) else {
            return Ok((Chosen::all(count), None));
        };
        self.check_tasks(&graph, run.gpu_memory)?;
        let devices = self.devices().to_vec();
        // By tile, and whether they are of a pool alone, whose tasks are larger.
        let mut graphs = vec![((of_all.tile, false), graph)];
        let mut larger = None;
        let mut of_parts = Vec::new();
        for part in parts::parts(&devices) {
            let own = self.of(&part);
            let Ok(placed) = placed_on(&own) else {
                continue;
            };
            let of = (placed.tile, machine::is_pool(&own));
            let graph = match graphs.iter().position(|(known, _)| *known == of) {
                Some(known) => known,
                None => {
                    let Some((graph, few)) = graph_of(&placed) else {
                        continue;
                    };
                    larger = few.filter(|_| of.1).or(larger);
                    graphs.push((of, graph));
                    graphs.len() - 1
                }
            };
            of_parts.push((part, graph));
        }
        let seconds = self.devices.without_data(|runtime| {
            let mut seconds = KernelSeconds::measure(runtime, &few, stop)?;
            if let Some(larger) = larger {
                let expected = seconds.of(&larger);
                let expected = expected
                    .iter()
                    .flatten()
                    .map(|seconds| seconds.unwrap_or(0.0));
                if expected.sum::<f64>() < SAMPLE {
                    seconds.learn(runtime, &larger, stop)?;
                }
            }
            Ok::<_, Error>(seconds)
        })??;
        self.devices.begin(None)?;
        let (limit, runtime) = (run.gpu_memory, &*self.devices.runtime());
        let problem = |graph: &Arc<TaskGraph>| {
            let components = Components::single_kernels(graph);
            Division::problem(runtime, graph, &components, &seconds.of(graph), limit)
        };
        let of_graphs: Vec<Problem> = graphs.iter().map(|(_, graph)| problem(graph)).collect();
        let problems = of_parts.iter().filter_map(|(part, graph)| {
            let problem = parts::of_part(of_graphs[*graph].clone(), part)?;
            Some((part.clone(), problem))
        });
        let best = parts::best(&devices, policy, &run.of_policy(true), problems)?;
        let is_known = best.part.len() == count
            || (of_parts.iter()).any(|(part, graph)| *part == best.part && *graph == 0);
        Ok((best, is_known.then_some(seconds)))
    }

    /// Checks that data of so many bytes fit in the memory of the machine's host, and in this
    /// one's if they are here.
    fn check_data(&self, title: &str, needed: u64, has_data: bool) -> Result<(), Error> {
        let machine = &self.devices.machine;
        if machine.simulated {
            Error::unless_free(title.to_owned(), needed, machine.host.memory)?;
        }
        let here = Host::detect().memory.obtainable(0);
        match (machine.simulated, has_data) {
            (false, _) => Error::unless_free(title.to_owned(), needed, here),
            (true, false) => Ok(()),
            // The memory of simulated devices is here, too.
            (true, true) => Error::unless_free(title.to_owned(), needed.saturating_mul(2), here),
        }
    }

    /// Checks that the data of each task fit in each device's memory.
    pub(in crate::session) fn check_tasks(
        &self,
        graph: &TaskGraph,
        most: Option<u64>,
    ) -> Result<(), Error> {
        let devices = self.devices().iter();
        for device in devices.filter(|device| !device.shares_host_memory) {
            let has = device.memory.min(most.unwrap_or(u64::MAX));
            if let Some((name, needed)) = largest_kernel(graph, device)
                && has < needed
            {
                return Err(Error::TaskMemory {
                    task: name.to_string(),
                    needed: Bytes(needed),
                    device: device.name.clone(),
                    has: Bytes(has),
                });
            }
        }
        Ok(())
    }
}
