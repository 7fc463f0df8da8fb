//! A kernel file: its fields are checked for their forms, and its lists become arguments. Its
//! expressions have no values yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::raw::{IGNORED_FIELDS, RawBuffer, RawKernel, last_of_each};
use super::scalar::{ElementType, UnknownType};
use super::{SpecError, read};
use crate::expression::Expression;
use crate::machine::DeviceKind;

/// What a kernel does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Input,
    Output,
    Both,
}

impl Direction {
    /// The field of a kernel file that lists such buffers.
    pub fn field(self) -> &'static str {
        match self {
            Self::Input => "inputBuffers",
            Self::Output => "outputBuffers",
            Self::Both => "ioBuffers",
        }
    }

    /// Whether the kernel reads the former contents.
    pub fn reads(self) -> bool {
        self != Self::Output
    }

    /// Whether the kernel writes to the buffer.
    pub fn writes(self) -> bool {
        self != Self::Input
    }
}

/// An argument as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentSpec {
    /// The field that describes it, such as `inputBuffers[0]`.
    pub field: String,
    pub position: u64,
    pub element: ElementType,
    pub kind: ArgumentKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentKind {
    Buffer {
        direction: Direction,
        /// In elements.
        size: Expression,
        /// `break`: whether it is divided like the work.
        divided: bool,
        /// The id of the kernel that makes it, and its position there.
        from: Option<(u64, u64)>,
    },
    Scalar {
        value: Expression,
    },
    /// Local memory.
    Local {
        /// In elements.
        size: Expression,
    },
}

/// A macro's value.
#[derive(Clone, Debug, PartialEq)]
pub enum MacroValue {
    Number(Expression),
    /// A type, as it is written.
    Type(String),
}

/// A kernel as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSpec {
    /// The kernel file.
    pub file: PathBuf,
    /// Its location in the file, such as `[2].`; empty if it is the whole file.
    pub prefix: String,
    /// The kernel's source file, as written.
    pub src: String,
    /// The kernel function.
    pub name: String,
    /// 1 to 3.
    pub dimension: usize,
    pub global: Vec<Expression>,
    /// `None`: the driver chooses.
    pub local: Option<Vec<Expression>>,
    /// By position, without gaps.
    pub arguments: Vec<ArgumentSpec>,
    pub macros: BTreeMap<String, MacroValue>,
    pub symbols: BTreeMap<String, Expression>,
    /// 0, all on the CPU, to 10, all on the GPU.
    pub partition: Option<Expression>,
    pub device: Option<DeviceKind>,
    /// What looks wrong but is no error.
    pub warnings: Vec<String>,
}

impl KernelSpec {
    /// Reads a kernel file.
    ///
    /// # Errors
    /// When there is no such file, it is not JSON, or a field has a wrong form.
    pub fn load(file: &Path) -> Result<Self, SpecError> {
        let (text, mut warnings) = last_of_each(&read(file)?);
        let raw: RawKernel = parse(file, &text)?;
        let mut kernel = Self::of(file, String::new(), raw)?;
        kernel.warnings.append(&mut warnings);
        Ok(kernel)
    }

