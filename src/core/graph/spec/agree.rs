//! Comparing a kernel file with its kernel, argument by argument: with the source as
//! it is read here, or with what a compiler reports.

use std::path::Path;

use super::kernel::{ArgumentKind, ArgumentSpec, KernelSpec};
use super::resolve::{Kernel, check_required};
use super::scalar::{ElementType, UnknownType, is_object};
use super::source::KernelInfo;
use super::{SpecError, source};
use crate::codelet::{AddressSpace, KernelArgument};
use crate::expression::Symbols;

/// An argument, by a source or a compiler.
struct Actual<'a> {
    name: &'a str,
    type_name: &'a str,
    address: AddressSpace,
    read_only: bool,
}

/// A kernel with its kernel file.
pub struct Described {
    pub spec: KernelSpec,
    pub kernel: Kernel,
    /// What its source says.
    pub info: KernelInfo,
    /// What looks wrong but is no error.
    pub warnings: Vec<String>,
}

impl KernelSpec {
    /// Resolves it and compares it with its source, which is in the folder `sources`, if one is
    /// named.
    ///
    /// # Errors
    /// As [`Self::resolve`], [`Self::agrees_with_source`] and [`Self::with_required_groups`].
    pub fn describe(
        self,
        symbols: &Symbols,
        sources: Option<&Path>,
    ) -> Result<Described, SpecError> {
        let kernel = self.resolve(symbols, sources)?;
        let (info, doubts) = self.agrees_with_source(&kernel)?;
        let kernel = self.with_required_groups(kernel, &info)?;
        let warnings = self.warnings.iter().cloned().chain(doubts).collect();
        Ok(Described {
            spec: self,
            kernel,
            info,
            warnings,
        })
    }

    /// Compares the file with the source of `kernel`, into which it was resolved.
    /// Returns what the source says of the kernel, and warnings.
    ///
    /// # Errors
    /// When the source has no such kernel, or an argument differs from the file.
    pub fn agrees_with_source(
        &self,
        kernel: &Kernel,
    ) -> Result<(KernelInfo, Vec<String>), SpecError> {
        let macros = source::macros_of(&kernel.options);
        let all = source::kernels(&kernel.text, &macros).map_err(|unclosed| {
            SpecError::line(&kernel.source, unclosed.line, unclosed.to_string())
        })?;
        let names: Vec<&str> = all.iter().map(|info| info.name.as_str()).collect();
        let Some(info) = all.iter().find(|info| info.name == self.name) else {
            let there = match names.is_empty() {
                true => "no kernel at all".to_owned(),
                false => format!("only {}", names.join(", ")),
            };
            let why = format!(
                "{} has {there}, not `{}`",
                kernel.source.display(),
                self.name
            );
            return Err(self.fault("name", why));
        };
        let actual: Vec<Actual> = (info.parameters.iter())
            .map(|parameter| Actual {
                name: &parameter.name,
                type_name: &parameter.type_name,
                address: match (parameter.address, parameter.pointer) {
                    (AddressSpace::Private, true) => AddressSpace::Global,
                    (address, _) => address,
                },
                read_only: parameter.read_only,
            })
            .collect();
        if let Some(object) = actual.iter().find(|is| is_object(is.type_name)) {
            let unknown = UnknownType(object.type_name.to_owned());
            let why = format!("argument `{}` of `{}`: {unknown}", object.name, self.name);
            return Err(self.fault("name", why));
        }
        self.agrees(&actual)?;
        Ok((info.clone(), self.doubts(info, kernel)))
    }

    /// The kernel with the work-groups that its source requires (`reqd_work_group_size`): no
    /// driver runs it with others.
    ///
    /// # Errors
    /// When the file has other groups, or these do not divide its work-items.
    pub fn with_required_groups(
        &self,
        kernel: Kernel,
        info: &KernelInfo,
    ) -> Result<Kernel, SpecError> {
        let Some(required) = &info.required_local else {
            return Ok(kernel);
        };
        let dimensions = kernel.global.len();
        let given = kernel.local.as_deref();
        check_required(required, &kernel.global, given).map_err(|wrong| self.wrong_sizes(wrong))?;
        let local = given
            .map_or(&required[..dimensions], |local| local)
            .to_vec();
        Ok(Kernel {
            local: Some(local),
            ..kernel
        })
    }

