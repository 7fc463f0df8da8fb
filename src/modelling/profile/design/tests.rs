//! What holds of every design.

use std::collections::HashSet;

use super::*;
use crate::codelet::stencil::Precision;
use crate::engine::corun::Stream;
use crate::engine::corun::grid::GridDivision;
use crate::engine::corun::memory::memory_limit;
use crate::machine::host::Topology;
use crate::machine::{MachineFile, MachineStore};
use crate::profile::configuration::Setting;

const COUNT: usize = 130;

fn machine(name: &str) -> MachineFile {
    MachineStore::at("/nonexistent").find(name).unwrap()
}

fn request() -> DesignRequest {
    DesignRequest {
        dimensions: 2,
        precision: Precision::F64,
        sizes: Vec::new(),
        most: None,
    }
}

fn space(machine: &MachineFile, request: &DesignRequest) -> Space {
    let host = &machine.host;
    let gpus = (machine.devices.iter()).map(|device| Gpu {
        name: device.name.clone(),
        compute_units: device.compute_units,
        memory: memory_limit(device.memory, None),
        largest: device.memory,
        own: !device.shares_host_memory,
    });
    Space::of(
        host,
        Topology::described(host.sockets, host.cores),
        gpus.collect(),
        host.memory,
        false,
        request,
    )
    .unwrap()
}

fn points(design: &[Configuration]) -> (u64, u64) {
    let points = || design.iter().map(|c| c.grid.points());
    (points().min().unwrap(), points().max().unwrap())
}

#[test]
fn every_configuration_is_possible_and_no_two_are_equal() {
    for name in ["k20-32", "k40", "titan", "h200", "laptop"] {
        for (dimensions, precision) in [(2, Precision::F64), (3, Precision::F32)] {
            let file = machine(name);
            let space = space(
                &file,
                &DesignRequest {
                    dimensions,
                    precision,
                    ..request()
                },
            );
            for kind in [ModelKind::Cpu, ModelKind::Gpu] {
                let design = design(&space, kind, COUNT);
                assert_eq!(design.len(), COUNT, "{name} {kind}");
                let names: HashSet<String> = design.iter().map(ToString::to_string).collect();
                assert_eq!(names.len(), COUNT, "{name} {kind}");
                for configuration in &design {
                    assert_eq!(configuration.device_use.kind, kind);
                    is_possible(configuration, &file);
                }
            }
        }
    }
}

fn is_possible(configuration: &Configuration, file: &MachineFile) {
    let grid = configuration.grid;
    grid.stencil(1).unwrap();
    assert!(2 * grid.bytes() <= file.host.memory, "{configuration}");
    let units = grid.units();
    match configuration.device_use.setting {
        Setting::Host {
            workers,
            sockets,
            chunk,
            ..
        } => {
            assert!((1..=file.host.cores).contains(&workers));
            assert!((1..=file.host.sockets.min(workers)).contains(&sockets));
            assert!((1..=units).contains(&chunk));
        }
        Setting::Shared { chunk, .. } => assert!((1..=units).contains(&chunk)),
        Setting::Discrete {
            memory,
            held,
            chunk,
            queues,
            ..
        } => {
            let device = (file.devices.iter())
                .find(|d| d.name == configuration.device_use.device)
                .unwrap();
            let stream = Stream {
                chunk: Some(chunk),
                queues: Some(queues),
            };
            assert!(memory < device.memory);
            let division =
                GridDivision::of(units, grid.unit_bytes(), memory, device.memory, stream).unwrap();
            assert_eq!((division.chunk, division.queues), (chunk, queues));
            assert!(held <= division.capacity.min(units), "{configuration}");
        }
    }
}

#[test]
fn a_longer_design_begins_with_a_shorter_one() {
    let space = space(&machine("k20-32"), &request());
    for kind in [ModelKind::Cpu, ModelKind::Gpu] {
        let whole = design(&space, kind, COUNT);
        for count in [0, 1, 7, 40, 129] {
            assert_eq!(design(&space, kind, count), whole[..count]);
        }
    }
}

