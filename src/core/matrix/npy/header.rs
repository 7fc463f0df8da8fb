//! The header of a file, in the form that `npyz` reads, and what its elements may be.

use std::io;
use std::io::{Read, Write};

use npyz::{
    AutoSerialize, DType, Endianness, NpyHeader, TypeChar, TypeStr, WriteOptions, WriterBuilder,
};

use crate::codelet::{Element, Precision};
use crate::matrix::in_its_place;

/// What a file begins with.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Most bytes of a header's text. That of a matrix has 118; a hostile one could nest
/// without an end.
const MOST: usize = 2048;

/// Bytes of an excerpt, for messages.
const EXCERPT: usize = 80;

/// A header, and its bytes in the file: the numbers follow.
pub(super) struct Header {
    pub header: NpyHeader,
    pub bytes: u64,
}

/// Why there is no header.
pub(super) enum HeaderError {
    Read(io::Error),
    /// The file has none, or a wrong one, and why.
    Wrong(String),
}

/// Reads a header and nothing after it.
///
/// # Errors
/// When the file cannot be read, or does not begin with a header.
pub(super) fn read(file: &mut dyn Read) -> Result<Header, HeaderError> {
    let mut begin = [0; 8];
    let found = fill(file, &mut begin)?;
    if !begin[..found].starts_with(MAGIC) {
        let mut more = vec![0; EXCERPT];
        let read = fill(file, &mut more)?;
        let more = [&begin[..found], &more[..read]].concat();
        return Err(HeaderError::Wrong(what_it_is(&begin[..found], &more)));
    }
    // The length of the text has 16 bits in version 1 and 32 bits in later ones.
    let mut length = [0; 4];
    let width = if begin[6] == 1 { 2 } else { 4 };
    let complete = found == begin.len() && fill(file, &mut length[..width])? == width;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST {
        let why = format!("its header has {length} bytes, and that of a matrix at most {MOST}");
        return Err(HeaderError::Wrong(why));
    }
    let mut text = vec![0; length];
    if !complete || fill(file, &mut text)? < length {
        let why = "it ends within its header".to_owned();
        return Err(HeaderError::Wrong(why));
    }
    let bytes = (begin.len() + width + length) as u64;
    let text = as_usual(&text);
    let header = [
        &begin,
        &(text.len() as u32).to_le_bytes()[..width],
        &text[..],
    ]
    .concat();
    match NpyHeader::from_reader(&header[..]) {
        Ok(header) => Ok(Header { header, bytes }),
        Err(error) => Err(HeaderError::Wrong(why(&error, &text))),
    }
}

/// Reads until `to` is full or the file ends; the bytes that were read.
fn fill(file: &mut dyn Read, to: &mut [u8]) -> Result<usize, HeaderError> {
    let mut read = 0;
    while read < to.len() {
        match file.read(&mut to[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HeaderError::Read(error)),
        }
    }
    Ok(read)
}

/// A header's text as NumPy usually writes it: without the `L` that Python 2 writes after whole
/// numbers, `(6L, 5L)`; without what NumPy 2 writes around its own, `(np.int64(6), 5)`; and with
/// NumPy's short names of types, `'<f8'` for `'=f8'`, `'f8'` and `'float64'`.
fn as_usual(text: &[u8]) -> Vec<u8> {
    let mut made: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let count = |of: &[u8], is: fn(&u8) -> bool| of.iter().take_while(|b| is(b)).count();
        let length = match first {
            b'\'' | b'"' => {
                let end = rest[1..].iter().position(|byte| *byte == first);
                let Some(end) = end else { break };
                let short = std::str::from_utf8(&rest[1..=end])
                    .ok()
                    .and_then(short_type);
                match short {
                    Some(short) => made.extend(format!("'{short}'").bytes()),
                    None => made.extend(&rest[..end + 2]),
                }
                end + 2
            }
            b'0'..=b'9' => {
                let digits = count(rest, u8::is_ascii_digit);
                made.extend(&rest[..digits]);
                digits + usize::from(rest.get(digits) == Some(&b'L'))
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let word = count(rest, |b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')
                });
                let digits = count(rest.get(word + 1..).unwrap_or_default(), u8::is_ascii_digit);
                let end = word + 1 + digits;
                match (rest.get(word), rest.get(end)) {
                    (Some(b'('), Some(b')')) if digits > 0 => {
                        made.extend(&rest[word + 1..end]);
                        end + 1
                    }
                    _ => {
                        made.extend(&rest[..word]);
                        word
                    }
                }
            }
            other => {
                made.push(other);
                1
            }
        };
        rest = &rest[length..];
    }
    made.extend(rest);
    made
}

