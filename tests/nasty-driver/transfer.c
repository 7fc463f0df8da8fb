/* Reads, writes, copies and fills. All but fills move a box; most boxes are a single row. */
#include "nasty.h"
#include <stdlib.h>
#include <string.h>

/* The bytes from the first to the last of a box. */
static size_t extent(const Side *side, const size_t region[3]) {
    return (region[2] - 1) * side->slice + (region[1] - 1) * side->row + region[0];
}

static bool has(const Side *side, const size_t region[3]) {
    return side->at + extent(side, region) <= side->mem->size;
}

static unsigned char *row_of(const Side *side, int device, size_t y, size_t z, size_t *at) {
    *at = side->at + y * side->row + z * side->slice;
    return (side->mem ? bytes_at(side->mem, device) : side->host) + *at;
}

void run_transfer(cl_event event) {
    const Work *work = &event->work;
    int device = event->queue->device->memory;
    size_t size = work->region[0], from, to;
    for (size_t z = 0; z < work->region[2]; z++)
        for (size_t y = 0; y < work->region[1]; y++) {
            unsigned char *source = row_of(&work->from, device, y, z, &from);
            unsigned char *target = row_of(&work->to, device, y, z, &to);
            if (work->from.mem)
                bring(work->from.mem, device, from, size);
            memmove(target, source, size);
            if (work->to.mem)
                written(work->to.mem, device, to, size);
        }
}

void run_fill(cl_event event) {
    const Work *work = &event->work;
    int device = event->queue->device->memory;
    unsigned char *bytes = bytes_at(work->to.mem, device) + work->to.at;
    for (size_t i = 0; i < work->region[0]; i += work->pattern)
        memcpy(bytes + i, work->copy, work->pattern);
    written(work->to.mem, device, work->to.at, work->region[0]);
}

/* Reads a small box of pageable memory now, whatever its command has to wait for. */
static void read_at_once(Side *side, const size_t region[3], void **copy) {
    size_t bytes = region[0] * region[1] * region[2];
    if (is_pinned(side->host + side->at, extent(side, region)) || bytes > READ_AT_ONCE)
        return;
    unsigned char *to = *copy = malloc(bytes);
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++, to += region[0])
            memcpy(to, side->host + side->at + z * side->slice + y * side->row, region[0]);
    *side = (Side){NULL, *copy, 0, region[0], region[0] * region[1]};
}

static cl_int move(cl_command_queue queue, cl_command_type type, Side from, Side to, const size_t region[3],
                   cl_uint count, const cl_event *list, cl_bool blocking, cl_event *event) {
    KNOWN(queue, QUEUE);
    if (region[0] * region[1] * region[2] == 0 || (!from.mem && !from.host) || (!to.mem && !to.host))
        return CL_INVALID_VALUE;
    if ((from.mem && !has(&from, region)) || (to.mem && !has(&to, region)))
        return CL_INVALID_VALUE;
    Work work = {.from = from, .to = to, .region = {region[0], region[1], region[2]}};
    if (!from.mem && !blocking)
        read_at_once(&work.from, region, &work.copy);
    if (!to.mem)
        is_pinned(to.host + to.at, extent(&to, region));
    return enqueue(queue, type, &work, count, list, blocking, event);
}

/* A row of a buffer, or of the program's memory. */
static Side row(cl_mem mem, const void *host, size_t at) {
    return (Side){mem, (unsigned char *)host, at, 0, 0};
}

static Side box(cl_mem mem, const void *host, const size_t origin[3], const size_t region[3], size_t row,
                size_t slice) {
    row = row ? row : region[0];
    slice = slice ? slice : row * region[1];
    return (Side){mem, (unsigned char *)host, origin[2] * slice + origin[1] * row + origin[0], row, slice};
}

cl_int API(clEnqueueReadBuffer)(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t at, size_t size, void *to,
                                cl_uint count, const cl_event *list, cl_event *event) {
    LOCKED;
    const size_t region[3] = {size, 1, 1};
    return move(queue, CL_COMMAND_READ_BUFFER, row(KNOWN(mem, MEM), NULL, at), row(NULL, to, 0), region, count, list,
                blocking, event);
}

