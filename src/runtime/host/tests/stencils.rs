//! The stencils through the backend.

use proptest::prelude::*;

use super::*;
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Grid, Ring};

/// One step of a stencil by a scalar loop, as `codelet::stencil` defines it.
fn scalar_step(stencil: &Stencil, from: &[f64]) -> Vec<f64> {
    let (nx, ny, nz) = stencil.shape();
    let (nx, ny, planes) = (nx as usize, ny as usize, nz.unwrap_or(1) as usize);
    let mut to = from.to_vec();
    let plane = nx * ny;
    let inner = |i: usize, n: usize| i > 0 && i + 1 < n;
    for z in 0..planes {
        for y in 0..ny {
            for x in 0..nx {
                let i = z * plane + y * nx + x;
                if !inner(x, nx) || !inner(y, ny) || (nz.is_some() && !inner(z, planes)) {
                    continue;
                }
                let flat = (from[i - nx] + from[i + nx]) + (from[i - 1] + from[i + 1]);
                to[i] = match nz {
                    None => (flat + from[i]) * (1.0 / 5.0),
                    Some(_) => {
                        (flat + ((from[i - plane] + from[i + plane]) + from[i])) * (1.0 / 7.0)
                    }
                };
            }
        }
    }
    to
}

fn stencil_matches(stencil: &Stencil, workers: usize, chunks: u64, steps: usize) {
    let (mut backend, receiver) = open(&[pool(workers)]);
    let bytes = stencil.units() * stencil.unit_bytes();
    let mut grids = [(); 2].map(|()| backend.alloc_host(bytes).unwrap());
    stencil
        .initial(0..stencil.units(), bytes_of(&mut grids[0]))
        .unwrap();
    let mut expected: Vec<f64> = bytemuck::cast_slice(bytes_of(&mut grids[0])).to_vec();
    let queues = [(); 2].map(|()| backend.queue(DeviceId(0)).unwrap());
    let ring = |grid: &HostRegion| Ring {
        memory: Memory::Host(grid.id),
        slots: stencil.units(),
        unit: 0,
        slot: 0,
    };
    let mut before: Vec<EventId> = Vec::new();
    for step in 0..steps {
        let (from, to) = (ring(&grids[step % 2]), ring(&grids[(step + 1) % 2]));
        let chunk = stencil.units().div_ceil(chunks);
        let mut events = Vec::new();
        for (n, begin) in (0..stencil.units()).step_by(chunk as usize).enumerate() {
            let units = begin..(begin + chunk).min(stencil.units());
            let command = Command::Launch(Launch {
                codelet: stencil.codelet(),
                units: units.clone(),
                args: stencil.args(units.clone(), &from, &to),
                cost: stencil.cost(&units),
            });
            events.push(submit(&mut backend, queues[n % 2], command, &before));
        }
        before = events;
        expected = scalar_step(stencil, &expected);
    }
    for _ in 0..steps * stencil.units().div_ceil(stencil.units().div_ceil(chunks)) as usize {
        assert_eq!(next(&receiver).status, Status::Done);
    }
    let result: &[f64] = bytemuck::cast_slice(bytes_of(&mut grids[steps % 2]));
    let same = result
        .iter()
        .zip(&expected)
        .all(|(a, b)| a.to_bits() == b.to_bits());
    assert!(same, "{:?} on {workers} workers", stencil.shape());
}

fn stencil(nx: u64, ny: u64, nz: Option<u64>) -> Stencil {
    let precision = crate::codelet::stencil::Precision::F64;
    Stencil::new(nx, ny, nz, precision, 7).unwrap()
}

#[test]
fn stencils_agree_bit_for_bit_with_a_scalar_loop() {
    for (nx, ny, nz) in [
        (3, 3, None),
        (17, 4099, None),
        (4099, 17, None),
        (3, 3, Some(3)),
        (31, 37, Some(41)),
    ] {
        for workers in [1, 2, 3] {
            stencil_matches(&stencil(nx, ny, nz), workers, 3, 4);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn stencils_agree_however_they_are_cut(
        nx in 3u64..200, ny in 3u64..200, nz in proptest::option::of(3u64..12),
        workers in 1usize..4, chunks in 1u64..9, steps in 1usize..4,
    ) {
        stencil_matches(&stencil(nx, ny, nz), workers, chunks, steps);
    }
}