/// The short name of a type that NumPy knows by another one, such as `<f8` for `float64`.
fn short_type(name: &str) -> Option<String> {
    let (order, rest) = match name.split_at_checked(1) {
        Some((order @ ("<" | ">" | "=" | "|"), rest)) => (order, rest),
        _ => ("=", name),
    };
    let short = match rest {
        "half" | "float16" | "f2" | "e" => "f2",
        "single" | "float32" | "f4" | "f" => "f4",
        "double" | "float64" | "float" | "f8" | "d" => "f8",
        "csingle" | "complex64" | "c8" | "F" => "c8",
        "cdouble" | "complex128" | "complex" | "c16" | "D" => "c16",
        "bool" | "b1" | "?" => "b1",
        "int8" | "byte" | "i1" => "i1",
        "int16" | "short" | "i2" => "i2",
        "int32" | "intc" | "i4" => "i4",
        "int64" | "int" | "long" | "longlong" | "i8" => "i8",
        "uint8" | "ubyte" | "u1" => "u1",
        "uint16" | "ushort" | "u2" => "u2",
        "uint32" | "uintc" | "u4" => "u4",
        "uint64" | "uint" | "ulong" | "ulonglong" | "u8" => "u8",
        _ => return None,
    };
    let order = match order {
        _ if short.ends_with('1') => "|",
        "<" | ">" => order,
        _ if cfg!(target_endian = "big") => ">",
        _ => "<",
    };
    Some(format!("{order}{short}"))
}

/// What a file is that does not begin as an NPY file; `more` are more of its first bytes.
fn what_it_is(begin: &[u8], more: &[u8]) -> String {
    if let Some((what, remedy)) = in_its_place(more) {
        return format!("it is {what}; {remedy}");
    }
    let known: [(&[u8], &str); 5] = [
        (
            b"PK\x03\x04",
            "it is a zip archive, as numpy.savez writes; numpy.load reads its arrays by name",
        ),
        (
            b"\x1f\x8b",
            "it is compressed with gzip; `gzip -d` decompresses it",
        ),
        (
            b"BZh",
            "it is compressed with bzip2; `bzip2 -d` decompresses it",
        ),
        (b"\x89HDF", "it is an HDF5 file; h5py reads its arrays"),
        (
            b"%%Matrix",
            "it is a Matrix Market file; scipy.io.mmread reads it",
        ),
    ];
    let known = known.iter().find(|(magic, _)| begin.starts_with(magic));
    match known {
        _ if begin.is_empty() => "it is empty".to_owned(),
        Some((_, what)) => (*what).to_owned(),
        None => format!("it begins with \"{}\"", begin.escape_ascii()),
    }
}

/// Why a header's text cannot be read. A parser's message of several lines draws the
/// text again; the text alone says as much.
fn why(error: &io::Error, text: &[u8]) -> String {
    let message = error.to_string();
    match message.contains('\n') {
        false => message,
        true => {
            let text = text.trim_ascii();
            let excerpt = &text[..text.len().min(EXCERPT)];
            let more = if text.len() > EXCERPT { "..." } else { "" };
            let excerpt = excerpt.escape_ascii().to_string().replace("\\'", "'");
            format!("its header is `{excerpt}{more}`, which NumPy cannot have written")
        }
    }
}

/// Points along an axis of a grid, at least.
const LEAST_POINTS: u64 = 3;

