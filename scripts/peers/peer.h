/* What the peer programs of scripts/measure-peers.py have in common.
 *
 * A thread named `host:1` gets the share of a node (scripts/emulated-nodes.sh). With the word
 * `all` it is the only thread, which also communicates. With `worker` it is a thread of its own
 * that computes, as pdawl's, and the thread that communicates is not limited. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void (*job)(void *);
static void *job_of;
static int has_worker;

static void be_limited(void) {
    prctl(PR_SET_NAME, "host:1 peer");
    /* Until the script has found the thread, which it looks for each 2 ms. */
    usleep(300000);
}

static void *work(void *unused) {
    (void)unused;
    be_limited();
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (!job)
            pthread_cond_wait(&changed, &mutex);
        job(job_of);
        job = NULL;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* Computes something on the limited thread, and waits for it. */
static void compute(void (*what)(void *), void *of) {
    if (!has_worker) {
        what(of);
        return;
    }
    pthread_mutex_lock(&mutex);
    job = what;
    job_of = of;
    pthread_cond_broadcast(&changed);
    while (job)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* Begins MPI. */
static void start(int *argc, char ***argv, const char *manner) {
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    has_worker = strcmp(manner, "worker") == 0;
}

/* From now on the thread that computes is limited. Returns the moment when all ranks go on. */
static double limit(void) {
    pthread_t thread;
    if (!has_worker)
        be_limited();
    else if (pthread_create(&thread, NULL, work, NULL) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    else
        usleep(400000);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

/* A number from -1 to 1 that depends on a place. */
static float number(uint64_t row, uint64_t column, uint64_t seed) {
    uint64_t x = (row << 32 ^ column) + seed * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (float)((x >> 40) / 8388608.0 - 1.0);
}

/* Rank 0 prints the seconds and the largest error of the samples of all ranks. */
static void finish(double seconds, double error) {
    int rank;
    double worst, longest;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"seconds\": %.6f, \"error\": %.3g}\n", longest, worst);
    MPI_Finalize();
}
