/* The driver, its devices, and their memory. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
Context contexts[DEVICES] = {{.number = 0}, {.number = 1}};

static __thread Context *current;

Context *current_context(void) { return current; }

/* A call that is to fail. */
static struct {
    char call[64];
    int code, count;
} wanted;

/* The next `count` calls of this name return this code. */
void fake_fail(const char *call, int code, int count) {
    pthread_mutex_lock(&lock);
    snprintf(wanted.call, sizeof wanted.call, "%s", call);
    wanted.code = code;
    wanted.count = count;
    pthread_mutex_unlock(&lock);
}

/* Calls since a test began, by name. */
static struct {
    char call[64];
    int count;
} calls[64];

static int *count_of(const char *call) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!calls[i].call[0])
            snprintf(calls[i].call, sizeof calls[i].call, "%s", call);
        if (strcmp(calls[i].call, call) == 0)
            return &calls[i].count;
    }
    abort();
}

void fake_begin(void) {
    pthread_mutex_lock(&lock);
    memset(calls, 0, sizeof calls);
    pthread_mutex_unlock(&lock);
}

int fake_calls(const char *call) {
    pthread_mutex_lock(&lock);
    int count = *count_of(call);
    pthread_mutex_unlock(&lock);
    return count;
}

int fault(const char *call, Context *context) {
    ++*count_of(call);
    int code = context ? context->lost : SUCCESS;
    if (wanted.count > 0 && strcmp(call, wanted.call) == 0) {
        wanted.count--;
        code = wanted.code;
    }
    return code;
}

