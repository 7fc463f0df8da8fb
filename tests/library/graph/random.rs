//! Random graphs, and their sequential results.

use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;
use pdawl_api::codelet::{
    Codelet, Cost, HostCode, HostValue, KernelSource, NdRange, OpenClKernel, Shape, Value,
};
use pdawl_api::graph::{
    Argument, Components, Contents, Datum, DatumId, GraphBuilder, Kernel, KernelId, TaskGraph,
};

/// Elements of each datum: a prime, so no multiple of a work-group.
pub const LENGTH: usize = 37;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The role of an argument of the mixing kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    /// Of which only every second element is written.
    HalfOutput,
    Output,
    InOut,
}

/// The codelet for this number of memory arguments: element `e` of every output is
/// a hash of the salt, of a neighbour of `e` in every input and of `e` itself in
/// every in-out argument. Arguments are salt, length, roles, memory ...
///
/// The kernel decodes the roles, so that there are few programs to compile.
fn mixing(arguments: usize) -> Arc<Codelet> {
    let mut parameters = String::new();
    let (mut read, mut write) = (String::new(), String::new());
    for index in 0..arguments {
        let role = format!("(roles >> {} & 7)", 3 * index);
        parameters.push_str(&format!(", __global ulong *m{index}"));
        read.push_str(&format!(
            "if ({role} == 1) h = mix(h, m{index}[(e * 7 + 3) % n]);\n\
             if ({role} == 3) h = mix(h, m{index}[e]);\n"
        ));
        write.push_str(&format!(
            "if ({role} == 2 || {role} == 3 || ({role} == 4 && e % 2 == 0)) m{index}[e] = h + {index};\n"
        ));
    }
    let source = format!(
        "ulong mix(ulong h, ulong v) {{ return rotate((h ^ v) * {FACTOR}UL, (ulong)29); }}\n\
         __kernel void mixing(ulong salt, ulong n, ulong roles{parameters}) {{\n\
         ulong e = get_global_id(0);\nif (e >= n) return;\nulong h = salt ^ e;\n{read}{write}}}\n"
    );
    Arc::new(Codelet {
        name: format!("mixing {arguments} arguments").into(),
        host: Some(HostCode::Kernel(mix_on_host)),
        opencl: Some(OpenClKernel {
            source: KernelSource::new(source, "mixing.cl", "mixing", ""),
            fp64: false,
            shape: Shape::Of(|units, _| NdRange::new(vec![(units.end - units.start) as usize])),
        }),
        library: None,
    })
}

fn mix(h: u64, v: u64) -> u64 {
    (h ^ v).wrapping_mul(FACTOR).rotate_left(29)
}

/// Whether the kernel writes element `e` of an argument.
fn writes(role: Role, e: u64) -> bool {
    role != Role::Input && (role != Role::HalfOutput || e.is_multiple_of(2))
}

/// Element `e` of the kernel's results, before the argument's index is added.
fn element(salt: u64, e: u64, roles: &[Role], value: impl Fn(usize, u64) -> u64) -> u64 {
    let mut h = salt ^ e;
    for (index, role) in roles.iter().enumerate() {
        match role {
            Role::Input => h = mix(h, value(index, (e * 7 + 3) % LENGTH as u64)),
            Role::InOut => h = mix(h, value(index, e)),
            Role::Output | Role::HalfOutput => {}
        }
    }
    h
}

/// Three bits an argument, the first in the lowest bits. The kernel decodes them, too.
fn encode(roles: &[Role]) -> u64 {
    let code = |role: &Role| match role {
        Role::Input => 1,
        Role::Output => 2,
        Role::InOut => 3,
        Role::HalfOutput => 4,
    };
    roles
        .iter()
        .rev()
        .fold(0, |all, role| all << 3 | code(role))
}