/// What a file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A matrix of singles or doubles.
    Matrix,
    /// The same, or one of half precision.
    Factor,
    /// As `Matrix`, or three dimensions: rows, columns and the numbers of a pixel.
    Image,
    /// A matrix of complex singles.
    Complex,
    /// A row of singles or doubles, of one dimension.
    Vector,
    /// Singles or doubles of 2 or 3 dimensions, each of at least 3 points.
    Grid,
}

/// The elements of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub rows: u64,
    pub columns: u64,
    /// Numbers of an element: 2 of a complex one, and those of a pixel.
    pub per: u64,
    pub element: Element,
    /// Whether the numbers have the other byte order than this machine's.
    pub swapped: bool,
}

/// What is wrong with a header.
pub(super) enum Wrong {
    Type,
    Dimensions,
}

impl Wanted {
    /// The elements that a header describes.
    pub fn elements(self, header: &NpyHeader) -> Result<Elements, Wrong> {
        let (element, complex, swapped) = self.number(header).ok_or(Wrong::Type)?;
        let (rows, columns, per) = match (header.shape(), self) {
            ([columns], Self::Vector) => (1, *columns, complex),
            (_, Self::Vector) => return Err(Wrong::Dimensions),
            (shape, Self::Grid) if shape.iter().any(|points| *points < LEAST_POINTS) => {
                return Err(Wrong::Dimensions);
            }
            ([planes, rows, columns], Self::Grid) => (*planes, *rows, *columns),
            ([rows, columns], _) => (*rows, *columns, complex),
            ([rows, columns, per], Self::Image) if *per > 0 => (*rows, *columns, *per),
            _ => return Err(Wrong::Dimensions),
        };
        Ok(Elements {
            rows,
            columns,
            per,
            element,
            swapped,
        })
    }

    /// How a file's numbers are stored, if it is one of ours, how many make an element
    /// of a matrix, and whether their bytes must be swapped.
    fn number(self, header: &NpyHeader) -> Option<(Element, u64, bool)> {
        let DType::Plain(found) = header.dtype() else {
            return None;
        };
        let (element, per) = match (self, found.type_char(), found.size_field()) {
            (Self::Complex, TypeChar::Complex, 8) => (Element::F32, 2),
            (Self::Complex, ..) => return None,
            (Self::Factor, TypeChar::Float, 2) => (Element::F16, 1),
            (_, TypeChar::Float, 4) => (Element::F32, 1),
            (_, TypeChar::Float, 8) => (Element::F64, 1),
            _ => return None,
        };
        let swapped = found.endianness() != Endianness::of_machine();
        Some((element, per, swapped))
    }

    /// The types, in words.
    pub fn types(self) -> &'static str {
        match self {
            Self::Matrix | Self::Image | Self::Vector | Self::Grid => {
                "float32 (<f4) or float64 (<f8)"
            }
            Self::Factor => "float16 (<f2), float32 (<f4) or float64 (<f8)",
            Self::Complex => "complex64 (<c8)",
        }
    }

    /// How to convert numbers of a type, with what that loses.
    pub fn conversion(self, found: DType) -> String {
        let number = match &found {
            DType::Plain(number) => Some((number.type_char(), number.size_field())),
            _ => None,
        };
        let to = |target: &str| format!("matrix.astype(\"{target}\") converts them");
        let singles = "matrix.astype(\"complex64\") converts them, and rounds to 7 digits";
        match (self, number) {
            (_, None) => "write one field of the records: matrix[\"NAME\"]".to_owned(),
            (Self::Complex, Some((TypeChar::Float, 2 | 4) | (TypeChar::Bool, _))) => {
                to("complex64")
            }
            (Self::Complex, Some((TypeChar::Int | TypeChar::Uint, 1 | 2))) => to("complex64"),
            (Self::Complex, Some(_)) => singles.to_owned(),
            (_, Some((TypeChar::Complex, _))) => {
                "write matrix.real or matrix.imag, or their absolute values".to_owned()
            }
            (_, Some((TypeChar::Float, size))) if size > 8 => {
                format!("{}, and rounds to 15 digits", to("float64"))
            }
            (_, Some((TypeChar::Int | TypeChar::Uint, 8))) => {
                format!("{}, and rounds numbers above 2^53", to("float64"))
            }
            (_, Some(_)) => to("float64"),
        }
    }

    /// The dimensions, in words.
    pub fn dimensions(self) -> &'static str {
        match self {
            Self::Matrix | Self::Factor | Self::Complex => "a matrix of 2 is needed",
            Self::Vector => "an array of 1 is needed; numpy.ravel makes one",
            Self::Grid => "a grid of 2 or 3, each of at least 3 points, is needed",
            Self::Image => "an image of 2 or 3 (rows, columns, channels) is needed",
        }
    }
}

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    Real(Precision),
    /// Complex singles.
    Complex,
    I32,
}

