//! Open graphs: whatever arrives, is revoked and is forgotten while others run, in any order
//! of commands, in little memory and when a device is lost, no result is wrong.

use std::collections::HashMap;
use std::sync::Arc;

use fastrand::Rng;
use pdawl_api::codelet::rows::Lines;
use pdawl_api::codelet::{Codelet, Cost, HostCode, HostValue, Value};
use pdawl_api::engine::graph::{GraphRunError, OpenGraph};
use pdawl_api::graph::{Argument, Datum, DatumId, Kernel, KernelId, Piece};
use pdawl_api::policy::{NamedPolicy, PolicyOptions};
use pdawl_api::runtime::{Devices, Runtime};
use proptest::prelude::*;

use crate::shuffled_runtime::{Fault, ShuffledRuntime, device};

const POLICIES: [&str; 5] = ["locality", "eager", "dmdar", "darts+luf", "round-robin"];

/// Words of the arguments: the inputs, then the output, which may begin with contents.
fn mixed(salt: u64, inputs: &[&[u64]], output: &mut [u64], begins: bool) {
    for (at, word) in output.iter_mut().enumerate() {
        let mut mixed = if begins { *word } else { 0 }.wrapping_add(salt);
        for input in inputs {
            mixed = mixed.wrapping_mul(31).wrapping_add(input[at % input.len()]);
        }
        *word = mixed;
    }
}

/// `salt`, whether the output begins with contents, the words of each argument, and their
/// memories.
fn codelet() -> Arc<Codelet> {
    Arc::new(Codelet {
        name: "mixed".into(),
        host: Some(HostCode::Kernel(|args, _, _| {
            let number = |index: usize| match args[index] {
                HostValue::U64(number) => number,
                ref other => panic!("{other:?}"),
            };
            let count = (args.len() - 2) / 2;
            let memory = |index: usize| {
                let HostValue::Memory { address, bytes } = args[2 + count + index] else {
                    panic!("memory");
                };
                let words = number(2 + index);
                assert!(words * 8 <= bytes);
                (address.cast::<u64>(), words as usize)
            };
            // SAFETY: the memories have these words, and the last is only this call's.
            let input = |index| unsafe {
                let (address, words) = memory(index);
                std::slice::from_raw_parts(address, words)
            };
            let inputs: Vec<&[u64]> = (0..count - 1).map(input).collect();
            let (address, words) = memory(count - 1);
            // SAFETY: as above.
            let output = unsafe { std::slice::from_raw_parts_mut(address, words) };
            mixed(number(0), &inputs, output, number(1) == 1);
        })),
        opencl: Some(pdawl_api::codelet::OpenClKernel {
            source: pdawl_api::codelet::KernelSource::new("", "test.cl", "mixed", ""),
            fp64: false,
            shape: pdawl_api::codelet::Shape::Of(|_, _| pdawl_api::codelet::NdRange::new(vec![1])),
        }),
        library: None,
    })
}

/// A graph beside what it should compute.
struct Test {
    graph: OpenGraph,
    runtime: ShuffledRuntime,
    codelet: Arc<Codelet>,
    rng: Rng,
    /// What is right, of the data that can be read.
    right: HashMap<DatumId, Vec<u64>>,
    /// Kernels that may be revoked: nothing reads what they make.
    last: Vec<(KernelId, DatumId)>,
    running: usize,
    checked: usize,
}

impl Test {
    fn any(&mut self) -> Option<DatumId> {
        let mut all: Vec<DatumId> = self.right.keys().copied().collect();
        all.sort_unstable();
        (!all.is_empty()).then(|| all[self.rng.usize(..all.len())])
    }

    fn given(&mut self) {
        let words: Vec<u64> = (0..self.rng.usize(1..9))
            .map(|_| self.rng.u64(..))
            .collect();
        let datum = self
            .graph
            .datum(Datum::new("given", 8 * words.len() as u64));
        let memory = self.graph.host_memory(&mut self.runtime, datum);
        let memory = memory.expect("memory");
        let bytes = self.runtime.host_bytes(memory).expect("bytes");
        bytes[..8 * words.len()].copy_from_slice(bytemuck::cast_slice(&words));
        self.graph.given(datum);
        self.right.insert(datum, words);
    }

