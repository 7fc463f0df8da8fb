//! The run of an operation on the devices of a session, as one task graph.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::engine::cluster::{Alone, Control, Finished, Sink};
use crate::engine::graph::kernel_seconds::KernelSeconds;
use crate::engine::graph::{Division, PreparedGraph, largest_kernel};
use crate::graph::{Components, TaskGraph};
use crate::machine::host::Memory;
use crate::machine::{self, Device};
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

/// Seconds that a sample of larger tasks may take on all devices to be measured, as expected by
/// smaller tasks, which is much too long; and the most bytes of its data in tiles that are longer
/// than those that suit devices: data take longer than the launches that are saved.
const SAMPLE: f64 = 100e-3;
const LARGEST: u64 = 1 << 30;

/// An operation on some devices, in tiles of this length or those that suit them.
type PlacedOn<'a> = dyn Fn(&[Device], Option<u64>) -> Result<Placed, OperationError> + 'a;

/// A part of the devices, the length of tiles if it is not the one that suits them, and the place of
/// their graph.
type Candidate = (Vec<usize>, Option<u64>, usize);

/// By tile, and whether they are of a pool alone, whose tasks are larger: all tasks, and a sample.
type Graphs = ((u64, bool), [Arc<TaskGraph>; 2]);

/// How an operation is expected to run fastest.
struct Best {
    chosen: Chosen,
    /// Length of tiles, if not those that suit the devices.
    tile: Option<u64>,
    /// Of tasks, if they were measured.
    seconds: Option<KernelSeconds>,
}

impl Best {
    /// All of so many devices, of which nothing is known.
    fn all(devices: usize) -> Self {
        Self {
            chosen: Chosen::all(devices),
            tile: None,
            seconds: None,
        }
    }
}

