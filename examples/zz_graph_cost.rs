use crossbeam_channel::{Sender, unbounded};
use pdawl::codelet::{
    Codelet, Cost, HostCode, HostMemoryId, KernelSource, NdRange, OpenClKernel, Shape,
};
use pdawl::engine::graph::problem::problem;
use pdawl::engine::graph::{Control, Options, PreparedGraph, abilities};
use pdawl::graph::{Argument, Components, Contents, Datum, GraphBuilder, Kernel, TaskGraph};
use pdawl::machine::{Device, MachineStore};
use pdawl::policy::{Clustering, Policy};
use pdawl::runtime::sim::{Sim, SimOptions};
use pdawl::runtime::union::Union;
use pdawl::runtime::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const HEAD: usize = 8;
struct Stub {
    devices: Vec<Device>,
    tx: Sender<Completion>,
    graphs: bool,
}
impl Devices for Stub {
    fn devices(&self) -> &[Device] {
        &self.devices
    }
    fn alloc(&mut self, _d: DeviceId, _b: u64) -> Result<BufferId, RuntimeError> {
        Ok(BufferId::fresh())
    }
    fn free(&mut self, _b: BufferId) {}
    fn open_queue(&mut self, _d: DeviceId, _k: QueueKind) -> Result<QueueId, RuntimeError> {
        Ok(QueueId::fresh())
    }
    fn free_queue(&mut self, _q: QueueId) {}
    fn runs_graphs(&self, _d: DeviceId) -> bool {
        self.graphs
    }
    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        _w: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        if let Some(event) = event {
            let _ = self
                .tx
                .send(Completion::of(&command, event, (DeviceId(0), queue), 1));
        }
        Ok(())
    }
}
impl Backend for Stub {
    fn pins_host_memory(&self) -> bool {
        false
    }
    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let mut keeper = vec![0u8; bytes as usize];
        let address = std::ptr::NonNull::new(keeper.as_mut_ptr()).unwrap();
        Ok(HostRegion {
            id: HostMemoryId::fresh(),
            address,
            bytes,
            keeper: Arc::new(keeper),
        })
    }
    fn adopt_host(&mut self, _r: HostRegion) -> Result<(), RuntimeError> {
        Ok(())
    }
    fn forget_host(&mut self, _m: HostMemoryId) {}
    fn can_omit_events(&self) -> bool {
        true
    }
}
fn codelet() -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "nothing".into(),
        host: Some(HostCode::Kernel(|_, _, _| {})),
        opencl: Some(OpenClKernel {
            source: KernelSource::new("", "none", "nothing", ""),
            fp64: false,
            shape: Shape::Of(|_, _| NdRange::new(vec![1])),
        }),
    })
}
fn layer(heads: usize, wanted: bool) -> (TaskGraph, Components) {
    let codelet = codelet();
    let bytes = 1 << 12;
    let mut graph = GraphBuilder::default();
    let x = graph.datum(Datum::new("x", bytes).with(Contents::zeros()));
    for head in 0..heads {
        let mut made = Vec::new();
        for kernel in 0..HEAD {
            let input = match kernel {
                0..3 => vec![
                    x,
                    graph.datum(Datum::new("w", bytes).with(Contents::zeros())),
                ],
                3 => vec![made[1]],
                4 => vec![made[0], made[3]],
                5 => vec![made[4]],
                6 => vec![made[5], made[2]],
                _ => vec![
                    made[6],
                    graph.datum(Datum::new("w", bytes).with(Contents::zeros())),
                ],
            };
            let mut out = Datum::new("made", bytes);
            out.wanted = wanted && kernel == HEAD - 1;
            let out = graph.datum(out);
            made.push(out);
            graph.kernel(Kernel {
                name: format!("{head}.{kernel}").into(),
                codelet: Arc::clone(&codelet),
                units: 0..1,
                arguments: input
                    .into_iter()
                    .map(Argument::Input)
                    .chain([Argument::FullOutput(out)])
                    .collect(),
                cost: Cost {
                    flops: 1e6,
                    bytes: 1e6,
                },
                prefers: None,
            });
        }
    }
    let graph = graph.build().unwrap();
    let components = Components::by(&graph, |kernel| kernel.0 / HEAD).unwrap();
    (graph, components)
}
fn main() {
    let machine = MachineStore::of_user().find("h200").unwrap();
    let sim = Sim::new(&machine, SimOptions::default()).unwrap();
    let gpu = sim
        .devices()
        .iter()
        .find(|d| !d.shares_host_memory)
        .unwrap()
        .clone();
    for wanted in [false, true] {
        let mut made: Vec<_> = [false, true]
            .into_iter()
            .map(|graphs| {
                let (tx, rx) = unbounded();
                let stub = Stub {
                    devices: vec![gpu.clone()],
                    tx,
                    graphs,
                };
                let mut union = Union::new(vec![Box::new(stub)], rx, Instant::now());
                let (graph, components) = layer(16, wanted);
                let (graph, components) = (Arc::new(graph), Arc::new(components));
                let able = abilities(&graph, &components, union.devices());
                let problem = problem(&graph, &components, &union, &able, &Vec::new());
                let policy = Clustering::new(problem, vec![0; 16]).unwrap();
                let prepared = PreparedGraph::new(&mut union, graph, components).unwrap();
                (union, policy, prepared)
            })
            .collect();
        let mut options = Options::queues(vec![8]);
        options.widths = vec![1];
        options.keep = true;
        let stop = AtomicBool::new(false);
        let mut seconds = [Vec::new(), Vec::new()];
        let mut outer = [Vec::new(), Vec::new()];
        let mut g = [0, 0];
        for _ in 0..4000 {
            for (i, (union, policy, prepared)) in made.iter_mut().enumerate() {
                let mut control = Control {
                    stop: &stop,
                    progress: &mut |_, _| {},
                };
                let t = Instant::now();
                let outcome = prepared
                    .run(union, policy as &mut dyn Policy, &options, &mut control)
                    .unwrap();
                outer[i].push(t.elapsed().as_secs_f64() * 1e6);
                seconds[i].push(outcome.seconds * 1e6);
                g[i] = outcome.uses[0].graphs;
            }
        }
        let median = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2]
        };
        for i in 0..2 {
            println!(
                "wanted {wanted} graphs {}: run {:.1} us, with begin {:.1} us",
                g[i],
                median(&mut seconds[i]),
                median(&mut outer[i])
            );
        }
    }
}
