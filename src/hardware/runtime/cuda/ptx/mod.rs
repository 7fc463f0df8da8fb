//! Makes PTX for CUDA's driver of the PTX that NVIDIA's OpenCL compiler writes.
//!
//! The two differ in four points:
//!
//! * OpenCL's parameters say which memory a pointer is for (`.ptr .global .align 4`),
//!   which CUDA's driver does not accept. It is taken out.
//! * OpenCL's target has the mode `texmode_independent`, in which images and samplers are
//!   apart. It is taken out; kernels with either are refused.
//! * OpenCL's driver sets special registers that CUDA's does not: offsets and counts of
//!   work-groups ([`Register`]). Each becomes a parameter of ours behind the others.
//! * An OpenCL kernel gets addresses of local memory as arguments. Here it gets offsets
//!   into dynamic shared memory, to which it adds that memory's address itself.
//!
//! Pure: text in, text and a description of each kernel out. `text` finds kernels in PTX,
//! `parameter` reads parameters.

mod parameter;
mod text;

#[cfg(test)]
mod tests;

use std::fmt::Write;

pub use parameter::Parameter;
use text::{Piece, pieces};

/// The name of dynamic shared memory in translated PTX.
const SHARED: &str = "pdawl_local_memory";

/// Alignment of local memory in bytes: that of OpenCL's largest type, `double16`.
pub const LOCAL_ALIGNMENT: u64 = 128;

/// Translated PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// The kernels that can be carried, and what they use.
    pub text: String,
    pub kernels: Vec<Kernel>,
    /// The names of the others, and why they cannot.
    pub refused: Vec<(String, String)>,
}

/// A kernel of translated PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub name: String,
    /// In the order of the source.
    pub parameters: Vec<Parameter>,
    /// The registers that it reads: a parameter of 32 bits each, behind the others.
    pub registers: Vec<Register>,
    /// The group size that it requires.
    pub group: Option<[u32; 3]>,
}

/// What a special register holds that OpenCL's driver sets, along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Work-groups before the first one of this launch. A driver divides an NDRange that
    /// has more groups than a launch may have.
    GroupOffset(usize),
    /// The number of the first work-item of this launch.
    GlobalOffset(usize),
    /// Work-groups of the whole NDRange.
    Groups(usize),
}

impl Register {
    /// The register `%envreg<number>`, if its meaning is known.
    fn of(number: u32) -> Option<Self> {
        let axis = (number % 3) as usize;
        match number {
            0..3 => Some(Self::GroupOffset(axis)),
            3..6 => Some(Self::GlobalOffset(axis)),
            6..9 => Some(Self::Groups(axis)),
            _ => None,
        }
    }
}

/// Whether a kernel's text is PTX already.
pub fn is_ptx(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with("//"));
    first.is_some_and(|line| line.starts_with(".version"))
}

/// Translates PTX of NVIDIA's OpenCL compiler.
///
/// # Errors
/// A sentence that says what is no such PTX, or what concerns all kernels.
pub fn translate(ptx: &str) -> Result<Translation, String> {
    let ptx = ptx.trim_end_matches('\0');
    if !is_ptx(ptx) {
        return Err("it does not begin with `.version`, as PTX does".to_owned());
    }
    let mut all = Translation::default();
    let mut is_shared_declared = false;
    for piece in pieces(ptx)? {
        match piece {
            Piece::Other(text) => {
                if text::registers(text).next().is_some() {
                    return Err(
                        "a function that is no kernel reads where it is in the NDRange".to_owned(),
                    );
                }
                all.text
                    .push_str(&text.replace(", texmode_independent", ""));
            }
            Piece::Kernel(source) => match kernel(&source) {
                Ok((kernel, text)) => {
                    if text.contains(SHARED) && !is_shared_declared {
                        // A formatted write into a text does not fail.
                        let _ = writeln!(
                            all.text,
                            ".extern .shared .align {LOCAL_ALIGNMENT} .b8 {SHARED}[];"
                        );
                        is_shared_declared = true;
                    }
                    all.text.push_str(&text);
                    all.kernels.push(kernel);
                }
                Err(why) => all.refused.push((source.name.to_owned(), why)),
            },
        }
    }
    match all.kernels.is_empty() && all.refused.is_empty() {
        true => Err("it has no kernels".to_owned()),
        false => Ok(all),
    }
}

/// Translates a kernel, or says why it cannot be carried.
fn kernel(source: &text::Source) -> Result<(Kernel, String), String> {
    let name = source.name;
    if source.body.contains("vprintf") {
        return Err("it prints (printf)".to_owned());
    }
    let mut parameters = Vec::new();
    let mut heads = Vec::new();
    let mut body = source.body.to_owned();
    for (index, declared) in source.parameters.iter().enumerate() {
        let (parameter, head, own_name) =
            parameter::read(declared).map_err(|why| format!("argument {index} {why}"))?;
        if let Parameter::Local { bytes } = parameter {
            body = with_local_address(&body, own_name, bytes)
                .ok_or_else(|| format!("argument {index} (local memory) is used in a new way"))?;
        }
        parameters.push(parameter);
        heads.push(head);
    }
    let mut numbers: Vec<u32> = text::registers(source.body).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut registers = Vec::new();
    let mut reads = String::new();
    for number in &numbers {
        let register = Register::of(*number).ok_or_else(|| {
            format!("it reads the special register %envreg{number}, whose meaning is unknown")
        })?;
        registers.push(register);
        heads.push(format!("\t.param .u32 {name}_pdawl_{number}"));
        let _ = write!(
            reads,
            "\n\tld.param.u32 \t%pdawl{number}, [{name}_pdawl_{number}];"
        );
    }
    if let Some(most) = numbers.last() {
        let declared = format!("\n\t.reg .b32 \t%pdawl<{}>;{reads}", most + 1);
        body = text::rename_registers(&body);
        body.insert_str(1, &declared);
    }
    let text = format!(
        "{}{name}(\n{}\n){}{body}",
        source.before,
        heads.join(",\n"),
        source.directives
    );
    let kernel = Kernel {
        name: name.to_owned(),
        parameters,
        registers,
        group: text::required_group(source.directives),
    };
    Ok((kernel, text))
}

/// Adds the address of dynamic shared memory to each value that is loaded from a parameter.
/// `None` if the parameter is read otherwise than by such a load.
fn with_local_address(body: &str, parameter: &str, bytes: u64) -> Option<String> {
    let bits = bytes * 8;
    let mut text = String::with_capacity(body.len());
    for line in body.split_inclusive('\n') {
        text.push_str(line);
        if !text::mentions(line, parameter) {
            continue;
        }
        let statement = line.trim().strip_suffix(';')?;
        let (operation, operands) = statement.split_once(char::is_whitespace)?;
        let (register, place) = operands.split_once(',')?;
        let place = place.trim().strip_prefix('[')?.strip_suffix(']')?;
        let loads = operation.strip_prefix("ld.param.")?;
        if place != parameter || !loads.ends_with(&bits.to_string()) {
            return None;
        }
        let register = register.trim();
        let _ = writeln!(
            text,
            "\t{{\n\t.reg .b{bits} \t%pdawl_address;\n\tmov.u{bits} \t%pdawl_address, {SHARED};\n\t\
             add.u{bits} \t{register}, {register}, %pdawl_address;\n\t}}"
        );
    }
    Some(text)
}
