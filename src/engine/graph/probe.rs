//! A graph with one kernel of each codelet of another graph, on data of its own: what the
//! seconds of all kernels are estimated from.

use std::collections::HashMap;

use crate::random::uniform;
use pdawl_core::graph::{
    Argument, Contents, Datum, DatumId, GraphBuilder, GraphError, HostSpace, HostSpaceId, Kernel,
    Place, SpaceContents, TaskGraph,
};

/// The most and the least costly kernel of each codelet, each by itself.
///
/// # Errors
/// None that the other graph has not.
pub fn probe(of: &TaskGraph) -> Result<TaskGraph, GraphError> {
    let mut chosen: HashMap<&str, [&Kernel; 2]> = HashMap::new();
    let weight = |kernel: &Kernel| (kernel.cost.flops, kernel.cost.bytes);
    for kernel in of.kernels() {
        let [least, most] = chosen
            .entry(kernel.codelet.name.as_str())
            .or_insert([kernel; 2]);
        if weight(kernel) > weight(most) {
            *most = kernel;
        }
        if weight(kernel) < weight(least) {
            *least = kernel;
        }
    }
    // In an order that every process finds.
    let kernels = of.kernels().iter();
    let kernels = kernels.filter(|kernel| {
        let chosen = chosen.get(kernel.codelet.name.as_str());
        chosen.is_some_and(|chosen| chosen.iter().any(|one| std::ptr::eq(*one, *kernel)))
    });
    let mut graph = GraphBuilder::default();
    for kernel in kernels {
        let mut data: HashMap<DatumId, DatumId> = HashMap::new();
        let mut arguments = Vec::new();
        for argument in &kernel.arguments {
            arguments.push(match argument {
                Argument::Input(datum) => Argument::Input(given(&mut graph, of, &mut data, *datum)),
                Argument::Output(datum) => {
                    Argument::Output(made(&mut graph, of, &mut data, *datum))
                }
                Argument::FullOutput(datum) => {
                    Argument::FullOutput(made(&mut graph, of, &mut data, *datum))
                }
                Argument::InOut { from, to } => {
                    let before = given(&mut graph, of, &mut data, *from);
                    let place = graph.data()[before.0].place.clone();
                    let bytes = of.datum(*to).bytes;
                    let after = graph.datum(Datum {
                        place,
                        ..Datum::new(of.datum(*to).name.clone(), bytes)
                    });
                    data.insert(*to, after);
                    Argument::InOut {
                        from: before,
                        to: after,
                    }
                }
                other => *other,
            });
        }
        for argument in &mut arguments {
            if let Argument::Again(of) | Argument::Stride { of, .. } | Argument::First { of, .. } =
                argument
            {
                *of = data[of];
            }
        }
        graph.kernel(Kernel {
            arguments,
            ..kernel.clone()
        });
    }
    graph.build()
}

/// A datum like another one, by rows without gaps.
fn like(graph: &mut GraphBuilder, of: &TaskGraph, datum: DatumId, is_given: bool) -> Datum {
    let what = of.datum(datum);
    let Some(place) = &what.place else {
        return Datum::new(what.name.clone(), what.bytes);
    };
    let (rows, pitch) = (place.height(), place.width());
    let contents = || SpaceContents::filled(|place, to| numbers(place.rows.start, to));
    let space: HostSpaceId = graph.space(HostSpace {
        name: what.name.clone(),
        rows,
        pitch,
        contents: is_given.then(contents),
    });
    Datum::at(
        what.name.clone(),
        Place {
            space,
            rows: 0..rows,
            columns: 0..pitch,
        },
    )
}

fn given(
    graph: &mut GraphBuilder,
    of: &TaskGraph,
    data: &mut HashMap<DatumId, DatumId>,
    datum: DatumId,
) -> DatumId {
    if let Some(known) = data.get(&datum) {
        return *known;
    }
    let like = like(graph, of, datum, true);
    let contents = match like.place {
        Some(_) => Contents::OfSpace,
        None => Contents::filled(|bytes| numbers(0, bytes)),
    };
    let added = graph.datum(like.with(contents));
    data.insert(datum, added);
    added
}

fn made(
    graph: &mut GraphBuilder,
    of: &TaskGraph,
    data: &mut HashMap<DatumId, DatumId>,
    datum: DatumId,
) -> DatumId {
    let like = like(graph, of, datum, false);
    let added = graph.datum(like);
    data.insert(datum, added);
    added
}

/// Singles from 0 to 1, which are small numbers as doubles, too.
fn numbers(seed: u64, to: &mut [u8]) {
    for (number, to) in (0..).zip(to.chunks_mut(4)) {
        let bytes = (uniform(seed, number) as f32).to_ne_bytes();
        to.copy_from_slice(&bytes[..to.len()]);
    }
}
