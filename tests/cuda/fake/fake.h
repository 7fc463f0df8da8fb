/* A driver library of CUDA whose devices are threads and whose memory is the host's. It has
 * the calls that pdawl makes. Each stream is a thread that carries out its commands in order,
 * a little later, so that what is not ordered by a stream or an event comes in any order. */
#ifndef FAKE_H
#define FAKE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
};

enum { DEVICES = 2, PARAMETERS = 16 };

/* Bytes of a device's memory. */
#define MEMORY ((size_t)256 << 20)

typedef struct Context Context;
typedef struct Stream Stream;
typedef struct Event Event;

struct Context {
    int number;
    /* References to the primary context. */
    int held;
    /* How often it was given up. What is left of a former one's commands does nothing. */
    uint64_t generation;
    /* The error that stays, if there was one. */
    int lost;
    int reaches[DEVICES];
    /* Commands that are enqueued or run. */
    int busy;
    size_t allocated;
};

struct Event {
    Context *context;
    int timed;
    int destroyed;
    /* How often it was recorded, and how many of these records have been reached. */
    uint64_t recorded, reached;
    uint64_t nanoseconds;
};

/* A kernel as C: its arguments, and the sizes of its launch. */
typedef struct {
    Context *context;
    uint64_t generation;
    void *arguments[PARAMETERS];
    unsigned groups[3], items[3], local;
} Launch;

typedef void (*Kernel)(Launch *);

/* One lock for everything: nothing here is about speed. */
extern pthread_mutex_t lock;
/* Something has been reached or enqueued. */
extern pthread_cond_t changed;
extern Context contexts[DEVICES];

/* Whether an address is in memory of a device. */
int is_device(uint64_t address);

/* Whether all bytes belong to memory of a device that this one reaches. */
int is_reached(Context *context, uint64_t address, size_t bytes);

/* The error that a call is to return because a test wants it, or the one that stays. */
int fault(const char *call, Context *context);

/* The kernel of a name. */
Kernel kernel_named(const char *name);

/* The device that the calls of this thread are for. */
Context *current_context(void);

/* A function of a module. */
typedef struct Function Function;

/* Whether a device refuses these sizes of a launch. */
int has_wrong_sizes(const unsigned groups[3], const unsigned items[3]);

/* Copies the arguments of a launch, and releases the copies. */
Kernel bind_arguments(Function *function, void **arguments, Launch *launch);
void release_arguments(Launch *launch);

/* A graph that is being made. */
typedef struct Graph Graph;

/* A graph without nodes, and a computation added behind its last one, while the lock is held. */
Graph *new_graph(Context *context);
int capture(Graph *graph, Kernel kernel, const Launch *launch);

/* A graph that can be launched. */
typedef struct Executable Executable;

/* The number of the next launch of a graph. */
uint64_t next_launch(Executable *graph);

/* Carries out a launch of a graph while the lock is held: after all launches of it with
 * smaller numbers, and if it does not work, without effect. */
void carry_out_graph(Executable *graph, uint64_t number, int works, uint64_t generation);

/* Memory of a launch's device; null once the launch does nothing any more. What lies outside of
 * the device's memory ends its context. */
void *device_memory(Launch *launch, uint64_t address, size_t bytes);

/* Enqueues a computation with a copy of its arguments, which are the launch's first argument. */
void enqueue_computation(Stream *stream, Kernel kernel, const void *arguments, size_t bytes);

/* Counts the handles of libraries that were not destroyed. */
void count_handles(int change);

/* Keeps the host, if a test wants calls of BLAS to take long. The lock is not held. */
void hesitate(void);

/* Lets time pass while others go on, if a test wants computations of libraries to take long. */
void take_time(void);

#endif
