//! What the time of a kernel depends on.

use std::fmt::{self, Write};

use twox_hash::xxhash3_128::Hasher;

/// A program: a hash of its text and its build options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program(u128);

impl Program {
    /// The program of this text, or of a binary's bytes, built with these options.
    pub fn new(text: &[u8], options: &str) -> Self {
        let mut hasher = Hasher::new();
        // The length separates text and options.
        hasher.write(&(text.len() as u64).to_le_bytes());
        hasher.write(text);
        hasher.write(options.as_bytes());
        Self(hasher.finish_128())
    }
}

/// The begin of the keys of codelets. Those of programs' kernels begin with a number.
pub(super) const CODELET: &str = "codelet ";

/// A kernel of a program, the shape of its launch, and the sizes of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelKey(String);

impl KernelKey {
    /// The key of a launch. `global` and `local` are work-items by dimension; `local` is
    /// `None` where the driver chooses. `arguments` are the bytes of each buffer; a caller
    /// that knows which plain values determine the work may add them.
    pub fn new(
        program: Program,
        kernel: &str,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: &[u64],
    ) -> Self {
        let mut text = format!("{:032x} {kernel} ", program.0);
        joined(&mut text, global, 'x');
        text.push('/');
        match local {
            Some(local) => joined(&mut text, local, 'x'),
            None => text.push('*'),
        }
        text.push(' ');
        joined(&mut text, arguments, ',');
        Self(text)
    }

    /// The key of an implementation of a codelet, for launches of these sizes.
    pub(super) fn of_codelet(codelet: &str, sizes: &[u64], implementation: &str) -> Self {
        let mut text = format!("{CODELET}{codelet} ");
        joined(&mut text, sizes, 'x');
        text.push(' ');
        text.push_str(implementation);
        Self(text)
    }

    /// The codelet, the sizes and the implementation of such a key, as files have it.
    pub(super) fn codelet_of(text: &str) -> Option<(&str, Vec<u64>, &str)> {
        let mut parts = text.strip_prefix(CODELET)?.split(' ');
        let (codelet, sizes, implementation) = (parts.next()?, parts.next()?, parts.next()?);
        let sizes = sizes.split('x').map(|size| size.parse().ok());
        let sizes = sizes.collect::<Option<Vec<u64>>>()?;
        parts
            .next()
            .is_none()
            .then_some((codelet, sizes, implementation))
    }

    /// The key as files have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KernelKey {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn joined<T: fmt::Display>(text: &mut String, numbers: &[T], separator: char) {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            text.push(separator);
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_all_that_the_time_depends_on() {
        let program = Program::new(b"text", "-O");
        let key = KernelKey::new(program, "f", &[64, 2], Some(&[8, 1]), &[4, 1024]);
        assert!(key.as_str().ends_with(" f 64x2/8x1 4,1024"), "{key}");
        let any = KernelKey::new(program, "f", &[64], None, &[]);
        assert!(any.as_str().ends_with(" f 64/* "), "{any}");
        assert_ne!(Program::new(b"text-", "O"), program);
        assert_ne!(Program::new(b"text", ""), program);
        assert_eq!(Program::new(b"text", "-O"), program);
    }
}