    /// A view of some words of some data.
    fn view(&mut self) -> Option<(DatumId, Vec<u64>)> {
        let (mut pieces, mut right) = (Vec::new(), Vec::new());
        for _ in 0..self.rng.usize(1..4) {
            if right.len() > 16 {
                break;
            }
            let of = self.any()?;
            self.last.retain(|(_, made)| *made != of);
            let words = &self.right[&of];
            let row = self.rng.usize(1..=words.len().min(16));
            let rows = self.rng.usize(1..=(words.len().min(16) / row));
            let pitch = match rows {
                1 => row,
                _ => self.rng.usize(row..=(words.len() - row) / (rows - 1)),
            };
            pieces.push(Piece {
                datum: of,
                rows: rows as u64,
                row: 8 * row as u64,
                from: Lines {
                    first: 0,
                    pitch: 8 * pitch as u64,
                },
                to: Lines {
                    first: 8 * right.len() as u64,
                    pitch: 8 * row as u64,
                },
            });
            for number in 0..rows {
                right.extend_from_slice(&words[number * pitch..number * pitch + row]);
            }
        }
        let view = Datum::gathered("view", 8 * right.len() as u64, pieces);
        Some((self.graph.datum(view), right))
    }

    fn kernel(&mut self) -> Option<()> {
        let mut inputs = Vec::new();
        for _ in 0..self.rng.usize(1..4) {
            let input = match self.rng.bool() {
                true => self.view()?,
                false => {
                    let datum = self.any()?;
                    self.last.retain(|(_, made)| *made != datum);
                    (datum, self.right[&datum].clone())
                }
            };
            inputs.push(input);
        }
        let salt = self.rng.u64(..);
        let begins = match self.rng.bool() {
            true => Some(self.view()?),
            false => None,
        };
        let words = match &begins {
            Some((_, words)) => words.clone(),
            None => vec![0; self.rng.usize(1..9)],
        };
        let bytes = 8 * words.len() as u64;
        let made = Datum::new("made", bytes);
        let made = match &begins {
            Some((from, _)) => self.graph.version(*from, made),
            None => self.graph.datum(made),
        };
        let mut right = words;
        let read: Vec<&[u64]> = inputs.iter().map(|(_, words)| &words[..]).collect();
        mixed(salt, &read, &mut right, begins.is_some());
        let lengths = inputs.iter().map(|(_, words)| words.len() as u64);
        let lengths = lengths.chain([right.len() as u64]);
        let numbers = [salt, u64::from(begins.is_some())]
            .into_iter()
            .chain(lengths);
        let mut arguments: Vec<Argument> =
            numbers.map(|n| Argument::Value(Value::U64(n))).collect();
        arguments.extend(inputs.iter().map(|(datum, _)| Argument::Input(*datum)));
        arguments.push(match begins {
            Some((from, _)) => Argument::InOut { from, to: made },
            None => Argument::FullOutput(made),
        });
        let kernel = Kernel {
            name: "mixed".into(),
            codelet: Arc::clone(&self.codelet),
            units: 0..1,
            arguments,
            cost: Cost::default(),
            prefers: None,
        };
        let devices = self.runtime.devices().len();
        let seconds = (0..devices).map(|_| Some(self.rng.f64() + 0.1)).collect();
        let views: Vec<DatumId> = (kernel.inputs())
            .filter(|datum| !self.right.contains_key(datum))
            .collect();
        let kernel = self.graph.kernel(kernel, seconds).expect("a kernel");
        for view in views.into_iter().filter(|_| self.rng.bool()) {
            self.graph.forget(view);
        }
        self.right.insert(made, right);
        self.last.push((kernel, made));
        self.running += 1;
        Some(())
    }

    fn revoke(&mut self) {
        if let Some((kernel, made)) = self.last.pop()
            && self.graph.revoke(kernel)
        {
            self.right.remove(&made);
            self.running -= 1;
        }
    }

