/* Images: all commands, and kernels that read and write them, from all devices' queues. */
#include "check.h"

enum { W = 20, H = 12, PIXELS = W * H };

static cl_uint expected[PIXELS], pixels[PIXELS];

static void same(cl_mem image, unsigned step, const char *what) {
    size_t zero[3] = {0, 0, 0}, all[3] = {W, H, 1};
    memset(pixels, 0xee, sizeof pixels);
    OK(clEnqueueReadImage(turn(step), image, CL_TRUE, zero, all, 0, 0, pixels, 0, NULL, NULL));
    for (int i = 0; i < PIXELS; i++)
        if (pixels[i] != expected[i]) {
            printf("%s: pixel %d is %x, not %x\n", what, i, pixels[i], expected[i]);
            failures++;
            return;
        }
}

static const char *source =
    "constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;"
    "kernel void to_buffer(read_only image2d_t image, sampler_t given, global uint *out) {"
    " int2 at = (int2)(get_global_id(0), get_global_id(1));"
    " uint4 p = read_imageui(image, given, at);"
    " out[at.y * get_global_size(0) + at.x] = p.x | p.y << 8 | p.z << 16 | p.w << 24; }"
    "kernel void from_buffer(write_only image2d_t image, global const uint *in) {"
    " int2 at = (int2)(get_global_id(0), get_global_id(1));"
    " uint p = in[at.y * get_global_size(0) + at.x];"
    " write_imageui(image, at, (uint4)(p & 255, p >> 8 & 255, p >> 16 & 255, p >> 24)); }";

