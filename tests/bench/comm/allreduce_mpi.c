/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce_mpi.c: seconds of an in-place MPI_Allreduce of f32 by Open MPI with its defaults; for
 * tests/bench/comm/compare. allreduce_mpi BYTES ROUNDS, under mpirun. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[])
{
	size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) / sizeof(float) : 1;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1, rank;
	float *x = calloc(n, sizeof(*x));
	double start, own, slowest;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < rounds; i++)
		MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	own = (MPI_Wtime() - start) / rounds;
	MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.9f\n", slowest);
	MPI_Finalize();
	free(x);
	return 0;
}
