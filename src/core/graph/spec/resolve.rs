//! Resolving a kernel file: with values of its symbols it becomes a kernel with
//! sizes.

use std::path::{Path, PathBuf};

use super::kernel::{ArgumentKind, ArgumentSpec, Direction, KernelSpec, MacroValue};
use super::scalar::ElementType;
use super::{SpecError, read};
use crate::codelet::RawValue;
use crate::expression::{Expression, Number, Symbols};

/// A bound of work-items: more than any device computes in a year.
const MOST_ITEMS: u64 = 1 << 48;

/// A kernel with all that a launch needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub name: String,
    /// The source file that was found.
    pub source: PathBuf,
    pub text: String,
    /// Compiler options: the macros of the file.
    pub options: String,
    /// Work-items along each dimension.
    pub global: Vec<u64>,
    /// Of a work-group; `None`: the driver chooses.
    pub local: Option<Vec<u64>>,
    /// By position.
    pub arguments: Vec<Argument>,
    /// 0, all on the CPU, to 10, all on the GPU.
    pub partition: Option<u8>,
}

/// An argument with its size or value.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    Buffer(Buffer),
    Scalar {
        element: ElementType,
        bytes: Vec<u8>,
    },
    Local {
        element: ElementType,
        /// Of each work-group.
        bytes: u64,
    },
}

/// A buffer with its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    pub direction: Direction,
    pub element: ElementType,
    pub elements: u64,
    /// Whether the file says that it is divided like the work.
    pub divided: bool,
}

impl Buffer {
    /// Bytes of all its elements.
    pub fn bytes(&self) -> u64 {
        self.elements * self.element.bytes()
    }
}

impl Kernel {
    /// Its buffers, with their positions.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, &Buffer)> {
        (self.arguments.iter().enumerate()).filter_map(|(position, argument)| match argument {
            Argument::Buffer(buffer) => Some((position, buffer)),
            Argument::Scalar { .. } | Argument::Local { .. } => None,
        })
    }
}

/// Sizes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    Items,
    Groups,
}

/// Checks work-items along one to three dimensions, and those of a work-group.
///
/// # Errors
/// Which of them cannot be, and why.
pub fn check_sizes(global: &[u64], local: Option<&[u64]>) -> Result<(), (Sizes, String)> {
    let together = global.iter().try_fold(1u64, |all, n| all.checked_mul(*n));
    if !matches!(global.len(), 1..=3) || together == Some(0) {
        let why = format!("a launch has work-items in 1 to 3 dimensions, and these are {global:?}");
        return Err((Sizes::Items, why));
    }
    if together.is_none_or(|items| items >= MOST_ITEMS) {
        let why = format!("{global:?} work-items are more than 2**48 together");
        return Err((Sizes::Items, why));
    }
    let local = local.unwrap_or(&[]);
    if local.len() > global.len() {
        let why = format!("groups of {local:?} have more dimensions than {global:?} work-items");
        return Err((Sizes::Groups, why));
    }
    for (axis, (global, local)) in global.iter().zip(local).enumerate() {
        if global.checked_rem(*local).is_none_or(|rest| rest != 0) {
            let why = format!(
                "{local} work-items of a group do not divide the {global} along dimension {axis}"
            );
            return Err((Sizes::Groups, why));
        }
    }
    Ok(())
}

/// Compares work-items and work-groups with those that a kernel's source requires
/// (`reqd_work_group_size`): no driver runs it with others.
///
/// # Errors
/// Which of them do not suit.
pub fn check_required(
    required: &[u64],
    global: &[u64],
    local: Option<&[u64]>,
) -> Result<(), (Sizes, String)> {
    let of = |sizes: &[u64], axis: usize| sizes.get(axis).copied().unwrap_or(1);
    if let Some(local) = local
        && (0..3).any(|axis| of(local, axis) != of(required, axis))
    {
        let why = format!(
            "its source requires groups of {required:?} (reqd_work_group_size), and these are \
             {local:?}; give what it requires, or none"
        );
        return Err((Sizes::Groups, why));
    }
    let whole = |axis: &usize| of(global, *axis) % of(required, *axis).max(1) == 0;
    match (0..3).find(|axis| !whole(axis)) {
        None => Ok(()),
        Some(axis) => Err((
            Sizes::Items,
            format!(
                "{} work-items along dimension {axis} are no multiple of the {} of a group that \
                 its source requires (reqd_work_group_size)",
                of(global, axis),
                of(required, axis)
            ),
        )),
    }
}

