//! The forms of a program: as it is, or for parts of launches.
//!
//! A part runs with a global offset along the divided axis, in which `get_global_id` is
//! right already. A text before the program makes the other questions answer as in the
//! whole launch. So that one form does for all sizes, launches in one or two dimensions
//! have one dimension more, of a single work-item, whose offset is the whole size along the
//! axis. In three dimensions the size is in the text.

use pdawl::workload::kernel::OFFSET;

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
        extent: Option<usize>,
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
        let functions = [
            (
                "global_id(uint d)",
                format!("d < {dimensions} ? get_global_id(d) : (size_t)0"),
            ),
            (
                "global_size(uint d)",
                format!("d == {axis} ? {extent} : get_global_size(d)"),
            ),
            (
                "num_groups(uint d)",
                format!("d == {axis} ? {extent} / get_local_size({axis}) : get_num_groups(d)"),
            ),
            (
                "group_id(uint d)",
                format!(
                    "d == {axis} ? get_group_id({axis}) + pdawl_offset({axis}) / \
                     get_local_size({axis}) : get_group_id(d)"
                ),
            ),
            (
                "global_linear_id(void)",
                "(pdawl_global_id(2) * pdawl_global_size(1) + pdawl_global_id(1)) * \
                 pdawl_global_size(0) + pdawl_global_id(0)"
                    .to_owned(),
            ),
        ];
        let mut text = OFFSET.to_owned();
        for (head, body) in functions {
            text += &format!("size_t pdawl_{head};\nsize_t pdawl_{head} {{ return {body}; }}\n");
        }
        for name in ["global_id", "global_size", "num_groups", "group_id"] {
            text += &format!("#define get_{name}(d) pdawl_{name}(d)\n");
        }
        text + "#define get_global_linear_id() pdawl_global_linear_id()\n\
                #define get_global_offset(d) ((size_t)0)\n\
                #line 1\n"
    }
}
