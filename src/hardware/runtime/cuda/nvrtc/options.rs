//! The options of OpenCL's compiler as NVRTC's.

/// What the options of a program become.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// NVRTC's.
    pub all: Vec<String>,
    /// The macros, as lines of a source. As options they would also change the header.
    pub macros: String,
}

/// NVRTC's options for a program: `given` are OpenCL's, `capability` is ten times the compute
/// capability to compile for, and `keeps_operations_apart` says that no multiplication and
/// addition may become one operation.
///
/// Division and square root of singles have the precision that OpenCL asks for, which is less
/// than that of a rounded result, and small numbers are not replaced by zero.
///
/// # Errors
/// An option that NVRTC has nothing for.
pub(super) fn options(
    given: &str,
    capability: u32,
    keeps_operations_separate: bool,
) -> Result<Options, String> {
    let mut macros = String::new();
    let (mut is_rounded, mut is_flushed, mut is_fast) = (false, false, false);
    let mut words = words(given)?.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-D" | "-U" => {
                let name = words.next();
                let name = name.ok_or_else(|| format!("the option {word} lacks a name"))?;
                add_macro(&format!("{word}{name}"), &mut macros);
            }
            "-cl-fp32-correctly-rounded-divide-sqrt" => is_rounded = true,
            "-cl-denorms-are-zero" => is_flushed = true,
            "-cl-fast-relaxed-math" => is_fast = true,
            // Operations are fused anyway where the source allows it. The others allow what
            // NVRTC does not do.
            "-cl-mad-enable"
            | "-cl-no-signed-zeros"
            | "-cl-unsafe-math-optimizations"
            | "-cl-finite-math-only"
            | "-cl-strict-aliasing"
            | "-cl-opt-disable"
            | "-cl-kernel-arg-info"
            | "-cl-nv-verbose"
            | "-w" => {}
            word if word.starts_with("-cl-std=CL1.") => {}
            word if word.starts_with("-D") || word.starts_with("-U") => {
                add_macro(word, &mut macros);
            }
            word => return Err(format!("NVRTC has nothing for the option {word}")),
        }
    }
    let mut all = vec![
        format!("--gpu-architecture=compute_{capability}"),
        "--std=c++17".to_owned(),
        "--device-as-default-execution-space".to_owned(),
        // Pragmas and attributes of OpenCL.
        "--disable-warnings".to_owned(),
        format!("--fmad={}", !keeps_operations_separate),
        format!("--prec-div={is_rounded}"),
        format!("--prec-sqrt={is_rounded}"),
        format!("--ftz={}", is_flushed || is_fast),
    ];
    if is_fast {
        macros.push_str("#define __FAST_RELAXED_MATH__ 1\n");
        // Functions of singles are the device's own.
        all.push("--use_fast_math".to_owned());
    }
    Ok(Options { all, macros })
}

/// Adds the line of an option `-DNAME`, `-DNAME=VALUE` or `-UNAME`.
fn add_macro(option: &str, lines: &mut String) {
    let (kind, definition) = option.split_at(2);
    let line = match (kind, definition.split_once('=')) {
        ("-U", _) => format!("#undef {definition}\n"),
        (_, Some((name, value))) => format!("#define {name} {value}\n"),
        (_, None) => format!("#define {definition} 1\n"),
    };
    lines.push_str(&line);
}

/// The words of a command line; what is quoted is one.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_one = false;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, is_one) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if is_one || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                is_one = false;
            }
            (None, c) => word.push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote of the options `{line}` does not end"));
    }
    if is_one || !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &str, is_separate: bool) -> Options {
        options(given, 80, is_separate).unwrap()
    }

    fn assert_has(options: &Options, expected: &[&str]) {
        for option in expected {
            assert!(
                options.all.iter().any(|own| own == option),
                "{option}: {options:?}"
            );
        }
    }

    #[test]
    fn macros_and_meanings_are_kept() {
        let plain = of(
            "-DA=1 -D B -cl-std=CL1.2 -cl-mad-enable -D'C=a b' -UD",
            false,
        );
        assert_eq!(
            plain.macros,
            "#define A 1\n#define B 1\n#define C a b\n#undef D\n"
        );
        assert_eq!(plain.all[0], "--gpu-architecture=compute_80");
        assert_has(
            &plain,
            &[
                "--fmad=true",
                "--prec-div=false",
                "--prec-sqrt=false",
                "--ftz=false",
            ],
        );
        assert_has(&of("-cl-mad-enable", true), &["--fmad=false"]);
        let exact = of(
            "-cl-fp32-correctly-rounded-divide-sqrt -cl-denorms-are-zero",
            false,
        );
        assert_has(
            &exact,
            &["--prec-div=true", "--prec-sqrt=true", "--ftz=true"],
        );
    }

    #[test]
    fn fast_mathematics_does_not_fuse_what_is_to_stay_separate() {
        let fast = of("-cl-fast-relaxed-math", true);
        assert_has(&fast, &["--use_fast_math", "--fmad=false"]);
        assert_eq!(fast.macros, "#define __FAST_RELAXED_MATH__ 1\n");
    }

    #[test]
    fn what_nvrtc_does_not_have_is_named() {
        for (given, part) in [
            (
                "-cl-single-precision-constant",
                "-cl-single-precision-constant",
            ),
            ("-cl-std=CL2.0", "-cl-std=CL2.0"),
            ("-I include", "-I"),
            ("-D", "lacks a name"),
            ("-DA='b", "does not end"),
        ] {
            let why = options(given, 80, false).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