fn is_own(device: &Device) -> bool {
    !device.shares_host_memory
}

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
        let placed_on = |devices: &[Device], tile: Option<u64>| {
            let place = Place::Alone(Lone::on(devices, options.run.gpu_memory));
            operation.at(place, options.tile.or(tile))
        };
        let of_all = placed_on(self.devices(), None)?;
        let policy = self.may_choose(&options.run, NamedPolicy::LOCALITY);
        let details = format!("{shuffled:?} {:?}", options.run.gpu_memory);
        let title = format!("{} {}", of_all.workload.name(), operation.size(&of_all));
        let is_usual = options.run.is_usual(NamedPolicy::LOCALITY);
        let row = is_usual.then(|| Row::named(&title, &details, self.devices()));
        let known = row.as_ref().filter(|_| policy.is_some());
        let known = known.and_then(|row| self.devices.known(row));
        let known = known.map(|known| known.chosen(self.devices()));
        let all: Vec<usize> = (0..self.devices().len()).collect();
        let parts = match (&known, policy) {
            (Some(known), _) => vec![known.part.clone()],
            (None, Some(_)) => parts::parts(self.devices()),
            (None, None) => vec![all],
        };
        // A session knows the tasks of the run before.
        let of_session = match &parts[..] {
            [part] => (row.as_ref()).and_then(|row| self.devices.known_tasks(row, part)),
            _ => None,
        };
        // One part may be open in its tiles.
        let is_open = |parts: &[Vec<usize>]| match parts {
            [part] => options.tile.is_none() && self.of(part).iter().all(is_own),
            _ => true,
        };
        let best = match of_session {
            Some((seconds, tile)) => Best {
                tile,
                seconds: Some(seconds),
                ..Best::all(self.devices().len())
            },
            None if is_usual && is_open(&parts) => {
                let run = &options.run;
                self.best_part(parts, &of_all, &placed_on, (run, shuffled), stop)?
            }
            None => Best::all(self.devices().len()),
        };
        let Best { tile, seconds, .. } = best;
        let chosen = known.unwrap_or(best.chosen);
        let placed = match chosen.part.len() < self.devices().len() || tile.is_some() {
            true => placed_on(&self.of(&chosen.part), tile)?,
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
            let here = Memory::obtainable_now();
            Error::unless_free(size.clone(), alone.host_bytes(self.devices()), here)?;
        }
        let sample = match (alone.probe(self.devices())?, seconds) {
            (None, _) => Sample::Known(KernelSeconds::default()),
            (Some(few), Some(seconds)) if seconds.knows(&few) => Sample::Known(seconds),
            (Some(few), _) => Sample::Tasks(few),
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
            mut context,
            ..
        } = executed;
        let note = tile.map(|tile| format!("--tile {tile} is expected to be fastest"));
        context.notes.extend(note);
        let outcome = alone.outcome(&context.machine.name, &ran.last, finished);
        // A run that had ended, but whose result was not looked at.
        ran.last.interrupted |= stop.load(Ordering::Relaxed);
        if let (Some(row), Some(took)) = (row, ran.took()) {
            let tasks = (seconds, tile);
            self.devices.note_tasks(&row, &chosen.part, tasks);
            self.devices.note(&row, &chosen, (took, Vec::new()), None);
        }
        let measured = MeasuredTasks {
            window,
            gpu_memory_bytes: gpu_memory,
            least_seconds: None,
            setup_seconds: ran.began.duration_since(began).as_secs_f64(),
        };
        let report = report_alone((&ran, &outcome), alone.graph(), context, measured);
        Ok(Run::new(report, ran.last.trace).on_gpu(self.arrays_on))
    }

    /// The devices of a part.
    fn of(&self, part: &[usize]) -> Vec<Device> {
        part.iter()
            .map(|device| self.devices()[*device].clone())
            .collect()
    }

    /// Of these parts of the devices the one that is expected to run an operation fastest, in which
    /// tiles, if not those that suit it, and the seconds of tasks. Devices with memory of their own
    /// may be faster in longer tiles: the fewer tasks, the fewer launches and copies.
    fn best_part(
        &mut self,
        parts: Vec<Vec<usize>>,
        of_all: &Placed,
        placed_on: &PlacedOn,
        (run, shuffled): (&GraphOptions, Option<u64>),
        stop: &AtomicBool,
    ) -> Result<Best, Error> {
        let devices = self.devices().to_vec();
        let graph_of = |placed: &Placed| -> Option<[Arc<TaskGraph>; 2]> {
            let alone = Alone::new(&*placed.workload, std::iter::empty(), shuffled, stop).ok()?;
            Some([Arc::clone(alone.graph()), alone.probe(&devices).ok()??])
        };
        let Some(of_all_graphs) = graph_of(of_all) else {
            return Ok(Best::all(devices.len()));
        };
        self.check_tasks(&of_all_graphs[0], run.gpu_memory)?;
        let mut graphs: Vec<Graphs> = vec![((of_all.tile, false), of_all_graphs)];
        let mut candidates: Vec<Candidate> = Vec::new();
        for part in parts {
            let own = self.of(&part);
            let mut tile = None;
            while let Ok(placed) = placed_on(&own, tile) {
                let of = (placed.tile, machine::is_pool(&own));
                if tile.is_some_and(|tile| tile != placed.tile) {
                    break;
                }
                let place = graphs.iter().position(|(known, _)| *known == of);
                if place.is_none() {
                    let Some(made) = graph_of(&placed) else {
                        break;
                    };
                    graphs.push((of, made));
                }
                let place = place.unwrap_or(graphs.len() - 1);
                let [graph, few] = &graphs[place].1;
                let bytes: u64 = few.data().iter().map(|datum| datum.bytes).sum();
                if tile.is_some() && bytes > LARGEST {
                    break;
                }
                candidates.push((part.clone(), tile, place));
                if !own.iter().all(is_own) || graph.kernels().len() == 1 {
                    break;
                }
                tile = Some(2 * placed.tile);
            }
        }
        if candidates.len() == 1 {
            return Ok(Best::all(devices.len()));
        }
        let (seconds, measured) = self.measured(&graphs, &candidates, stop)?;
        self.devices.begin(None)?;
        candidates.retain(|(_, tile, place)| tile.is_none() || measured[*place]);
        let (limit, runtime) = (run.gpu_memory, &*self.devices.runtime());
        let problem = |graph: &Arc<TaskGraph>| {
            let components = Components::single_kernels(graph);
            let times = seconds.of(graph);
            let mut problem = Division::problem(runtime, graph, &components, &times, limit);
            seconds.set_commands(&mut problem);
            problem
        };
        let of_graphs: Vec<Problem> = graphs
            .iter()
            .map(|(_, [graph, _])| problem(graph))
            .collect();
        let of_candidate = |(part, _, place): &Candidate| (part.clone(), of_graphs[*place].clone());
        let problems = candidates.iter().map(of_candidate);
        let policy = NamedPolicy::LOCALITY;
        let (chosen, best) = parts::best(&devices, policy, &run.of_policy(true), problems)?;
        Ok(Best {
            chosen,
            tile: best.and_then(|best| candidates[best].1),
            seconds: Some(seconds),
        })
    }

    /// The seconds of the tasks of the first graph on all devices, and of others on the devices of
    /// their candidates, if a sample of them does not take too long; and of which graphs.
    fn measured(
        &mut self,
        graphs: &[Graphs],
        candidates: &[Candidate],
        stop: &AtomicBool,
    ) -> Result<(KernelSeconds, Vec<bool>), Error> {
        let devices = self.devices().to_vec();
        let mut seconds = self.devices.without_data(|runtime| {
            let few = &graphs[0].1[1];
            KernelSeconds::measure(runtime, few, stop)
        })??;
        let mut measured = vec![true; graphs.len()];
        for (place, ((_, is_pool), [_, few])) in graphs.iter().enumerate().skip(1) {
            // Tiles for pools beside other devices are scaled.
            let on = |device: &Device| is_own(device) != *is_pool;
            let mut of_place = candidates.iter().filter(|(_, _, of)| *of == place);
            let is_for = |part: &[usize]| part.iter().all(|device| on(&devices[*device]));
            if !of_place.any(|(part, ..)| is_for(part)) {
                continue;
            }
            let expected = seconds.of(few);
            let of_devices = expected.iter().flat_map(|of| of.iter().zip(&devices));
            let of_devices = of_devices.filter(|(_, device)| on(device));
            let all: f64 = of_devices.filter_map(|(seconds, _)| *seconds).sum();
            measured[place] = all < SAMPLE;
            if measured[place] {
                self.devices
                    .without_data(|runtime| seconds.learn(runtime, few, &on, stop))??;
            }
        }
        Ok((seconds, measured))
    }

    /// Checks that data of so many bytes fit in the memory of the machine's host, and in this
    /// one's if they are here.
    fn check_data(&self, title: &str, needed: u64, has_data: bool) -> Result<(), Error> {
        let machine = &self.devices.machine;
        if machine.simulated {
            Error::unless_free(title.to_owned(), needed, machine.host.memory)?;
        }
        let here = Memory::obtainable_now();
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
