//! The element types of OpenCL C: their sizes, and numbers as their bytes.

use std::fmt;
use std::str::FromStr;

use crate::expression::Number;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Char,
    Uchar,
    Short,
    Ushort,
    Int,
    Uint,
    Long,
    Ulong,
    Half,
    Float,
    Double,
    /// A byte of a structure, of which only the size is known.
    Struct,
}

/// A scalar, a vector of 2, 3, 4, 8 or 16 lanes, or a structure of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementType {
    pub base: Base,
    pub lanes: u16,
}

/// A name that is not a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownType(pub String);

/// Whether OpenCL C has a type of objects by this name: images, samplers, pipes, events, queues.
pub fn is_object(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| {
        let image = ["image1d_", "image2d_", "image3d_"];
        let image = image.iter().any(|begin| word.starts_with(begin));
        let others = [
            "sampler_t",
            "event_t",
            "clk_event_t",
            "queue_t",
            "reserve_id_t",
            "pipe",
        ];
        image || others.contains(&word)
    })
}

impl fmt::Display for UnknownType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_object(&self.0) {
            return write!(
                f,
                "`{}` is a type of OpenCL C, and kernels with images, samplers, pipes, events or \
                 queues are not supported here; `pdawl exec PROGRAM` runs OpenCL programs that \
                 have them",
                self.0
            );
        }
        write!(
            f,
            "`{}` is not a type of OpenCL C; the types are char, short, int, long, their unsigned forms \
             such as uint, half, float, double, and vectors of 2, 3, 4, 8 or 16 of them such as \
             float4; a structure is struct:BYTES, with its sizeof, such as struct:24",
            self.0
        )
    }
}

impl Base {
    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Char | Self::Uchar | Self::Struct => 1,
            Self::Short | Self::Ushort | Self::Half => 2,
            Self::Int | Self::Uint | Self::Float => 4,
            Self::Long | Self::Ulong | Self::Double => 8,
        }
    }

    /// Its name in OpenCL C.
    pub fn name(self) -> &'static str {
        match self {
            Self::Char => "char",
            Self::Uchar => "uchar",
            Self::Short => "short",
            Self::Ushort => "ushort",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Long => "long",
            Self::Ulong => "ulong",
            Self::Half => "half",
            Self::Float => "float",
            Self::Double => "double",
            Self::Struct => "struct",
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Half | Self::Float | Self::Double)
    }

    /// The bytes of a number, in the byte order of this machine; `None` when it does
    /// not fit. A fraction does not fit in an integer type.
    pub fn encode(self, number: Number) -> Option<Vec<u8>> {
        fn whole<T: TryFrom<i64>>(number: Number) -> Option<T> {
            match number {
                Number::Int(n) => T::try_from(n).ok(),
                Number::Float(x) if x.fract() == 0.0 && x.abs() < 9e15 => {
                    T::try_from(x as i64).ok()
                }
                Number::Float(_) => None,
            }
        }
        Some(match self {
            Self::Char => whole::<i8>(number)?.to_ne_bytes().to_vec(),
            Self::Uchar => whole::<u8>(number)?.to_ne_bytes().to_vec(),
            Self::Short => whole::<i16>(number)?.to_ne_bytes().to_vec(),
            Self::Ushort => whole::<u16>(number)?.to_ne_bytes().to_vec(),
            Self::Int => whole::<i32>(number)?.to_ne_bytes().to_vec(),
            Self::Uint => whole::<u32>(number)?.to_ne_bytes().to_vec(),
            Self::Long => whole::<i64>(number)?.to_ne_bytes().to_vec(),
            Self::Ulong => whole::<u64>(number)?.to_ne_bytes().to_vec(),
            // The zeros of a structure; other bytes are loaded from a file.
            Self::Struct => (number.float() == 0.0).then(|| vec![0])?,
            // OpenCL C has no arguments of type half.
            Self::Half => return None,
            Self::Float => (number.float() as f32).to_ne_bytes().to_vec(),
            Self::Double => number.float().to_ne_bytes().to_vec(),
        })
    }
}

impl ElementType {
    /// A byte: what a structure of the user's is counted in.
    pub const BYTE: Self = Self {
        base: Base::Uchar,
        lanes: 1,
    };

    /// Bytes of an element; a vector of 3 lanes takes the space of 4.
    pub fn bytes(self) -> u64 {
        let vector = self.base != Base::Struct;
        let lanes = if vector && self.lanes == 3 {
            4
        } else {
            self.lanes
        };
        self.base.bytes() * u64::from(lanes)
    }

