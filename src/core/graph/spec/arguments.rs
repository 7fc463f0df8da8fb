//! The arguments of a kernel, from its file's lists of buffers, values and local
//! memory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::error::SpecError;
use super::kernel::{ArgumentKind, ArgumentSpec, Direction};
use super::raw::{IGNORED_FIELDS, RawBuffer, RawKernel};
use super::scalar::UnknownType;

/// An argument of any list.
struct Raw<'a> {
    field: String,
    element: &'a str,
    position: u64,
    kind: ArgumentKind,
    others: &'a BTreeMap<String, Value>,
}

/// All arguments by position, without gaps.
pub(super) fn arguments(
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
