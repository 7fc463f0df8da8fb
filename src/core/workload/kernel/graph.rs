//! A user's kernel as a task graph: launches of the whole kernel, one after the other.

use std::sync::Arc;

use super::UserKernel;
use crate::codelet::{RawValue, Value};
use crate::graph::spec::{self, Direction};
use crate::graph::{Argument, Contents, Datum, GraphBuilder, GraphError, Kernel, TaskGraph};
use crate::workload::Divisible;

impl UserKernel {
    /// So many launches, each with what the one before it has written.
    ///
    /// # Errors
    /// None that a kernel with arguments of its parameters has.
    pub fn graph(&self, launches: u32) -> Result<TaskGraph, GraphError> {
        let mut builder = GraphBuilder::default();
        let datum = |position: usize, buffer: &spec::Buffer| {
            Datum::new(format!("argument {position}"), buffer.bytes())
        };
        // By position: the datum with what its buffer has now.
        let mut now: Vec<_> = (self.kernel.arguments.iter().enumerate())
            .map(|(position, argument)| match argument {
                spec::Argument::Buffer(buffer) => {
                    let user = self.clone();
                    let fill = Arc::new(move |bytes: &mut [u8]| user.fill(position, bytes));
                    let datum = datum(position, buffer).with(Contents::Filled(fill));
                    Some(builder.datum(datum))
                }
                _ => None,
            })
            .collect();
        for _ in 0..launches {
            let mut arguments = Vec::new();
            for (position, argument) in self.kernel.arguments.iter().enumerate() {
                arguments.extend(match (argument, &mut now[position]) {
                    (spec::Argument::Buffer(buffer), Some(now)) => Some(match buffer.direction {
                        Direction::Input => Argument::Input(*now),
                        Direction::Output | Direction::Both => {
                            let from = *now;
                            *now = builder.datum(datum(position, buffer));
                            Argument::InOut { from, to: *now }
                        }
                    }),
                    (spec::Argument::Scalar { bytes, .. }, _) => {
                        RawValue::new(bytes).map(|value| Argument::Value(Value::Raw(value)))
                    }
                    (spec::Argument::Local { bytes, .. }, _) => {
                        Some(Argument::Value(Value::Local(*bytes)))
                    }
                    (spec::Argument::Buffer(_), None) => None,
                });
            }
            builder.kernel(Kernel {
                name: self.kernel.name.clone().into(),
                codelet: Arc::clone(&self.codelet),
                units: 0..self.units(),
                arguments,
                cost: self.cost(&(0..self.units())),
                prefers: None,
            });
        }
        builder.build()
    }
}