    fn turn(&mut self, waits: bool) -> Result<(), GraphRunError> {
        let completion = match waits {
            true => self.runtime.wait(None).expect("a wait"),
            false => None,
        };
        let turned = self.graph.turn(&mut self.runtime, completion)?;
        self.running = self.running.saturating_sub(turned.ended.len());
        Ok(())
    }

    /// Waits until everything is done.
    fn finish(&mut self) -> Result<(), GraphRunError> {
        let mut turns = 0;
        self.turn(false)?;
        while !self.graph.is_idle() {
            self.turn(true)?;
            turns += 1;
            assert!(turns < 100_000, "it goes on for ever");
        }
        Ok(())
    }

    fn check(&mut self, datum: DatumId) {
        let bytes = self.graph.bytes(&mut self.runtime, datum).expect("bytes");
        let found: Vec<u64> = bytemuck::pod_collect_to_vec(bytes);
        assert_eq!(found, self.right[&datum]);
        self.checked += 1;
    }

    fn run(&mut self, steps: usize) -> Result<(), GraphRunError> {
        for _ in 0..steps {
            match self.rng.usize(..20) {
                0..3 => self.given(),
                3..10 => _ = self.kernel(),
                10 => self.revoke(),
                11 => {
                    if let Some(datum) = self.any().filter(|_| self.right.len() > 2) {
                        self.last.retain(|(_, made)| *made != datum);
                        self.graph.forget(datum);
                        self.right.remove(&datum);
                    }
                }
                12 => {
                    if let Some(datum) = self.any() {
                        self.last.retain(|(_, made)| *made != datum);
                        self.graph.want(datum);
                        self.finish()?;
                        self.check(datum);
                    }
                }
                13 => {
                    self.finish()?;
                    let ids = self.graph.compact(&mut self.runtime);
                    let right = std::mem::take(&mut self.right);
                    self.right = (right.into_iter())
                        .map(|(datum, words)| (ids[&datum], words))
                        .collect();
                    self.last.clear();
                }
                14..17 => self.turn(false)?,
                _ => self.turn(true)?,
            }
        }
        let all: Vec<DatumId> = self.right.keys().copied().collect();
        for datum in &all {
            self.graph.want(*datum);
        }
        self.finish()?;
        assert_eq!(self.running, 0, "all kernels have ended");
        for datum in all {
            self.check(datum);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn what_arrives_in_any_order_is_computed_right(
        own in proptest::collection::vec(any::<bool>(), 1..4),
        policy in 0..POLICIES.len(),
        memory in prop_oneof![Just(None), (1600..4000_u64).prop_map(Some)],
        fault in prop_oneof![Just(None), (0..80_u64).prop_map(Some)],
        steps in 1..120_usize,
        window in 2..6_usize,
        seed in any::<u64>(),
    ) {
        let devices: Vec<_> = (0..).zip(&own)
            .map(|(number, own)| device(&format!("d{number}"), own.then_some(1 << 20)))
            .collect();
        let several = devices.len() > 1;
        let fault = fault.filter(|_| several).map(|after| Fault { device: 1, after });
        let mut runtime = ShuffledRuntime::new(devices, seed, fault);
        let named: NamedPolicy = POLICIES[policy].parse().expect("a policy");
        let of_policy = PolicyOptions { window: Some(window), seed, ..PolicyOptions::default() };
        let mut graph = OpenGraph::new(&mut runtime, named, of_policy, (false, &[])).expect("a graph");
        if let Some(memory) = memory {
            graph.limit_memory(memory);
        }
        let mut test = Test {
            graph,
            runtime,
            codelet: codelet(),
            rng: Rng::with_seed(seed),
            right: HashMap::new(),
            last: Vec::new(),
            running: 0,
            checked: 0,
        };
        match test.run(steps) {
            Ok(()) => {}
            Err(GraphRunError::Gone(_)) if fault.is_some() => {}
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
        let Test { graph, mut runtime, .. } = test;
        graph.release(&mut runtime);
        while runtime.wait(None).expect("a wait").is_some() {}
        prop_assert!(runtime.is_bare());
    }
}
