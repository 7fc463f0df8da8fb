//! Parameters of kernels in PTX.

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
pub(super) fn read(declared: &str) -> Result<(Parameter, String, &str), String> {
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
