//! Parameters of operations, and their values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A parameter, which `--name` sets.
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    /// A paragraph for people, and what follows in long help.
    pub help: &'static str,
    pub more: &'static str,
    /// As it is written; empty where `help` tells what is used.
    pub default: &'static str,
    /// Parameters that cannot be given with it, and those that must be.
    pub excludes: &'static [&'static str],
    pub needs: &'static [&'static str],
}

/// What a parameter's values are.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number in these bounds.
    Number(u64, u64),
    /// The same, or `auto`.
    Tile(u64, u64),
    /// One of these words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    File,
}

impl Parameter {
    const fn of(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            name,
            kind,
            help,
            more: "",
            default: "",
            excludes: &[],
            needs: &[],
        }
    }

    /// A whole number.
    pub const fn number(name: &'static str, bounds: (u64, u64), help: &'static str) -> Self {
        Self::of(name, Kind::Number(bounds.0, bounds.1), help)
    }

    /// The length of a part.
    pub const fn tile(bounds: (u64, u64), help: &'static str) -> Self {
        Self::of("tile", Kind::Tile(bounds.0, bounds.1), help)
    }

    /// One of some words.
    pub const fn choice(
        name: &'static str,
        choices: &'static [(&'static str, &'static str)],
        help: &'static str,
    ) -> Self {
        Self::of(name, Kind::Choice(choices), help)
    }

    /// A file.
    pub const fn file(name: &'static str, help: &'static str) -> Self {
        Self::of(name, Kind::File, help)
    }
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Auto,
    Word(String),
    File(PathBuf),
}

/// The values that are given, by their parameters' names.
#[derive(Clone, Debug, Default)]
pub struct Values(pub BTreeMap<&'static str, Value>);

impl Values {
    /// A number, if it is given.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Rows and columns of a part, unless they are chosen.
    pub fn tile(&self) -> Option<u64> {
        self.number("tile")
    }

    /// A word, if it is given.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// The path of a file, if it is given.
    pub fn file(&self, name: &str) -> Option<&Path> {
        match self.0.get(name) {
            Some(Value::File(path)) => Some(path),
            _ => None,
        }
    }

    /// The given files of these parameters, in their order.
    pub fn files<'a>(&'a self, of: &'a [Parameter]) -> impl Iterator<Item = &'a Path> {
        of.iter().filter_map(|parameter| self.file(parameter.name))
    }
}
