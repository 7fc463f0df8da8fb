//! What the process of first launches receives: kernels in OpenCL C and their data, as one
//! line of JSON, which the contents of the data follow.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::codelet::{Codelet, Cost, KernelSource, NdRange, OpenClKernel, RawValue, Shape, Value};
use pdawl_core::graph::spec::source::KernelInfo;
use pdawl_core::graph::{
    self, Argument, Contents, Datum, DatumId, GraphBuilder, Kernel, TaskGraph,
};

/// How messages name a kernel and its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub kernel: String,
    /// By position among its buffers.
    pub buffers: Vec<String>,
}

impl Words {
    /// Of a kernel of a specification.
    pub fn of(kernel: &graph::spec::Kernel, info: &KernelInfo) -> Self {
        let buffer = |(position, buffer): (usize, &graph::spec::Buffer)| {
            let name = info.parameters.get(position);
            format!(
                "buffer `{}` (argument {position}, {} bytes)",
                name.map_or("", |parameter| parameter.name.as_str()),
                buffer.bytes()
            )
        };
        Self {
            kernel: kernel.name.clone(),
            buffers: kernel.buffers().map(buffer).collect(),
        }
    }
}

/// Kernels that are launched one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The device, as it is selected.
    pub device: String,
    data: Vec<JobDatum>,
    kernels: Vec<JobKernel>,
}

#[derive(Debug, Serialize, Deserialize)]
struct JobDatum {
    bytes: u64,
    /// Whether its contents follow; otherwise it begins with zeros.
    given: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct JobKernel {
    text: String,
    file: String,
    entry: String,
    options: String,
    fp64: bool,
    range: NdRange,
    arguments: Vec<JobArgument>,
}

#[derive(Debug, Serialize, Deserialize)]
enum JobArgument {
    Input(usize),
    Output(usize),
    InOut(usize, usize),
    Value(Vec<u8>),
    Local(u64),
}

impl Job {
    /// The kernels of a graph, in an order in which they may run, for a device. Without
    /// `contents` all data begin with zeros.
    ///
    /// # Errors
    /// When a kernel is not a single one in OpenCL C, or has an argument that kernels of
    /// users' do not have.
    pub fn of(device: String, graph: &TaskGraph, contents: bool) -> Result<Self, String> {
        let datum = |datum: &Datum| JobDatum {
            bytes: datum.bytes,
            given: contents && datum.contents.is_some(),
        };
        let kernels = graph.order().iter().map(|id| job_kernel(graph.kernel(*id)));
        Ok(Self {
            device,
            data: graph.data().iter().map(datum).collect(),
            kernels: kernels.collect::<Result<_, _>>()?,
        })
    }

    /// Writes it, with the contents of the graph that it was made of.
    ///
    /// # Errors
    /// When nobody reads it.
    pub fn write(&self, graph: &TaskGraph, to: &mut impl Write) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        to.write_all(&line)?;
        for (datum, about) in graph.data().iter().zip(&self.data) {
            if let (true, Some(contents)) = (about.given, &datum.contents) {
                let mut bytes = vec![0; datum.bytes as usize];
                contents.write(&mut bytes);
                to.write_all(&bytes)?;
            }
        }
        to.flush()
    }

    /// Reads one, and makes the graph of its kernels, which are in the order of their launches.
    ///
    /// # Errors
    /// When it is not whole, or no graph.
    pub fn read(from: &mut impl BufRead) -> io::Result<(Self, TaskGraph)> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let job: Self = serde_json::from_slice(&line)?;
        let mut builder = GraphBuilder::default();
        for (index, about) in job.data.iter().enumerate() {
            let datum = Datum::new(format!("datum {index}"), about.bytes);
            builder.datum(match about.given {
                true => {
                    let mut bytes = vec![0; about.bytes as usize];
                    from.read_exact(&mut bytes)?;
                    datum.with(Contents::bytes(bytes))
                }
                false if job.is_made(index) => datum,
                false => datum.with(Contents::Filled(Arc::new(|bytes| bytes.fill(0)))),
            });
        }
        for kernel in &job.kernels {
            builder.kernel(kernel.made().map_err(io::Error::other)?);
        }
        let graph = builder.build().map_err(io::Error::other)?;
        Ok((job, graph))
    }

    /// Whether a kernel writes a datum.
    fn is_made(&self, datum: usize) -> bool {
        let mut arguments = self.kernels.iter().flat_map(|kernel| &kernel.arguments);
        arguments.any(|argument| match argument {
            JobArgument::Output(made) | JobArgument::InOut(_, made) => *made == datum,
            _ => false,
        })
    }
}

