//! Codelets of transformers on random numbers, with every form that they have, and what must come
//! out.

use std::sync::Arc;

use pdawl_api::codelet::add_norm::{AddNorm, LEAST};
use pdawl_api::codelet::gemm::{Gemm, TILES};
use pdawl_api::codelet::softmax::Softmax;
use pdawl_api::codelet::transpose::Transpose;
use pdawl_api::codelet::{Codelet, Cost, Element, NumberFormat, Value, softmax, transpose};
use pdawl_api::engine::scope::RuntimeScope;
use pdawl_api::runtime::{Command, DeviceId, Launch, Runtime};
use pdawl_api::verify::numbers;

/// One of a codelet's forms.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    pub codelet: Arc<Codelet>,
    /// Whether it is what the codelet chooses for these sizes.
    pub chosen: bool,
}

/// An argument of every launch.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// The case's input of this number.
    Input(usize),
    Output,
    Value(Value),
}

/// A number of the output by its place, from the inputs, in double.
type Right = Box<dyn Fn(&[Vec<f64>], usize) -> f64>;

/// A computation in single precision with several variants.
pub struct Case {
    pub title: String,
    /// Of all numbers.
    pub format: NumberFormat,
    pub variants: Vec<Variant>,
    pub args: Vec<Argument>,
    pub units: u64,
    pub cost: Cost,
    /// Numbers of each input, and of the output.
    pub inputs: Vec<usize>,
    pub output: usize,
    /// Most that a number may be wrong before it is rounded to the format, of the numbers' root
    /// mean square.
    pub tolerance: f64,
    pub right: Right,
}

/// The tolerance of a sum of so many numbers in single precision.
pub fn tolerance(summed: u32) -> f64 {
    1e-5 * f64::from(summed.max(1)).sqrt()
}

fn values(values: &[Value]) -> impl Iterator<Item = Argument> + '_ {
    values.iter().map(|value| Argument::Value(*value))
}

fn only(codelet: Codelet) -> Vec<Variant> {
    vec![Variant {
        name: codelet.name.to_string(),
        codelet: Arc::new(codelet),
        chosen: true,
    }]
}

