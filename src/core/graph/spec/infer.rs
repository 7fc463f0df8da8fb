//! Inferring a kernel file from a kernel's source: what the compiler pass of the
//! PySchedCL paper (section 4.A) finds, and `?` for what only the user knows, sizes
//! and values.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::raw::TO_FILL;
use super::scalar::{ElementType, is_object};
use super::source::{Access, KernelInfo, Parameter, kernels};
use super::{SpecError, read};
use crate::codelet::AddressSpace;

/// A kernel file with `?` for unknown values.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inferred {
    pub id: usize,
    pub name: String,
    pub src: String,
    pub work_dimension: usize,
    pub global_work_size: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_work_size: Option<Vec<u64>>,
    pub input_buffers: Vec<InferredBuffer>,
    pub output_buffers: Vec<InferredBuffer>,
    pub io_buffers: Vec<InferredBuffer>,
    pub var_arguments: Vec<InferredValue>,
    pub local_arguments: Vec<InferredLocal>,
}

/// A buffer; `break` says whether it is divided along with the kernel.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct InferredBuffer {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: usize,
    pub size: String,
    #[serde(rename = "break")]
    pub divided: u8,
}

/// A value.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct InferredValue {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: usize,
    pub value: String,
}

/// Local memory of a work-group.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct InferredLocal {
    #[serde(rename = "type")]
    pub element: String,
    pub pos: usize,
    pub size: String,
}

/// A kernel file, and what the user must still fill in.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Inference {
    pub file: Inferred,
    /// Fields to fill in, with what belongs there.
    pub to_fill: Vec<String>,
    /// Assumptions.
    pub notes: Vec<String>,
}

/// Infers the kernel files of a source, for all of its kernels or for one.
/// `macros` are those that the source is compiled with.
///
/// # Errors
/// When the file cannot be read, or has no such kernel.
pub fn infer(
    file: &Path,
    only: Option<&str>,
    macros: &BTreeMap<String, String>,
) -> Result<Vec<Inference>, SpecError> {
    let text = read(file)?;
    let found = kernels(&text, macros)
        .map_err(|unclosed| SpecError::line(file, unclosed.line, unclosed.to_string()))?;
    let names: Vec<&str> = found.iter().map(|kernel| kernel.name.as_str()).collect();
    if found.is_empty() {
        let why = "it has no kernel: no function that is declared with __kernel or kernel";
        return Err(SpecError::file(file, why));
    }
    if let Some(name) = only
        && !names.contains(&name)
    {
        let why = format!("it has no kernel `{name}`; it has {}", names.join(", "));
        return Err(SpecError::file(file, why));
    }
    let src = file.file_name().unwrap_or_default().to_string_lossy();
    Ok((found.iter())
        .filter(|kernel| only.is_none_or(|name| kernel.name == name))
        .enumerate()
        .map(|(id, kernel)| of(id, &src, kernel))
        .collect())
}

fn of(id: usize, src: &str, kernel: &KernelInfo) -> Inference {
    let mut made = Inference {
        file: Inferred {
            id,
            name: kernel.name.clone(),
            src: src.to_owned(),
            work_dimension: kernel.dimension,
            global_work_size: vec![TO_FILL.to_owned(); kernel.dimension],
            local_work_size: (kernel.required_local.as_ref())
                .map(|local| local[..kernel.dimension].to_vec()),
            input_buffers: Vec::new(),
            output_buffers: Vec::new(),
            io_buffers: Vec::new(),
            var_arguments: Vec::new(),
            local_arguments: Vec::new(),
        },
        to_fill: vec!["globalWorkSize: work-items along each dimension".to_owned()],
        notes: Vec::new(),
    };
    if kernel.dimension_guessed {
        made.notes.push(
            "workDimension is 3 since a variable selects a dimension; lower it if fewer \
             are used"
                .to_owned(),
        );
    }
    if kernel.uses_groups && kernel.required_local.is_none() {
        made.to_fill.push(
            "localWorkSize: the kernel depends on its work-groups, so their size is needed"
                .to_owned(),
        );
    }
    if kernel.atomics {
        made.notes.push(
            "it uses atomic operations; a test before a run decides whether it can be divided \
             among devices"
                .to_owned(),
        );
    }
    for (pos, (parameter, access)) in kernel.parameters.iter().zip(&kernel.accesses).enumerate() {
        made.parameter(pos, parameter, *access);
    }
    made
}

impl Inference {
    fn parameter(&mut self, pos: usize, parameter: &Parameter, access: Access) {
        let known = parameter.type_name.parse::<ElementType>();
        let name = &parameter.name;
        let element = match known {
            Ok(element) => element.to_string(),
            Err(unknown) if is_object(&parameter.type_name) => {
                self.to_fill
                    .push(format!("type of argument {pos}, {name}: {unknown}"));
                TO_FILL.to_owned()
            }
            Err(_) => {
                self.to_fill.push(format!(
                    "type of argument {pos}, {name}: `{}` is not a type of OpenCL C itself; a \
                     structure is struct:BYTES, with its sizeof",
                    parameter.type_name
                ));
                TO_FILL.to_owned()
            }
        };
        let size = TO_FILL.to_owned();
        match (parameter.address, parameter.pointer) {
            (AddressSpace::Local, _) => {
                let field = format!("localArguments[{}].size", self.file.local_arguments.len());
                self.to_fill
                    .push(format!("{field}: elements of {name} in a work-group"));
                self.file
                    .local_arguments
                    .push(InferredLocal { element, pos, size });
            }
            (AddressSpace::Global | AddressSpace::Constant, _) | (_, true) => {
                let file = &mut self.file;
                let (field, list) = match (access.read, access.written) {
                    (_, false) => ("inputBuffers", &mut file.input_buffers),
                    (false, true) => ("outputBuffers", &mut file.output_buffers),
                    (true, true) => ("ioBuffers", &mut file.io_buffers),
                };
                self.to_fill
                    .push(format!("{field}[{}].size: elements of {name}", list.len()));
                list.push(InferredBuffer {
                    element,
                    pos,
                    size,
                    divided: 0,
                });
                if access == Access::default() {
                    self.notes
                        .push(format!("argument {pos}, {name}, is not used"));
                }
                if access.guessed {
                    self.notes.push(format!(
                        "argument {pos}, {name}, is used in a way that cannot be followed, so it counts \
                         as {}",
                        if access.written {
                            "read and written"
                        } else {
                            "read"
                        }
                    ));
                }
            }
            (AddressSpace::Private, false) => {
                let field = format!("varArguments[{}].value", self.file.var_arguments.len());
                self.to_fill.push(format!("{field}: the value of {name}"));
                let value = TO_FILL.to_owned();
                self.file.var_arguments.push(InferredValue {
                    element,
                    pos,
                    value,
                });
            }
        }
    }
}
