//! OpenCL code that is put before the source of a kernel, so that the work-item functions of a
//! partial launch return the values of the undivided launch: of users' kernels, and in the
//! OpenCL layer of those of unmodified programs.
//!
//! With a global offset, `get_global_id` is already right. The group's number, the
//! number of groups, the global size and the linear id are those of the part, and the
//! offset is not 0. The functions here correct these values by the offset, so one
//! program is enough for all parts. They precede the macros that replace the originals.

use std::path::Path;

/// A function for the offset of a launch. PoCL 3.1 takes it to be below 65536 in a launch of
/// fewer work-items, and drops comparisons by that. Where PoCL compiles, the compiler is
/// kept from knowing what the value is.
const OFFSET: &str = "size_t pdawl_offset(uint d);\n\
                          size_t pdawl_offset(uint d) {\n\
                          size_t offset = get_global_offset(d);\n\
                          #ifdef POCL_DEVICE_ADDRESS_BITS\n\
                          __asm__(\"\" : \"+r\"(offset));\n\
                          #endif\n\
                          return offset; }\n";

/// What the undivided launch has along a dimension, in OpenCL C.
pub struct Extent {
    pub dimension: usize,
    /// Its work-items and its work-groups.
    pub items: String,
    pub groups: String,
}

/// The code for launches in so many dimensions, of which these have another extent than the
/// launch of a part. In further dimensions a part may have an offset that means something else.
pub fn work_items(dimensions: usize, whole: &[Extent]) -> String {
    let by_dimension = |of: &dyn Fn(&Extent) -> String, part: &str| {
        let cases = whole
            .iter()
            .map(|one| format!("d == {} ? {} : ", one.dimension, of(one)));
        cases.collect::<String>() + part
    };
    let group = |Extent { dimension, .. }: &Extent| {
        format!(
            "get_group_id({dimension}) + pdawl_offset({dimension}) / get_local_size({dimension})"
        )
    };
    let groups = by_dimension(&|one| one.groups.clone(), "get_num_groups(d)");
    let functions = [
        (
            "global_id(uint d)",
            format!("d < {dimensions} ? get_global_id(d) : (size_t)0"),
        ),
        (
            "global_size(uint d)",
            by_dimension(&|one| one.items.clone(), "get_global_size(d)"),
        ),
        ("num_groups(uint d)", groups),
        ("group_id(uint d)", by_dimension(&group, "get_group_id(d)")),
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
            #define get_global_offset(d) ((size_t)0)\n"
}

/// The source of a launch over `global` work-items in groups of `local`, with the line
/// numbers of the original file.
pub(super) fn before(text: &str, file: &Path, global: &[u64], local: Option<&[u64]>) -> String {
    let extent = |(dimension, items): (usize, &u64)| Extent {
        dimension,
        items: format!("(size_t){items}"),
        groups: match local.and_then(|local| local.get(dimension)) {
            Some(group) => format!("(size_t){}", items.div_ceil(*group)),
            None => format!("(size_t){items} / get_local_size({dimension})"),
        },
    };
    let whole: Vec<Extent> = global.iter().enumerate().map(extent).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(['"', '\\', '\n'], "_");
    format!(
        "{}#line 1 \"{name}\"\n{text}",
        work_items(global.len(), &whole)
    )
}
