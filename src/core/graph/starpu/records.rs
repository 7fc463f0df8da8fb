//! The form of StarPU's recordings, that of GNU recutils: `Field: value` lines, and records that
//! blank lines separate.

use std::iter::from_fn;
use std::path::Path;
use std::str::FromStr;

use crate::graph::spec::SpecError;

/// The fields of a record, in their order.
pub(super) struct Record<'a> {
    file: &'a Path,
    pub line: usize,
    /// Each with its line.
    fields: Vec<(&'a str, &'a str, usize)>,
}

/// The records of a file. A field that a record has already begins the next one: where StarPU
/// writes `EndDependencies`, the blank line after the record is missing.
pub(super) fn records<'a>(
    file: &'a Path,
    text: &'a str,
) -> impl Iterator<Item = Result<Record<'a>, SpecError>> {
    let mut lines = (1..).zip(text.lines()).peekable();
    from_fn(move || {
        let mut fields: Vec<(&str, &str, usize)> = Vec::new();
        while let Some((line, text)) = lines.peek().copied() {
            let Some((name, value)) = text.split_once(':') else {
                if !text.trim().is_empty() {
                    let why = "it is no `Field: value`; a record of StarPU has only such lines";
                    return Some(Err(SpecError::line(file, line, why)));
                }
                lines.next();
                match fields.is_empty() {
                    true => continue,
                    false => break,
                }
            };
            let has = |name| fields.iter().any(|(known, ..)| *known == name);
            if has(name) || (name == "Name" && has("JobId")) {
                break;
            }
            fields.push((name, value.strip_prefix(' ').unwrap_or(value), line));
            lines.next();
        }
        let line = fields.first()?.2;
        Some(Ok(Record { file, line, fields }))
    })
}

impl<'a> Record<'a> {
    /// The value of a field; `None` if it has none.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let mut fields = self.fields.iter();
        fields.find_map(|(known, value, _)| (*known == name).then_some(*value))
    }

    /// The number of a field.
    pub fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, SpecError> {
        self.get(name)
            .map(|text| self.parsed(name, text.trim().parse()))
            .transpose()
    }

    /// The numbers of a field that has several.
    pub fn numbers<T>(
        &self,
        name: &str,
        number: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, SpecError> {
        let words = self.get(name).into_iter().flat_map(str::split_whitespace);
        words
            .map(|word| self.parsed(name, number(word).ok_or(())))
            .collect()
    }

    fn parsed<T, E>(&self, name: &str, parsed: Result<T, E>) -> Result<T, SpecError> {
        parsed.map_err(|_| {
            let value = self.get(name).unwrap_or_default();
            self.error(name, format!("`{value}` is not what StarPU writes here"))
        })
    }

    /// An error of a field.
    pub fn error(&self, name: &str, why: impl Into<String>) -> SpecError {
        let line = self.fields.iter().find(|(known, ..)| *known == name);
        let line = line.map_or(self.line, |(_, _, line)| *line);
        SpecError::field(self.file, name, why).at(Some(line))
    }
}

/// A hexadecimal number, which StarPU writes without `0x`.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}