fn decode(mut code: u64) -> Vec<Role> {
    let mut roles = Vec::new();
    while code > 0 {
        roles.push(match code & 7 {
            1 => Role::Input,
            2 => Role::Output,
            4 => Role::HalfOutput,
            _ => Role::InOut,
        });
        code >>= 3;
    }
    roles
}

/// The native implementation.
///
/// # Safety
/// As [`pdawl_api::codelet::HostKernel`].
unsafe fn mix_on_host(args: &[HostValue], _first: u64, units: Range<u64>) {
    let &[
        HostValue::U64(salt),
        HostValue::U64(n),
        HostValue::U64(roles),
        ref memory @ ..,
    ] = args
    else {
        panic!("salt, length, roles, memory: {args:?}");
    };
    assert_eq!(n, LENGTH as u64);
    let roles = decode(roles);
    let address = |index: usize| match memory[index] {
        HostValue::Memory { address, bytes } => {
            assert!(bytes >= 8 * n);
            address.cast::<u64>()
        }
        other => panic!("memory: {other:?}"),
    };
    for e in units {
        // SAFETY: indices are below `n`, and memory holds as many numbers.
        let h = element(salt, e, &roles, |index, at| unsafe {
            address(index).add(at as usize).read()
        });
        for (index, role) in roles.iter().enumerate() {
            if writes(*role, e) {
                // SAFETY: as above.
                unsafe {
                    address(index)
                        .add(e as usize)
                        .write(h.wrapping_add(index as u64))
                };
            }
        }
    }
}

/// A graph, its components, and its expected results.
pub struct Case {
    pub graph: Arc<TaskGraph>,
    pub components: Arc<Components>,
    /// The contents of every wanted datum.
    pub expected: Vec<(DatumId, Vec<u64>)>,
}

/// A random case with at most this many kernels.
pub fn case(rng: &mut Rng, most_kernels: usize) -> Case {
    let graph = Arc::new(graph(rng, most_kernels));
    let components = Arc::new(division(rng, &graph));
    let values = sequential(&graph);
    let wanted = graph.datum_ids().filter(|d| graph.datum(*d).wanted);
    let expected = wanted.map(|d| (d, values[d.0].clone())).collect();
    Case {
        graph,
        components,
        expected,
    }
}

fn graph(rng: &mut Rng, most_kernels: usize) -> TaskGraph {
    let mut graph = GraphBuilder::default();
    let bytes = LENGTH as u64 * 8;
    // Data that later kernels may read.
    let mut alive: Vec<DatumId> = Vec::new();
    for number in 0..rng.usize(1..4) {
        let numbers: Vec<u64> = (0..LENGTH).map(|_| rng.u64(..)).collect();
        let contents = Contents::bytes(bytemuck::cast_slice::<u64, u8>(&numbers).to_vec());
        let mut datum = Datum::new(format!("given {number}"), bytes).with(contents);
        datum.wanted = rng.u8(0..4) == 0;
        alive.push(graph.datum(datum));
    }
    for number in 0..rng.usize(1..=most_kernels) {
        let mut roles = Vec::new();
        let mut arguments = Vec::new();
        let mut pool = alive.clone();
        for _ in 0..rng.usize(0..4).min(pool.len()) {
            // Recent data are more likely, so that long chains occur.
            let from = pool
                .len()
                .saturating_sub(1 + rng.usize(0..4).min(pool.len() - 1));
            let datum = pool.remove(if rng.bool() {
                from
            } else {
                rng.usize(0..pool.len())
            });
            if rng.u8(0..5) == 0 {
                let mut version = Datum::new(format!("version {number}"), bytes);
                version.wanted = rng.u8(0..3) == 0;
                let to = graph.datum(version);
                alive.retain(|d| *d != datum);
                alive.push(to);
                roles.push(Role::InOut);
                arguments.push(Argument::InOut { from: datum, to });
            } else {
                roles.push(Role::Input);
                arguments.push(Argument::Input(datum));
            }
        }
        let outputs = rng.usize(0..3);
        let none = !roles.contains(&Role::InOut);
        for output in 0..outputs.max(usize::from(none)) {
            let mut datum = Datum::new(format!("made {number}.{output}"), bytes);
            datum.wanted = rng.u8(0..3) == 0;
            let datum = graph.datum(datum);
            alive.push(datum);
            let at = rng.usize(0..=arguments.len());
            let (role, argument) = match rng.bool() {
                true => (Role::HalfOutput, Argument::Output(datum)),
                false => (Role::Output, Argument::FullOutput(datum)),
            };
            roles.insert(at, role);
            arguments.insert(at, argument);
        }
        let values = [rng.u64(..), LENGTH as u64, encode(&roles)];
        let values = values.map(|value| Argument::Value(Value::U64(value)));
        graph.kernel(Kernel {
            name: format!("mix {number}").into(),
            codelet: mixing(roles.len()),
            units: 0..LENGTH as u64,
            arguments: values.into_iter().chain(arguments).collect(),
            cost: Cost {
                flops: rng.f64() * 1e7,
                bytes: rng.f64() * 1e6,
            },
            prefers: None,
        });
        if number > 0 && rng.u8(0..6) == 0 {
            graph.order(KernelId(rng.usize(0..number)), KernelId(number));
        }
    }
    graph.build().expect("a graph")
}

