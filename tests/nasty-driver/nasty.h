/* An OpenCL driver that is as unhelpful as real ones may be, for tests.
 *
 * It shows several devices, each with its own memory, and lets PoCL compile and run their
 * kernels. What OpenCL leaves open, it does in the way that programs expect least:
 *
 * - memory of devices begins with poison, and bytes come to a device only when a command
 *   there begins (memory.c);
 * - a queue begins no command before it is flushed, commands are late, and those that may
 *   run in any order do (command.c);
 * - the end of a command is reported late, and callbacks run on a thread of their own (event.c);
 * - a write of at most 64 KiB from pageable memory reads that memory when it is enqueued,
 *   whatever it waits for, as NVIDIA's driver does (transfer.c);
 * - a use of what is not there ends the program with a message (object.c).
 *
 * NASTY_DEVICES, NASTY_TYPE (gpu, cpu), NASTY_UNLIKE (each device is a model of its own),
 * NASTY_SEED and NASTY_GROUP, the most work-items of a group of any kernel, are its variables. A device that is
 * a CPU computes in the memory of CL_MEM_USE_HOST_PTR and CL_MEM_ALLOC_HOST_PTR, as all
 * drivers for CPUs do. */
#ifndef NASTY_H
#define NASTY_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <pthread.h>
#include <stdbool.h>

enum { MOST = 8, POISON = 0xa5, READ_AT_ONCE = 64 << 10 };

typedef enum { PLATFORM = 0x6e617374, DEVICE, CONTEXT, QUEUE, MEM, PROGRAM, KERNEL, EVENT, DEAD } Kind;

/* What every handle points to. */
typedef struct {
    const struct _cl_icd_dispatch *table; /* read by loaders */
    Kind kind;
    int users; /* the program's references */
    int uses;  /* those of other objects */
} Object;

struct _cl_platform_id {
    Object object;
};

struct _cl_device_id {
    Object object;
    cl_device_id parent;
    int memory; /* its number; parts of a device share their parent's */
    cl_uint units;
    cl_device_partition_property way[3]; /* how its parent was divided */
};

struct _cl_context {
    Object object;
    cl_uint count;
    cl_device_id devices[MOST];
    cl_uint properties;
    cl_context_properties property[16];
};

struct _cl_command_queue {
    Object object;
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
    cl_event first, end; /* commands that are not reported to be complete, in order */
    cl_event last;       /* the last one; NULL if it has ended */
    cl_event barrier;    /* the last barrier of a queue without order */
    cl_ulong numbers;    /* commands that it got */
    cl_command_queue next; /* in the list of all queues */
};

/* A mapped range. */
typedef struct Mapped {
    struct Mapped *next;
    size_t at, size; /* in the root */
    void *address;
    cl_map_flags flags;
} Mapped;

typedef struct Ending {
    struct Ending *next;
    void(CL_CALLBACK *function)(cl_mem, void *);
    void *data;
} Ending;

/* A buffer, or a part of one, its root. Only roots have bytes. */
struct _cl_mem {
    Object object;
    cl_context context;
    cl_mem root;
    cl_mem_flags flags;
    size_t origin, size;
    void *program; /* memory of CL_MEM_USE_HOST_PTR */
    Ending *endings;
    unsigned char *bytes[MOST]; /* by device, once it is used there */
    unsigned char *valid;       /* for each byte, a bit for each device that has it */
    unsigned char *area;        /* what maps show */
    Mapped *maps;
    bool shared; /* all devices compute in the area */
    cl_mem next; /* in the list of all pinned areas */
};

struct _cl_program {
    Object object;
    cl_context context;
    cl_program pocl;
};

typedef struct {
    bool is_set, is_mem;
    size_t size;
    void *value; /* NULL for local memory */
    cl_mem mem;
} Argument;

struct _cl_kernel {
    Object object;
    cl_program program;
    cl_kernel pocl;    /* used by launches, one at a time */
    cl_kernel checker; /* used to check arguments */
    cl_uint count;
    Argument *arguments;
};

/* One side of a transfer: a buffer or memory of the program, and where its box begins. */
typedef struct {
    cl_mem mem;
    unsigned char *host;
    size_t at, row, slice;
} Side;

/* What a command does. */
typedef struct {
    Side from, to;
    size_t region[3];
    void *copy; /* what it was given when it was enqueued */
    size_t pattern;
    Mapped *map;
    cl_kernel kernel;
    Argument *arguments;
    cl_uint dimensions;
    size_t offset[3], global[3], local[3];
    bool has_local;
} Work;

typedef struct Callback {
    struct Callback *next;
    cl_int when;
    void(CL_CALLBACK *function)(cl_event, cl_int, void *);
    void *data;
} Callback;

/* A command with its event, or a user event. */
struct _cl_event {
    Object object;
    cl_context context;
    cl_command_queue queue; /* NULL for a user event */
    cl_command_type type;
    cl_ulong number;
    cl_uint waits; /* events that it waits for */
    cl_event *wait;
    cl_uint listed; /* as many of these, the first, are of its wait list */
    bool flushed, started, ended, complete;
    cl_int status;
    cl_ulong times[4];
    Callback *callbacks;
    cl_event next; /* in its queue */
    Work work;
};

