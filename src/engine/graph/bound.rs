//! The least time that a machine allows for a graph.

use std::collections::HashSet;

use pdawl_core::graph::TaskGraph;

use crate::machine::{Device, DeviceKind, MachineFile};
use crate::runtime::sim::device_model::KernelDemand;

/// Seconds that no schedule of a graph goes below on these devices: all of them compute all the
/// time at the rate that the machine file has for the kernel that is fastest there, and each datum
/// that the host gives or wants is copied once. `None` if the file limits neither.
pub fn least_seconds(graph: &TaskGraph, machine: &MachineFile, devices: &[Device]) -> Option<f64> {
    let flops: f64 = graph.kernels().iter().map(|kernel| kernel.cost.flops).sum();
    let kinds: HashSet<(&str, bool)> = (graph.kernels().iter())
        .map(|kernel| KernelDemand::of(&kernel.codelet, &kernel.units, kernel.cost))
        .map(|kernel| (kernel.codelet, kernel.fp64))
        .collect();
    let fastest = |device: &Device| {
        let rates = kinds.iter().map(|kind| rate(machine, device, *kind));
        rates.reduce(|a, b| Some(a?.max(b?))).flatten()
    };
    let rates: Option<f64> = devices.iter().map(fastest).sum();
    let computing = rates.map(|rate| flops / rate);
    // Devices that compute in host memory need no copies.
    let separate = devices.iter().all(|device| !device.shares_host_memory);
    let copying = separate.then(|| copying(graph, machine, devices));
    let least = computing.into_iter().chain(copying).fold(0.0, f64::max);
    (least > 0.0).then_some(least)
}

/// Operations of a codelet a second; `None` if only memory limits the device.
fn rate(machine: &MachineFile, device: &Device, (codelet, fp64): (&str, bool)) -> Option<f64> {
    if let Some(spec) = machine.devices.iter().find(|d| d.name == device.name) {
        return spec.flops(codelet, fp64);
    }
    // The host, or a part of its cores, which count twice as fast in single precision.
    let part = f64::from(device.compute_units) / f64::from(machine.host.cores.max(1));
    let is_host = device.kind == DeviceKind::Cpu;
    machine
        .host
        .flops
        .filter(|_| is_host)
        .map(|f| if fp64 { f * part } else { 2.0 * f * part })
}

/// Seconds of the copies that every schedule makes.
fn copying(graph: &TaskGraph, machine: &MachineFile, devices: &[Device]) -> f64 {
    let (mut loaded, mut stored) = (0, 0);
    for id in graph.datum_ids() {
        let datum = graph.datum(id);
        if datum.contents.is_some() && !graph.readers(id).is_empty() {
            loaded += datum.bytes;
        }
        // What the host gives is there already.
        if datum.wanted && datum.contents.is_none() {
            stored += datum.bytes;
        }
    }
    let (loaded, stored) = (loaded as f64, stored as f64);
    if let Some(bus) = machine.host.bus_bandwidth {
        return (loaded + stored) / bus;
    }
    let takes_part = |name: &str| devices.iter().any(|device| device.name == name);
    let used = machine.devices.iter().filter(|d| takes_part(&d.name));
    let links = used.filter_map(|device| device.link.as_ref());
    let (h2d, d2h) = links.fold((0.0, 0.0), |sum, link| (sum.0 + link.h2d, sum.1 + link.d2h));
    // Both directions at once.
    (loaded / h2d).max(stored / d2h)
}

#[cfg(test)]
mod tests {
    use pdawl_core::graph::{Argument, Datum, GraphBuilder, Kernel};

    use super::*;
    use crate::codelet::tile::GemmTile;
    use crate::codelet::{NumberFormat, ProductPrecision};
    use crate::machine::find;
    use crate::runtime::Devices;
    use crate::runtime::sim::{Sim, SimOptions};

    #[test]
    fn a_product_is_bounded_by_the_rate_of_its_numbers() {
        let machine = find("h200,gpu0.flops_f16=9e14").expect("a machine");
        let sim = Sim::new(&machine, SimOptions::default()).expect("a simulator");
        let gpu: Vec<Device> = sim
            .devices()
            .iter()
            .filter(|of| of.name == "gpu0")
            .cloned()
            .collect();
        for (precision, rate) in [
            (ProductPrecision::Double, 34e12),
            (NumberFormat::F32.into(), 67e12),
            (NumberFormat::Bf16.into(), 9e14),
        ] {
            let product = GemmTile::new(precision, 1024, 1024, 1024);
            let mut graph = GraphBuilder::default();
            let result = graph.datum(Datum::new("c", 8 << 20));
            graph.kernel(Kernel {
                name: "product".into(),
                codelet: product.codelet().into(),
                units: 0..product.units(),
                arguments: vec![Argument::FullOutput(result)],
                cost: product.cost(),
                prefers: None,
            });
            let graph = graph.build().expect("a graph");
            let least = least_seconds(&graph, &machine, &gpu).expect("a bound");
            let expected = product.cost().flops / rate;
            assert!(
                (least / expected - 1.0).abs() < 1e-9,
                "{least} for {expected}"
            );
        }
    }
}
