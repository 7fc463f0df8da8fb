//! A kernel under test, and its specification file.

use std::fmt::Write;

/// A buffer: its type, elements, position, and whether it is divided.
type Buffer = (&'static str, &'static str, usize, bool);
/// A value or local memory: its type, value or elements, and position.
type Value = (&'static str, &'static str, usize);

/// A kernel named `k`, and its specification.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub source: &'static str,
    pub dimension: usize,
    pub global: &'static str,
    /// Empty if the driver chooses.
    pub local: &'static str,
    pub inputs: &'static [Buffer],
    pub outputs: &'static [Buffer],
    pub io: &'static [Buffer],
    pub values: &'static [Value],
    pub locals: &'static [Value],
    pub macros: &'static [(&'static str, &'static str)],
    pub symbols: &'static [(&'static str, i64)],
    /// Positions of the buffers that the examination must find to be divided.
    pub sliced: &'static [usize],
}

impl Case {
    /// The specification file.
    pub fn spec(&self) -> String {
        let buffers = |buffers: &[Buffer]| {
            let one = |(element, size, pos, divided): &Buffer| {
                format!(
                    "{{\"type\": \"{element}\", \"size\": \"{size}\", \"pos\": {pos}, \"break\": {}}}",
                    u8::from(*divided)
                )
            };
            buffers.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let values = |values: &[Value], field: &str| {
            let one = |(element, value, pos): &Value| {
                format!("{{\"type\": \"{element}\", \"{field}\": \"{value}\", \"pos\": {pos}}}")
            };
            values.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let macros: Vec<String> = (self.macros.iter())
            .map(|(name, value)| format!("\"{name}\": \"{value}\""))
            .collect();
        let mut text = format!(
            "{{\"src\": \"kernel.cl\", \"name\": \"k\", \"workDimension\": {}, \
             \"globalWorkSize\": \"{}\"",
            self.dimension, self.global
        );
        if !self.local.is_empty() {
            write!(text, ", \"localWorkSize\": \"{}\"", self.local).expect("a string");
        }
        for (field, list) in [
            ("inputBuffers", buffers(self.inputs)),
            ("outputBuffers", buffers(self.outputs)),
            ("ioBuffers", buffers(self.io)),
            ("varArguments", values(self.values, "value")),
            ("localArguments", values(self.locals, "size")),
        ] {
            write!(text, ", \"{field}\": [{list}]").expect("a string");
        }
        write!(text, ", \"macros_values\": {{{}}}}}", macros.join(", ")).expect("a string");
        text
    }
}