impl Case {
    /// A product, with every tile.
    pub fn gemm(gemm: Gemm) -> Self {
        let chosen = gemm.codelet();
        let chosen = chosen.opencl.as_ref().map(|kernel| kernel.source.clone());
        let variants = TILES.iter().map(|tile| {
            let codelet = Codelet {
                library: None,
                ..gemm.codelet_with(tile)
            };
            let source = codelet.opencl.as_ref().map(|kernel| kernel.source.clone());
            Variant {
                name: tile.to_string(),
                chosen: source == chosen,
                codelet: Arc::new(codelet),
            }
        });
        let [rows, columns, depth, batch] =
            [gemm.rows, gemm.columns, gemm.depth, gemm.batch].map(|size| size as usize);
        let of_a = if gemm.common_a { 1 } else { batch };
        let right = move |inputs: &[Vec<f64>], at: usize| {
            let (matrix, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            let a = if gemm.common_a { 0 } else { matrix } * rows * depth + row * depth;
            let b = matrix * depth * columns;
            (0..depth)
                .map(|k| {
                    let b = match gemm.transposed {
                        true => b + column * depth + k,
                        false => b + k * columns + column,
                    };
                    inputs[0][a + k] * inputs[1][b]
                })
                .sum()
        };
        Self {
            title: format!(
                "{batch} x ({rows} x {depth}) ({depth} x {columns}){}, {}",
                if gemm.transposed { " transposed" } else { "" },
                gemm.format.name()
            ),
            format: gemm.format,
            variants: variants.collect(),
            args: [Argument::Input(0), Argument::Input(1), Argument::Output]
                .into_iter()
                .chain(values(&gemm.sizes()))
                .collect(),
            units: gemm.units(),
            cost: gemm.cost(),
            inputs: vec![of_a * rows * depth, batch * depth * columns],
            output: batch * rows * columns,
            // The magnitudes of the terms add up to at most the norms' product, which is the
            // root mean square times the root of the depth.
            tolerance: tolerance(gemm.depth)
                + gemm.format.product_error() * f64::from(gemm.depth).sqrt(),
            right: Box::new(right),
        }
    }

    /// Softmax of rows.
    pub fn softmax(softmax: Softmax) -> Self {
        let (rows, width) = (softmax.rows as usize, softmax.width as usize);
        let factor = f64::from(softmax.factor);
        let right = move |inputs: &[Vec<f64>], at: usize| {
            let row = &inputs[0][at / width * width..][..width];
            let power = |x: f64| (factor * x).exp();
            power(row[at % width]) / row.iter().map(|x| power(*x)).sum::<f64>()
        };
        Self {
            title: format!(
                "softmax of {rows} rows of {width}, {}",
                softmax.format.name()
            ),
            format: softmax.format,
            variants: only(softmax::codelet(softmax.format)),
            args: [Argument::Input(0), Argument::Output]
                .into_iter()
                .chain(values(&softmax.sizes()))
                .collect(),
            units: softmax.units(),
            cost: softmax.cost(),
            inputs: vec![rows * width],
            output: rows * width,
            tolerance: tolerance(softmax.width),
            right: Box::new(right),
        }
    }

    /// Transposition of matrices.
    pub fn transpose(transpose: Transpose) -> Self {
        let [rows, columns, batch] =
            [transpose.rows, transpose.columns, transpose.batch].map(|size| size as usize);
        let right = move |inputs: &[Vec<f64>], at: usize| {
            let (matrix, row, column) = (at / (rows * columns), at / rows % columns, at % rows);
            inputs[0][(matrix * rows + column) * columns + row]
        };
        Self {
            title: format!(
                "transposition of {batch} x ({rows} x {columns}), {}",
                transpose.format.name()
            ),
            format: transpose.format,
            variants: only(transpose::codelet(transpose.format)),
            args: [Argument::Input(0), Argument::Output]
                .into_iter()
                .chain(values(&transpose.sizes()))
                .collect(),
            units: transpose.units(),
            cost: transpose.cost(),
            inputs: vec![batch * rows * columns],
            output: batch * rows * columns,
            tolerance: 0.0,
            right: Box::new(right),
        }
    }

    /// Sums of heads, normalised.
    pub fn add_norm(add_norm: AddNorm) -> Self {
        let (rows, width) = (add_norm.rows as usize, add_norm.width as usize);
        let stacks = add_norm.stacks.clone();
        let summands: u32 = stacks.iter().sum();
        let right = move |inputs: &[Vec<f64>], at: usize| {
            let sum = |at: usize| {
                let parts = inputs[1..].iter().zip(&stacks);
                let numbers = parts.flat_map(|(z, stack)| {
                    (0..*stack as usize).map(move |summand| z[summand * rows * width + at])
                });
                inputs[0][at] + numbers.sum::<f64>()
            };
            let row = at / width * width..(at / width + 1) * width;
            let mean = row.clone().map(sum).sum::<f64>() / width as f64;
            let squares = row.map(|at| (sum(at) - mean).powi(2)).sum::<f64>();
            (sum(at) - mean) / (squares / width as f64 + f64::from(LEAST)).sqrt()
        };
        let parts = (0..add_norm.stacks.len()).map(|part| Argument::Input(1 + part));
        Self {
            title: format!(
                "sum of {summands} x ({rows} x {width}), normalised, {}",
                add_norm.format.name()
            ),
            format: add_norm.format,
            variants: only(add_norm.codelet()),
            args: [Argument::Input(0), Argument::Output]
                .into_iter()
                .chain(values(&add_norm.sizes()))
                .chain(parts)
                .chain(add_norm.counts().map(Argument::Value))
                .collect(),
            units: add_norm.units(),
            cost: add_norm.cost(),
            inputs: std::iter::once(1)
                .chain(add_norm.stacks.iter().copied())
                .map(|matrices| matrices as usize * rows * width)
                .collect(),
            output: rows * width,
            tolerance: tolerance(add_norm.width),
            right: Box::new(right),
        }
    }
}

/// Bytes of an output before it is computed, which are no numbers.
const POISON: u8 = 0xff;

impl Case {
    /// Computes every variant on a device, and asserts that all numbers are right.
    pub fn assert_right(&self, runtime: &mut dyn Runtime, device: DeviceId, seed: u64) {
        let mut scope = RuntimeScope::on(runtime);
        let queue = scope.queue(device).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let element = self.format.element();
        let bytes = |numbers: usize| numbers as u64 * element.bytes();
        let (mut inputs, mut memories) = (Vec::new(), Vec::new());
        for count in &self.inputs {
            let drawn = (0..*count).map(|_| f64::from(2.0 * random.f32() - 1.0));
            let mut stored = vec![0; bytes(*count) as usize];
            element.store(drawn, &mut stored);
            let array = scope.array(device, bytes(*count)).unwrap();
            scope.fill(queue, &array, &stored).unwrap();
            inputs.push(numbers(&stored, element));
            memories.push(array.memory());
        }
        let output = scope.array(device, bytes(self.output)).unwrap();
        let right: Vec<f64> = (0..self.output)
            .map(|at| (self.right)(&inputs, at))
            .collect();
        let args = self.args.iter().map(|argument| match argument {
            Argument::Input(index) => Value::Memory(memories[*index]),
            Argument::Output => Value::Memory(output.memory()),
            Argument::Value(value) => *value,
        });
        let args: Vec<Value> = args.collect();
        for variant in &self.variants {
            let poison = vec![POISON; output.bytes as usize];
            scope.fill(queue, &output, &poison).unwrap();
            let launch = Command::Launch(Launch {
                codelet: Arc::clone(&variant.codelet),
                units: 0..self.units,
                args: args.clone(),
                cost: self.cost,
            });
            scope.run(queue, launch).unwrap();
            let computed = scope.contents(queue, &output).unwrap();
            let computed = numbers(&computed[..bytes(self.output) as usize], element);
            let error = self.error(&right, &computed);
            let what = format!("{} {} on device {}", self.title, variant.name, device.0);
            assert!(error <= self.tolerance, "{what}: {error:e}, seed {seed}");
        }
    }

    /// The largest error beyond that of rounding to the format, relative to the root mean square;
    /// infinite for an output that holds something else than numbers.
    fn error(&self, right: &[f64], computed: &[f64]) -> f64 {
        if !computed.iter().all(|number| number.is_finite()) {
            return f64::INFINITY;
        }
        let element = self.format.element();
        let rounding = |right: f64| match element {
            Element::F16 | Element::Bf16 => element.unit() * right.abs().max(element.least()),
            // The tolerance counts it.
            Element::F32 | Element::F64 => 0.0,
        };
        let errors = right.iter().zip(computed);
        let errors = errors.map(|(right, computed)| (computed - right).abs() - rounding(*right));
        let squares: f64 = right.iter().map(|right| right * right).sum();
        let mean = (squares / right.len() as f64).sqrt();
        errors.fold(0.0, f64::max) / if mean > 0.0 { mean } else { 1.0 }
    }
}
