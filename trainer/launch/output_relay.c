/* output_relay.c: reads until the pipe is empty. */
#include "trainer/launch/output_relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

void output_relay_begin(struct output_relay *r, int fd, int rank)
{
	*r = (struct output_relay){ .fd = fd, .rank = rank };
}

static void print_relayed_line(struct output_relay *r)
{
	r->line[r->line_len] = '\0';
	if (r->rank >= 0)
		fprintf(stderr, "[rank %d] %s\n", r->rank, r->line);
	else
		fprintf(stderr, "%s\n", r->line);
	if (r->n_tail == OUTPUT_RELAY_LINES) {
		memmove(r->tail[0], r->tail[1], sizeof(r->tail[0]) * (OUTPUT_RELAY_LINES - 1));
		r->n_tail--;
	}
	memcpy(r->tail[r->n_tail++], r->line, r->line_len + 1);
	r->line_len = 0;
}

static void split_relayed_lines(struct output_relay *r, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] != '\n' && r->line_len < OUTPUT_RELAY_LINE_BYTES - 1)
			r->line[r->line_len++] = bytes[i];
		if (bytes[i] == '\n' || r->line_len == OUTPUT_RELAY_LINE_BYTES - 1)
			print_relayed_line(r);
	}
}

void output_relay_read(struct output_relay *r)
{
	char bytes[4096];
	ssize_t n;

	if (r->fd < 0)
		return;
	while ((n = read(r->fd, bytes, sizeof(bytes))) > 0)
		split_relayed_lines(r, bytes, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r->line_len)
		print_relayed_line(r);
	close(r->fd);
	r->fd = -1;
}

void output_relay_print_tail(const struct output_relay *r)
{
	for (int i = 0; i < r->n_tail; i++)
		fprintf(stderr, "    %s\n", r->tail[i]);
}
