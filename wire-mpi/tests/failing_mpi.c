/* A fake of the fault tolerance of an MPI library, to be preloaded before one that has none.
 *
 * It notices that the process of the last rank has ended, as each process leaves its number in
 * the folder $FAILING_MPI. As in ULFM, probes for messages of any rank then fail until the
 * failure is acknowledged. */

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int acknowledged;

static FILE *number_of(int rank, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", getenv("FAILING_MPI"), rank);
    return fopen(path, mode);
}

__attribute__((constructor)) static void leave_number(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    FILE *file = rank ? number_of(atoi(rank), "wx") : NULL;
    if (file) {
        fprintf(file, "%d", (int)getpid());
        fclose(file);
    }
}

static int last_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size - 1;
}

static int has_failed(MPI_Comm comm) {
    int process = 0;
    FILE *file = number_of(last_of(comm), "r");
    if (file) {
        if (fscanf(file, "%d", &process) != 1)
            process = 0;
        fclose(file);
    }
    return process > 0 && kill(process, 0) != 0;
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status) {
    if (source == MPI_ANY_SOURCE && !acknowledged && has_failed(comm))
        return MPI_ERR_OTHER;
    return PMPI_Improbe(source, tag, comm, flag, message, status);
}

int MPIX_Comm_failure_ack(MPI_Comm comm) {
    acknowledged = has_failed(comm);
    return MPI_SUCCESS;
}

int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failed) {
    int last = last_of(comm);
    MPI_Group all;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, acknowledged, &last, failed);
    return MPI_Group_free(&all);
}
