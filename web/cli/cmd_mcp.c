/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c: `dptrack mcp`: the Model Context Protocol over standard input and output: JSON-RPC 2.0, a message a line.
 * The source is opened for each call, so that answers are new and no other program waits for the store between them.
 * https://modelcontextprotocol.io/specification */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "tracker/base/utf8.h"
#include "web/cli/cli.h"
#include "web/cli/mcp_tools.h"

enum { RPC_PARSE = -32700, RPC_REQUEST = -32600, RPC_METHOD = -32601, RPC_PARAMS = -32602 };
enum { ANSWER_MAX = 1 << 22, LINE_MAX_BYTES = 1 << 24, COUNT_MOST = 1000 };

/* Versions of the protocol with the same messages for tools; the first is offered to other clients. */
static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

struct mcp_session {
	struct cli_common common;
	bool write;
};

/* --- messages --------------------------------------------------------------------------------------------------- */

/* Prints a message as one line; takes it over. */
static int print_message(json_t *message, struct err *err)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	int rc = 0;

	json_decref(message);
	if (printf("%s\n", text) < 0 || fflush(stdout))
		rc = err_set(err, ERR_IO, "cannot write to standard output");
	free(text);
	return rc;
}

static int print_result(json_t *id, json_t *result, struct err *err)
{
	return print_message(json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", result), err);
}

static int print_rpc_error(json_t *id, int code, const char *text, struct err *err)
{
	return print_message(json_pack("{s:s,s:O?,s:{s:i,s:s}}", "jsonrpc", "2.0", "id", id ? id : json_null(), "error",
				       "code", code, "message", text),
			     err);
}

/* --- tools/list ------------------------------------------------------------------------------------------------- */

static json_t *describe_argument(const struct mcp_argument *a)
{
	if (a->type == MCP_LIST)
		return json_pack("{s:s,s:{s:s},s:s}", "type", "array", "items", "type", "string", "description",
				 a->help);
	if (a->type == MCP_COUNT)
		return json_pack("{s:s,s:i,s:i,s:s}", "type", "integer", "minimum", 1, "maximum", COUNT_MOST,
				 "description", a->help);
	return json_pack("{s:s,s:s}", "type", "string", "description", a->help);
}

static json_t *describe_tool(const struct mcp_tool *tool)
{
	json_t *properties = json_object(), *required = json_array();
	const struct mcp_argument *a;

	for (a = tool->arguments; a < tool->arguments + MCP_ARGUMENTS_MAX && a->name; a++) {
		json_object_set_new(properties, a->name, describe_argument(a));
		if (a->required)
			json_array_append_new(required, json_string(a->name));
	}
	return json_pack("{s:s,s:s,s:{s:s,s:o,s:o,s:b},s:{s:b,s:b,s:b}}", "name", tool->name, "description",
			 tool->summary, "inputSchema", "type", "object", "properties", properties, "required", required,
			 "additionalProperties", 0, "annotations", "readOnlyHint", !tool->writes, "destructiveHint", 0,
			 "openWorldHint", 0);
}

static json_t *describe_tools(const struct mcp_session *m)
{
	json_t *list = json_array();
	size_t n, i;
	const struct mcp_tool *tools = mcp_tools(&n);

	for (i = 0; i < n; i++)
		if (m->write || !tools[i].writes)
			json_array_append_new(list, describe_tool(&tools[i]));
	return json_pack("{s:o}", "tools", list);
}

/* --- tools/call ------------------------------------------------------------------------------------------------- */

static int check_argument(const struct mcp_argument *a, json_t *v, struct err *err)
{
	json_t *item;
	size_t i;

	if (a->type == MCP_COUNT && json_is_integer(v) && json_integer_value(v) >= 1 &&
	    json_integer_value(v) <= COUNT_MOST)
		return 0;
	if (a->type == MCP_COUNT)
		return err_set(err, ERR_USAGE, "%s: expected a whole number from 1 to %d", a->name, COUNT_MOST);
	if (a->type == MCP_TEXT)
		return json_is_string(v) ? 0 : err_set(err, ERR_USAGE, "%s: expected a string", a->name);
	if (!json_is_array(v))
		return err_set(err, ERR_USAGE, "%s: expected a list of strings", a->name);
	json_array_foreach(v, i, item)
		if (!json_is_string(item))
			return err_set(err, ERR_USAGE, "%s: expected a list of strings", a->name);
	return 0;
}

static const struct mcp_argument *find_declared(const struct mcp_tool *tool, const char *name)
{
	const struct mcp_argument *a;

	for (a = tool->arguments; a < tool->arguments + MCP_ARGUMENTS_MAX && a->name; a++)
		if (!strcmp(a->name, name))
			return a;
	return NULL;
}

static int refuse_argument(const struct mcp_tool *tool, const char *name, struct err *err)
{
	char known[300] = "";
	size_t n = 0;

	for (size_t i = 0; i < MCP_ARGUMENTS_MAX && tool->arguments[i].name && n < sizeof(known); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", tool->arguments[i].name);
	return err_set(err, ERR_USAGE, "%s: unknown argument %.80s: expected %s", tool->name, name, known);
}

/* Removes arguments that are null, and checks the others against the declaration. */
static int check_arguments(const struct mcp_tool *tool, json_t *arguments, struct err *err)
{
	const struct mcp_argument *a;
	const char *name;
	json_t *v;
	void *next;
	int rc;

	json_object_foreach_safe(arguments, next, name, v) {
		a = find_declared(tool, name);
		if (!a)
			return refuse_argument(tool, name, err);
		if (json_is_null(v)) {
			json_object_del(arguments, name);
			continue;
		}
		rc = check_argument(a, v, err);
		if (rc)
			return rc;
	}
	for (a = tool->arguments; a < tool->arguments + MCP_ARGUMENTS_MAX && a->name; a++)
		if (a->required && !json_object_get(arguments, a->name))
			return err_set(err, ERR_USAGE, "%s: the argument %s is missing: %s", tool->name, a->name,
				       a->help);
	return 0;
}

static int run_tool(const struct mcp_session *m, const struct mcp_tool *tool, struct mcp_call *call)
{
	int rc = 0;

	if (tool->writes && !m->write)
		return err_set(call->err, ERR_USAGE, "%s changes runs: start dptrack mcp with --write to allow it",
			       tool->name);
	rc = check_arguments(tool, call->arguments, call->err);
	if (!rc)
		rc = source_open(&call->s, &m->common.source, call->err);
	if (!rc)
		rc = tool->run(call);
	if (!rc && buf_failed(call->out))
		rc = err_set(call->err, ERR_LIMIT, "%s: the result is too long: request less", tool->name);
	source_close(call->s);
	return rc;
}

/* A tool that fails is a result with isError, whose text the model reads. */
static int call_tool(const struct mcp_session *m, json_t *id, json_t *params, struct err *err)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	json_t *arguments = json_object_get(params, "arguments");
	const struct mcp_tool *tools, *tool = NULL;
	struct err why = ERR_INIT;
	char text[sizeof(why.text)];
	struct buf out;
	size_t n, i;
	int rc;

	tools = mcp_tools(&n);
	for (i = 0; name && i < n && !tool; i++)
		tool = strcmp(tools[i].name, name) ? NULL : &tools[i];
	if (!tool)
		return print_rpc_error(id, RPC_PARAMS, "unknown tool: see tools/list", err);
	if (arguments && !json_is_object(arguments) && !json_is_null(arguments))
		return print_rpc_error(id, RPC_PARAMS, "arguments: expected an object", err);
	arguments = json_is_object(arguments) ? json_incref(arguments) : json_object();
	buf_init(&out, ANSWER_MAX);
	rc = run_tool(m, tool, &(struct mcp_call){ .arguments = arguments, .out = &out, .err = &why });
	/* The reason may end within a character. */
	utf8_copy(text, sizeof(text), why.text, strlen(why.text), NULL);
	rc = print_result(id,
			  json_pack("{s:[{s:s,s:s}],s:b}", "content", "type", "text", "text",
				    rc ? text : out.data ? out.data : "", "isError", rc != 0),
			  err);
	buf_done(&out);
	json_decref(arguments);
	return rc;
}

/* --- the protocol ----------------------------------------------------------------------------------------------- */

static json_t *describe_server(json_t *params)
{
	const char *asked = json_string_value(json_object_get(params, "protocolVersion")), *version = versions[0];
	size_t i;

	for (i = 0; asked && i < sizeof(versions) / sizeof(versions[0]); i++)
		if (!strcmp(versions[i], asked))
			version = versions[i];
	return json_pack("{s:s,s:{s:{s:b}},s:{s:s,s:s,s:s},s:s}", "protocolVersion", version, "capabilities", "tools",
			 "listChanged", 0, "serverInfo", "name", "dptrack", "title", "dptrack: training runs",
			 "version", PACKAGE_VERSION, "instructions",
			 "Training runs of machine learning. Begin with list_runs or best_run; runs are named by "
			 "id, its first digits, or name.");
}

static int answer_request(const struct mcp_session *m, json_t *message, struct err *err)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	json_t *id = json_object_get(message, "id"), *params = json_object_get(message, "params");

	if (!method)
		return json_object_get(message, "result") || json_object_get(message, "error")
			       ? 0
			       : print_rpc_error(id, RPC_REQUEST, "not a request of JSON-RPC 2.0", err);
	if (!id || json_is_null(id))
		return 0; /* a notification */
	if (!strcmp(method, "initialize"))
		return print_result(id, describe_server(params), err);
	if (!strcmp(method, "ping"))
		return print_result(id, json_object(), err);
	if (!strcmp(method, "tools/list"))
		return print_result(id, describe_tools(m), err);
	if (!strcmp(method, "tools/call"))
		return call_tool(m, id, params, err);
	return print_rpc_error(id, RPC_METHOD, "unknown method: this server has tools only", err);
}

