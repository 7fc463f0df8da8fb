//! The design of a profile of products: matrices of many shapes and sizes, and a few
//! ways to compute each. Pure.

use crate::engine::corun::Stream;
use crate::engine::corun::product::ProductDivision;
use crate::machine::host::Topology;
use crate::profile::configuration::{DeviceUse, ModelKind, Setting};
use crate::profile::design::Gpu;
use crate::workload::Divisible;
use crate::workload::spmv::{Spmv, arrange};

/// Generated matrices to learn from. Every prefix has all shapes (uniform rows, webs,
/// circuits, bands, power laws) and both ends of the sizes. No matrix is a look-alike
/// of a known one, so look-alikes can be held out.
pub const TRAINING: [&str; 50] = [
    "uniform:1000000,12",
    "web:800000",
    "circuit:2500000,11",
    "banded:500000,8",
    "rmat:19,16",
    "uniform:20000000,2",
    "web:100000,40",
    "circuit:500000,6",
    "banded:4000000,1",
    "rmat:22,3",
    "uniform:300000,40",
    "web:2000000,9",
    "circuit:200000",
    "banded:60000,40",
    "rmat:16,24",
    "uniform:5000000,3",
    "web:30000",
    "circuit:6000000",
    "banded:2000000,5",
    "rmat:21,8",
    "uniform:40000000,2",
    "web:400000,30",
    "circuit:1500000,14",
    "banded:20000,10",
    "rmat:18,6",
    "uniform:60000,8",
    "web:1500000,20",
    "circuit:60000,20",
    "banded:1000000,2",
    "rmat:20,20",
    "uniform:10000000,2",
    "web:200000,10",
    "circuit:4000000,12",
    "banded:8000000,1",
    "rmat:17,40",
    "uniform:2000000,5",
    "web:1000000,30",
    "circuit:1000000,5",
    "banded:150000,64",
    "rmat:23,2",
    "uniform:150000,100",
    "web:60000,24",
    "circuit:2000000,20",
    "banded:300000,20",
    "rmat:20,8",
    "uniform:30000000,3",
    "web:3000000,12",
    "circuit:300000,30",
    "banded:100000,3",
    "rmat:18,32",
];

/// The parts of the rows that may count as irregular, in turns: the paper's value
/// twice.
const IRREGULAR: [f64; 4] = [arrange::IRREGULAR, 0.0, arrange::IRREGULAR, 0.7];

/// That of the `number`th matrix of the training.
pub fn irregular(number: usize) -> f64 {
    IRREGULAR[number / SHAPES % IRREGULAR.len()]
}

/// Shapes that follow one another in [`TRAINING`].
const SHAPES: usize = 5;

/// Chunks into which a pool's units are cut, by turns.
const CUTS: [u64; 3] = [8, 1, 3];

/// The settings of a device that streams, in turns: the part held, bytes of a chunk,
/// and queues.
const STREAMED: [(f64, u64, u32); 4] = [
    (0.5, 4 << 20, 3),
    (0.0, 8 << 20, 3),
    (0.25, 16 << 20, 2),
    (0.75, 4 << 20, 4),
];

/// The devices and settings of the `number`th product: all of the host's cores and a
/// part of them, and each GPU with everything held, without and with barriers, and with
/// a part streamed.
pub fn device_uses(
    spmv: &Spmv,
    number: usize,
    topology: &Topology,
    gpus: &[Gpu],
) -> Vec<DeviceUse> {
    let units = spmv.units();
    let turn = |of: usize| number % of;
    let pool = |workers: usize, cuts: u64| {
        let cores = topology.numbers();
        let taken = topology.take(workers, None, &cores);
        let setting = Setting::Host {
            workers: workers as u32,
            sockets: topology.sockets_of(&taken) as u32,
            placement: None,
            chunk: units.div_ceil(cuts),
        };
        device_use(ModelKind::Cpu, "host", setting, spmv)
    };
    let cores = topology.cores().max(1);
    let fewer = (cores >> (1 + turn(3))).max(1);
    let mut device_uses = vec![pool(cores, 1), pool(fewer, CUTS[turn(CUTS.len())])];
    if fewer == cores {
        device_uses[1] = pool(cores, 8);
    }
    for gpu in gpus {
        device_uses.extend(on(gpu, spmv, STREAMED[turn(STREAMED.len())]));
    }
    let mut distinct = Vec::new();
    for device_use in device_uses {
        if !distinct.contains(&device_use) {
            distinct.push(device_use);
        }
    }
    distinct
}

fn on(gpu: &Gpu, spmv: &Spmv, streamed: (f64, u64, u32)) -> Vec<DeviceUse> {
    let units = spmv.units();
    let of = |setting| device_use(ModelKind::Gpu, &gpu.name, setting, spmv);
    if !gpu.own {
        return vec![of(Setting::Shared {
            workers: gpu.compute_units,
            chunk: units,
        })];
    }
    let (part, bytes, queues) = streamed;
    let desired = |held: u64, ahead: bool, bytes: u64, queues: u32| {
        let chunk = (bytes / spmv.unit_bytes()).clamp(1, units);
        let stream = Stream {
            chunk: Some(chunk),
            queues: Some(queues),
        };
        let division = ProductDivision::of(spmv, gpu.memory, gpu.largest, stream).ok()?;
        (division.held.units >= held && division.queues == queues).then(|| {
            of(Setting::Discrete {
                memory: gpu.memory,
                held,
                chunk: division.chunk.units,
                queues,
                ahead,
            })
        })
    };
    let held = (part * units as f64) as u64;
    [
        desired(units, true, 4 << 20, 3),
        desired(units, false, 4 << 20, 3),
        desired(held, false, bytes, queues),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn device_use(kind: ModelKind, device: &str, setting: Setting, spmv: &Spmv) -> DeviceUse {
    DeviceUse {
        kind,
        device: device.to_owned(),
        setting,
        fp64: spmv.fp64(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::matrix::{MatrixSource, control};
    use crate::workload::spmv::Options;

    #[test]
    fn training_matrices_are_fifty_and_none_is_a_look_alike() {
        assert_eq!(TRAINING.iter().collect::<HashSet<_>>().len(), 50);
        for text in TRAINING {
            let source: MatrixSource = text.parse().unwrap();
            assert_eq!(source.name(), text);
        }
    }

    #[test]
    fn a_product_is_held_and_streamed_and_computed_by_the_cores() {
        let source: MatrixSource = "banded:2000,3".parse().unwrap();
        let loaded = control::quietly(|control| source.load(control)).unwrap();
        let spmv = Spmv::new("", Arc::new(loaded.csr), Options::default()).unwrap();
        let topology = Topology::described(1, 8);
        let gpu = |memory| Gpu {
            name: "gpu0".into(),
            compute_units: 10,
            memory,
            largest: memory,
            own: true,
        };
        let kinds =
            |device_uses: &[DeviceUse], kind| device_uses.iter().filter(|s| s.kind == kind).count();
        for number in 0..5 {
            let device_uses = device_uses(&spmv, number, &topology, &[gpu(1 << 30)]);
            assert_eq!(
                (
                    kinds(&device_uses, ModelKind::Cpu),
                    kinds(&device_uses, ModelKind::Gpu)
                ),
                (2, 3)
            );
        }
        // The vectors alone have 32 kB.
        let narrow = device_uses(&spmv, 0, &topology, &[gpu(40_000)]);
        assert_eq!(kinds(&narrow, ModelKind::Gpu), 0);
    }
}