/// Writes the header of an array in C order. Its elements follow, the last dimension
/// fastest.
///
/// # Errors
/// When it cannot be written.
pub fn write_array_header(
    out: &mut dyn Write,
    shape: &[u64],
    element: ElementType,
) -> io::Result<()> {
    let dtype = match element {
        ElementType::Real(Precision::F32) => Some(f32::default_dtype()),
        ElementType::Real(Precision::F64) => Some(f64::default_dtype()),
        ElementType::Complex => complex(),
        ElementType::I32 => Some(i32::default_dtype()),
    };
    let dtype = dtype.ok_or_else(|| io::Error::other("there is no such type"))?;
    let header = WriteOptions::new_header_only().dtype(dtype);
    let header = header.shape(shape).writer(out);
    header.write_header_only().map(|_| ())
}

/// Writes the header of a matrix in C order. Its numbers follow, by rows.
///
/// # Errors
/// When it cannot be written.
pub fn write_header(
    out: &mut dyn Write,
    (rows, columns): (u64, u64),
    precision: Precision,
) -> io::Result<()> {
    write_array_header(out, &[rows, columns], ElementType::Real(precision))
}

/// The type of complex singles.
fn complex() -> Option<DType> {
    let order = if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    let name: TypeStr = format!("{order}c8").parse().ok()?;
    Some(DType::new_scalar(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ways_to_write_a_header_are_read() {
        let native = if cfg!(target_endian = "big") {
            '>'
        } else {
            '<'
        };
        for (text, expected) in [
            ("{'shape': (6L, 5L), }", "{'shape': (6, 5), }"),
            ("('1L', \"2L\", 3L)", "('1L', \"2L\", 3)"),
            ("(L, xL)", "(L, xL)"),
            ("(np.int64(6), 5)", "(6, 5)"),
            ("(numpy.uint32(6),np.intp(5L))", "(6,np.intp(5))"),
            (
                "(np.int64(), f(x), 'np.int64(6)')",
                "(np.int64(), f(x), 'np.int64(6)')",
            ),
            ("{'descr': '>f8', False}", "{'descr': '>f8', False}"),
            ("{\"descr\": \"<f4\"", "{\"descr\": '<f4'"),
            ("'descr': 'uint8'", "'descr': '|u1'"),
            ("'unended f8", "'unended f8"),
        ] {
            let made = as_usual(text.as_bytes());
            assert_eq!(String::from_utf8(made).unwrap(), expected);
        }
        for (name, short) in [
            ("=f8", "f8"),
            ("f4", "f4"),
            ("|f4", "f4"),
            ("float32", "f4"),
            ("=float64", "f8"),
            ("double", "f8"),
            ("complex64", "c8"),
            ("int64", "i8"),
        ] {
            assert_eq!(short_type(name), Some(format!("{native}{short}")), "{name}");
        }
        assert_eq!(short_type(">f4").as_deref(), Some(">f4"));
        for other in ["", "=", "f", "V8", "<U3", "fortran_order"] {
            assert_eq!(short_type(other).is_some(), other == "f", "{other}");
        }
    }
}