    /// The bytes of a number in every lane; `None` when it does not fit.
    pub fn encode(self, number: Number) -> Option<Vec<u8>> {
        let lane = self.base.encode(number)?;
        Some(lane.repeat((self.bytes() / self.base.bytes()) as usize))
    }
}

impl FromStr for ElementType {
    type Err = UnknownType;

    /// Reads `float`, `uint4`, `unsigned char`. Qualifiers and a `*` at the end are
    /// ignored, since compilers report types with them.
    fn from_str(text: &str) -> Result<Self, UnknownType> {
        let unknown = || UnknownType(text.trim().to_owned());
        let bare = text.trim().trim_end_matches('*');
        if let Some(bytes) = bare.strip_prefix("struct:") {
            let bytes = bytes.trim().parse().ok().filter(|bytes| *bytes > 0);
            let lanes: u16 = bytes.ok_or_else(unknown)?;
            let base = Base::Struct;
            return Ok(Self { base, lanes });
        }
        let words: Vec<&str> = bare
            .split_whitespace()
            .filter(|word| !matches!(*word, "const" | "volatile" | "restrict" | "signed"))
            .collect();
        let words = match words.as_slice() {
            [] if bare.contains("signed") => vec!["int"],
            ["long", "int"] => vec!["long"],
            ["short", "int"] => vec!["short"],
            ["unsigned", "long", "int"] => vec!["ulong"],
            ["unsigned", "short", "int"] => vec!["ushort"],
            words => words.to_vec(),
        };
        let name = match words.as_slice() {
            ["unsigned"] => "uint".to_owned(),
            ["unsigned", base] => format!("u{base}"),
            [name] => (*name).to_owned(),
            _ => return Err(unknown()),
        };
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let lanes = match digits {
            "" => 1,
            "2" => 2,
            "3" => 3,
            "4" => 4,
            "8" => 8,
            "16" => 16,
            _ => return Err(unknown()),
        };
        let base = match &name[..name.len() - digits.len()] {
            "char" => Base::Char,
            "uchar" | "bool" => Base::Uchar,
            "short" => Base::Short,
            "ushort" => Base::Ushort,
            "int" => Base::Int,
            "uint" => Base::Uint,
            "long" => Base::Long,
            // As on 64-bit devices.
            "ulong" | "size_t" => Base::Ulong,
            "half" => Base::Half,
            "float" => Base::Float,
            "double" => Base::Double,
            _ => return Err(unknown()),
        };
        Ok(Self { base, lanes })
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.name())?;
        match self.lanes {
            bytes if self.base == Base::Struct => write!(f, ":{bytes}"),
            1 => Ok(()),
            lanes => lanes.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_in_all_the_forms_of_files_and_compilers() {
        for (text, name, bytes) in [
            ("float", "float", 4),
            ("unsigned", "uint", 4),
            ("unsigned char", "uchar", 1),
            ("long int", "long", 8),
            ("const float*", "float", 4),
            ("uint4", "uint4", 16),
            ("double3", "double3", 32),
            ("short16", "short16", 32),
            ("unsigned long int", "ulong", 8),
            ("signed", "int", 4),
            ("struct:24", "struct:24", 24),
            ("struct:3", "struct:3", 3),
        ] {
            let parsed: ElementType = text.parse().unwrap();
            assert_eq!((parsed.to_string().as_str(), parsed.bytes()), (name, bytes));
        }
        for text in [
            "",
            "flaot",
            "float5",
            "int 4",
            "struct node",
            "struct:0",
            "struct:x",
            "*",
        ] {
            assert!(text.parse::<ElementType>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_become_the_bytes_of_their_type() {
        let encode = |name: &str, n| name.parse::<ElementType>().unwrap().encode(n);
        assert_eq!(encode("uint", Number::Int(-1)), None);
        assert_eq!(encode("struct:5", Number::Int(0)), Some(vec![0; 5]));
        assert_eq!(encode("struct:5", Number::Int(1)), None);
        assert_eq!(encode("uchar", Number::Int(256)), None);
        assert_eq!(encode("int", Number::Float(0.5)), None);
        assert_eq!(encode("short", Number::Float(3.0)), Some(vec![3, 0]));
        let float = 1.5f32.to_ne_bytes();
        assert_eq!(encode("float2", Number::Float(1.5)), Some(float.repeat(2)));
    }
}
