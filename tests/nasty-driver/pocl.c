/* PoCL, opened without a loader: it compiles and runs all kernels. */
#include "nasty.h"
#include <dlfcn.h>

const struct _cl_icd_dispatch *pocl;
cl_context pocl_context;
cl_device_id pocl_device;
cl_command_queue pocl_queue;
pthread_mutex_t pocl_lock = PTHREAD_MUTEX_INITIALIZER;

void open_pocl(void) {
    void *library = dlopen("libpocl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libpocl.so", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        complain("it needs PoCL: %s", dlerror());
    void *(*extension)(const char *);
    cl_int (*list)(cl_uint, cl_platform_id *, cl_uint *);
    *(void **)&extension = dlsym(library, "clGetExtensionFunctionAddress");
    *(void **)&list = extension ? extension("clIcdGetPlatformIDsKHR") : NULL;
    cl_platform_id inner;
    cl_uint count = 0;
    cl_int code;
    if (!list || list(1, &inner, &count) || count == 0)
        complain("PoCL lists no platform");
    pocl = *(const struct _cl_icd_dispatch **)inner;
    if (pocl->clGetDeviceIDs(inner, CL_DEVICE_TYPE_ALL, 1, &pocl_device, NULL))
        complain("PoCL lists no device");
    pocl_context = pocl->clCreateContext(NULL, 1, &pocl_device, NULL, NULL, &code);
    if (!code)
        pocl_queue = pocl->clCreateCommandQueue(pocl_context, pocl_device, 0, &code);
    if (code)
        complain("PoCL makes no context or queue: %d", code);
}
