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
//! Pure: text in, text and a description of each kernel out.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::codelet::opencl_c::{Kind, lines};

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
                if registers(text).next().is_some() {
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
fn kernel(source: &Source) -> Result<(Kernel, String), String> {
    let name = source.name;
    if source.body.contains("vprintf") {
        return Err("it prints (printf)".to_owned());
    }
    let mut parameters = Vec::new();
    let mut heads = Vec::new();
    let mut body = source.body.to_owned();
    for (index, declared) in source.parameters.iter().enumerate() {
        let (parameter, head, own_name) =
            read(declared).map_err(|why| format!("argument {index} {why}"))?;
        if let Parameter::Local { bytes } = parameter {
            body = with_local_address(&body, own_name, bytes)
                .ok_or_else(|| format!("argument {index} (local memory) is used in a new way"))?;
        }
        parameters.push(parameter);
        heads.push(head);
    }
    let mut numbers: Vec<u32> = registers(source.body).collect();
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
        body = rename_registers(&body);
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
        group: required_group(source.directives),
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
        if !mentions(line, parameter) {
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

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The address of memory on the device.
    Memory,
    /// Local memory: an offset of so many bytes' length.
    Local { bytes: u64 },
    /// A plain value of so many bytes.
    Value { bytes: u64 },
}

/// Reads a parameter's declaration, such as `.param .u64 .ptr .global .align 4 k_param_0`.
/// Returns it, how it is declared for CUDA's driver, and its name.
///
/// # Errors
/// Why it cannot be carried, to follow `argument 0`.
fn read(declared: &str) -> Result<(Parameter, String, &str), String> {
    let strange = || format!("has a strange declaration, `{}`", declared.trim());
    let mut words = declared.split_whitespace().peekable();
    if words.next() != Some(".param") {
        return Err(strange());
    }
    let mut head = "\t.param".to_owned();
    let mut element = None;
    let mut space = None;
    let mut name = None;
    while let Some(word) = words.next() {
        match word {
            ".ptr" => {
                space = Some("generic");
                if let Some(own) = words.next_if(|w| is_space(w)) {
                    space = Some(&own[1..]);
                }
                if words.next_if_eq(&".align").is_some() {
                    words.next().ok_or_else(strange)?;
                }
            }
            ".align" => {
                let bytes = words.next().ok_or_else(strange)?;
                head.push_str(&format!(" .align {bytes}"));
            }
            ".texref" | ".surfref" => return Err("is an image".to_owned()),
            ".samplerref" => return Err("is a sampler".to_owned()),
            kind if kind.starts_with('.') => {
                element = Some(bytes_of(kind).ok_or_else(strange)?);
                head.push_str(&format!(" {kind}"));
            }
            own => name = Some(own),
        }
    }
    let (element, name) = element.zip(name).ok_or_else(strange)?;
    head.push_str(&format!(" {name}"));
    let (name, count) = match name.split_once('[') {
        None => (name, 1),
        Some((name, count)) => {
            let count = count.strip_suffix(']').and_then(|count| count.parse().ok());
            (name, count.ok_or_else(strange)?)
        }
    };
    let bytes = u64::checked_mul(element, count).ok_or_else(strange)?;
    let parameter = match space {
        None => Parameter::Value { bytes },
        Some("shared") => Parameter::Local { bytes },
        Some("const") => {
            return Err("is a pointer to constant memory (__constant)".to_owned());
        }
        Some(_) if bytes == 8 => Parameter::Memory,
        Some(_) => return Err("is a pointer of less than 64 bits".to_owned()),
    };
    Ok((parameter, head, name))
}

fn is_space(word: &str) -> bool {
    matches!(word, ".global" | ".shared" | ".const" | ".local")
}

/// Bytes of a fundamental type.
fn bytes_of(kind: &str) -> Option<u64> {
    let bits = kind
        .strip_prefix(['.'])?
        .strip_prefix(['u', 's', 'b', 'f'])?;
    matches!(bits, "8" | "16" | "32" | "64" | "128")
        .then(|| bits.parse::<u64>().ok())?
        .map(|bits| bits / 8)
}

/// A part of PTX.
enum Piece<'a> {
    /// What lies between kernels.
    Other(&'a str),
    Kernel(Source<'a>),
}

/// A kernel's text.
struct Source<'a> {
    pub name: &'a str,
    /// From its linkage to its name: `.visible .entry `.
    pub before: &'a str,
    /// Declarations.
    pub parameters: Vec<&'a str>,
    /// Between parameters and body.
    pub directives: &'a str,
    /// With its braces.
    pub body: &'a str,
}

/// Divides PTX.
///
/// # Errors
/// When parentheses or braces do not match.
fn pieces(ptx: &str) -> Result<Vec<Piece<'_>>, String> {
    let code = without_comments(ptx);
    let mut pieces = Vec::new();
    let mut from = 0;
    while let Some(entry) = find_word(&code, ".entry", from) {
        let before = linkage(&code, from, entry);
        pieces.push(Piece::Other(&ptx[from..before]));
        let (kernel, end) = source(ptx, &code, before, entry + ".entry".len())
            .ok_or("a kernel of it has no end")?;
        pieces.push(Piece::Kernel(kernel));
        from = end;
    }
    pieces.push(Piece::Other(&ptx[from..]));
    Ok(pieces)
}

/// Reads a kernel whose name begins behind `after`; and where it ends.
fn source<'a>(
    ptx: &'a str,
    code: &str,
    before: usize,
    after: usize,
) -> Option<(Source<'a>, usize)> {
    let name_at = after + code[after..].find(|c: char| !c.is_whitespace())?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let name_end = name_at + code[name_at..].find(|c: char| !is_name(c))?;
    let open = code[name_end..].find('{')? + name_end;
    let (parameters, directives) = match code[name_end..open].find('(') {
        None => (Vec::new(), name_end..open),
        Some(at) => {
            let begin = name_end + at;
            let end = closing(code, begin, ['(', ')'])?;
            let mut parameters = Vec::new();
            let mut at = begin + 1;
            for part in code[begin + 1..end].split(',') {
                if !part.trim().is_empty() {
                    parameters.push(&ptx[at..at + part.len()]);
                }
                at += part.len() + 1;
            }
            (parameters, end + 1..open)
        }
    };
    let end = closing(code, open, ['{', '}'])? + 1;
    let source = Source {
        name: &ptx[name_at..name_end],
        before: &ptx[before..name_at],
        parameters,
        directives: &ptx[directives],
        body: &ptx[open..end],
    };
    Some((source, end))
}