cl_int API(clEnqueueWriteBuffer)(cl_command_queue queue, cl_mem mem, cl_bool blocking, size_t at, size_t size,
                                 const void *from, cl_uint count, const cl_event *list, cl_event *event) {
    LOCKED;
    const size_t region[3] = {size, 1, 1};
    return move(queue, CL_COMMAND_WRITE_BUFFER, row(NULL, from, 0), row(KNOWN(mem, MEM), NULL, at), region, count,
                list, blocking, event);
}

cl_int API(clEnqueueCopyBuffer)(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at,
                                size_t size, cl_uint count, const cl_event *list, cl_event *event) {
    LOCKED;
    const size_t region[3] = {size, 1, 1};
    return move(queue, CL_COMMAND_COPY_BUFFER, row(KNOWN(from, MEM), NULL, from_at), row(KNOWN(to, MEM), NULL, to_at),
                region, count, list, CL_FALSE, event);
}

cl_int API(clEnqueueReadBufferRect)(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
                                    const size_t *host_origin, const size_t *region, size_t row, size_t slice,
                                    size_t host_row, size_t host_slice, void *to, cl_uint count,
                                    const cl_event *list, cl_event *event) {
    LOCKED;
    return move(queue, CL_COMMAND_READ_BUFFER_RECT, box(KNOWN(mem, MEM), NULL, origin, region, row, slice),
                box(NULL, to, host_origin, region, host_row, host_slice), region, count, list, blocking, event);
}

cl_int API(clEnqueueWriteBufferRect)(cl_command_queue queue, cl_mem mem, cl_bool blocking, const size_t *origin,
                                     const size_t *host_origin, const size_t *region, size_t row, size_t slice,
                                     size_t host_row, size_t host_slice, const void *from, cl_uint count,
                                     const cl_event *list, cl_event *event) {
    LOCKED;
    return move(queue, CL_COMMAND_WRITE_BUFFER_RECT, box(NULL, from, host_origin, region, host_row, host_slice),
                box(KNOWN(mem, MEM), NULL, origin, region, row, slice), region, count, list, blocking, event);
}

cl_int API(clEnqueueCopyBufferRect)(cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
                                    const size_t *to_origin, const size_t *region, size_t from_row,
                                    size_t from_slice, size_t to_row, size_t to_slice, cl_uint count,
                                    const cl_event *list, cl_event *event) {
    LOCKED;
    return move(queue, CL_COMMAND_COPY_BUFFER_RECT, box(KNOWN(from, MEM), NULL, from_origin, region, from_row, from_slice),
                box(KNOWN(to, MEM), NULL, to_origin, region, to_row, to_slice), region, count, list, CL_FALSE, event);
}

cl_int API(clEnqueueFillBuffer)(cl_command_queue queue, cl_mem mem, const void *pattern, size_t length, size_t at,
                                size_t size, cl_uint count, const cl_event *list, cl_event *event) {
    LOCKED;
    KNOWN(queue, QUEUE);
    KNOWN(mem, MEM);
    if (!pattern || length == 0 || at % length || size % length || at + size > mem->size)
        return CL_INVALID_VALUE;
    Work work = {.to = row(mem, NULL, at), .region = {size, 1, 1}, .copy = malloc(length), .pattern = length};
    memcpy(work.copy, pattern, length);
    return enqueue(queue, CL_COMMAND_FILL_BUFFER, &work, count, list, CL_FALSE, event);
}

/* Lets go of what a command used. */
void free_work(Work *work) {
    free(work->copy);
    drop(work->from.mem);
    drop(work->to.mem);
    for (cl_uint i = 0; work->arguments && i < work->kernel->count; i++) {
        free(work->arguments[i].value);
        drop(work->arguments[i].mem);
    }
    free(work->arguments);
    drop(work->kernel);
    memset(work, 0, sizeof *work);
}