#[test]
fn few_configurations_span_the_space_already() {
    let space = space(&machine("k20-32"), &request());
    let cpu = design(&space, ModelKind::Cpu, 10);
    let (least, most) = points(&cpu);
    assert!(
        least <= 500 * 500 && most >= 19_000 * 19_000,
        "{least} {most}"
    );
    let pools: Vec<(u32, u32, u64)> = (cpu.iter())
        .filter_map(|c| match c.device_use.setting {
            Setting::Host {
                workers,
                sockets,
                chunk,
                ..
            } => Some((workers, sockets, c.grid.units() / chunk)),
            _ => None,
        })
        .collect();
    for workers in [1, 32] {
        assert!(pools.iter().any(|p| p.0 == workers), "{pools:?}");
    }
    for sockets in [1, 2] {
        assert!(pools.iter().any(|p| p.1 == sockets), "{pools:?}");
    }
    assert!(pools.iter().any(|p| p.2 == 1) && pools.iter().any(|p| p.2 >= 24));

    let gpu = design(&space, ModelKind::Gpu, 15);
    let (least, most) = points(&gpu);
    assert!(
        least <= 500 * 500 && most >= 19_000 * 19_000,
        "{least} {most}"
    );
    let held: Vec<(u64, u64, u32)> = (gpu.iter())
        .filter_map(|c| match c.device_use.setting {
            Setting::Discrete { held, queues, .. } => Some((held, c.grid.units(), queues)),
            _ => None,
        })
        .collect();
    assert!(held.iter().any(|(held, units, _)| held == units));
    assert!(
        held.iter()
            .any(|(held, units, _)| *held > 0 && held < units)
    );
    assert!(held.iter().any(|(held, ..)| *held == 0));
    for queues in [1, 4] {
        assert!(held.iter().any(|h| h.2 == queues), "{held:?}");
    }
}

#[test]
fn sizes_lie_on_both_sides_of_caches_and_of_the_gpus_memory() {
    let mut file = machine("k20-32");
    let l3 = file.host.l3.unwrap();
    let simulated = space(&file, &request());
    for kind in [ModelKind::Cpu, ModelKind::Gpu] {
        let (least, most) = points(&design(&simulated, kind, COUNT));
        assert!(16 * least < l3 && 16 * most > 8 * l3, "{kind}");
    }
    // A real machine's L2 counts, too.
    file.host.l2 = Some(1 << 20);
    let topology = Topology::described(2, 32);
    let memory = file.host.memory;
    let real = Space::of(&file.host, topology, Vec::new(), memory, true, &request()).unwrap();
    let (least, _) = points(&design(&real, ModelKind::Cpu, COUNT));
    assert!(16 * least < 1 << 20, "{least}");
    // Half of the grid's next version does not fit: what little memory is for.
    let some = design(&simulated, ModelKind::Gpu, COUNT);
    let beyond = some.iter().filter(|c| match c.device_use.setting {
        Setting::Discrete { memory, .. } => memory < 2 * c.grid.bytes(),
        _ => false,
    });
    assert!(beyond.count() > COUNT / 2);
}

#[test]
fn some_axes_are_odd_and_some_rows_long() {
    let design = design(&space(&machine("k40"), &request()), ModelKind::Cpu, COUNT);
    let count = |of: &dyn Fn(&Configuration) -> bool| design.iter().filter(|c| of(c)).count();
    let few = COUNT / 8;
    assert!(count(&|c| c.grid.nx % 2 == 1 && c.grid.ny % 2 == 1) > few);
    assert!(count(&|c| c.grid.nx == c.grid.ny) > few);
    assert!(count(&|c| c.grid.nx > 10 * c.grid.ny) > few);
    assert!(count(&|c| c.grid.ny > 10 * c.grid.nx) > few);
}

