/* Buffers: boxes, parts, fills, copies and maps, on all devices in turn. */
#include "check.h"

enum { X = 24, Y = 10, Z = 6, BYTES = X * Y * Z };

static unsigned char expected[BYTES], bytes[BYTES], other[BYTES];

static void same(cl_mem buffer, unsigned step, const char *what) {
    memset(bytes, 0xee, BYTES);
    OK(clEnqueueReadBuffer(turn(step), buffer, CL_TRUE, 0, BYTES, bytes, 0, NULL, NULL));
    for (int i = 0; i < BYTES; i++)
        if (bytes[i] != expected[i]) {
            printf("%s: byte %d is %d, not %d\n", what, i, bytes[i], expected[i]);
            failures++;
            return;
        }
}

static void boxes(cl_mem buffer) {
    for (unsigned step = 0; step < 40; step++) {
        size_t region[3] = {1 + rand() % (X / 2), 1 + rand() % (Y / 2), 1 + rand() % (Z / 2)};
        size_t at[3], from[3];
        for (int d = 0; d < 3; d++) {
            size_t size = d == 0 ? X : d == 1 ? Y : Z;
            at[d] = rand() % (size - region[d]);
            from[d] = rand() % (size - region[d]);
        }
        for (int i = 0; i < BYTES; i++)
            other[i] = rand();
        OK(clEnqueueWriteBufferRect(turn(step), buffer, CL_FALSE, at, from, region, X, X * Y, X,
                                    X * Y, other, 0, NULL, NULL));
        OK(clFinish(turn(step)));
        for (size_t z = 0; z < region[2]; z++)
            for (size_t y = 0; y < region[1]; y++)
                for (size_t x = 0; x < region[0]; x++)
                    expected[((at[2] + z) * Y + at[1] + y) * X + at[0] + x] =
                        other[((from[2] + z) * Y + from[1] + y) * X + from[0] + x];
        same(buffer, step + 1, "write of a box");
        memset(other, 0, BYTES);
        OK(clEnqueueReadBufferRect(turn(step + 1), buffer, CL_TRUE, at, from, region, X, X * Y, X,
                                   X * Y, other, 0, NULL, NULL));
        for (size_t z = 0; z < region[2]; z++)
            for (size_t y = 0; y < region[1]; y++)
                for (size_t x = 0; x < region[0]; x++)
                    CHECK(expected[((at[2] + z) * Y + at[1] + y) * X + at[0] + x] ==
                          other[((from[2] + z) * Y + from[1] + y) * X + from[0] + x]);
    }
}

