// Copies units of memory. ITEMS work-items copy one unit, 16 bytes each at a time, in groups of
// any size. src/codelet/copy/mod.rs describes the arguments and defines ITEMS.

__kernel void copy(__global const uint4 *from, __global uint4 *to, uint unit_bytes)
{
    const size_t pieces = unit_bytes / sizeof(uint4);
    const size_t first = get_global_id(0) / ITEMS * pieces;
    for (size_t i = get_global_id(0) % ITEMS; i < pieces; i += ITEMS)
        to[first + i] = from[first + i];
}
