// Operations on the blocks of an LU factorisation with partial pivoting.
// src/codelet/lu/mod.rs describes them and their arguments.
//
// src/codelet/lu/opencl.rs defines the sizes in capital letters that this file does not, and
// DOUBLE.

#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#else
typedef float real;
#endif

#define GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

#define NO_PIVOT 0xffffffffu
#define NOT_FINITE 0xfffffffeu

// Whether a size is a better pivot: one that is no number is the best, so that it is found.
#define BETTER(size, than) ((size) > (than) || (isnan(size) && !isnan(than)))

// Exchanges the rows of a column of b one after the other.
void exchange(__global real *b, __global const uint *pivots, uint count, uint m, uint stride,
              uint first)
{
    for (uint row = 0; row < count; row++) {
        const uint pivot = pivots[row] - first;
        // A column without a pivot has no such row.
        if (pivot != row && pivot < m) {
            const real kept = b[(size_t)row * stride];
            b[(size_t)row * stride] = b[(size_t)pivot * stride];
            b[(size_t)pivot * stride] = kept;
        }
    }
}

// Where the numbers of a row come from when all rows are exchanged with those of their pivots.
// It goes back from the last exchange. Since no pivot is above its row, exchange i moves a row
// from i to its pivot at most once, and what is above i never again.
#define COMES_FROM(row, count, pivot_of)                                                       \
    uint from = row;                                                                           \
    uint before = count;                                                                       \
    if (row < count) {                                                                         \
        from = pivot_of(row) < m ? pivot_of(row) : row;                                        \
        before = row;                                                                          \
    }                                                                                          \
    while (before-- > 0)                                                                       \
        from = pivot_of(before) == from ? before : from;