/* From now on this device has this error, as after an illegal access. */
void fake_lose(int number, int code) {
    pthread_mutex_lock(&lock);
    contexts[number].lost = code;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int handles;
static unsigned delay;

int fake_handles(void) { return handles; }

void count_handles(int change) { __atomic_add_fetch(&handles, change, __ATOMIC_SEQ_CST); }

/* From now on each computation of a library takes so many microseconds more. */
void fake_delay(int microseconds) { delay = (unsigned)microseconds; }

static unsigned hesitation;

/* From now on each call of BLAS keeps the host for so many microseconds. */
void fake_hesitate(int microseconds) { hesitation = (unsigned)microseconds; }

void hesitate(void) {
    if (hesitation)
        usleep(hesitation);
}

void take_time(void) {
    pthread_mutex_unlock(&lock);
    if (delay)
        usleep(delay);
    pthread_mutex_lock(&lock);
}

static int setting(const char *name, int usual) {
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

int cuDriverGetVersion(int *version) {
    *version = setting("FAKE_CUDA_VERSION", 13000);
    return SUCCESS;
}

int cuInit(unsigned flags) {
    (void)flags;
    return setting("FAKE_CUDA_DEVICES", DEVICES) > 0 ? SUCCESS : NO_DEVICE;
}

int cuDeviceGetCount(int *count) {
    *count = setting("FAKE_CUDA_DEVICES", DEVICES);
    return SUCCESS;
}

int cuDeviceGet(int *device, int number) {
    *device = number;
    return number >= 0 && number < DEVICES ? SUCCESS : INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, (size_t)length, "A fake GPU");
    (void)device;
    return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = MEMORY;
    (void)device;
    return SUCCESS;
}

int cuDeviceGetUuid_v2(char *uuid, int device) {
    memset(uuid, 7 + device, 16);
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 2: /* work-items of a group, along x, y and z */
    case 3:
        *value = 1024;
        return SUCCESS;
    case 4:
        *value = 64;
        return SUCCESS;
    case 5: /* groups along x, y and z */
        *value = 0x7fffffff;
        return SUCCESS;
    case 6:
    case 7:
        *value = 5;
        return SUCCESS;
    case 13: /* kHz */
        *value = 1000000;
        return SUCCESS;
    case 16: /* multiprocessors */
        *value = 8;
        return SUCCESS;
    case 33: /* PCI bus and device */
        *value = 3 + device;
        return SUCCESS;
    case 34:
        *value = 0;
        return SUCCESS;
    case 75: /* compute capability */
        *value = 9;
        return SUCCESS;
    case 76:
        *value = 0;
        return SUCCESS;
    case 89: /* managed memory that the host reaches at any time */
        *value = 1;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

int cuGetErrorName(int code, const char **text) {
    *text = code == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == INVALID_PTX     ? "CUDA_ERROR_INVALID_PTX"
                                    : NULL;
    return *text ? SUCCESS : INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text) {
    *text = "reported by a fake driver";
    (void)code;
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(Context **context, int device) {
    pthread_mutex_lock(&lock);
    int code = fault("cuDevicePrimaryCtxRetain", NULL);
    if (code == SUCCESS && contexts[device].held++ == 0)
        contexts[device].lost = SUCCESS;
    *context = &contexts[device];
    pthread_mutex_unlock(&lock);
    return code;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    pthread_mutex_lock(&lock);
    if (--contexts[device].held == 0)
        contexts[device].generation++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuCtxSetCurrent(Context *context) {
    if (context && context->held <= 0)
        return INVALID_CONTEXT;
    current = context;
    return SUCCESS;
}

int cuCtxSynchronize(void) {
    pthread_mutex_lock(&lock);
    while (current->busy > 0)
        pthread_cond_wait(&changed, &lock);
    int code = fault("cuCtxSynchronize", current);
    pthread_mutex_unlock(&lock);
    return code;
}

int cuCtxGetCurrent(Context **context) {
    *context = current;
    return SUCCESS;
}

int cuDeviceCanAccessPeer(int *can, int device, int other) {
    *can = device != other && setting("FAKE_CUDA_PEERS", 1);
    return SUCCESS;
}

int cuCtxEnablePeerAccess(Context *other, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    int known = current->reaches[other->number];
    current->reaches[other->number] = 1;
    pthread_mutex_unlock(&lock);
    return known ? PEER_ACCESS_ALREADY_ENABLED : SUCCESS;
}

/* Memory of a device, which all devices reach if it is managed. */
typedef struct Block {
    Context *context;
    uint64_t address;
    size_t bytes;
    enum { OWN, MANAGED, OF_USER } kind;
    struct Block *next;
} Block;

static Block *blocks;

int is_reached(Context *context, uint64_t address, size_t bytes) {
    for (Block *block = blocks; block; block = block->next) {
        int reached = block->context == context || block->kind == MANAGED
                      || context->reaches[block->context->number];
        if (reached && address >= block->address
            && address + bytes <= block->address + block->bytes)
            return 1;
    }
    return 0;
}

static Block *block_of(uint64_t address) {
    for (Block *block = blocks; block; block = block->next)
        if (address >= block->address && address < block->address + block->bytes)
            return block;
    return NULL;
}

int is_device(uint64_t address) {
    pthread_mutex_lock(&lock);
    int found = block_of(address) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
    enum { ORDINAL = 9, BEGIN = 11, SIZE = 12 };
    pthread_mutex_lock(&lock);
    Block *block = block_of(address);
    if (block && attribute == ORDINAL)
        *(int *)value = block->context->number;
    if (block && attribute == BEGIN)
        *(uint64_t *)value = block->address;
    if (block && attribute == SIZE)
        *(size_t *)value = block->bytes;
    pthread_mutex_unlock(&lock);
    return block ? SUCCESS : INVALID_VALUE;
}

static int allocate(const char *call, uint64_t *address, size_t bytes, int kind) {
    pthread_mutex_lock(&lock);
    int code = fault(call, current);
    if (code == SUCCESS && bytes > MEMORY - current->allocated)
        code = OUT_OF_MEMORY;
    if (code == SUCCESS) {
        Block *block = malloc(sizeof *block);
        void *memory = malloc(bytes);
        memset(memory, 0xff, bytes);
        *block = (Block){current, (uintptr_t)memory, bytes, kind, blocks};
        blocks = block;
        current->allocated += bytes;
        *address = block->address;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    return allocate("cuMemAlloc", address, bytes, OWN);
}

/* Memory of somebody else in this process until the test ends; 0 if there is no room. */
uint64_t fake_array(int number, size_t bytes) {
    Context *before = current;
    uint64_t address = 0;
    current = &contexts[number];
    int code = allocate("of a user", &address, bytes, OF_USER);
    current = before;
    return code == SUCCESS ? address : 0;
}

int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned flags) {
    return flags == 1 ? allocate("cuMemAllocManaged", address, bytes, MANAGED) : INVALID_VALUE;
}

/* Of memory that is all managed. */
static int advised(const char *call, uint64_t address, size_t bytes) {
    pthread_mutex_lock(&lock);
    Block *block = block_of(address);
    int code = fault(call, current);
    if (!block || block->kind != MANAGED || address + bytes > block->address + block->bytes)
        code = INVALID_VALUE;
    pthread_mutex_unlock(&lock);
    return code;
}

int cuMemAdvise(uint64_t address, size_t bytes, int advice, int device) {
    (void)advice, (void)device;
    return advised("cuMemAdvise", address, bytes);
}

int cuMemPrefetchAsync(uint64_t address, size_t bytes, int device, Stream *stream) {
    (void)device, (void)stream;
    return advised("cuMemPrefetchAsync", address, bytes);
}

/* Does not wait for commands, as a driver would: who releases memory too early is found out. */
int cuMemFree_v2(uint64_t address) {
    pthread_mutex_lock(&lock);
    int code = INVALID_VALUE;
    for (Block **link = &blocks; *link; link = &(*link)->next)
        if ((*link)->address == address) {
            Block *block = *link;
            *link = block->next;
            block->context->allocated -= block->bytes;
            memset((void *)(uintptr_t)address, 0xdd, block->bytes);
            free((void *)(uintptr_t)address);
            free(block);
            code = SUCCESS;
            break;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Frees what is somebody else's. */
void fake_end(void) {
    for (Block *block = blocks, *next; block; block = next) {
        next = block->next;
        if (block->kind == OF_USER)
            cuMemFree_v2(block->address);
    }
}

/* Bytes of device memory that were not freed. */
size_t fake_allocated(int number) {
    pthread_mutex_lock(&lock);
    size_t bytes = contexts[number].allocated;
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* Host memory that is pinned, by its first byte. */
static void *pinned[256];

static int find_pinned(const void *memory) {
    for (int i = 0; i < 256; i++)
        if (pinned[i] == memory)
            return i;
    return -1;
}

int fake_pinned(void) {
    int count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 256; i++)
        count += pinned[i] != NULL;
    pthread_mutex_unlock(&lock);
    return count;
}

static int pin(const char *call, void *memory) {
    pthread_mutex_lock(&lock);
    int code = fault(call, current), free_slot = find_pinned(NULL);
    if (code == SUCCESS && (free_slot < 0 || find_pinned(memory) >= 0))
        code = HOST_MEMORY_ALREADY_REGISTERED;
    if (code == SUCCESS)
        pinned[free_slot] = memory;
    pthread_mutex_unlock(&lock);
    return code;
}

static int unpin(void *memory) {
    pthread_mutex_lock(&lock);
    int slot = find_pinned(memory);
    if (slot >= 0)
        pinned[slot] = NULL;
    pthread_mutex_unlock(&lock);
    return slot >= 0 ? SUCCESS : HOST_MEMORY_NOT_REGISTERED;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    if (posix_memalign(memory, 4096, bytes))
        return OUT_OF_MEMORY;
    int code = pin("cuMemHostAlloc", *memory);
    if (code != SUCCESS)
        free(*memory);
    return code;
}

int cuMemFreeHost(void *memory) {
    int code = unpin(memory);
    if (code == SUCCESS)
        free(memory);
    return code;
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
    (void)bytes, (void)flags;
    return pin("cuMemHostRegister", memory);
}

int cuMemHostUnregister(void *memory) { return unpin(memory); }