static void kernels(cl_mem image) {
    cl_int code;
    cl_program program = build(source, "-cl-kernel-arg-info");
    cl_kernel read = kernel_of(program, "to_buffer"), write = kernel_of(program, "from_buffer");
    cl_sampler sampler =
        clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &code);
    OK(code);
    cl_uint data[PIXELS], out[PIXELS];
    size_t size[2] = {W, H};
    cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof data, NULL, &code);
    cl_mem result = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof data, NULL, &code);
    for (unsigned step = 0; step < 4; step++) {
        for (int i = 0; i < PIXELS; i++)
            expected[i] = data[i] = rand();
        OK(clEnqueueWriteBuffer(turn(step), in, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
        OK(clSetKernelArg(write, 0, sizeof image, &image));
        OK(clSetKernelArg(write, 1, sizeof in, &in));
        OK(clEnqueueNDRangeKernel(turn(step), write, 2, NULL, size, NULL, 0, NULL, NULL));
        OK(clFinish(turn(step)));
        same(image, step + 1, "image written by a kernel");
        OK(clSetKernelArg(read, 0, sizeof image, &image));
        OK(clSetKernelArg(read, 1, sizeof sampler, &sampler));
        OK(clSetKernelArg(read, 2, sizeof result, &result));
        OK(clEnqueueNDRangeKernel(turn(step + 1), read, 2, NULL, size, NULL, 0, NULL, NULL));
        OK(clFinish(turn(step + 1)));
        OK(clEnqueueReadBuffer(turn(step), result, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
        CHECK(memcmp(out, data, sizeof out) == 0);
    }
    CODE(clSetKernelArg(read, 0, sizeof in, &in), CL_INVALID_MEM_OBJECT);
    CODE(clSetKernelArg(read, 1, sizeof in, &in), CL_INVALID_SAMPLER);
    OK(clReleaseMemObject(in));
    OK(clReleaseMemObject(result));
    OK(clReleaseSampler(sampler));
    OK(clReleaseKernel(read));
    OK(clReleaseKernel(write));
    OK(clReleaseProgram(program));
}

static void commands(cl_mem image, cl_mem second) {
    cl_int code;
    size_t zero[3] = {0, 0, 0}, all[3] = {W, H, 1}, at[3] = {4, 3, 0}, part[3] = {6, 5, 1};
    for (int i = 0; i < PIXELS; i++)
        expected[i] = pixels[i] = rand();
    OK(clEnqueueWriteImage(turn(0), image, CL_TRUE, zero, all, 0, 0, pixels, 0, NULL, NULL));
    same(image, 1, "write");
    OK(clEnqueueCopyImage(turn(1), image, second, zero, zero, all, 0, NULL, NULL));
    OK(clFinish(turn(1)));
    same(second, 0, "copy");
    cl_uint color[4] = {0x11, 0x22, 0x33, 0x44};
    OK(clEnqueueFillImage(turn(0), second, color, at, part, 0, NULL, NULL));
    OK(clFinish(turn(0)));
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 6; x++)
            expected[(y + 3) * W + x + 4] = 0x44332211;
    same(second, 1, "fill");

    cl_mem buffer = clCreateBuffer(context, 0, 4 * PIXELS + 16, NULL, &code);
    OK(clEnqueueCopyImageToBuffer(turn(0), second, buffer, zero, all, 16, 0, NULL, NULL));
    OK(clFinish(turn(0)));
    OK(clEnqueueReadBuffer(turn(1), buffer, CL_TRUE, 16, 4 * PIXELS, pixels, 0, NULL, NULL));
    CHECK(memcmp(pixels, expected, sizeof pixels) == 0);
    for (int i = 0; i < PIXELS; i++)
        expected[i] = rand();
    OK(clEnqueueWriteBuffer(turn(1), buffer, CL_TRUE, 16, 4 * PIXELS, expected, 0, NULL, NULL));
    OK(clEnqueueCopyBufferToImage(turn(0), buffer, image, 16, zero, all, 0, NULL, NULL));
    OK(clFinish(turn(0)));
    same(image, 1, "copy of a buffer");
    CODE(clEnqueueCopyBufferToImage(turn(0), buffer, image, 32, zero, all, 0, NULL, NULL),
         CL_INVALID_VALUE);
    OK(clReleaseMemObject(buffer));

    size_t row = 0;
    char *map = clEnqueueMapImage(turn(1), image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, part, &row,
                                  NULL, 0, NULL, NULL, &code);
    OK(code);
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 6; x++) {
            cl_uint *pixel = (cl_uint *)(map + y * row) + x;
            CHECK(*pixel == expected[(y + 3) * W + x + 4]);
            expected[(y + 3) * W + x + 4] = *pixel = rand();
        }
    OK(clEnqueueUnmapMemObject(turn(1), image, map, 0, NULL, NULL));
    OK(clFinish(turn(1)));
    same(image, 0, "map");
    CHECK(!clEnqueueMapImage(turn(0), image, CL_TRUE, CL_MAP_READ, zero, all, NULL, NULL, 0, NULL,
                             NULL, &code));
    CODE(code, CL_INVALID_VALUE);
}

int main(void) {
    cl_int code;
    cl_bool has = CL_FALSE;
    begin(0);
    OK(clGetDeviceInfo(devices[0], CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL));
    if (!has)
        return SKIPPED;
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8}, formats[4], bad = {0, 0};
    cl_uint count = 0;
    OK(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 4, formats,
                                  &count));
    CHECK(count > 0);
    cl_image_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.image_type = CL_MEM_OBJECT_IMAGE2D, desc.image_width = W, desc.image_height = H;
    cl_mem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code);
    OK(code);
    cl_mem second = clCreateImage2D(context, CL_MEM_READ_WRITE, &format, W, H, 0, NULL, &code);
    OK(code);
    size_t width = 0, bytes = 0;
    cl_mem_object_type type = 0;
    OK(clGetImageInfo(image, CL_IMAGE_WIDTH, sizeof width, &width, NULL));
    OK(clGetMemObjectInfo(image, CL_MEM_SIZE, sizeof bytes, &bytes, NULL));
    OK(clGetMemObjectInfo(image, CL_MEM_TYPE, sizeof type, &type, NULL));
    CHECK(width == W && bytes >= 4 * PIXELS && type == CL_MEM_OBJECT_IMAGE2D);
    commands(image, second);
    kernels(image);
    CHECK(!clCreateImage(context, CL_MEM_READ_WRITE, NULL, &desc, NULL, &code));
    CODE(code, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    CHECK(!clCreateImage(context, CL_MEM_READ_WRITE, &bad, &desc, NULL, &code));
    CHECK(code != CL_SUCCESS);
    CHECK(!clCreateImage(context, CL_MEM_READ_WRITE, &format, NULL, NULL, &code));
    CODE(code, CL_INVALID_IMAGE_DESCRIPTOR);
    CODE(clEnqueueReadBuffer(turn(0), image, CL_TRUE, 0, 4, pixels, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT);
    OK(clReleaseMemObject(image));
    OK(clReleaseMemObject(second));
    return end();
}
