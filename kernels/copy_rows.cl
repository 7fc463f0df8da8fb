// Copies rows of bytes between memories of any layout. ITEMS work-items copy 64 KiB of the
// rows, taken one after the other, in groups of any size. src/codelet/rows.rs describes the
// arguments and defines ITEMS.

__kernel void copy_rows(__global const uchar *from, __global uchar *to, ulong from_first,
                        ulong from_pitch, ulong to_first, ulong to_pitch, ulong row, ulong bytes)
{
    const ulong unit = 64 << 10;
    const ulong begin = get_global_id(0) / ITEMS * unit;
    const ulong end = min(begin + unit, bytes);
    for (ulong at = begin + get_global_id(0) % ITEMS; at < end; at += ITEMS) {
        const ulong number = at / row, column = at % row;
        to[to_first + number * to_pitch + column] =
            from[from_first + number * from_pitch + column];
    }
}
