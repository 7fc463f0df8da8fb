/* The interface between pdawl and a library that carries its messages: a wire.
 *
 * A library exports one function, pdawl_wire_open. pdawl calls it once, on every rank at
 * the same time, and then the functions of the table that it has filled. Calls come from
 * one thread at a time, which need not be the thread of the calls before. No function
 * waits, except open and close. pdawl never unloads the library.
 *
 * Memory: every buffer is pdawl's. The library asks for one for what it receives
 * (allocate) and hands it over with the arrival. pdawl hands over a buffer with a message
 * to send; the library gives it back (release) when it needs it no more, once, even if
 * the message was never sent. allocate, release and explain may be called only within a
 * call from pdawl.
 *
 * Errors: a function that fails returns PDAWL_WIRE_FAILED and may say why before
 * (explain). A failure ends the run. A rank that cannot be reached is no failure but an
 * arrival, PDAWL_WIRE_LOST. */
#ifndef PDAWL_WIRE_H
#define PDAWL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes whenever a structure does. */
#define PDAWL_WIRE_VERSION 2u

/* What functions return. */
#define PDAWL_WIRE_OK 0
#define PDAWL_WIRE_FAILED 1
/* From pdawl_wire_open: the library has another version. It has touched nothing. */
#define PDAWL_WIRE_OTHER_VERSION 2

/* Channels. Order is kept within each, from each rank to each other one. */
#define PDAWL_WIRE_DATA 0u
#define PDAWL_WIRE_CONTROL 1u

/* Kinds of arrivals. */
#define PDAWL_WIRE_NOTHING 0u
#define PDAWL_WIRE_MESSAGE 1u
/* The rank cannot be reached; explain says why. */
#define PDAWL_WIRE_LOST 2u

typedef struct pdawl_wire_buffer {
    uint8_t *bytes;
    size_t size;
    /* What release takes. */
    void *owner;
} pdawl_wire_buffer;

/* pdawl's functions for the library, valid until close has returned. */
typedef struct pdawl_wire_host {
    void *context;
    /* A buffer of at least this size, with any contents. */
    int (*allocate)(void *context, size_t size, pdawl_wire_buffer *buffer);
    void (*release)(void *context, void *owner);
    /* The reason of what is returned next. The text is copied. */
    void (*explain)(void *context, const char *text);
} pdawl_wire_host;

typedef struct pdawl_wire_arrival {
    uint32_t kind;
    uint32_t rank;
    uint32_t channel;
    /* Of a message. Its size may be less than was allocated. */
    pdawl_wire_buffer buffer;
} pdawl_wire_arrival;

/* The library's functions. The first argument is always `wire`. */
typedef struct pdawl_wire_table {
    void *wire;
    uint32_t rank;
    uint32_t ranks;
    /* The machine's name, valid until close. */
    const char *host_name;
    /* Sends to another rank and returns at once. The buffer is the library's. */
    int (*send)(void *wire, uint32_t to, uint32_t channel, const pdawl_wire_buffer *buffer);
    /* Makes progress, and delivers the next arrival if there is one. */
    int (*poll)(void *wire, pdawl_wire_arrival *arrival);
    /* Messages that have not left, without those to lost ranks. */
    uint64_t (*unsent)(void *wire);
    /* Messages of which a part has arrived, without those of lost ranks. pdawl calls poll
     * without a pause while there are any, or any that have not left. */
    uint64_t (*receiving)(void *wire);
    /* pdawl takes this rank for lost. */
    void (*lose)(void *wire, uint32_t rank);
    /* Ends. `complete` is not 0 if no rank is lost and all ranks do the same. No other
     * call follows. */
    int (*close)(void *wire, int complete);
} pdawl_wire_table;

/* Joins the run and fills all fields of the table. */
int pdawl_wire_open(uint32_t version, const pdawl_wire_host *host, pdawl_wire_table *table);

#ifdef __cplusplus
}
#endif

#endif