/// Where the linkage of a kernel begins.
fn linkage(code: &str, from: usize, entry: usize) -> usize {
    let head = code[from..entry].trim_end();
    let words = [".visible", ".weak"];
    let linkage = words.iter().find_map(|word| head.strip_suffix(word));
    linkage.map_or(entry, |rest| from + rest.len())
}

/// Where the parenthesis or brace at `open` is closed.
fn closing(code: &str, open: usize, [opens, closes]: [char; 2]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in code[open..].char_indices() {
        if c == opens {
            depth += 1;
        } else if c == closes {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(open + at);
            }
        }
    }
    None
}

/// The text with a blank for each byte of its comments and strings, which are as in C.
fn without_comments(ptx: &str) -> String {
    let mut code = " ".repeat(ptx.len());
    for token in lines(ptx).iter().flat_map(|line| &line.tokens) {
        if token.kind != Kind::Quoted && token.word.is_ascii() {
            code.replace_range(token.at.clone(), token.word);
        }
    }
    code
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

/// Where a word begins that is no part of another one.
fn find_word(text: &str, word: &str, from: usize) -> Option<usize> {
    let found = text[from..].match_indices(word).map(|(at, _)| from + at);
    let mut found = found.filter(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    });
    found.next()
}

/// Whether a text has a name.
fn mentions(text: &str, name: &str) -> bool {
    find_word(text, name, 0).is_some()
}

/// The numbers of the special registers that a text reads, each as often as it does.
fn registers(text: &str) -> impl Iterator<Item = u32> + '_ {
    let found = text.split("%envreg").skip(1);
    found.filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    })
}

/// The text with registers of ours in place of the special ones.
fn rename_registers(text: &str) -> String {
    text.replace("%envreg", "%pdawl")
}

/// The group size that a kernel's directives require.
fn required_group(directives: &str) -> Option<[u32; 3]> {
    let (_, sizes) = directives.split_once(".reqntid")?;
    let end = sizes.find(['.', '{']).unwrap_or(sizes.len());
    let mut group = [1; 3];
    for (axis, size) in sizes[..end].split(',').enumerate() {
        *group.get_mut(axis)? = size.trim().parse().ok()?;
    }
    Some(group)
}