impl KernelSpec {
    /// The fault of sizes.
    pub(super) fn wrong_sizes(&self, (sizes, why): (Sizes, String)) -> SpecError {
        let field = match sizes {
            Sizes::Items => "globalWorkSize",
            Sizes::Groups => "localWorkSize",
        };
        self.fault(field, why)
    }

    /// The kernel with these values of its symbols, which take precedence over its
    /// own. Its source is searched for in `sources`, then beside the file.
    ///
    /// # Errors
    /// When a symbol has no value, a size is invalid, or there is no source.
    pub fn resolve(&self, symbols: &Symbols, sources: Option<&Path>) -> Result<Kernel, SpecError> {
        let symbols = self.symbols(symbols)?;
        let mut global = self.sizes("globalWorkSize", &self.global, &symbols)?;
        // In the authors' lists of kernels one local size is for all dimensions.
        let everywhere = match symbols.get("localWorkSize") {
            Some(Number::Int(size)) => Some(vec![Expression::from(*size); self.dimension]),
            _ => None,
        };
        let local = everywhere.as_ref().or(self.local.as_ref());
        let mut local = local
            .map(|local| self.sizes("localWorkSize", local, &symbols))
            .transpose()?;
        for sizes in [Some(&mut global), local.as_mut()].into_iter().flatten() {
            sizes.resize(sizes.len().max(self.dimension), 1);
        }
        if let Some(local) = &mut local {
            let dimensions = global.len().max(local.len());
            global.resize(dimensions, 1);
            local.resize(dimensions, 1);
        }
        check_sizes(&global, local.as_deref()).map_err(|wrong| self.wrong_sizes(wrong))?;
        let (source, text) = self.source(sources)?;
        Ok(Kernel {
            name: self.name.clone(),
            source,
            text,
            options: self.options(&symbols)?,
            arguments: (self.arguments.iter())
                .map(|argument| self.argument(argument, &symbols))
                .collect::<Result<_, _>>()?,
            partition: self.partition(&symbols)?,
            global,
            local,
        })
    }

    /// The values of all symbols: `given` ones first, then the file's. A kernel always
    /// has its whole range, so `size_percent` is 100.
    pub fn symbols(&self, given: &Symbols) -> Result<Symbols, SpecError> {
        let mut symbols: Symbols = [("size_percent", 100), ("offset_percent", 0)]
            .map(|(name, n)| (name.to_owned(), Number::Int(n)))
            .into();
        symbols.extend(given.iter().map(|(name, n)| (name.clone(), *n)));
        for (name, expression) in &self.symbols {
            if given.contains_key(name) {
                continue;
            }
            let value = (expression.value(&symbols))
                .map_err(|e| self.fault(&format!("symbolicVariables.{name}"), e.to_string()))?;
            symbols.insert(name.clone(), value);
        }
        Ok(symbols)
    }

    fn argument(&self, argument: &ArgumentSpec, symbols: &Symbols) -> Result<Argument, SpecError> {
        let field = |name: &str| format!("{}.{name}", argument.field);
        let element = argument.element;
        match &argument.kind {
            ArgumentKind::Buffer {
                direction,
                size,
                divided,
                ..
            } => Ok(Argument::Buffer(Buffer {
                direction: *direction,
                element,
                elements: self.size(&field("size"), size, element, symbols)?,
                divided: *divided,
            })),
            ArgumentKind::Local { size } => {
                let elements = self.size(&field("size"), size, element, symbols)?;
                let bytes = elements * element.bytes();
                Ok(Argument::Local { element, bytes })
            }
            ArgumentKind::Scalar { value } => {
                let number = (value.value(symbols))
                    .map_err(|e| self.fault(&field("value"), e.to_string()))?;
                let bytes = element.encode(number).ok_or_else(|| {
                    self.fault(
                        &field("value"),
                        format!("{number} is not a value of type {element}"),
                    )
                })?;
                if bytes.len() > RawValue::MOST {
                    let why = format!(
                        "a {element} is too long to be passed by value; at most {} bytes are allowed: \
                         pass it in a buffer",
                        RawValue::MOST
                    );
                    return Err(self.fault(&field("type"), why));
                }
                Ok(Argument::Scalar { element, bytes })
            }
        }
    }

