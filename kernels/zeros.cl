// Writes zeros, 16 bytes a work-item. Arguments: src/codelet/zeros.rs.

__kernel void zeros(__global uchar *to, ulong bytes)
{
    const ulong piece = get_global_id(0);
    if (piece * 16 + 16 <= bytes)
        ((__global uint4 *)to)[piece] = (uint4)(0);
    else
        for (ulong i = piece * 16; i < bytes; i++)
            to[i] = 0;
}
