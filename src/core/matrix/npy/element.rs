//! What the elements of a file may be, by its header.

use npyz::{DType, Endianness, NpyHeader, TypeChar};

use crate::codelet::Element;

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
