//! Tests of a transformer's graphs: their structure, and their results on the host,
//! kernel by kernel.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::codelet::{HostValue, NumberFormat};
use crate::graph::{Argument, DatumId};
use crate::verify::numbers;
use crate::verify::tests::injected::{Case, inject};

fn transformer(heads: u32, beta: u32, layers: u32, form: Form) -> Transformer {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    Transformer {
        heads,
        beta,
        layers,
        format: NumberFormat::F32,
        seed,
        form,
        read_back: true,
    }
}

/// Compares with the reference.
fn verify(transformer: &Transformer, results: &[(KernelPart, Vec<f64>)]) -> Verification {
    let verified = transformer.verify(results, &AtomicBool::new(false));
    verified.expect("not interrupted")
}

/// Computes every kernel in order, in two tiles if possible, and keeps all data.
fn compute(layers: &Layers) -> Vec<Vec<f64>> {
    let graph = &layers.graph;
    // Aligned memory, which is no number in any format.
    let mut data: Vec<Vec<u64>> = Vec::new();
    for datum in graph.data() {
        let bytes = datum.bytes as usize;
        let mut memory = vec![u64::MAX; bytes.div_ceil(8)];
        if let Some(contents) = &datum.contents {
            contents.write(&mut bytemuck::cast_slice_mut(&mut memory)[..bytes]);
        }
        data.push(memory);
    }
    for kernel in graph.order() {
        let kernel = graph.kernel(*kernel);
        let mut memory = |datum: &DatumId| {
            let memory = &mut data[datum.0];
            HostValue::Memory {
                address: memory.as_mut_ptr().cast(),
                bytes: graph.datum(*datum).bytes,
            }
        };
        let args: Vec<HostValue> = (kernel.arguments.iter())
            .map(|argument| match argument {
                Argument::Input(datum) | Argument::Output(datum) | Argument::FullOutput(datum) => {
                    memory(datum)
                }
                Argument::InOut { .. } => unreachable!("no kernel updates its input"),
                Argument::Value(value) => value.plain().unwrap(),
                Argument::Again(_) | Argument::Stride { .. } | Argument::First { .. } => {
                    unreachable!("no datum has a place")
                }
            })
            .collect();
        let host = kernel.codelet.host.as_ref().unwrap();
        let middle = kernel.units.end / 2;
        for tile in [middle..kernel.units.end, 0..middle] {
            // SAFETY: the memories have the sizes of the graph's data, and no other
            // thread uses them.
            unsafe { host.run(&args, 0, tile) }
        }
    }
    let data = data.iter().zip(graph.data());
    data.map(|(memory, datum)| {
        let bytes = &bytemuck::cast_slice(memory)[..datum.bytes as usize];
        numbers(bytes, layers.element)
    })
    .collect()
}

/// The result of every kernel.
fn results(layers: &Layers, data: &[Vec<f64>]) -> Vec<(KernelPart, Vec<f64>)> {
    let kernels = layers.graph.kernels().iter().zip(&layers.parts);
    kernels
        .map(|(kernel, part)| (*part, data[kernel.outputs().next().unwrap().0].clone()))
        .collect()
}

#[test]
fn every_kernel_of_every_form_is_right() {
    for (heads, beta, layers, form) in [
        (1, 1, 1, Form::Heads),
        (1, 2, 1, Form::Heads),
        (1, 37, 2, Form::Heads),
        (3, 32, 3, Form::Heads),
        (2, 101, 1, Form::Heads),
        (1, 1, 3, Form::Batches(vec![1])),
        (3, 37, 2, Form::Batches(vec![3])),
        (4, 33, 3, Form::Batches(vec![1, 3])),
        (5, 64, 1, Form::Batches(vec![2, 2, 1])),
    ] {
        for format in NumberFormat::ALL {
            let transformer = Transformer {
                format,
                ..transformer(heads, beta, layers, form.clone())
            };
            let layers = transformer.layers().unwrap();
            let data = compute(&layers);
            let verification = verify(&transformer, &results(&layers, &data));
            assert!(verification.right(), "{transformer:?}: {verification:?}");
        }
    }
}