    /// Compares the file with the kernel's arguments that a compiler reports.
    ///
    /// # Errors
    /// When an argument differs from the file.
    pub fn agrees_with_compiler(&self, arguments: &[KernelArgument]) -> Result<(), SpecError> {
        let actual = arguments.iter().map(|argument| Actual {
            name: &argument.name,
            type_name: &argument.type_name,
            address: argument.address,
            read_only: argument.read_only,
        });
        self.agrees(&actual.collect::<Vec<_>>())
    }

    fn agrees(&self, actual: &[Actual]) -> Result<(), SpecError> {
        if let Some(argument) = self.arguments.get(actual.len()) {
            let why = format!(
                "position {}, and `{}` has {} arguments, counted from 0",
                argument.position,
                self.name,
                actual.len()
            );
            return Err(self.fault(&format!("{}.pos", argument.field), why));
        }
        if let Some(missing) = actual.get(self.arguments.len()) {
            let why = format!(
                "nothing describes argument {} of `{}`, `{} {}`",
                self.arguments.len(),
                self.name,
                missing.type_name,
                missing.name
            );
            return Err(self.fault("varArguments", why));
        }
        (self.arguments.iter().zip(actual)).try_for_each(|(said, is)| self.one_agrees(said, is))
    }

    fn one_agrees(&self, said: &ArgumentSpec, is: &Actual) -> Result<(), SpecError> {
        let (what, list) = match is.address {
            AddressSpace::Global | AddressSpace::Constant => {
                ("a buffer", "inputBuffers, outputBuffers or ioBuffers")
            }
            AddressSpace::Local => ("local memory", "localArguments"),
            AddressSpace::Private => ("a value", "varArguments"),
        };
        let fits = match &said.kind {
            ArgumentKind::Buffer { .. } => what == "a buffer",
            ArgumentKind::Local { .. } => what == "local memory",
            ArgumentKind::Scalar { .. } => what == "a value",
        };
        let name = format!(
            "argument {} of `{}`, `{}`,",
            said.position, self.name, is.name
        );
        if !fits {
            let why = format!("{name} is {what}; it belongs into {list}");
            return Err(self.fault(&format!("{}.pos", said.field), why));
        }
        // Types of the kernel's own, such as structures, are not compared.
        if let Ok(element) = is.type_name.parse::<ElementType>()
            && element != said.element
            && !same_bytes(said, element)
        {
            let why = format!("{name} is of type {element}, not {}", said.element);
            return Err(self.fault(&format!("{}.type", said.field), why));
        }
        if let ArgumentKind::Buffer { direction, .. } = &said.kind
            && direction.writes()
            && is.read_only
        {
            let why =
                format!("{name} is const: the kernel only reads it; it belongs into inputBuffers");
            return Err(self.fault(&said.field, why));
        }
        Ok(())
    }

    /// Warnings of a file that fits its kernel.
    fn doubts(&self, info: &KernelInfo, kernel: &Kernel) -> Vec<String> {
        let mut doubts = Vec::new();
        let mut doubt = |field: &str, what: String| {
            doubts.push(format!("{}{field}: {what}", self.prefix));
        };
        for (said, access) in self.arguments.iter().zip(&info.accesses) {
            let ArgumentKind::Buffer { direction, .. } = said.kind else {
                continue;
            };
            let name = &info.parameters[said.position as usize].name;
            if access.guessed {
                continue;
            }
            if access.written && !direction.writes() {
                doubt(
                    &said.field,
                    format!(
                        "`{}` writes `{name}`, an input; what it writes is discarded",
                        self.name
                    ),
                );
            }
            if access.read && !direction.reads() {
                doubt(
                    &said.field,
                    format!(
                        "`{}` reads `{name}`, an output, before or after it writes it; if the \
                         former contents matter, it belongs into ioBuffers",
                        self.name
                    ),
                );
            }
        }
        if info.dimension > kernel.global.len() && !info.dimension_guessed {
            doubt(
                "workDimension",
                format!(
                    "`{}` asks for {} dimensions and is run in {}",
                    self.name,
                    info.dimension,
                    kernel.global.len()
                ),
            );
        }
        doubts
    }
}

/// Whether a type may describe the elements: floats a `float4*`, an int an enum. The
/// sizes of values must be equal.
fn same_bytes(said: &ArgumentSpec, element: ElementType) -> bool {
    match said.kind {
        ArgumentKind::Scalar { .. } => {
            said.element.lanes == element.lanes
                && said.element.bytes() == element.bytes()
                && said.element.base.is_float() == element.base.is_float()
        }
        ArgumentKind::Buffer { .. } | ArgumentKind::Local { .. } => {
            said.element.base == element.base
        }
    }
}
