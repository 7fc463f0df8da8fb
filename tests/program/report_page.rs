//! docs/report.md, made from the JSON Schemas and a template.
//!
//! A table has a row for each member. A part that an earlier table has is only named.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value};

use crate::schemas::Known;

const TEMPLATE: &str = include_str!("report_page.md");

/// The page.
pub fn page(schemas: &[Known]) -> String {
    let mut list = String::from("| command of `pdawl` | schema |\n|---|---|\n");
    let mut sections = String::new();
    let mut seen = HashMap::new();
    for known in schemas {
        let link = link(&known.name);
        let _ = writeln!(list, "| {} | {link} |", known.printed_by);
        let _ = writeln!(sections, "## {}\n", known.name);
        let _ = writeln!(sections, "{}\n", description(&known.schema));
        sections.push_str("| member | type | meaning |\n|---|---|---|\n");
        let mut section = Section {
            name: &known.name,
            root: &known.schema,
            seen: &mut seen,
            text: &mut sections,
        };
        section.members(&known.schema, "");
        sections.push('\n');
    }
    let page = TEMPLATE.replace("{list}\n", &list);
    page.replace("{sections}\n", &sections)
}

/// A link to a schema's section.
fn link(name: &str) -> String {
    format!("[`{name}`](#{})", name.replace('/', ""))
}

/// A description on one line, `None` as it is in JSON.
fn description(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Links of Rust's documentation.
    let text = text.replace("[`", "`").replace("`]", "`");
    text.replace("`None`", "null").replace('|', "\\|")
}

struct Section<'a> {
    name: &'a str,
    root: &'a Value,
    /// Where a part was described first: the schema and the member.
    seen: &'a mut HashMap<String, (String, String)>,
    text: &'a mut String,
}

impl<'a> Section<'a> {
    fn row(&mut self, member: &str, kind: &str, meaning: &str) {
        let member = match member {
            "" => String::new(),
            member => format!("`{member}`"),
        };
        let _ = writeln!(self.text, "| {member} | {kind} | {meaning} |");
    }

