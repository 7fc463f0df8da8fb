//! The forms of a program: as it is, or for parts of launches.
//!
//! A part runs with a global offset along the divided axis, in which `get_global_id` is
//! right already. A text before the program makes the other questions answer as in the
//! whole launch. So that one form does for all sizes, launches in one or two dimensions
//! have one dimension more, of a single work-item, whose offset is the whole size along the
//! axis. In three dimensions the size is in the text.

use pdawl_api::workload::kernel::{Extent, work_items};

/// A form of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The program as it is.
    Whole,
    /// For parts along an axis of launches with so many dimensions.
    Part {
        axis: usize,
        dimensions: usize,
        /// Work-items along the axis, in three dimensions.
        extent: Option<u64>,
    },
}

/// One of the programs that a driver has of one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramKey {
    /// The driver's context, as an index.
    pub domain: usize,
    /// Queues of a driver that confuses launches of one program have unlike variants.
    pub variant: u32,
    pub form: Form,
}

impl ProgramKey {
    /// The program as it was first made.
    pub fn first(domain: usize) -> Self {
        Self {
            domain,
            variant: 0,
            form: Form::Whole,
        }
    }
}

impl Form {
    /// The text before the program. Lines keep their numbers.
    pub fn preamble(self) -> String {
        let Self::Part {
            axis,
            dimensions,
            extent,
        } = self
        else {
            return String::new();
        };
        let extent = match extent {
            Some(extent) => format!("(size_t){extent}"),
            None => format!("pdawl_offset({dimensions})"),
        };
        let whole = Extent {
            dimension: axis,
            groups: format!("{extent} / get_local_size({axis})"),
            items: extent,
        };
        work_items(dimensions, &[whole]) + "#line 1\n"
    }
}
