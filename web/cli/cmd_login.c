/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_login.c: `dptrack login URL`: gets a token by a person's confirmation in a browser. The token is drawn here and
 * never shown; the address that the person opens has its hash, which the server stores once the person has confirmed.
 */
#include "web/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "tracker/sink/http_client.h"
#include "web/store/auth/token.h"

#define ASK_S 1.0
#define WAIT_S 600.0

struct login_options {
	const char *name;
	bool print, help;
};

/* What the server says of the token: 1 it is valid, 0 not yet, or negative. */
static int ask_for_token(struct http *http, struct err *err)
{
	struct http_reply reply = { 0 };
	bool open;
	char why[200];
	int rc = http_send(http, &(struct http_request){ .method = "GET", .path = "/api/v1/session" }, &reply, err);

	if (rc)
		return rc;
	open = reply.status == 200 && !strstr(reply.body.data ? reply.body.data : "", "\"scope\"");
	http_reply_reason(&reply, why, sizeof(why));
	http_reply_done(&reply);
	if (open)
		return err_set(err, ERR_USAGE, "%s needs no token: use it without one", http_url(http));
	if (reply.status == 200)
		return 1;
	return reply.status == 401 || reply.status == 429 || reply.status >= 500
		       ? 0
		       : err_set(err, ERR_PEER, "%s: %s", http_url(http), why);
}

/* Prints the address on which a person confirms. */
static int print_address(const char *url, const char *hash, const struct login_options *o, struct err *err)
{
	char host[65] = "";
	struct buf address;
	bool failed;
	size_t n = strlen(url);

	gethostname(host, sizeof(host) - 1);
	while (n && url[n - 1] == '/')
		n--;
	buf_init(&address, 8192);
	buf_addf(&address, "%.*s/device", (int)n, url);
	source_arg(&address, "token", hash);
	source_arg(&address, "name", o->name ? o->name : *host ? host : "program");
	failed = buf_failed(&address);
	if (!failed) {
		log_info("open this address in a browser, check that it shows the code %.4s-%.4s, and allow it:", hash,
			 hash + 4);
		fprintf(o->print ? stderr : stdout, "%s\n", address.data);
		fflush(stdout);
	}
	buf_done(&address);
	return failed ? err_set(err, ERR_USAGE, "login: the address is too long") : 0;
}

/* Waits for the confirmation. A server that is away for a moment is asked again. */
static int wait_for_confirmation(struct http *http, struct err *err)
{
	const double until_s = clock_mono_s() + WAIT_S;
	int rc = 0;

	while (!rc && clock_mono_s() < until_s) {
		clock_sleep_s(ASK_S);
		rc = ask_for_token(http, err);
		rc = rc == ERR_PEER ? 0 : rc;
	}
	return rc ? rc
		  : err_set(err, ERR_CANCELED, "login: it was not allowed within ten minutes: run the command again");
}

/* Stores the token in the file of this user, in place of an earlier one for the same server. */
static int keep_token(const char *url, const char *token, struct err *err)
{
	struct buf old, kept;
	char path[4096];
	size_t n = strlen(url);
	mode_t mask;
	int rc = 0;

	if (!http_token_file(path, sizeof(path)))
		return err_set(err, ERR_USAGE,
			       "login: HOME is not set, so there is no place for the token: use --print");
	while (n && url[n - 1] == '/')
		n--;
	buf_init(&old, 1 << 20);
	buf_init(&kept, 1 << 20);
	if (!access(path, F_OK))
		rc = file_load(&old, path, err);
	for (const char *at = old.data ? old.data : ""; *at;) {
		const size_t line = strcspn(at, "\n"), space = strcspn(at, " \n");

		if (line != space + 1 + n || strncmp(at + space + 1, url, n))
			buf_addf(&kept, "%.*s\n", (int)line, at);
		at += line + (at[line] == '\n');
	}
	buf_addf(&kept, "%s %.*s\n", token, (int)n, url);
	mask = umask(077); /* other users must not read it */
	if (!rc)
		rc = buf_failed(&kept) ? err_set(err, ERR_LIMIT, "%s: has more than 1 MiB", path)
				       : file_replace(path, kept.data, kept.len, err);
	umask(mask);
	buf_done(&old);
	buf_done(&kept);
	return rc;
}

/* Draws a token, waits until a person has allowed it, and stores or prints it. */
static int get_token(const char *url, const struct login_options *o, struct err *err)
{
	char text[TOKEN_TEXT_MAX], hash[TOKEN_HASH_MAX];
	struct http *http = NULL;
	int rc = token_draw(text, hash, err);

	if (!rc)
		rc = http_open(&http, url, text, err);
	if (!rc)
		rc = ask_for_token(http, err);
	if (!rc)
		rc = print_address(url, hash, o, err);
	if (!rc)
		rc = wait_for_confirmation(http, err);
	http_close(http);
	if (rc < 0)
		return rc;
	if (o->print) {
		printf("%s\n", text);
		fflush(stdout);
		return 0;
	}
	if (getenv("DPTRACK_TOKEN"))
		log_warn("DPTRACK_TOKEN is set: programs use it instead of the token of this sign-in");
	rc = keep_token(url, text, err);
	if (!rc)
		log_info("signed in: dptrack and Python use this token for %s for 90 days; other programs take "
			 "DPTRACK_TOKEN=$(dptrack login --print %s)",
			 url, url);
	return rc;
}

static int run_login_command(int argc, char **argv, struct err *err)
{
	struct login_options o = { 0 };
	const struct flag table[] = {
		{ "name", FLAG_TEXT, "NAME", "name of this program in the list of tokens (default: the machine's)",
		  &o.name, 0, 0 },
		{ "print", FLAG_SWITCH, "", "print the token instead of storing it", &o.print, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &o.help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_login, .table = table, .help = &o.help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "login: the address of the server is missing: dptrack login URL");
	if (!rc)
		rc = get_token(line.words.items[0], &o, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_login = {
	.name = "login",
	.group = "Serve",
	.words = "URL",
	.summary = "get a token for this machine from a server, allowed in a browser",
	.examples = "  dptrack login https://dptrack.example\n"
		    "  export MLFLOW_TRACKING_TOKEN=$(dptrack login --print https://dptrack.example)\n",
	.run = run_login_command
};