    /// The definition that a schema refers to, or itself.
    fn target(&self, of: &'a Value) -> &'a Value {
        match of["$ref"].as_str() {
            Some(reference) => self
                .root
                .pointer(reference.trim_start_matches('#'))
                .unwrap(),
            None => of,
        }
    }

    /// The rows of an object's members, in the order of the type's fields; then those of what
    /// it refers to.
    fn members(&mut self, of: &'a Value, path: &str) {
        let target = self.target(of);
        if let Some(properties) = of["properties"].as_object() {
            self.own_members(properties, of, path);
        }
        if !std::ptr::eq(target, of) {
            self.members(target, path);
        }
    }

    /// A member without a meaning of its own is explained with the one before, if both are of one
    /// type: a comment in the sources often is of several fields.
    fn own_members(&mut self, properties: &'a Map<String, Value>, of: &'a Value, path: &str) {
        let required = of["required"].as_array().into_iter().flatten();
        let mut names: Vec<&str> = required.filter_map(Value::as_str).collect();
        let others = properties.keys().map(String::as_str);
        let others: Vec<&str> = others.filter(|name| !names.contains(name)).collect();
        names.extend(&others);
        let mut names = names.into_iter().peekable();
        while let Some(name) = names.next() {
            let first = &properties[name];
            let mut beside = Vec::new();
            while let Some(next) =
                names.next_if(|next| self.is_explained_with(&properties[*next], next, first))
            {
                beside.push(next);
            }
            let path = match path {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            self.member(first, (name, &beside), &path, others.contains(&name));
        }
    }

    /// Whether a member is explained with an earlier one.
    fn is_explained_with(&self, of: &'a Value, name: &str, earlier: &'a Value) -> bool {
        let scalar = |of: &Value| {
            let kind = self.kind(of).replace(" or null", "");
            let words = ["integer", "number", "string", "boolean"];
            words
                .iter()
                .any(|word| kind.trim_start_matches("list of ") == *word)
                .then_some(kind)
        };
        description(of).is_empty()
            && common(name).is_empty()
            && of.get("$ref").is_none()
            && !description(earlier).is_empty()
            && earlier.get("const").is_none()
            && scalar(of).is_some()
            && scalar(of) == scalar(earlier)
    }

    /// The row of a member and those beside it, and the rows of its own members.
    fn member(&mut self, of: &'a Value, (name, beside): (&str, &[&str]), path: &str, absent: bool) {
        let mut kind = self.kind(of);
        if let Some(unit) = unit(name, &kind) {
            let _ = write!(kind, ", {unit}");
        }
        if absent {
            kind.push_str(", may be absent");
        }
        let also: String = beside.iter().map(|name| format!("`, `{name}")).collect();
        let mut path = path.to_owned();
        let mut inner = self.inner(of);
        while let Some(items) = inner.get("items").or(inner.get("additionalProperties")) {
            path.push_str(if inner.get("items").is_some() {
                "[]"
            } else {
                ".KEY"
            });
            inner = self.inner(items);
        }
        let target = self.target(inner);
        let meaning = match (description(of), description(target)) {
            (own, _) if !own.is_empty() => own,
            (_, of_part) if !of_part.is_empty() => of_part,
            _ => common(name).to_owned(),
        };
        let meaning = match of["const"].as_str() {
            Some(value) if meaning.is_empty() => format!("`{value}`"),
            _ => meaning,
        };
        let meaning = match target["enum"].as_array() {
            Some(values) => {
                let values = values.iter().filter_map(Value::as_str);
                let values: Vec<String> = values.map(|value| format!("`{value}`")).collect();
                format!("{meaning} {}.", values.join(", "))
            }
            None => meaning,
        };
        let parts = target.get("oneOf").or(target.get("anyOf"));
        let parts = parts.and_then(Value::as_array);
        let values = parts.filter(|parts| parts.iter().all(|part| part.get("const").is_some()));
        let is_object = target.get("properties").is_some() || (parts.is_some() && values.is_none());
        let first = match is_object {
            true => self.first(inner, &path),
            false => None,
        };
        match (first, values) {
            (Some(place), _) => {
                let dot = if meaning.is_empty() { "" } else { ". " };
                let meaning = format!("{}{dot}Members as {place}", meaning.trim_end_matches('.'));
                self.row(&path, &kind, &meaning);
            }
            (None, Some(values)) => {
                let words = values.iter().map(|of| match description(of) {
                    text if text.is_empty() => format!("`{}`", of["const"].as_str().unwrap()),
                    text => format!("`{}`: {text}", of["const"].as_str().unwrap()),
                });
                let words = words.collect::<Vec<_>>().join(" ");
                self.row(&path, &kind, format!("{meaning} {words}").trim());
            }
            (None, None) => {
                self.row(&format!("{path}{also}"), &kind, &meaning);
                self.members(target, &path);
                for part in parts.into_iter().flatten() {
                    let text = match description(part) {
                        own if own.is_empty() => description(self.target(part)),
                        own => own,
                    };
                    self.row("", "one of", &format!("*{}*", text.trim_end_matches('.')));
                    self.members(part, &path);
                }
            }
        }
    }

    /// A schema without `null`.
    fn inner(&self, of: &'a Value) -> &'a Value {
        let of = match of.get("$ref").is_some() && !self.target(of)["properties"].is_object() {
            true => self.target(of),
            false => of,
        };
        let Some(any) = of["anyOf"].as_array() else {
            return of;
        };
        let mut others = any.iter().filter(|part| part["type"] != "null");
        match (others.next(), others.next()) {
            (Some(one), None) => one,
            _ => of,
        }
    }

    /// Where the part that a schema refers to was described before.
    fn first(&mut self, of: &'a Value, path: &str) -> Option<String> {
        let reference = of["$ref"].as_str()?;
        let key = format!("{reference} {}", self.target(of));
        if let Some((schema, path)) = self.seen.get(&key) {
            return Some(match schema == self.name {
                true => format!("`{path}`"),
                false => format!("`{path}` of {}", link(schema)),
            });
        }
        let place = (self.name.to_owned(), path.to_owned());
        self.seen.insert(key, place);
        None
    }

    /// A type in words.
    fn kind(&self, of: &'a Value) -> String {
        let of = self.target(of);
        if let Some(any) = of["anyOf"].as_array() {
            let kinds: Vec<String> = any.iter().map(|part| self.kind(part)).collect();
            let mut unlike: Vec<String> = Vec::new();
            for kind in kinds {
                if !unlike.contains(&kind) {
                    unlike.push(kind);
                }
            }
            return unlike.join(" or ");
        }
        let word = |kind: &str| match kind {
            "array" => match of.get("items") {
                Some(items) => format!("list of {}", self.kind(items)),
                None => "list".to_owned(),
            },
            "object" => match of.get("additionalProperties") {
                Some(values) if values.is_object() => format!("map of {}", self.kind(values)),
                _ => "object".to_owned(),
            },
            kind => kind.to_owned(),
        };
        match &of["type"] {
            Value::String(kind) => word(kind),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str).map(word);
                kinds.collect::<Vec<_>>().join(" or ")
            }
            _ if of.get("oneOf").is_some() => self.kind(&of["oneOf"][0]),
            _ if of["const"].is_string() => "string".to_owned(),
            _ => "any".to_owned(),
        }
    }
}

/// The meaning of a member that has the same one in all schemas.
fn common(name: &str) -> &'static str {
    match name {
        "version" => "Version of the program.",
        "machine" => "Name of the machine.",
        "simulated" => {
            "Whether times, rates and bandwidths are virtual, from the simulator, rather than \
             measured."
        }
        "codelet" => "The computation, such as `stencil5-f64`.",
        "seed" => "Seed of random numbers.",
        "policy" => "As on the command line.",
        "interrupted" => "Whether Ctrl-C ended it early; the report has what was complete.",
        "notes" => "Messages for the reader, such as warnings.",
        _ => "",
    }
}

/// The unit that a member's name tells.
fn unit(name: &str, kind: &str) -> Option<&'static str> {
    let ends = |end: &str| name == end || name.ends_with(&format!("_{end}"));
    if !(kind.contains("number") || kind.contains("integer")) {
        None
    } else if ends("seconds") {
        Some("s")
    } else if name.split('_').any(|word| word == "bytes") || ends("memory") {
        Some("bytes")
    } else if ends("ns") {
        Some("ns")
    } else if ends("mhz") {
        Some("MHz")
    } else if ends("bandwidth") {
        Some("bytes/s")
    } else {
        None
    }
}