#[test]
fn sizes_that_are_asked_for_are_the_only_ones() {
    let request = DesignRequest {
        sizes: vec![3000, 700, 3000],
        ..request()
    };
    let space = space(&machine("k40"), &request);
    for kind in [ModelKind::Cpu, ModelKind::Gpu] {
        let design = design(&space, kind, COUNT);
        let edges: HashSet<(u64, u64)> = design.iter().map(|c| (c.grid.nx, c.grid.ny)).collect();
        assert_eq!(edges, HashSet::from([(700, 700), (3000, 3000)]));
    }
}

#[test]
fn the_greatest_size_is_what_is_asked_for_or_fits() {
    let file = machine("k40");
    let of = |request: &DesignRequest, memory| {
        let (host, topology) = (&file.host, Topology::described(1, 8));
        Space::of(host, topology, Vec::new(), memory, false, request)
    };
    let most = |request: &DesignRequest, memory| of(request, memory).unwrap().most;
    assert_eq!(most(&request(), 16 << 30), 20_000);
    let less = most(&request(), 1 << 30);
    assert!((7000..7600).contains(&less), "{less}");
    assert_eq!(of(&request(), 1000).unwrap().least, 7);
    let asked = |most, sizes: &[u64]| DesignRequest {
        most,
        sizes: sizes.to_vec(),
        ..request()
    };
    assert_eq!(most(&asked(Some(30_000), &[]), 32 << 30), 30_000);
    for request in [asked(Some(30_000), &[]), asked(None, &[100, 30_000])] {
        let message = of(&request, 1 << 30).unwrap_err().to_string();
        assert_eq!(
            message,
            "two grids of size 30000 need 13.4 GiB, and 1.00 GiB of host memory may be used; \
             give smaller sizes"
        );
    }
    assert_eq!(
        of(&asked(None, &[2]), 1 << 30).unwrap_err(),
        SpaceError::TooSmall(2)
    );
    let cube = DesignRequest {
        dimensions: 3,
        ..request()
    };
    let space = of(&cube, 16 << 30).unwrap();
    assert_eq!((space.least, space.most), (63, 737));
}

#[test]
fn ends_come_first_and_gaps_are_halved() {
    let points: Vec<Vec<f64>> = (0..=16).map(|x| vec![f64::from(x)]).collect();
    let order = farthest_first(&points, 99);
    assert_eq!(order[..5], [16, 0, 8, 4, 12]);
    let mut all = order.clone();
    all.sort_unstable();
    assert_eq!(all, (0..=16).collect::<Vec<_>>());
    assert_eq!(farthest_first(&points, 3), order[..3]);
}

#[test]
fn equal_points_are_all_taken() {
    assert_eq!(farthest_first(&vec![vec![1.0]; 3], 9), [2, 0, 1]);
    assert_eq!(farthest_first(&[], 9), [] as [usize; 0]);
    assert_eq!(farthest_first(&[vec![0.0]], 0), [] as [usize; 0]);
}

#[test]
fn edges_have_equal_ratios() {
    let edges = edges(500, 20_000);
    assert_eq!(edges.len() as u32, LEVELS);
    assert_eq!((edges[0], edges[14]), (500, 20_000));
    for pair in edges.windows(2) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        assert!((1.29..1.32).contains(&ratio), "{pair:?}");
    }
    assert_eq!(super::edges(7, 9), [7, 8, 9]);
    assert_eq!(super::edges(9, 9), [9]);
}

#[test]
fn axes_are_odd_and_even_in_turns() {
    for (length, parity, expected) in [
        (500, 0, 500),
        (500, 1, 499),
        (501, 0, 500),
        (501, 1, 501),
        (2, 0, 4),
        (2, 1, 3),
    ] {
        assert_eq!(odd_or_even(length, parity), expected);
    }
}