static void copies(cl_mem buffer) {
    cl_int code;
    cl_mem second = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    OK(code);
    size_t zero[3] = {0, 0, 0}, at[3] = {3, 2, 1}, region[3] = {7, 5, 3};
    unsigned char before[BYTES];
    OK(clEnqueueCopyBuffer(turn(0), buffer, second, 0, 0, BYTES, 0, NULL, NULL));
    OK(clFinish(turn(0)));
    same(second, 1, "copy");
    memcpy(before, expected, BYTES);
    OK(clEnqueueCopyBufferRect(turn(1), buffer, second, zero, at, region, X, X * Y, X, X * Y, 0,
                               NULL, NULL));
    OK(clFinish(turn(1)));
    for (size_t z = 0; z < 3; z++)
        for (size_t y = 0; y < 5; y++)
            for (size_t x = 0; x < 7; x++)
                expected[((z + 1) * Y + y + 2) * X + x + 3] = before[(z * Y + y) * X + x];
    same(second, 0, "copy of a box");
    memcpy(expected, before, BYTES);
    same(buffer, 1, "source of a copy");
    CODE(clEnqueueCopyBuffer(turn(0), buffer, buffer, 0, 4, 8, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
    size_t near[3] = {1, 0, 0}, bad[3] = {X, Y, Z}, none[3] = {1, 0, 1};
    CODE(clEnqueueCopyBufferRect(turn(0), buffer, buffer, zero, near, region, X, X * Y, X, X * Y, 0,
                                 NULL, NULL), CL_MEM_COPY_OVERLAP);
    size_t beside[3] = {12, 0, 0};
    OK(clEnqueueCopyBufferRect(turn(0), second, second, zero, beside, region, X, X * Y, X, X * Y, 0,
                               NULL, NULL));
    CODE(clEnqueueReadBufferRect(turn(0), buffer, CL_TRUE, near, zero, bad, X, X * Y, X, X * Y, other,
                                 0, NULL, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueReadBufferRect(turn(0), buffer, CL_TRUE, zero, zero, none, 0, 0, 0, 0, other, 0,
                                 NULL, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueReadBufferRect(turn(0), buffer, CL_TRUE, zero, zero, region, 3, 0, 0, 0, other, 0,
                                 NULL, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueReadBufferRect(turn(0), buffer, CL_TRUE, zero, zero, region, X, X * Y + 1, 0, 0,
                                 other, 0, NULL, NULL), CL_INVALID_VALUE);
    OK(clFinish(turn(0)));
    OK(clReleaseMemObject(second));
}

static void parts(cl_mem buffer) {
    cl_uint bits = 0;
    cl_int code;
    for (cl_uint i = 0; i < device_count; i++) {
        cl_uint own = 0;
        OK(clGetDeviceInfo(devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof own, &own, NULL));
        bits = own > bits ? own : bits;
    }
    cl_buffer_region region = {bits / 8, 100};
    cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                    &region, &code);
    OK(code);
    cl_mem parent;
    size_t offset;
    OK(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL));
    OK(clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof offset, &offset, NULL));
    CHECK(parent == buffer && offset == region.origin);
    unsigned char pattern[4] = {1, 2, 3, 4};
    OK(clEnqueueFillBuffer(turn(0), part, pattern, 4, 8, 80, 0, NULL, NULL));
    OK(clFinish(turn(0)));
    for (int i = 0; i < 80; i++)
        expected[region.origin + 8 + i] = pattern[i % 4];
    same(buffer, 1, "fill of a part");
    CODE(clEnqueueFillBuffer(turn(0), part, pattern, 3, 9, 81, 0, NULL, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueFillBuffer(turn(0), part, pattern, 4, 8, 96, 0, NULL, NULL), CL_INVALID_VALUE);
    region.size = BYTES;
    CHECK(!clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    CODE(code, CL_INVALID_VALUE);
    region.origin = 0, region.size = 1;
    CHECK(!clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    CODE(code, CL_INVALID_MEM_OBJECT);
    OK(clReleaseMemObject(part));
}

static void maps(cl_mem buffer) {
    cl_int code;
    cl_uint count;
    for (unsigned step = 0; step < 4; step++) {
        unsigned char *map = clEnqueueMapBuffer(turn(step), buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                64, 200, 0, NULL, NULL, &code);
        OK(code);
        CHECK(memcmp(map, expected + 64, 200) == 0);
        for (int i = 0; i < 200; i++)
            expected[64 + i] = map[i] = rand();
        OK(clGetMemObjectInfo(buffer, CL_MEM_MAP_COUNT, sizeof count, &count, NULL));
        CHECK(count == 1);
        OK(clEnqueueUnmapMemObject(turn(step), buffer, map, 0, NULL, NULL));
        OK(clFinish(turn(step)));
        same(buffer, step + 1, "map");
    }
    CHECK(!clEnqueueMapBuffer(turn(0), buffer, CL_TRUE, CL_MAP_READ, BYTES, 1, 0, NULL, NULL, &code));
    CODE(code, CL_INVALID_VALUE);
    CODE(clEnqueueUnmapMemObject(turn(0), buffer, bytes, 0, NULL, NULL), CL_INVALID_VALUE);
}

static void launches(cl_mem buffer) {
    cl_program program = build("kernel void next(global uchar *b, uchar step) {"
                               " b[get_global_id(0)] += step; }", "");
    cl_kernel kernel = kernel_of(program, "next");
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    for (unsigned step = 1; step < 9; step++) {
        cl_uchar add = step;
        size_t size = BYTES - step;
        OK(clSetKernelArg(kernel, 1, 1, &add));
        OK(clEnqueueNDRangeKernel(turn(step), kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
        OK(clFinish(turn(step)));
        for (size_t i = 0; i < size; i++)
            expected[i] += step;
    }
    same(buffer, 0, "launches");
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
}

int main(void) {
    cl_int code;
    begin(0);
    for (int i = 0; i < BYTES; i++)
        expected[i] = i * 7;
    memcpy(other, expected, BYTES);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, other, &code);
    OK(code);
    same(buffer, 0, "host memory copied");
    boxes(buffer);
    copies(buffer);
    parts(buffer);
    maps(buffer);
    launches(buffer);
    OK(clReleaseMemObject(buffer));
    return end();
}
