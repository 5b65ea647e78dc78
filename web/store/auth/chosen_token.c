/* SPDX-License-Identifier: Apache-2.0 */
/* chosen_token.c: checks tokens and secrets that people choose, from a variable or the first line of a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/log.h"
#include "web/store/auth/token.h"

#define CHARACTERS_MIN 16

int token_chosen_take(const struct token_chosen *c, const char *text, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f)
			return err_set(err, ERR_USAGE, "%s: character %zu is a blank or not ASCII: expected visible "
				       "ASCII characters, as openssl rand -hex 32 prints", c->from, i + 1);
	if (n < CHARACTERS_MIN || n >= c->room)
		return err_set(err, ERR_USAGE, "%s: has %zu characters: expected %d to %zu, as openssl rand -hex 32 "
			       "prints", c->from, n, CHARACTERS_MIN, c->room - 1);
	memcpy(c->ret, text, n);
	c->ret[n] = '\0';
	return 0;
}

int token_chosen_file(const struct token_chosen *c, const char *path, struct err *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	struct stat st;
	ssize_t n;
	int rc;

	if (!f)
		return err_set_errno(err, errno, "%s %s", c->from, path);
	if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && (st.st_mode & (S_IROTH | S_IWOTH)))
		log_warn("%s %s: all users of this machine can open it: chmod 600 %s", c->from, path, path);
	n = getline(&line, &room, f);
	fclose(f);
	while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
		n--;
	rc = token_chosen_take(c, line, n > 0 ? (size_t)n : 0, err);
	free(line);
	return rc ? err_prefix(err, "%s", path) : 0;
}
