//! A workload in a simulated cluster.

use super::tasks::Source;
use super::{Cluster, Options, Report, SimulateError, run};
use crate::workload::cluster::ClusterWorkload;
use pdawl_core::cluster::info::speeds;
use pdawl_core::cluster::space::Spaces;

/// Runs all tasks of a workload, each with the data where the tasks before it left them.
/// `tile` is the height and the width of blocks, where the placement of inputs has some.
/// Nothing is computed, and no contents are generated.
///
/// # Errors
/// As [`simulate`](super::simulate).
pub fn simulate_workload(
    cluster: &Cluster,
    workload: &dyn ClusterWorkload,
    tile: u64,
    options: &Options,
) -> Result<Report, SimulateError> {
    let mut spaces = Spaces::default();
    let speeds = speeds(&cluster.infos());
    let ids = workload.spaces().into_iter().map(|space| {
        let Some(contents) = space.contents else {
            return spaces.add(space.extent, []);
        };
        let layout = contents.layout;
        let blocks = layout.blocks(space.extent, [tile, tile], &speeds);
        match contents.is_made {
            true => spaces.add_made(space.extent, blocks),
            false => spaces.add(space.extent, blocks),
        }
    });
    let ids = ids.collect();
    let tasks = Source::Workload {
        workload,
        spaces: ids,
    };
    run(cluster, &spaces, tasks, options)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::simulate::tests::machine;
    use crate::cluster::simulate::{Resource, simulate};
    use crate::codelet::Precision;
    use crate::machine::cluster::NetworkSpec;
    use crate::spread::NamedSpread;
    use crate::workload::cluster::program::Program;
    use crate::workload::cluster::{
        ConvolutionWorkload, FftWorkload, Fill, LuWorkload, Placement, Product,
    };
    use pdawl_core::cluster::space::{Block, SpaceId};
    use pdawl_core::cluster::task::Task;

    /// Equal nodes, which compute so many operations a second.
    fn cluster(nodes: usize, flops: f64, full_duplex: bool) -> Cluster {
        Cluster {
            nodes: vec![machine(flops); nodes],
            network: NetworkSpec {
                bandwidth: 1e6,
                latency_ns: 10_000,
                message_ns: 1_000,
                full_duplex,
                switch_bandwidth: None,
            },
        }
    }

    /// Contents that nobody may ask for.
    fn unused() -> Fill {
        Arc::new(|_: &Block, _: &mut [u8]| panic!("a simulation needs no contents"))
    }

    fn matmul(size: u64, tile: u64, placement: Placement) -> Program {
        let product = Product {
            rows: size,
            columns: size,
            depth: size,
            precision: Precision::F32.into(),
            a: unused(),
            b: unused(),
        };
        product.in_blocks(tile, placement)
    }

    fn fft() -> Program {
        let fft = FftWorkload {
            rows: 64,
            columns: 64,
            placement: Placement::Rows,
            matrix: unused(),
        };
        fft.program(4)
    }

    fn workloads() -> Vec<(Box<dyn ClusterWorkload>, u64)> {
        vec![
            (Box::new(matmul(60, 16, Placement::RowCyclic)), 16),
            (Box::new(fft()), 4),
            (
                Box::new(
                    LuWorkload {
                        size: 50,
                        tile: 8,
                        precision: Precision::F64,
                        by_columns: false,
                        placement: Placement::ColumnCyclic,
                        matrix: unused(),
                    }
                    .program(),
                ),
                8,
            ),
            (
                Box::new(
                    ConvolutionWorkload {
                        rows: 70,
                        columns: 50,
                        channels: 2,
                        size: 5,
                        placement: Placement::Random { seed: 3 },
                        image: unused(),
                        filter: unused(),
                    }
                    .program(12),
                ),
                12,
            ),
        ]
    }

    #[test]
    fn every_subtask_of_every_task_counts_once() {
        for spread in NamedSpread::all() {
            for (workload, tile) in workloads() {
                let options = Options {
                    spread,
                    noise: 0.1,
                    ..Options::default()
                };
                let cluster = cluster(3, 1e6, true);
                let report = simulate_workload(&cluster, &*workload, tile, &options).unwrap();
                let spaces = workload.spaces().len() as u32;
                let ids: Vec<_> = (0..spaces).map(SpaceId).collect();
                let tasks = (0..workload.tasks()).map(|number| workload.task(number, &ids));
                let all: u64 = tasks.map(|task| task.count()).sum();
                let names = ["a", "b", "c"].map(str::to_owned);
                let outcome = report.outcome(&names, workload.tasks());
                let sum = |of: fn(&pdawl_core::cluster::record::NodeRecord) -> u64| -> u64 {
                    outcome.nodes.iter().map(of).sum()
                };
                let name = workload.name();
                assert_eq!(sum(|node| node.subtasks), all, "{name}, {spread}");
                let computed = sum(|node| node.devices[0].subtasks);
                assert!(
                    computed <= all + sum(|node| node.copied),
                    "{name}, {spread}"
                );
                assert_eq!(sum(|node| node.sent_bytes), sum(|node| node.received_bytes));
                for node in &outcome.nodes {
                    let both = node.busy_seconds + node.idle_seconds;
                    assert!(
                        (both / outcome.seconds - 1.0).abs() < 1e-9,
                        "{name}: {both}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_workloads_tasks_run_as_tasks_that_are_given() {
        let (workload, cluster) = (fft(), cluster(4, 1e6, true));
        let options = Options::default();
        let one = simulate_workload(&cluster, &workload, 4, &options).unwrap();
        let mut spaces = Spaces::default();
        for space in workload.spaces() {
            let blocks = space
                .contents
                .map(|contents| contents.layout.blocks(space.extent, [4, 4], &[1.0; 4]));
            spaces.add(space.extent, blocks.unwrap_or_default());
        }
        let ids: Vec<_> = (0..3).map(SpaceId).collect();
        let tasks: Vec<Arc<dyn Task>> = (0..2)
            .map(|number| -> Arc<dyn Task> { workload.task(number, &ids) })
            .collect();
        let other = simulate(&cluster, &spaces, &tasks, &options).unwrap();
        assert_eq!((one.seconds, &one.nodes), (other.seconds, &other.nodes));
    }

    #[test]
    fn a_task_finds_data_where_the_task_before_left_them() {
        let options = Options {
            spread: NamedSpread::Static,
            ..Options::default()
        };
        let report = simulate_workload(&cluster(4, 1e6, true), &fft(), 4, &options).unwrap();
        // Each node has a quarter of the rows, transforms them, and needs a quarter of the
        // columns, of which it has a quarter.
        for node in &report.nodes {
            assert_eq!(
                (node.counts.subtasks, node.bytes_in),
                (8, 64 * 64 * 8 / 4 * 3 / 4)
            );
        }
    }

    #[test]
    fn matrices_need_no_memory() {
        // Each of the three matrices has 4 TiB.
        let workload = matmul(1 << 20, 1 << 17, Placement::Rows);
        let cluster = cluster(2, 1e15, true);
        let report = simulate_workload(&cluster, &workload, 1 << 17, &Options::default());
        assert!(report.unwrap().seconds > 1000.0);
    }

    #[test]
    fn the_busiest_part_limits_the_run() {
        let busiest = |cluster: &Cluster, placement| {
            let workload = matmul(64, 16, placement);
            // Others fetch whatever it costs.
            let options = Options {
                spread: NamedSpread::Static,
                ..Options::default()
            };
            let report = simulate_workload(cluster, &workload, 16, &options);
            report.unwrap().busiest.unwrap()
        };
        let slow = busiest(&cluster(2, 1e4, true), Placement::Rows);
        assert_eq!(slow.resource, Resource::Device(0, "host".to_owned()));
        assert!(slow.share > 0.9, "{}", slow.share);
        // All others fetch what node 0 has.
        let fast = busiest(&cluster(4, 1e12, true), Placement::Central);
        assert_eq!(fast.resource, Resource::LinkOut(0));
        assert!(fast.share > 0.5 && fast.share <= 1.0, "{}", fast.share);
        // All links are of two directions, and both of them count.
        let mut switched = cluster(4, 1e12, true);
        switched.network.switch_bandwidth = Some(1e5);
        let switched = busiest(&switched, Placement::Central);
        assert_eq!(switched.resource, Resource::Switch);
        let half = busiest(&cluster(4, 1e12, false), Placement::Central);
        assert_eq!(half.resource, Resource::LinkOut(0));
    }
}
