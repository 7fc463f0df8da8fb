//! What the elements of a file may be, by its header.

use npyz::{AutoSerialize, DType, NpyHeader, Order, TypeStr};

use crate::codelet::Precision;

/// What a file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A matrix of singles or doubles.
    Matrix,
    /// The same, or three dimensions: rows, columns and the numbers of a pixel.
    Image,
    /// A matrix of complex singles.
    Complex,
    /// A row of singles or doubles, of one dimension.
    Vector,
}

/// The elements of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub rows: u64,
    pub columns: u64,
    /// Numbers of an element: 2 of a complex one, and those of a pixel.
    pub per: u64,
    pub precision: Precision,
}

/// What is wrong with a header.
pub(super) enum Wrong {
    Type,
    Dimensions,
}

impl Wanted {
    /// The elements that a header describes.
    pub fn elements(self, header: &NpyHeader) -> Result<Elements, Wrong> {
        let (precision, complex) = self.number(header).ok_or(Wrong::Type)?;
        let (rows, columns, per) = match (header.shape(), self) {
            ([columns], Self::Vector) => (1, *columns, complex),
            (_, Self::Vector) => return Err(Wrong::Dimensions),
            ([rows, columns], _) => (*rows, *columns, complex),
            // In Fortran order the numbers of a pixel are far from each other.
            ([rows, columns, per], Self::Image) if *per > 0 && header.order() == Order::C => {
                (*rows, *columns, *per)
            }
            _ => return Err(Wrong::Dimensions),
        };
        Ok(Elements {
            rows,
            columns,
            per,
            precision,
        })
    }

    /// The precision of a file's numbers, if it is one of ours in this machine's byte order,
    /// and how many make an element of a matrix.
    fn number(self, header: &NpyHeader) -> Option<(Precision, u64)> {
        let found = header.dtype();
        let known = match self {
            Self::Matrix | Self::Image | Self::Vector => vec![
                (f32::default_dtype(), (Precision::F32, 1)),
                (f64::default_dtype(), (Precision::F64, 1)),
            ],
            Self::Complex => vec![(complex()?, (Precision::F32, 2))],
        };
        let mut known = known.into_iter();
        known.find_map(|(dtype, number)| (dtype == found).then_some(number))
    }

    /// The types, in words.
    pub fn types(self) -> &'static str {
        match self {
            Self::Matrix | Self::Image | Self::Vector => "float32 (<f4) or float64 (<f8)",
            Self::Complex => "complex64 (<c8)",
        }
    }

    /// The type to convert to.
    pub fn target(self) -> &'static str {
        match self {
            Self::Matrix | Self::Image | Self::Vector => "float32",
            Self::Complex => "complex64",
        }
    }

    /// The dimensions, in words.
    pub fn dimensions(self) -> &'static str {
        match self {
            Self::Matrix | Self::Complex => "a matrix of 2 is needed",
            Self::Vector => "an array of 1 is needed; numpy.ravel makes one",
            Self::Image => {
                "an image of 2 or 3 (rows, columns, channels) in C order is needed; \
                 numpy.ascontiguousarray makes one"
            }
        }
    }
}

/// The type of complex singles.
pub(super) fn complex() -> Option<DType> {
    let order = if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    let name: TypeStr = format!("{order}c8").parse().ok()?;
    Some(DType::new_scalar(name))
}