/* object.c */
extern const struct _cl_icd_dispatch nasty_table;
extern pthread_mutex_t lock; /* all objects' */
extern pthread_cond_t changed;
_Noreturn void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *new_object(size_t size, Kind kind);
void *known(const void *handle, Kind kind, const char *function);
void use(void *object);
void drop(void *object);
void bury(void *object);
unsigned chance(unsigned below);
cl_ulong now(void);
cl_int answer(const void *data, size_t length, size_t size, void *value, size_t *needed);
int take_lock(const char *function);
void give_lock(const int *taken);
void end_driver(void);

/* Holds the lock until the function returns. */
#define LOCKED int taken_ __attribute__((cleanup(give_lock))) = take_lock(__func__); (void)taken_
#define KNOWN(handle, kind) known(handle, kind, __func__)
#define RETURN(object, code_) do { if (code) *code = (code_); return object; } while (0)

/* pocl.c */
extern const struct _cl_icd_dispatch *pocl;
extern cl_context pocl_context;
extern cl_device_id pocl_device;
extern cl_command_queue pocl_queue;
extern pthread_mutex_t pocl_lock; /* one launch or build at a time; never taken after `lock` */
void open_pocl(void);

/* device.c */
extern struct _cl_platform_id platform;
extern cl_device_type type;
void open_platform(void);

/* memory.c */
unsigned char *bytes_at(cl_mem mem, int device);
void bring(cl_mem mem, int device, size_t at, size_t size);
void written(cl_mem mem, int device, size_t at, size_t size);
bool is_pinned(const void *address, size_t size);
void free_mem(cl_mem mem);

/* event.c */
void notify(cl_event event, Callback *callback, cl_mem mem);
void start_notifier(void);
cl_int wait_until_complete(cl_event event);
void free_event(cl_event event);

/* command.c */
cl_int enqueue(cl_command_queue queue, cl_command_type type, Work *work, cl_uint count, const cl_event *list,
               cl_bool blocking, cl_event *event);
void complain_of_wait(cl_event event);
void complain_of_endless_commands(void);

/* transfer.c, kernel.c */
void run_transfer(cl_event event);
void run_map(cl_event event);
void run_fill(cl_event event);
cl_int run_kernel(cl_event event);
void free_work(Work *work);
void free_program(cl_program program);
void free_kernel(cl_kernel kernel);

/* The functions of OpenCL that are there; others are NULL in the table. */
#define FUNCTIONS(F)                                                                               \
    F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo)                  \
    F(clCreateSubDevices) F(clRetainDevice) F(clReleaseDevice) F(clCreateContext)                  \
    F(clCreateContextFromType) F(clRetainContext) F(clReleaseContext) F(clGetContextInfo)          \
    F(clCreateCommandQueue) F(clRetainCommandQueue) F(clReleaseCommandQueue)                       \
    F(clGetCommandQueueInfo) F(clFlush) F(clFinish) F(clCreateBuffer) F(clCreateSubBuffer)         \
    F(clRetainMemObject) F(clReleaseMemObject) F(clGetMemObjectInfo)                               \
    F(clSetMemObjectDestructorCallback) F(clEnqueueReadBuffer) F(clEnqueueWriteBuffer)             \
    F(clEnqueueCopyBuffer) F(clEnqueueReadBufferRect) F(clEnqueueWriteBufferRect)                  \
    F(clEnqueueCopyBufferRect) F(clEnqueueFillBuffer) F(clEnqueueMapBuffer)                        \
    F(clEnqueueUnmapMemObject) F(clEnqueueMigrateMemObjects) F(clEnqueueMarkerWithWaitList)        \
    F(clEnqueueBarrierWithWaitList) F(clEnqueueMarker) F(clEnqueueBarrier)                         \
    F(clEnqueueWaitForEvents) F(clCreateProgramWithSource) F(clCreateProgramWithBinary)            \
    F(clRetainProgram) F(clReleaseProgram) F(clBuildProgram) F(clCompileProgram) F(clLinkProgram)  \
    F(clUnloadPlatformCompiler) F(clGetProgramInfo) F(clGetProgramBuildInfo) F(clCreateKernel)     \
    F(clCreateKernelsInProgram) F(clRetainKernel) F(clReleaseKernel) F(clSetKernelArg)             \
    F(clGetKernelInfo) F(clGetKernelArgInfo) F(clGetKernelWorkGroupInfo) F(clEnqueueNDRangeKernel) \
    F(clEnqueueTask) F(clCreateUserEvent) F(clSetUserEventStatus) F(clWaitForEvents)               \
    F(clGetEventInfo) F(clGetEventProfilingInfo) F(clSetEventCallback) F(clRetainEvent)            \
    F(clReleaseEvent)

#define API(name) nasty_##name
#define DECLARE(name) __typeof__(name) API(name);
FUNCTIONS(DECLARE)

#endif
