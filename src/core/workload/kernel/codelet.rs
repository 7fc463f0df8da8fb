//! The codelet of a user's kernel: it launches a range of units with a global offset.

use std::ops::Range;
use std::sync::Arc;

use super::{Axis, preamble};
use crate::codelet::{Codelet, KernelSource, NdRange, OpenClKernel, Shape, Value};
use crate::graph::spec::Kernel;
use crate::graph::spec::source::KernelInfo;

/// Launches a kernel divided along `axis`, in groups of `local` work-items. Without
/// `local` it uses groups of `quick` work-items if they divide the launch.
pub(super) fn codelet(
    kernel: &Kernel,
    info: &KernelInfo,
    [local, quick]: [Option<&[u64]>; 2],
    axis: Axis,
) -> Arc<Codelet> {
    let text = preamble::before(&kernel.text, &kernel.source, &kernel.global, local);
    let source = KernelSource::new(
        text,
        kernel.source.display().to_string(),
        kernel.name.clone(),
        kernel.options.clone(),
    );
    let sizes = |sizes: &[u64]| -> Vec<usize> { sizes.iter().map(|n| *n as usize).collect() };
    let (global, local, quick) = (sizes(&kernel.global), local.map(sizes), quick.map(sizes));
    // Other kernels compute the same in groups of any size that a device can run.
    let needs_groups = info.uses_groups || info.required_local.is_some();
    let shape = Shape::with(move |units: &Range<u64>, _: &[Value]| {
        let items = axis.items(units);
        let (mut part, mut offset) = (global.clone(), vec![0; global.len()]);
        part[axis.dimension] = (items.end - items.start) as usize;
        offset[axis.dimension] = items.start as usize;
        let whole = |groups: &&Vec<usize>| part.iter().zip(*groups).all(|(n, g)| n % g == 0);
        let groups = local.as_ref().or(quick.as_ref().filter(whole)).cloned();
        let range = NdRange::new(part).starting_at(offset);
        match groups {
            Some(groups) if needs_groups => range.exactly(groups),
            Some(groups) => range.near(groups),
            None => range,
        }
    });
    Arc::new(Codelet {
        name: kernel.name.clone().into(),
        host: None,
        opencl: Some(OpenClKernel {
            source,
            fp64: info.fp64,
            shape,
        }),
        library: None,
    })
}
