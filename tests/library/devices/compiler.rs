//! A kernel that does not compile: the error shows the compiler's log.

use std::ops::Range;
use std::sync::Arc;

use pdawl_api::balance::Strategy;
use pdawl_api::codelet::stencil::Precision::F64;
use pdawl_api::codelet::{Codelet, Cost, KernelSource, OpenClKernel, Value};
use pdawl_api::engine::corun::CorunError;
use pdawl_api::runtime::{Devices, RuntimeError};
use pdawl_api::verify::Compared;
use pdawl_api::workload::stencil::Stencil;
use pdawl_api::workload::{self, Data, Divisible, Ending, FirstVersionError, Ring};

use super::harness::{Grid, by, corun, run};
use crate::pocl::open;

/// A stencil whose OpenCL kernel does not compile.
struct Mistaken(Stencil);

impl Divisible for Mistaken {
    fn name(&self) -> &'static str {
        "mistaken"
    }

    fn units(&self) -> u64 {
        self.0.units()
    }

    fn unit_bytes(&self) -> u64 {
        self.0.unit_bytes()
    }

    fn fp64(&self) -> bool {
        self.0.fp64()
    }

    fn codelet(&self) -> Arc<Codelet> {
        let right = self.0.codelet();
        Arc::new(Codelet {
            opencl: right.opencl.clone().map(|kernel| OpenClKernel {
                source: KernelSource::new(
                    "__kernel void mistaken(__global double *a) { a[0] = undeclared_here; }",
                    "mistaken.cl",
                    "mistaken",
                    "",
                ),
                ..kernel
            }),
            ..Codelet::clone(&right)
        })
    }

    fn cost(&self, units: &Range<u64>) -> Cost {
        self.0.cost(units)
    }

    fn data(&self) -> Data<'_> {
        Data::Grid(self)
    }
}

impl workload::Grid for Mistaken {
    fn unit_points(&self) -> u64 {
        self.0.unit_points()
    }

    fn dimensions(&self) -> u32 {
        self.0.dimensions()
    }

    fn halo(&self) -> u64 {
        self.0.halo()
    }

    fn args(&self, units: Range<u64>, from: &Ring, to: &Ring) -> Vec<Value> {
        self.0.args(units, from, to)
    }

    fn initial(&self, units: Range<u64>, bytes: &mut [u8]) -> Result<(), FirstVersionError> {
        self.0.initial(units, bytes)
    }

    fn verify(&self, steps: u32, ending: Option<Ending>, result: &[u8]) -> Compared {
        self.0.verify(steps, ending, result)
    }
}

#[test]
fn a_kernel_that_does_not_compile_shows_the_compilers_log() {
    let grid = Grid::new(17, 19, None, F64);
    for devices in ["cpu:1=own", "host:1,cpu:1=own", "host:1,cpu:1"] {
        let mut runtime = open(devices);
        let ran = corun(
            &mut runtime,
            &Mistaken(grid.stencil()),
            None,
            by(&Strategy::Dawl),
        );
        let text = match ran {
            // The host goes on without the device.
            Ok(outcome) => {
                assert!(devices.starts_with("host"), "{devices}");
                let [loss] = &outcome.losses[..] else {
                    panic!("{devices}: {:?}", outcome.losses)
                };
                format!("{}: {}", runtime.devices()[loss.device].name, loss.why)
            }
            Err(error) => {
                assert!(
                    matches!(&error, CorunError::Runtime(RuntimeError::Build { .. })),
                    "{devices}: {error:?}"
                );
                error.to_string()
            }
        };
        for part in ["opencl", "`mistaken (mistaken.cl)`", "undeclared_here"] {
            assert!(text.contains(part), "{devices}: {part} in {text}");
        }
        // The devices can be used after the failure.
        run(&mut runtime, grid, "dawl", None);
    }
}