static int answer_line(const struct mcp_session *m, const char *line, size_t n, struct err *err)
{
	json_error_t why;
	json_t *message;
	int rc;

	if (strspn(line, " \t\r\n") == n)
		return 0;
	message = n > LINE_MAX_BYTES ? NULL : json_loadb(line, n, 0, &why);
	if (!message)
		return print_rpc_error(NULL, RPC_PARSE,
				       n > LINE_MAX_BYTES ? "the message is too long" : json_error_reason(&why), err);
	if (json_is_object(message))
		rc = answer_request(m, message, err);
	else
		rc = print_rpc_error(NULL, RPC_REQUEST, "expected one request per line", err);
	json_decref(message);
	return rc;
}

static int answer_lines(const struct mcp_session *m, struct err *err)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = getline(&line, &room, stdin)) >= 0)
		rc = answer_line(m, line, (size_t)n, err);
	free(line);
	return rc;
}

/* Reads the flags and answers until standard input ends. */
static int run_mcp_command(int argc, char **argv, struct err *err)
{
	struct mcp_session m = { 0 };
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR", "folder of runs (default: DPTRACK_RUNS_DIR, or runs)",
		  &m.common.source.logdir, 0, 0 },
		{ "url", FLAG_TEXT, "URL", "use the server at URL", &m.common.source.url, 0, 0 },
		{ "db", FLAG_PATH, "FILE", "the store (default: DIR/dptrack.db); or postgresql://USER@HOST/NAME",
		  &m.common.source.db, 0, 0 },
		{ "write", FLAG_SWITCH, "", "allow add_note, set_tag and archive_run", &m.write, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &m.common.help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_mcp, .table = table, .help = &m.common.help };
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !m.common.source.url)
		rc = source_open(&s, &m.common.source, err); /* what is wrong with the folder is reported at once */
	source_close(s);
	if (!rc)
		rc = answer_lines(&m, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_mcp = { .name = "mcp",
				     .group = "Serve",
				     .words = "",
				     .summary = "answer an agent: the Model Context Protocol on stdin, stdout",
				     .examples = "  dptrack mcp --logdir runs\n"
						 "  dptrack mcp --url http://127.0.0.1:6007 --write\n",
				     .run = run_mcp_command };
