//! A kernel's arguments out of its file's lists of buffers, values and local
//! memory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::error::SpecError;
use super::kernel::{ArgumentKind, ArgumentSpec, Direction};
use super::raw::{PASSED_OVER, RawBuffer, RawKernel};
use super::scalar::ElementType;

/// All arguments by position, without a gap.
pub(super) fn arguments(
    file: &Path,
    prefix: &str,
    raw: &RawKernel,
    warnings: &mut Vec<String>,
) -> Result<Vec<ArgumentSpec>, SpecError> {
    let mut all = Vec::new();
    let typed = |field: &str, name: &str| -> Result<ElementType, SpecError> {
        name.parse().map_err(|unknown: super::scalar::UnknownType| {
            SpecError::field(file, format!("{prefix}{field}.type"), unknown.to_string())
        })
    };
    let directions = [
        (Direction::Input, &raw.inputs),
        (Direction::Output, &raw.outputs),
        (Direction::Both, &raw.both),
    ];
    for (direction, buffers) in directions {
        for (index, buffer) in buffers.iter().enumerate() {
            let field = format!("{}[{index}]", direction.field());
            warnings.extend(strange(&buffer.others, &format!("{prefix}{field}.")));
            all.push(ArgumentSpec {
                element: typed(&field, &buffer.element)?,
                position: buffer.pos.0,
                kind: of_buffer(direction, buffer),
                field,
            });
        }
    }
    for (index, scalar) in raw.scalars.iter().enumerate() {
        let field = format!("varArguments[{index}]");
        warnings.extend(strange(&scalar.others, &format!("{prefix}{field}.")));
        all.push(ArgumentSpec {
            element: typed(&field, &scalar.element)?,
            position: scalar.pos.0,
            kind: ArgumentKind::Scalar {
                value: scalar.value.0.clone(),
            },
            field,
        });
    }
    for (index, local) in raw.locals.iter().enumerate() {
        let field = format!("localArguments[{index}]");
        warnings.extend(strange(&local.others, &format!("{prefix}{field}.")));
        all.push(ArgumentSpec {
            element: typed(&field, &local.element)?,
            position: local.pos.0,
            kind: ArgumentKind::Local {
                size: local.size.0.clone(),
            },
            field,
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

/// Fields that nobody knows.
pub(super) fn strange(others: &BTreeMap<String, Value>, prefix: &str) -> Vec<String> {
    let unknown = |name: &&String| !PASSED_OVER.contains(&name.as_str());
    (others.keys().filter(unknown))
        .map(|name| format!("{prefix}{name} is no field that is known; it is passed over"))
        .collect()
}