/// Random components: by random labels if they form no cycle, else sections of a
/// topological order, which never do.
fn division(rng: &mut Rng, graph: &TaskGraph) -> Components {
    let kernels = graph.kernels().len();
    match rng.u8(0..5) {
        0 => return Components::single_kernels(graph),
        1 => return Components::by(graph, |_| ()).expect("one component"),
        _ => {}
    }
    for _ in 0..3 {
        let labels: Vec<u8> = (0..kernels).map(|_| rng.u8(0..4)).collect();
        if let Ok(components) = Components::by(graph, |kernel| labels[kernel.0]) {
            return components;
        }
    }
    let mut label = 0;
    let mut labels = vec![0; kernels];
    for kernel in graph.order() {
        label += usize::from(rng.u8(0..3) == 0);
        labels[kernel.0] = label;
    }
    Components::by(graph, |kernel| labels[kernel.0]).expect("stretches have no circle")
}

/// Computes every datum sequentially, kernel by kernel.
fn sequential(graph: &TaskGraph) -> Vec<Vec<u64>> {
    let mut values: Vec<Vec<u64>> = graph
        .data()
        .iter()
        .map(|datum| {
            let mut bytes = vec![0u64; LENGTH];
            if let Some(contents) = &datum.contents {
                contents.write(bytemuck::cast_slice_mut(&mut bytes));
            }
            bytes
        })
        .collect();
    for kernel in graph.order() {
        let what = graph.kernel(*kernel);
        let Argument::Value(Value::U64(salt)) = what.arguments[0] else {
            panic!("the first argument is the salt");
        };
        let memory = &what.arguments[3..];
        let role = |argument: &Argument| match argument {
            Argument::Input(_) => Role::Input,
            Argument::Output(_) => Role::HalfOutput,
            Argument::FullOutput(_) => Role::Output,
            _ => Role::InOut,
        };
        let roles: Vec<Role> = memory.iter().map(role).collect();
        let made: Vec<u64> = (0..LENGTH as u64)
            .map(|e| {
                element(salt, e, &roles, |index, at| {
                    let datum = memory[index].reads().expect("an input");
                    values[datum.0][at as usize]
                })
            })
            .collect();
        for (index, argument) in memory.iter().enumerate() {
            if let Some(datum) = argument.writes() {
                let numbers = (0..)
                    .zip(&made)
                    .map(|(e, h)| match writes(roles[index], e) {
                        true => h.wrapping_add(index as u64),
                        false => 0,
                    });
                values[datum.0] = numbers.collect();
            }
        }
    }
    values
}