    fn size(
        &self,
        field: &str,
        size: &Expression,
        element: ElementType,
        symbols: &Symbols,
    ) -> Result<u64, SpecError> {
        let elements = size
            .whole(symbols)
            .map_err(|e| self.fault(field, e.to_string()))?;
        let positive = u64::try_from(elements).ok().filter(|n| *n > 0);
        let fits = |n: &u64| n.checked_mul(element.bytes()).is_some_and(|b| b < 1 << 48);
        positive.filter(fits).ok_or_else(|| {
            let what = match elements <= 0 {
                true => "at least 1 is needed",
                false => "that is more than any memory",
            };
            self.fault(field, format!("`{size}` is {elements} elements; {what}"))
        })
    }

    fn sizes(
        &self,
        field: &str,
        sizes: &[Expression],
        symbols: &Symbols,
    ) -> Result<Vec<u64>, SpecError> {
        let of = |(axis, size): (usize, &Expression)| {
            let field = format!("{field}[{axis}]");
            let items = size
                .whole(symbols)
                .map_err(|e| self.fault(&field, e.to_string()))?;
            let positive = u64::try_from(items).ok();
            positive
                .filter(|n| (1..MOST_ITEMS).contains(n))
                .ok_or_else(|| {
                    let what = match items <= 0 {
                        true => "at least 1 work-item is needed",
                        false => "2**48 work-items and more are not run",
                    };
                    self.fault(&field, format!("`{size}` is {items}; {what}"))
                })
        };
        sizes.iter().enumerate().map(of).collect()
    }

    fn partition(&self, symbols: &Symbols) -> Result<Option<u8>, SpecError> {
        let given = symbols.get("partition").copied();
        let value = match (given, &self.partition) {
            (Some(number), _) => number,
            (None, None) => return Ok(None),
            (None, Some(expression)) => {
                (expression.value(symbols)).map_err(|e| self.fault("partition", e.to_string()))?
            }
        };
        match value {
            Number::Int(n @ 0..=10) => Ok(Some(n as u8)),
            other => Err(self.fault(
                "partition",
                format!(
                    "{other} is not a whole number from 0, all on the CPU, to 10, all on the GPU"
                ),
            )),
        }
    }
}

/// Folders, relative to that of the file, in which sources are searched for: those
/// of the authors' repositories.
const FOLDERS: [&str; 6] = [
    "",
    "kernels",
    "../kernels",
    "../kernel_src",
    "../../kernels",
    "../../database/kernels",
];

impl KernelSpec {
    /// The macros as compiler options.
    pub(super) fn options(&self, symbols: &Symbols) -> Result<String, SpecError> {
        let mut options = Vec::new();
        for (name, value) in &self.macros {
            let value = match value {
                MacroValue::Type(name) => name.clone(),
                MacroValue::Number(expression) => match expression.value(symbols) {
                    // In brackets, since a sign may follow an operator.
                    Ok(number) if number.float() < 0.0 => format!("({number})"),
                    Ok(number) => number.to_string(),
                    Err(e) => {
                        let field = format!("macros_values.{name}");
                        return Err(self.fault(&field, e.to_string()));
                    }
                },
            };
            // A type of two words would need quotes, which drivers treat differently.
            options.push(format!("-D{name}={}", value.replace("unsigned ", "u")));
        }
        Ok(options.join(" "))
    }

    /// Finds and reads the kernel's source.
    pub(super) fn source(&self, sources: Option<&Path>) -> Result<(PathBuf, String), SpecError> {
        let beside = self.file.parent().unwrap_or(Path::new(""));
        let near = FOLDERS.iter().map(|folder| beside.join(folder));
        let folders: Vec<PathBuf> = sources
            .map(Path::to_owned)
            .into_iter()
            .chain(near)
            .collect();
        let found = folders
            .iter()
            .map(|folder| folder.join(&self.src))
            .find(|path| path.is_file());
        let Some(path) = found else {
            let first = folders.first().map_or(Path::new(""), PathBuf::as_path);
            let location = match first.as_os_str().is_empty() {
                true => "this folder".to_owned(),
                false => first.display().to_string(),
            };
            let why = format!(
                "there is no `{}` in {location}, nor in the folders beside it; say where sources are \
                 with --sources",
                self.src
            );
            return Err(self.fault("src", why));
        };
        let text =
            read(&path).map_err(|e| self.fault("src", format!("{}: {}", path.display(), e.why)))?;
        Ok((path, text))
    }
}
