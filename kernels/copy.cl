// Copies units of memory: one work-group a unit, 16 bytes a work-item at a time.
// Arguments: src/codelet/copy/mod.rs.

__kernel void copy(__global const uint4 *from, __global uint4 *to, uint unit_bytes)
{
    const size_t pieces = unit_bytes / sizeof(uint4);
    const size_t first = get_group_id(0) * pieces;
    for (size_t i = get_local_id(0); i < pieces; i += get_local_size(0))
        to[first + i] = from[first + i];
}