    /// Checks a kernel that was read from `file`, at `prefix` in that.
    pub(super) fn of(file: &Path, prefix: String, raw: RawKernel) -> Result<Self, SpecError> {
        let wrong =
            |field: &str, why: String| Err(SpecError::field(file, format!("{prefix}{field}"), why));
        if !(1..=3).contains(&raw.dimension.0) {
            return wrong(
                "workDimension",
                format!("{} is not 1, 2 or 3", raw.dimension.0),
            );
        }
        if !is_name(&raw.name) {
            return wrong("name", format!("`{}` is no name of a function", raw.name));
        }
        let mut warnings = unknown_fields(&raw.others, "");
        let dimension = raw.dimension.0 as usize;
        let arguments = arguments(file, &prefix, &raw, &mut warnings)?;
        for (field, sizes) in [
            ("globalWorkSize", Some(&raw.global)),
            ("localWorkSize", raw.local.as_ref()),
        ] {
            let Some(sizes) = sizes else { continue };
            match sizes.0.len() {
                0 if field == "globalWorkSize" => {
                    return wrong(field, "it has no size; give one a dimension".to_owned());
                }
                4.. => {
                    let why = format!("{} sizes; OpenCL has at most 3 dimensions", sizes.0.len());
                    return wrong(field, why);
                }
                given if given != dimension && given > 0 => warnings.push(format!(
                    "{prefix}{field} has {given} sizes for workDimension {dimension}; missing ones \
                     are 1"
                )),
                _ => {}
            }
        }
        let device = match raw.dev.as_deref() {
            None => None,
            Some("cpu" | "CPU") => Some(DeviceKind::Cpu),
            Some("gpu" | "GPU") => Some(DeviceKind::Gpu),
            Some(other) => return wrong("dev", format!("`{other}` is neither cpu nor gpu")),
        };
        let mut symbols: BTreeMap<_, _> = (raw.symbols.into_iter())
            .map(|(name, amount)| (name, amount.0))
            .collect();
        if let Some(dataset) = raw.dataset {
            symbols.entry("dataset".to_owned()).or_insert(dataset.0);
        }
        let local = raw.local.map(|sizes| sizes.0);
        Ok(Self {
            macros: macros(file, &prefix, &raw.macros)?,
            file: file.to_owned(),
            prefix,
            src: raw.src,
            name: raw.name,
            dimension,
            global: raw.global.0,
            local: local.filter(|sizes| !sizes.is_empty()),
            arguments,
            symbols,
            partition: raw.partition.map(|amount| amount.0),
            device,
            warnings,
        })
    }

    /// The symbols whose values matter to it: those that its expressions use or its
    /// file gives, and the two that graphs set.
    pub fn symbol_names(&self) -> BTreeSet<String> {
        let arguments = (self.arguments.iter()).map(|argument| match &argument.kind {
            ArgumentKind::Buffer { size, .. } | ArgumentKind::Local { size } => size,
            ArgumentKind::Scalar { value } => value,
        });
        let macros = self.macros.values().filter_map(|value| match value {
            MacroValue::Number(expression) => Some(expression),
            MacroValue::Type(_) => None,
        });
        let used = (self.global.iter().chain(self.local.iter().flatten()))
            .chain(arguments)
            .chain(macros)
            .chain(self.symbols.values())
            .chain(&self.partition)
            .flat_map(Expression::names);
        used.chain(self.symbols.keys().map(String::as_str))
            .chain(["localWorkSize", "partition"])
            .map(str::to_owned)
            .collect()
    }

    /// An error of one of its fields.
    pub fn fault(&self, field: &str, why: impl Into<String>) -> SpecError {
        SpecError::field(&self.file, format!("{}{field}", self.prefix), why)
    }
}

/// Reads JSON into a type. An error names the field, or the line where the text is
/// not JSON.
pub(super) fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, SpecError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fault = |error: &serde_json::Error, field: Option<String>| {
        let placed = format!(" at line {} column {}", error.line(), error.column());
        let why = error.to_string();
        SpecError {
            field,
            ..SpecError::file(file, why.strip_suffix(&placed).unwrap_or(&why))
        }
        .at((error.line() > 0).then(|| error.line()))
    };
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.inner();
        let field = (inner.is_data() && path != ".").then_some(path);
        fault(inner, field)
    })?;
    deserializer.end().map_err(|error| fault(&error, None))?;
    Ok(parsed)
}