// Exchanges rows of some columns of b, by all items of a group: what all exchanges together
// move is found first, and then moved at once. The rows that change are the first ones, and
// those of the pivots; if two pivots have one row, both move the same. `known` has room for
// the pivots, `sources` for twice as many rows, and the copy for as many numbers, at least.
void exchange_together(__global real *b, __global const uint *pivots, uint count, uint m,
                       uint columns, uint stride, uint first, __local uint *known,
                       __local uint *sources, __local real *copy, uint room)
{
    const uint item = get_local_id(0), rows = 2 * count;
    for (uint i = item; i < count; i += ITEMS)
        known[i] = pivots[i] - first;
    barrier(CLK_LOCAL_MEM_FENCE);
#define KNOWN(i) known[i]
    for (uint i = item; i < rows; i += ITEMS) {
        const uint row = i < count ? i : known[i - count];
        // No number comes to the row of a column without a pivot.
        if (row < m) {
            COMES_FROM(row, count, KNOWN)
            sources[i] = from;
        } else {
            sources[i] = row;
        }
    }
#undef KNOWN
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint together = max(room / rows, 1u);
    for (uint begin = 0; begin < columns; begin += together) {
        const uint width = min(together, columns - begin);
        for (uint at = item; at < rows * width; at += ITEMS) {
            const uint i = at / width, to = i < count ? i : known[i - count];
            if (sources[i] != to)
                copy[at] = b[(size_t)sources[i] * stride + begin + at % width];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint at = item; at < rows * width; at += ITEMS) {
            const uint i = at / width, to = i < count ? i : known[i - count];
            if (sources[i] != to)
                b[(size_t)to * stride + begin + at % width] = copy[at];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

// ---- A panel: a series of launches for each strip of STRIP columns.
//
// lu_search finds the best pivot of each group's rows in the first column of a strip. Then
// lu_column, for one column of the strip after the other, exchanges two rows within the
// strip, subtracts what the column contributes to those right of it, and finds the best
// pivots of the next column. lu_beside exchanges the rows beside the strip, and solves those
// of U; lu_below subtracts what the strip contributes to the rows below these.
//
// The global offset of dimension 1 is the column, or the first one of the strip. Groups do
// not see one another's rows during a launch: the rows that are exchanged pass through
// scratch, from one launch to the next.

#define PANEL_ARGUMENTS \
    __global real *a, __global uint *pivots, uint m, uint n, uint first, ulong a_first, \
    uint stride, ulong pivots_first, __global real *scratch

#define COLUMN ((uint)get_global_id(1))

// What is known of a column, in scratch, which has room for two columns: the best pivot of each
// group's ROWS rows by its size, its place, and its row's numbers in the strip; and the
// numbers of the row of the diagonal.
#define GROUPS ((m + ROWS - 1) / ROWS)
#define SLOT(column, group) ((column) % 2 * GROUPS + (group))
#define SIZE_OF(column, group) (scratch + SLOT(column, group))
#define ROW_OF(column, group) (scratch + 2 * GROUPS + SLOT(column, group) * STRIP)
#define DIAGONAL_OF(column) (scratch + 2 * GROUPS * (1 + STRIP) + (column) % 2 * STRIP)
#define PLACE_OF(column, group) \
    ((__global uint *)(scratch + 2 * (GROUPS + 1) * (1 + STRIP)) + SLOT(column, group))

// Makes the best of what the items have found the first, and the first of equal ones, as on
// the host.
void find_best(__local real *sizes, __local uint *places)
{
    const uint item = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint span = ITEMS / 2; span > 0; span /= 2) {
        if (item < span) {
            const real other = sizes[item + span], own = sizes[item];
            const bool better = BETTER(other, own)
                || (other == own && places[item + span] < places[item]);
            if (better) {
                sizes[item] = other;
                places[item] = places[item + span];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Tells what a group has found for a column of the strip that begins at begin. The first
// group has the rows of all diagonals of the strip. After the last column there is no other.
void tell(__global const real *a, uint m, uint stride, uint begin, uint column, uint width,
          __local real *sizes, __local uint *places, __global real *scratch)
{
    const uint item = get_local_id(0), group = get_group_id(0);
    find_best(sizes, places);
    if (item == 0) {
        *SIZE_OF(column, group) = sizes[0];
        *PLACE_OF(column, group) = places[0];
    }
    if (item < width) {
        if (places[0] < m)
            ROW_OF(column, group)[item] = a[(size_t)places[0] * stride + begin + item];
        if (group == 0 && column < m)
            DIAGONAL_OF(column)[item] = a[(size_t)column * stride + begin + item];
    }
}

__kernel GROUP void lu_search(PANEL_ARGUMENTS)
{
    __local real sizes[ITEMS];
    __local uint places[ITEMS];
    const uint item = get_local_id(0), begin = COLUMN;
    const uint row = begin + get_group_id(0) * ROWS + item;
    const bool is_one = item < ROWS && row < m;
    a += a_first;
    sizes[item] = is_one ? fabs(a[(size_t)row * stride + begin]) : -1;
    places[item] = is_one ? row : m;
    tell(a, m, stride, begin, begin, min((uint)STRIP, n - begin), sizes, places, scratch);
}

__kernel GROUP void lu_column(PANEL_ARGUMENTS)
{
    __local real sizes[ITEMS];
    __local uint places[ITEMS];
    __local real pivot_row[STRIP], diagonal_row[STRIP], factors[ROWS];
    const uint item = get_local_id(0), column = COLUMN;
    const uint begin = column / STRIP * STRIP, end = min(begin + STRIP, n);
    const uint groups = (m - begin + ROWS - 1) / ROWS;
    a += a_first;

    real most = -1;
    uint at = m;
    for (uint group = item; group < groups; group += ITEMS) {
        const real size = *SIZE_OF(column, group);
        if (BETTER(size, most)) {
            most = size;
            at = *PLACE_OF(column, group);
        }
    }
    sizes[item] = most;
    places[item] = at;
    find_best(sizes, places);
    const real size = sizes[0];
    const uint pivot = places[0];
    const bool has_pivot = isfinite(size) && size > 0;
    if (get_global_id(0) == 0)
        pivots[pivots_first + column] =
            has_pivot ? first + pivot : size == 0 ? NO_PIVOT : NOT_FINITE;
    if (item < end - begin) {
        pivot_row[item] = ROW_OF(column, (pivot - begin) / ROWS)[item];
        diagonal_row[item] = DIAGONAL_OF(column)[item];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint top = begin + get_group_id(0) * ROWS;
    if (item < ROWS && top + item > column && top + item < m) {
        const uint row = top + item;
        const real number = row == pivot ? diagonal_row[column - begin]
                                         : a[(size_t)row * stride + column];
        factors[item] = number / pivot_row[column - begin];
    }
    sizes[item] = -1;
    places[item] = m;
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint across = item % STRIP, own = begin + across;
    for (uint down = item / STRIP; down < ROWS; down += ITEMS / STRIP) {
        const uint row = top + down;
        if (row < column || row >= m || own >= end)
            continue;
        __global real *to = a + (size_t)row * stride + own;
        real number = *to;
        if (has_pivot) {
            if (row == column) {
                number = pivot_row[across];
            } else {
                if (row == pivot)
                    number = diagonal_row[across];
                if (own == column)
                    number = factors[down];
                else if (own > column)
                    number -= factors[down] * pivot_row[across];
            }
            *to = number;
        }
        if (own == column + 1 && row > column) {
            sizes[down] = fabs(number);
            places[down] = row;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    // PoCL fails where only some columns meet a barrier.
    tell(a, m, stride, begin, column + 1, end - begin, sizes, places, scratch);
}

// Columns that a group exchanges beside a strip.
#define CHUNK 32

__kernel GROUP void lu_beside(PANEL_ARGUMENTS)
{
    __local uint known_pivots[STRIP], sources[2 * STRIP];
    __local real copy[2 * STRIP * CHUNK], l[STRIP * STRIP];
    const uint item = get_local_id(0), begin = COLUMN;
    const uint end = min(begin + STRIP, n), height = end - begin;
    // The chunks left of the strip are whole.
    const uint left = begin / CHUNK, group = get_group_id(0);
    const bool is_right = group >= left;
    const uint from = is_right ? end + (group - left) * CHUNK : group * CHUNK;
    const uint columns = min((uint)CHUNK, n - from);
    a += a_first;
    __global real *b = a + (size_t)begin * stride + from;
    exchange_together(b, pivots + pivots_first + begin, height, m - begin, columns, stride,
                      first + begin, known_pivots, sources, copy, 2 * STRIP * CHUNK);
    const uint solved = is_right ? height : 0;
    __local real *x = copy;
    for (uint i = item; i < STRIP * STRIP; i += ITEMS) {
        const uint row = i / STRIP, known = i % STRIP;
        l[i] = known < row && row < solved ? a[(size_t)(begin + row) * stride + begin + known] : 0;
    }
    for (uint i = item; i < STRIP * CHUNK; i += ITEMS)
        x[i] = i / CHUNK < solved && i % CHUNK < columns
            ? b[(size_t)(i / CHUNK) * stride + i % CHUNK] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint known = 0; known + 1 < solved; known++) {
        for (uint i = item + (known + 1) * CHUNK; i < solved * CHUNK; i += ITEMS)
            x[i] -= l[i / CHUNK * STRIP + known] * x[known * CHUNK + i % CHUNK];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = item; i < solved * CHUNK; i += ITEMS)
        if (i % CHUNK < columns)
            b[(size_t)(i / CHUNK) * stride + i % CHUNK] = x[i];
}

// Rows and columns of a group, and of a work-item.
#define TILE 64
#define EACH 4

// There are columns right of the strip, so that it has STRIP.
__kernel GROUP void lu_below(PANEL_ARGUMENTS)
{
    __local real l[STRIP][TILE + 1], u[STRIP][TILE];
    const uint item = get_local_id(0), begin = COLUMN, end = begin + STRIP;
    const uint across = (n - end + TILE - 1) / TILE;
    const uint row = end + get_group_id(0) / across * TILE;
    const uint column = end + get_group_id(0) % across * TILE;
    a += a_first;
    for (uint i = item; i < STRIP * TILE; i += ITEMS) {
        const uint down = i / STRIP, known = i % STRIP;
        l[known][down] = row + down < m ? a[(size_t)(row + down) * stride + begin + known] : 0;
        const uint right = i % TILE, of = i / TILE;
        u[of][right] = column + right < n ? a[(size_t)(begin + of) * stride + column + right] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // The numbers of an item are TILE / EACH apart.
    const uint x = item % (TILE / EACH), y = item / (TILE / EACH);
    real sums[EACH][EACH];
#pragma unroll
    for (uint i = 0; i < EACH; i++)
#pragma unroll
        for (uint j = 0; j < EACH; j++)
            sums[i][j] = 0;
    for (uint known = 0; known < STRIP; known++)
#pragma unroll
        for (uint i = 0; i < EACH; i++)
#pragma unroll
            for (uint j = 0; j < EACH; j++)
                sums[i][j] += l[known][y + i * (TILE / EACH)] * u[known][x + j * (TILE / EACH)];
#pragma unroll
    for (uint i = 0; i < EACH; i++)
#pragma unroll
        for (uint j = 0; j < EACH; j++) {
            const uint to = row + y + i * (TILE / EACH), at = column + x + j * (TILE / EACH);
            if (to < m && at < n)
                a[(size_t)to * stride + at] -= sums[i][j];
        }
}

// ---- The columns beside a panel.

// Columns of b that a group exchanges and solves, and rows that it solves at a time.
#define ACROSS 8
#define BLOCK 32

// Numbers of a group's copy of rows that are exchanged, and most pivots of a panel for which
// it is enough room.
#define COPIED (32768 / sizeof(real))
#define MOST 1024

// A group exchanges the rows of ACROSS columns of b, and solves the first n rows: BLOCK of
// them, and then what these contribute is subtracted from the rows below.
__kernel GROUP void lu_row(__global const real *restrict factors,
                           __global const uint *pivots, __global real *restrict b, uint m, uint w, uint n, uint first,
                           ulong factors_first, uint l_stride, ulong pivots_first,
                           ulong b_first, uint stride)
{
    __local uint known_pivots[MOST], sources[2 * MOST];
    __local real copy[COPIED];
    const uint item = get_local_id(0);
    const uint begin = get_group_id(0) * ACROSS;
    const uint columns = min((uint)ACROSS, w - begin);
    factors += factors_first;
    pivots += pivots_first;
    b += b_first + begin;
    if (n <= MOST)
        exchange_together(b, pivots, n, m, columns, stride, first, known_pivots, sources, copy,
                          COPIED);
    else if (item < columns)
        exchange(b + item, pivots, n, m, stride, first);
    barrier(CLK_GLOBAL_MEM_FENCE);

    // A triangle and the rows that are solved with it, in the place of the copy.
    __local real *l = copy, *x = copy + BLOCK * BLOCK;
    const uint column = item % ACROSS, down = item / ACROSS;
    for (uint top = 0; top < n; top += BLOCK) {
        const uint height = min((uint)BLOCK, n - top);
        for (uint i = item; i < BLOCK * BLOCK; i += ITEMS) {
            const uint row = i / BLOCK, known = i % BLOCK;
            l[i] = known < row && row < height
                ? factors[(size_t)(top + row) * l_stride + top + known] : 0;
        }
        for (uint row = down; row < height; row += ITEMS / ACROSS)
            x[row * ACROSS + column] = column < columns
                ? b[(size_t)(top + row) * stride + column] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint known = 0; known + 1 < height; known++) {
            for (uint row = down; row < height; row += ITEMS / ACROSS)
                if (row > known)
                    x[row * ACROSS + column] -= l[row * BLOCK + known] * x[known * ACROSS + column];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (column < columns) {
            for (uint row = down; row < height; row += ITEMS / ACROSS)
                b[(size_t)(top + row) * stride + column] = x[row * ACROSS + column];
            real solved[BLOCK];
#pragma unroll
            for (uint known = 0; known < BLOCK; known++)
                solved[known] = x[known * ACROSS + column];
            // Where there are rows below, the block has all its rows.
#pragma unroll 4
            for (uint row = top + BLOCK + down; row < n; row += ITEMS / ACROSS) {
                __global const real *of = factors + (size_t)row * l_stride + top;
                real sum = b[(size_t)row * stride + column];
#pragma unroll
                for (uint known = 0; known < BLOCK; known++)
                    sum -= of[known] * solved[known];
                b[(size_t)row * stride + column] = sum;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

// ---- Late exchanges: a series of launches.
//
// lu_sources finds for each row from where its numbers come. Then, for one chunk of columns
// after the other, lu_gather takes them from there to scratch, and lu_return to their places.
// The global offset of dimension 1 is the chunk's first column. Scratch has the numbers of a
// chunk, and behind them the rows.

#define EXCHANGE_ARGUMENTS \
    __global const uint *pivots, __global real *b, uint m, uint w, uint first, \
    ulong pivots_first, ulong b_first, uint stride, __global real *scratch

#define SOURCES ((__global uint *)(scratch + (size_t)m * LATE))

// A work-item a row.
__kernel GROUP void lu_sources(EXCHANGE_ARGUMENTS)
{
    const uint row = get_global_id(0);
    if (row >= m)
        return;
    pivots += pivots_first;
#define PIVOT(i) (pivots[i] - first)
    COMES_FROM(row, m, PIVOT)
#undef PIVOT
    SOURCES[row] = from;
}

// A work-item a number of the chunk.
#define IN_CHUNK                                                         \
    const uint chunk = get_global_id(1), width = min((uint)LATE, w - chunk); \
    const size_t at = get_global_id(0);                                  \
    if (at >= (size_t)m * width)                                         \
        return;                                                          \
    const uint row = at / width, column = chunk + at % width;            \
    b += b_first;

__kernel GROUP void lu_gather(EXCHANGE_ARGUMENTS)
{
    IN_CHUNK
    scratch[at] = b[(size_t)SOURCES[row] * stride + column];
}

__kernel GROUP void lu_return(EXCHANGE_ARGUMENTS)
{
    IN_CHUNK
    b[(size_t)row * stride + column] = scratch[at];
}

// ---- Around the calls of a library, which factors a panel by columns.
//
// Scratch has the panel by columns, without gaps. Behind it are for each column the row,
// counted from 1, with which the library exchanged a row; whether a number of the column from
// its diagonal down is infinite or none; and once the library's info: the first column, counted
// from 1, whose pivot is zero.

#define BEHIND(place) (((__global uint *)(scratch + (size_t)m * n))[place])
#define EXCHANGED(column) BEHIND(column)
#define IS_INFINITE(column) BEHIND(n + (column))
#define INFO BEHIND(2 * n)

// Rows and columns of a group, counted by rows.
#define SIDE 32
#define ACROSS_PANEL ((n + SIDE - 1) / SIDE)
#define TOP ((uint)get_group_id(0) / ACROSS_PANEL * SIDE)
#define LEFT ((uint)get_group_id(0) % ACROSS_PANEL * SIDE)

__kernel GROUP void lu_to_columns(PANEL_ARGUMENTS)
{
    __local real tile[SIDE][SIDE + 1];
    const uint item = get_local_id(0), top = TOP, left = LEFT;
    if (get_global_id(0) < n)
        IS_INFINITE(get_global_id(0)) = 0;
    a += a_first;
    for (uint i = item; i < SIDE * SIDE; i += ITEMS) {
        const uint down = i / SIDE, right = i % SIDE;
        if (top + down < m && left + right < n)
            tile[down][right] = a[(size_t)(top + down) * stride + left + right];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < SIDE * SIDE; i += ITEMS) {
        const uint right = i / SIDE, down = i % SIDE;
        if (top + down < m && left + right < n)
            scratch[(size_t)(left + right) * m + top + down] = tile[down][right];
    }
}

__kernel GROUP void lu_from_columns(PANEL_ARGUMENTS)
{
    __local real tile[SIDE][SIDE + 1];
    const uint item = get_local_id(0), top = TOP, left = LEFT;
    a += a_first;
    for (uint i = item; i < SIDE * SIDE; i += ITEMS) {
        const uint right = i / SIDE, down = i % SIDE;
        const uint row = top + down, column = left + right;
        if (row < m && column < n) {
            const real number = scratch[(size_t)column * m + row];
            tile[down][right] = number;
            // Several items may write, all of them the same.
            if (row >= column && !isfinite(number))
                IS_INFINITE(column) = 1;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < SIDE * SIDE; i += ITEMS) {
        const uint down = i / SIDE, right = i % SIDE;
        if (top + down < m && left + right < n)
            a[(size_t)(top + down) * stride + left + right] = tile[down][right];
    }
}

// A work-item a column.
__kernel GROUP void lu_pivots(PANEL_ARGUMENTS)
{
    const uint column = get_global_id(0);
    if (column >= n)
        return;
    const bool is_zero = INFO == column + 1 || scratch[(size_t)column * m + column] == 0;
    pivots[pivots_first + column] = is_zero               ? NO_PIVOT
                                  : IS_INFINITE(column) ? NOT_FINITE
                                                        : first + EXCHANGED(column) - 1;
}

// A group exchanges the rows of ACROSS columns of b, as lu_row does, which also solves.
__kernel GROUP void lu_row_exchange(__global const real *restrict factors,
                                    __global const uint *pivots, __global real *restrict b,
                                    uint m, uint w, uint n, uint first, ulong factors_first,
                                    uint l_stride, ulong pivots_first, ulong b_first, uint stride)
{
    __local uint known_pivots[MOST], sources[2 * MOST];
    __local real copy[COPIED];
    const uint item = get_local_id(0);
    const uint begin = get_group_id(0) * ACROSS;
    const uint columns = min((uint)ACROSS, w - begin);
    pivots += pivots_first;
    b += b_first + begin;
    if (n <= MOST)
        exchange_together(b, pivots, n, m, columns, stride, first, known_pivots, sources, copy,
                          COPIED);
    else if (item < columns)
        exchange(b + item, pivots, n, m, stride, first);
}