/// The results of a layer's last kernel, into which errors are injected.
fn attention(seed: u64) -> Case<'static> {
    let beta = 16 + (seed % 17) as u32;
    let transformer = transformer(1, beta, 1, Form::Heads);
    let layers = transformer.layers().unwrap();
    let computed = results(&layers, &compute(&layers));
    let right = computed.last().unwrap().1.clone();
    let squares: f64 = right.iter().map(|number| number * number).sum();
    let bound = transformer.tolerance() * (squares / right.len() as f64).sqrt();
    let parts: Vec<KernelPart> = computed.iter().map(|(part, _)| *part).collect();
    let reference = transformer
        .reference(&parts, &AtomicBool::new(false))
        .unwrap();
    let side = beta as usize;
    Case {
        name: "transformer",
        rows: side,
        columns: right.len() / side,
        parts: 1,
        right: right.iter().map(|number| *number as f32).collect(),
        accepts: Box::new(move |found| {
            let mut computed = computed.clone();
            computed.last_mut().unwrap().1 = found.iter().map(|n| f64::from(*n)).collect();
            reference.compare(&computed).right()
        }),
        excess: Box::new(move |found| {
            let differences = found.iter().zip(&right);
            let differences = differences.map(|(one, other)| (f64::from(*one) - other).abs());
            differences.fold(0.0, f64::max) / bound
        }),
        // The right result has errors of its own.
        needed: [2.0; 3],
    }
}

#[test]
fn wrong_results_of_transformers_are_found() {
    inject(&attention);
}

#[test]
fn both_forms_have_the_same_results() {
    let heads = transformer(4, 29, 2, Form::Heads);
    let batch = Transformer {
        form: Form::Batches(vec![3, 1]),
        ..heads.clone()
    };
    let result = |of: &Transformer| {
        let layers = of.layers().unwrap();
        let data = compute(&layers);
        let outputs = layers.outputs.iter();
        outputs
            .flat_map(|(_, datum)| data[datum.0].clone())
            .collect::<Vec<_>>()
    };
    // Host products sum in the same order in both forms. Softmax and sums have the
    // same rows.
    assert_eq!(result(&heads), result(&batch));
}

#[test]
fn a_wrong_number_anywhere_is_found() {
    let transformer = transformer(2, 19, 2, Form::Heads);
    let layers = transformer.layers().unwrap();
    let mut data = compute(&layers);
    for place in 0..layers.parts.len() {
        let datum = layers.graph.kernels()[place].outputs().next().unwrap();
        let at = fastrand::usize(..data[datum.0].len());
        let right = std::mem::replace(&mut data[datum.0][at], 1e3);
        assert!(
            !verify(&transformer, &results(&layers, &data)).right(),
            "{place}"
        );
        data[datum.0][at] = f64::NAN;
        assert!(
            !verify(&transformer, &results(&layers, &data)).right(),
            "{place}"
        );
        data[datum.0][at] = right;
    }
    let short: Vec<_> = (results(&layers, &data).into_iter())
        .map(|(part, numbers)| (part, numbers[1..].to_vec()))
        .collect();
    assert!(!verify(&transformer, &short).right());
}

/// A number of a result that is wrong by so much of it is found: what rounding may change is
/// less.
#[test]
fn one_number_that_is_a_little_wrong_is_found_in_every_format() {
    for (format, wrong) in [
        (NumberFormat::F32, 0.001),
        (NumberFormat::F16, 0.01),
        (NumberFormat::Tf32, 0.1),
        (NumberFormat::Bf16, 0.1),
    ] {
        for form in [Form::Heads, Form::Batches(vec![2])] {
            let transformer = Transformer {
                format,
                ..transformer(2, 40, 1, form)
            };
            let layers = transformer.layers().unwrap();
            let outputs = layers.outputs.iter();
            let data = compute(&layers);
            let mut outputs: Vec<_> = outputs
                .map(|(part, datum)| (*part, data[datum.0].clone()))
                .collect();
            assert!(verify(&transformer, &outputs).right(), "{format:?}");
            let greatest = |row: &mut [f64]| {
                let numbers = row.iter_mut();
                let most = numbers.max_by(|one, other| one.abs().total_cmp(&other.abs()));
                *most.expect("a number") *= 1.0 + wrong;
            };
            greatest(&mut outputs[0].1[40 * 7..40 * 8]);
            let verification = verify(&transformer, &outputs);
            assert!(!verification.right(), "{format:?}: {verification:?}");
        }
    }
}