fn macros(
    file: &Path,
    prefix: &str,
    raw: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, MacroValue>, SpecError> {
    let of = |(name, value): (&String, &Value)| {
        let wrong =
            |why: String| SpecError::field(file, format!("{prefix}macros_values.{name}"), why);
        if !is_name(name) {
            return Err(wrong(format!("`{name}` is not a valid name of a macro")));
        }
        let expression = |text: &str| text.parse().map(MacroValue::Number);
        let value = match value {
            Value::Number(number) => expression(&number.to_string()),
            Value::Bool(flag) => Ok(MacroValue::Number(i64::from(*flag).into())),
            Value::String(text) if text.trim().parse::<ElementType>().is_ok() => {
                Ok(MacroValue::Type(text.trim().to_owned()))
            }
            Value::String(text) => expression(text),
            _ => {
                return Err(wrong(
                    "a number, an expression or a type is wanted".to_owned(),
                ));
            }
        };
        Ok((name.clone(), value.map_err(|e| wrong(e.to_string()))?))
    };
    raw.iter().map(of).collect()
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

// The arguments of a kernel, from its file's lists of buffers, values and local
// memory.

/// An argument of any list.
struct Raw<'a> {
    field: String,
    element: &'a str,
    position: u64,
    kind: ArgumentKind,
    others: &'a BTreeMap<String, Value>,
}

/// All arguments by position, without gaps.
fn arguments(
    file: &Path,
    prefix: &str,
    raw: &RawKernel,
    warnings: &mut Vec<String>,
) -> Result<Vec<ArgumentSpec>, SpecError> {
    let buffers = [
        (Direction::Input, &raw.inputs),
        (Direction::Output, &raw.outputs),
        (Direction::Both, &raw.both),
    ];
    let buffers = buffers.into_iter().flat_map(|(direction, buffers)| {
        let all = (0..).zip(buffers);
        all.map(move |(index, buffer)| Raw {
            field: format!("{}[{index}]", direction.field()),
            element: &buffer.element,
            position: buffer.pos.0,
            kind: of_buffer(direction, buffer),
            others: &buffer.others,
        })
    });
    let scalars = (0..).zip(&raw.scalars).map(|(index, scalar)| Raw {
        field: format!("varArguments[{index}]"),
        element: &scalar.element,
        position: scalar.pos.0,
        kind: ArgumentKind::Scalar {
            value: scalar.value.0.clone(),
        },
        others: &scalar.others,
    });
    let locals = (0..).zip(&raw.locals).map(|(index, local)| Raw {
        field: format!("localArguments[{index}]"),
        element: &local.element,
        position: local.pos.0,
        kind: ArgumentKind::Local {
            size: local.size.0.clone(),
        },
        others: &local.others,
    });
    let mut all = Vec::new();
    for argument in buffers.chain(scalars).chain(locals) {
        let field = format!("{prefix}{}.", argument.field);
        warnings.extend(unknown_fields(argument.others, &field));
        let element = argument.element.parse();
        all.push(ArgumentSpec {
            element: element.map_err(|unknown: UnknownType| {
                SpecError::field(file, format!("{field}type"), unknown.to_string())
            })?,
            position: argument.position,
            kind: argument.kind,
            field: argument.field,
        });
    }
    all.sort_by_key(|argument| argument.position);
    for (expected, argument) in (0u64..).zip(&all) {
        if argument.position == expected {
            continue;
        }
        let field = format!("{prefix}{}.pos", argument.field);
        let why = match argument.position < expected {
            true => format!(
                "position {} is that of {} already; each argument has its own, counted from 0",
                argument.position,
                all[expected as usize - 1].field
            ),
            false => format!(
                "position {} while nothing describes argument {expected}; every argument of the \
                 kernel needs an entry",
                argument.position
            ),
        };
        return Err(SpecError::field(file, field, why));
    }
    Ok(all)
}

fn of_buffer(direction: Direction, buffer: &RawBuffer) -> ArgumentKind {
    ArgumentKind::Buffer {
        direction,
        size: buffer.size.0.clone(),
        divided: buffer.divided.0,
        from: (buffer.from.as_ref()).map(|from| (from.kernel.0, from.pos.0)),
    }
}

/// Warnings of unknown fields.
pub(super) fn unknown_fields(others: &BTreeMap<String, Value>, prefix: &str) -> Vec<String> {
    let unknown = |name: &&String| !IGNORED_FIELDS.contains(&name.as_str());
    (others.keys().filter(unknown))
        .map(|name| format!("{prefix}{name} is an unknown field; it is ignored"))
        .collect()
}
