use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use pdawl::engine::graph::problem::problem;
use pdawl::engine::graph::{Control, Options, PreparedGraph, abilities};
use pdawl::graph::Components;
use pdawl::machine::MachineStore;
use pdawl::runtime::sim::{Sim, SimDevice, SimOptions};
use pdawl::runtime::Devices;
use pdawl::workload::task_set::*;
use pdawl::policy::*;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let sets: Vec<String> = args[2].split(',').map(String::from).collect();
    let env = |n: &str, d: &str| std::env::var(n).unwrap_or(d.into());
    let window: usize = env("W", "16").parse().unwrap();
    let limit = env("MEM", "500").parse::<u64>().unwrap() << 20;
    for set in &sets { for machine in args[1].split(',') {
        let (set, flags) = set.split_once('+').unwrap_or((set, ""));
        let (set, n) = set.split_once(':').unwrap();
        let n: u32 = n.parse().unwrap();
        let outputs = flags.contains('o');
        let tasks = match set {
            "matmul2d" => Tasks::Matmul2d(Matmul2d { outputs, ..Matmul2d::paper(n) }),
            "sparse" => Tasks::Matmul2d(Matmul2d { outputs, ..Matmul2d::sparse(n) }),
            "matmul3d" => Tasks::Matmul3d(Matmul3d { sum: flags.contains('s'), ..Matmul3d::paper(n) }),
            _ => Tasks::Cholesky(Cholesky { dependencies: flags.contains('d'), ..Cholesky::paper(n) }),
        };
        let mut ts = TaskSet::paper(tasks);
        if flags.contains('r') { ts.order = Order::Random; }
        let graph = Arc::new(ts.graph().unwrap());
        let components = Arc::new(Components::single_kernels(&graph));
        let file = MachineStore::of_user().find(machine).unwrap();
        let ng = file.devices.len();
        let mut line = format!("{machine} {set}:{n}+{flags:3}");
        for name in args[3].split(',') {
            let gpus = file.devices.iter().map(|d| SimDevice::Named(d.name.clone())).collect();
            let mut sim = Sim::new(&file, SimOptions { devices: Some(gpus), ..SimOptions::default() }).unwrap();
            let devices = sim.devices().to_vec();
            let able = abilities(&graph, &components, &devices);
            let times: Vec<Vec<Option<f64>>> = graph.kernels().iter().map(|k| vec![Some(k.cost.flops / 12.799075e12); ng]).collect();
            let mut p = problem(&graph, &components, &sim, &able, &times);
            for d in &mut p.devices { d.memory = Some(limit); }
            let d = DartsOptions { window, ..DartsOptions::default() };
            let l = ListOptions { window, ..ListOptions::default() };
            let mut policy: Box<dyn Policy> = match name {
                "eager" => Box::new(Eager::with_window(p, window)),
                "dmdar" => Box::new(Dmdar::new(p, l)),
                "dmdar+luf" => Box::new(Dmdar::new(p, ListOptions { eviction: Eviction::Luf, ..l })),
                "darts" => Box::new(Darts::new(p, DartsOptions { eviction: Eviction::Lru, ..d })),
                "darts+luf" => Box::new(Darts::new(p, d)),
                "darts3" => Box::new(Darts::new(p, DartsOptions { three_inputs: true, ..d })),
                "partition" => Box::new(Assigned::by_partition(p, l, 1)),
                "mhfp" => Box::new(Assigned::by_packages(p, l)),
                _ => Box::new(Locality::new(p, window, 1)),
            };
            let flops: f64 = graph.kernels().iter().map(|k| k.cost.flops).sum();
            let mut prepared = PreparedGraph::new(&sim, graph.clone(), components.clone()).unwrap();
            prepared.limit_memory(limit);
            let stop = AtomicBool::new(false);
            let mut control = Control { stop: &stop, progress: &mut |_, _| {} };
            let t = Instant::now();
            match prepared.run(&mut sim, policy.as_mut(), &Options::queues(vec![1; devices.len()]), &mut control) {
                Ok(o) => {
                    let h2d: u64 = o.uses.iter().map(|u| u.bytes_h2d).sum();
                    let d2h: u64 = o.uses.iter().map(|u| u.bytes_d2h).sum();
                    let peer: u64 = o.uses.iter().map(|u| u.bytes_peer).sum();
                    line += &format!(" | {name}: {:.0} [{:.0} in {:.0} back {:.0} peer MB, {:.2} s]", flops / o.seconds / 1e9, h2d as f64 / 1e6, d2h as f64 / 1e6, peer as f64 / 1e6, t.elapsed().as_secs_f64());
                }
                Err(e) => line += &format!(" | {name}: {e}"),
            }
        }
        println!("{line}");
    } }
}