fn job_kernel(kernel: &Kernel) -> Result<JobKernel, String> {
    let name = &kernel.name;
    let of_users = kernel.codelet.opencl.as_ref();
    let of_users = of_users.ok_or_else(|| format!("{name} is no kernel in OpenCL C"))?;
    let arguments: Vec<JobArgument> = (kernel.arguments.iter())
        .map(|argument| {
            job_argument(argument)
                .ok_or_else(|| format!("{name}: {argument:?} is no argument of a user's kernel"))
        })
        .collect::<Result<_, _>>()?;
    let values: Vec<Value> = (kernel.arguments.iter())
        .filter_map(|argument| match argument {
            Argument::Value(value) => Some(*value),
            _ => None,
        })
        .collect();
    let steps = of_users.steps(&kernel.units, &values);
    let [(source, range)] = &steps[..] else {
        return Err(format!("{name} is {} kernels", steps.len()));
    };
    Ok(JobKernel {
        text: source.text().to_owned(),
        file: source.file().to_owned(),
        entry: source.entry().to_owned(),
        options: source.options().to_owned(),
        fp64: of_users.fp64,
        range: range.clone(),
        arguments,
    })
}

fn job_argument(argument: &Argument) -> Option<JobArgument> {
    Some(match argument {
        Argument::Input(datum) => JobArgument::Input(datum.0),
        Argument::Output(datum) | Argument::FullOutput(datum) => JobArgument::Output(datum.0),
        Argument::InOut { from, to } => JobArgument::InOut(from.0, to.0),
        Argument::Value(Value::Raw(value)) => JobArgument::Value(value.bytes().to_vec()),
        Argument::Value(Value::Local(bytes)) => JobArgument::Local(*bytes),
        Argument::Value(_)
        | Argument::Again(_)
        | Argument::Stride { .. }
        | Argument::First { .. } => return None,
    })
}

impl JobKernel {
    fn made(&self) -> Result<Kernel, String> {
        let range = self.range.clone();
        let source = KernelSource::new(
            self.text.clone(),
            self.file.clone(),
            self.entry.clone(),
            self.options.clone(),
        );
        let argument = |argument: &JobArgument| match argument {
            JobArgument::Input(datum) => Ok(Argument::Input(DatumId(*datum))),
            JobArgument::Output(datum) => Ok(Argument::Output(DatumId(*datum))),
            JobArgument::InOut(from, to) => Ok(Argument::InOut {
                from: DatumId(*from),
                to: DatumId(*to),
            }),
            JobArgument::Value(bytes) => (RawValue::new(bytes).map(Value::Raw))
                .map(Argument::Value)
                .ok_or_else(|| format!("a value of {} bytes", bytes.len())),
            JobArgument::Local(bytes) => Ok(Argument::Value(Value::Local(*bytes))),
        };
        Ok(Kernel {
            name: self.entry.clone().into(),
            codelet: Arc::new(Codelet {
                name: self.entry.clone().into(),
                host: None,
                opencl: Some(OpenClKernel {
                    source,
                    fp64: self.fp64,
                    shape: Shape::with(move |_, _| range.clone()),
                }),
                library: None,
            }),
            units: 0..1,
            arguments: self
                .arguments
                .iter()
                .map(argument)
                .collect::<Result<_, _>>()?,
            cost: Cost::default(),
            prefers: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that overwrites a datum, and one that reads it.
    fn graph() -> TaskGraph {
        let mut builder = GraphBuilder::default();
        let given = builder.datum(Datum::new("a", 4).with(Contents::bytes(vec![1, 2, 3, 4])));
        let (made, last) = (
            builder.datum(Datum::new("b", 4)),
            builder.datum(Datum::new("c", 8).wanted()),
        );
        for arguments in [
            vec![JobArgument::InOut(given.0, made.0), JobArgument::Local(64)],
            vec![
                JobArgument::Input(made.0),
                JobArgument::Output(last.0),
                JobArgument::Value(vec![7, 0]),
            ],
        ] {
            let kernel = JobKernel {
                text: "text".to_owned(),
                file: "k.cl".to_owned(),
                entry: "k".to_owned(),
                options: "-DX=1".to_owned(),
                fp64: true,
                range: NdRange::new(vec![8, 2])
                    .exactly(vec![4, 1])
                    .starting_at(vec![0, 1]),
                arguments,
            };
            builder.kernel(kernel.made().unwrap());
        }
        builder.build().unwrap()
    }

    #[test]
    fn a_job_is_read_as_it_was_written() {
        for contents in [true, false] {
            let graph = graph();
            let job = Job::of("opencl0.0".to_owned(), &graph, contents).unwrap();
            let mut written = Vec::new();
            job.write(&graph, &mut written).unwrap();
            let (read, again) = Job::read(&mut written.as_slice()).unwrap();
            assert_eq!(
                serde_json::to_string(&read).unwrap(),
                serde_json::to_string(&job).unwrap()
            );
            let mut first = vec![9; 4];
            let begins = again.data()[0].contents.as_ref().unwrap();
            begins.write(&mut first);
            assert_eq!(first, if contents { [1, 2, 3, 4] } else { [0; 4] });
            for (one, other) in graph.kernels().iter().zip(again.kernels()) {
                assert_eq!(one.arguments, other.arguments);
            }
            // Half of what was written is refused.
            assert!(Job::read(&mut &written[..written.len() / 2]).is_err());
        }
    }
}
