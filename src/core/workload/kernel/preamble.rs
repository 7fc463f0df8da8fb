//! OpenCL code that is put before a user's kernel source, so that the work-item
//! functions of a partial launch return the values of the undivided launch.
//!
//! With a global offset, `get_global_id` is already right. The group's number, the
//! number of groups, the global size and the linear id are those of the part, and the
//! offset is not 0. The functions here correct these values by the offset, so one
//! program is enough for all parts. They precede the macros that replace the originals.

use std::path::Path;

/// A function for the offset of a launch. PoCL 3.1 takes it to be below 65536 in a launch of
/// fewer work-items, and drops comparisons by that. Where PoCL compiles, the compiler is
/// kept from knowing what the value is.
pub const OFFSET: &str = "size_t pdawl_offset(uint d);\n\
                          size_t pdawl_offset(uint d) {\n\
                          size_t offset = get_global_offset(d);\n\
                          #ifdef POCL_DEVICE_ADDRESS_BITS\n\
                          __asm__(\"\" : \"+r\"(offset));\n\
                          #endif\n\
                          return offset; }\n";

/// The source of a launch over `global` work-items in groups of `local`, with the line
/// numbers of the original file.
pub(super) fn before(text: &str, file: &Path, global: &[u64], local: Option<&[u64]>) -> String {
    let by_dimension = |sizes: &dyn Fn(usize) -> String| {
        let cases = (0..global.len()).map(|d| format!("d == {d} ? {} : ", sizes(d)));
        cases.collect::<String>() + "(size_t)1"
    };
    let size = by_dimension(&|d| format!("(size_t){}", global[d]));
    let groups = by_dimension(&|d| match local.and_then(|local| local.get(d)) {
        Some(group) => format!("(size_t){}", global[d].div_ceil(*group)),
        None => format!("(size_t){} / get_local_size({d})", global[d]),
    });
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(['"', '\\', '\n'], "_");
    format!(
        "{OFFSET}\
         size_t pdawl_global_size(uint d);\n\
         size_t pdawl_global_size(uint d) {{ return {size}; }}\n\
         size_t pdawl_num_groups(uint d);\n\
         size_t pdawl_num_groups(uint d) {{ return {groups}; }}\n\
         size_t pdawl_group_id(uint d);\n\
         size_t pdawl_group_id(uint d) {{ return get_group_id(d) + \
         pdawl_offset(d) / get_local_size(d); }}\n\
         size_t pdawl_global_linear_id(void);\n\
         size_t pdawl_global_linear_id(void) {{ return (get_global_id(2) * \
         pdawl_global_size(1) + get_global_id(1)) * pdawl_global_size(0) + \
         get_global_id(0); }}\n\
         #define get_global_size(d) pdawl_global_size(d)\n\
         #define get_num_groups(d) pdawl_num_groups(d)\n\
         #define get_group_id(d) pdawl_group_id(d)\n\
         #define get_global_linear_id() pdawl_global_linear_id()\n\
         #define get_global_offset(d) ((size_t)0)\n\
         #line 1 \"{name}\"\n{text}"
    )
}
