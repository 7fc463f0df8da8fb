// Copies units of memory. A work-group copies one unit; each work-item copies 16
// bytes at a time. src/codelet/copy/mod.rs describes the arguments.

__kernel void copy(__global const uint4 *from, __global uint4 *to, uint unit_bytes)
{
    const size_t pieces = unit_bytes / sizeof(uint4);
    const size_t first = get_group_id(0) * pieces;
    for (size_t i = get_local_id(0); i < pieces; i += get_local_size(0))
        to[first + i] = from[first + i];
}