#[test]
fn memory_is_that_of_the_formats() {
    let bytes = NumberFormat::ALL.map(|format| {
        let of = transformer(2, 8, 1, Form::Heads);
        let of = Transformer { format, ..of };
        let layers = of.layers().unwrap();
        let data = layers.graph.data().iter().map(|datum| datum.bytes);
        assert_eq!(data.sum::<u64>(), 25 * of.bytes());
        of.bytes()
    });
    assert_eq!(bytes, [128, 128, 256, 256]);
}

#[test]
fn one_layer_is_the_papers_graph() {
    let layers = transformer(3, 8, 1, Form::Heads).layers().unwrap();
    let graph = &layers.graph;
    assert_eq!(graph.kernels().len(), 3 * 8);
    // The levels of Figure 3: three products, a transposition, a product,
    // softmax, two products.
    let mut levels = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    for kernel in graph.order() {
        let before = graph.predecessors(*kernel).iter().map(|k| levels[k]);
        let level = before.max().unwrap_or(0) + 1;
        levels.insert(*kernel, level);
        *kinds
            .entry((level, layers.parts[kernel.0].role))
            .or_insert(0) += 1;
    }
    let expected = [
        (1, KernelRole::Q),
        (1, KernelRole::K),
        (1, KernelRole::V),
        (2, KernelRole::Transposed),
        (3, KernelRole::Scores),
        (4, KernelRole::Weights),
        (5, KernelRole::Context),
        (6, KernelRole::Output),
    ];
    assert_eq!(kinds, expected.map(|kind| (kind, 3)).into());
    // Heads are independent components without data between them.
    let components = layers.components().unwrap();
    assert_eq!(components.len(), 3);
    assert!(components.list().iter().all(|c| c.predecessors.is_empty()));
    assert_eq!(layers.outputs.len(), 3);
}

#[test]
fn layers_wait_for_the_sum_of_the_one_before() {
    let layers = transformer(3, 8, 3, Form::Heads).layers().unwrap();
    let components = layers.components().unwrap();
    assert_eq!(components.len(), 3 * 3 + 2);
    let levels: Vec<usize> = components.list().iter().map(|c| c.level).collect();
    assert_eq!(levels, [0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 4]);
    let batch = transformer(3, 8, 2, Form::Batches(vec![1, 2]))
        .layers()
        .unwrap();
    assert_eq!(batch.graph.kernels().len(), 2 * 2 * 5 + 1);
}

#[test]
fn invalid_sizes_are_refused() {
    let wrong = |heads, beta, layers, form| {
        let transformer = transformer(heads, beta, layers, form);
        transformer.layers().unwrap_err().to_string()
    };
    assert_eq!(wrong(0, 8, 1, Form::Heads), "heads are 0; take 1 to 64");
    assert!(wrong(1, 0, 1, Form::Heads).starts_with("rows are 0"));
    assert!(wrong(1, 8, 0, Form::Heads).starts_with("layers are 0"));
    let groups = wrong(4, 8, 1, Form::Batches(vec![1, 2]));
    assert_eq!(
        groups,
        "the groups have 3 heads, and a layer has 4; give groups of at least 1 head that add up \
         to the layer"
    );
    assert!(wrong(4, 8, 1, Form::Batches(vec![4, 0])).contains("add up"));
}

#[test]
fn a_reference_ends_on_request() {
    let transformer = transformer(2, 17, 2, Form::Heads);
    assert!(transformer.verify(&[], &AtomicBool::new(true)).is_none());
    // The results in both precisions, and a layer in progress.
    let results = 2 * (8 * 2 + 1) * transformer.bytes();
    assert!(transformer.verification_memory() >= 3 * results);
}
