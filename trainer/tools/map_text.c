/* SPDX-License-Identifier: Apache-2.0 */
/* map_text.c: `dptrain plan --map`: the fastest strategy for each size of a GPT, batch and link, as a table,
 * as JSON, and as an SVG with one panel for each link. */
#include <stdlib.h>

#include "tracker/base/file.h"
#include "tracker/base/json_print.h"
#include "tracker/mem/mem.h"
#include "trainer/advise/plan_map.h"
#include "trainer/tools/child.h"
#include "trainer/tools/subcommands.h"

#define SVG_BYTES_MAX ((size_t)1 << 22)

struct map_cells {
	struct plan_map_opts opts;
	struct plan_map_cell cell[PLAN_MAP_LINKS][PLAN_MAP_SIZES][PLAN_MAP_BATCHES];
};

/* Returns the number of machines on the slow link: --nnodes, else machines of two ranks, or of one if there are no
 * pairs. */
static int slow_nodes(const struct run_config *cfg, int ranks)
{
	int min = 1, max = 1;

	if (config_given(cfg, FLAG_nnodes) && config_nodes(cfg, &min, &max))
		return max;
	return ranks >= 4 && ranks % 2 == 0 ? ranks / 2 : ranks;
}

static int fill_map_opts(struct plan_map_opts *ret, const struct run_config *cfg, const struct hardware *h,
			 struct err *err)
{
	const int ranks = config_given(cfg, FLAG_nproc_per_node) ? (int)cfg->nproc_per_node : h->ranks_per_node;
	const int nodes = slow_nodes(cfg, ranks);

	if (ranks < 2)
		return err_set(err, ERR_USAGE, "--map: %s has one rank: use --nproc-per-node N (2 or more)", h->name);
	if (nodes < 2 || ranks % nodes)
		return err_set(err, ERR_USAGE, "--nnodes %s: --map divides its %d ranks among the machines: expected 2 "
			       "or more that divide them", cfg->nnodes, ranks);
	*ret = (struct plan_map_opts){ .hardware = h, .ranks = ranks, .nodes = nodes };
	return 0;
}

static const char *cell_strategy(const struct plan_map_cell *c)
{
	return c->best ? advise_table[c->best->strategy]->name : "-";
}

/* ---- table ---- */

static void add_map_legend(const struct map_cells *m, struct buf *out)
{
	const struct plan_map_opts *o = &m->opts;

	buf_addf(out,
		 "%s: %d ranks, %s, plain SGD, %d tokens a sample, all with recomputation; by formula\n"
		 "slow: %d machines of %d; fast: one machine; batch: samples of a rank\n"
		 "cells: the fastest strategy, samples/s of all ranks, milliseconds per sample that ddp would wait for "
		 "communication (ACO)\n",
		 o->hardware->name, o->ranks, gpt_cost_dtype(o->hardware), GPT_COST_TOKENS, o->nodes,
		 o->ranks / o->nodes);
}

static void add_map_table(const struct map_cells *m, enum plan_map_link link, struct buf *out)
{
	buf_addf(out, "\n%-5s", plan_map_links[link]);
	for (int b = 0; b < PLAN_MAP_BATCHES; b++)
		buf_addf(out, "  batch %-14d", plan_map_batches[b]);
	buf_addc(out, '\n');
	for (int s = 0; s < PLAN_MAP_SIZES; s++) {
		buf_addf(out, "%-5s", plan_map_sizes[s].name);
		for (int b = 0; b < PLAN_MAP_BATCHES; b++) {
			const struct plan_map_cell *c = &m->cell[link][s][b];

			if (c->best)
				buf_addf(out, "  %-4s %7.4g %-7.3g", cell_strategy(c), c->samples_per_s, 1e3 * c->aco);
			else
				buf_addf(out, "  %-20s", "-");
		}
		buf_addc(out, '\n');
	}
}

static void add_map_reasons(const struct map_cells *m, struct buf *out)
{
	buf_adds(out, "\nreasons:\n");
	for (int l = 0; l < PLAN_MAP_LINKS; l++)
		for (int s = 0; s < PLAN_MAP_SIZES; s++)
			for (int b = 0; b < PLAN_MAP_BATCHES; b++)
				buf_addf(out, "  %s %-4s %3d: %s\n", plan_map_links[l], plan_map_sizes[s].name,
					 plan_map_batches[b], m->cell[l][s][b].reason);
}

/* ---- JSON ---- */

static json_t *json_map_cell(const struct plan_map_cell *c)
{
	json_t *o = json_object();

	json_object_set_new(o, "model", json_string(c->size->name));
	json_object_set_new(o, "parameters", json_integer((json_int_t)c->size->parameters));
	json_object_set_new(o, "batch_size", json_integer(c->batch_size));
	json_object_set_new(o, "link", json_string(plan_map_links[c->link]));
	json_object_set_new(o, "strategy", c->best ? json_string(cell_strategy(c)) : json_null());
	json_object_set_new(o, "samples_per_s", c->best ? real_or_null(c->samples_per_s) : json_null());
	json_object_set_new(o, "aco", real_or_null(c->aco));
	json_object_set_new(o, "reason", json_string(c->reason));
	return o;
}

static void add_map_json(const struct map_cells *m, struct buf *out)
{
	json_t *root = json_object(), *list = json_array();

	for (int l = 0; l < PLAN_MAP_LINKS; l++)
		for (int s = 0; s < PLAN_MAP_SIZES; s++)
			for (int b = 0; b < PLAN_MAP_BATCHES; b++)
				json_array_append_new(list, json_map_cell(&m->cell[l][s][b]));
	json_object_set_new(root, "cells", list);
	json_append(root, JSON_INDENT(1) | JSON_REAL_PRECISION(8), out);
}

/* ---- SVG ---- */

enum { CELL_W = 74, CELL_H = 34, LEFT = 70, TOP = 96, GAP = 60, BOTTOM = 90 };

static const char *strategy_color(const struct plan_map_cell *c)
{
	if (!c->best)
		return "#e3e3e3";
	return c->best->strategy == ADVISE_ddp ? "#9ecae1" : c->best->strategy == ADVISE_pdp ? "#fdbe85" : "#a1d99b";
}

static void add_svg_cell(const struct plan_map_cell *c, int x, int y, struct buf *out)
{
	const int middle = x + CELL_W / 2;

	buf_addf(out, "<g><title>%s</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" "
		 "stroke=\"#fff\"/>", c->reason, x, y, CELL_W, CELL_H, strategy_color(c));
	if (c->best)
		buf_addf(out, "<text x=\"%d\" y=\"%d\">%s</text><text x=\"%d\" y=\"%d\" class=\"rate\">%.*f/s"
			 "</text></g>\n", middle, y + 15, cell_strategy(c), middle, y + 28,
			 c->samples_per_s < 10 ? 2 : 0, c->samples_per_s);
	else
		buf_addf(out, "<text x=\"%d\" y=\"%d\" class=\"rate\">does not fit</text></g>\n", middle, y + 21);
}

static void add_svg_panel(const struct map_cells *m, enum plan_map_link link, int left, struct buf *out)
{
	const int nodes = link == PLAN_MAP_SLOW ? m->opts.nodes : 1;

	buf_addf(out, "<text x=\"%d\" y=\"%d\" class=\"panel\">%s link: %d machine%s of %d</text>\n",
		 left + PLAN_MAP_BATCHES * CELL_W / 2, TOP - 32, plan_map_links[link], nodes, nodes > 1 ? "s" : "",
		 m->opts.ranks / nodes);
	for (int b = 0; b < PLAN_MAP_BATCHES; b++)
		buf_addf(out, "<text x=\"%d\" y=\"%d\">%d</text>\n", left + b * CELL_W + CELL_W / 2, TOP - 10,
			 plan_map_batches[b]);
	for (int s = 0; s < PLAN_MAP_SIZES; s++) {
		buf_addf(out, "<text x=\"%d\" y=\"%d\" class=\"size\">%s</text>\n", left - 8, TOP + s * CELL_H + 21,
			 plan_map_sizes[s].name);
		for (int b = 0; b < PLAN_MAP_BATCHES; b++)
			add_svg_cell(&m->cell[link][s][b], left + b * CELL_W, TOP + s * CELL_H, out);
	}
	buf_addf(out, "<text x=\"%d\" y=\"%d\">samples of a rank</text>\n", left + PLAN_MAP_BATCHES * CELL_W / 2,
		 TOP + PLAN_MAP_SIZES * CELL_H + 22);
}

/* Draws title, both panels and the legend. */
static void add_map_svg(const struct map_cells *m, struct buf *out)
{
	static const struct {
		const char *name, *color;
	} legend[] = { { "ddp", "#9ecae1" }, { "pdp", "#fdbe85" }, { "fsdp", "#a1d99b" },
		       { "nothing fits", "#e3e3e3" } };
	const int panel = LEFT + PLAN_MAP_BATCHES * CELL_W, width = 2 * panel + GAP;
	const int height = TOP + PLAN_MAP_SIZES * CELL_H + BOTTOM;

	buf_addf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		 "font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n<style>.rate{font-size:10px}"
		 ".size{text-anchor:end}.panel{font-size:15px}</style>\n<rect width=\"100%%\" height=\"100%%\" "
		 "fill=\"#fff\"/>\n<text x=\"%d\" y=\"28\" font-size=\"17\">Fastest strategy by size of a GPT and "
		 "batch: %d ranks of ", width, height, width, height, width / 2, m->opts.ranks);
	for (const char *p = m->opts.hardware->name; *p; p++)
		buf_addf(out, *p == '<' ? "&lt;" : *p == '&' ? "&amp;" : "%c", *p);
	buf_adds(out, "</text>\n");
	for (int l = 0; l < PLAN_MAP_LINKS; l++)
		add_svg_panel(m, (enum plan_map_link)l, LEFT + l * (panel + GAP / 2), out);
	for (int i = 0; i < (int)(sizeof(legend) / sizeof(legend[0])); i++)
		buf_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"16\" height=\"16\" fill=\"%s\"/><text x=\"%d\" y=\"%d\" "
			 "text-anchor=\"start\">%s</text>\n", width / 2 - 230 + 120 * i, height - 42, legend[i].color,
			 width / 2 - 208 + 120 * i, height - 29, legend[i].name);
	buf_adds(out, "</svg>\n");
}

static int write_map_svg(const struct map_cells *m, const char *path, struct err *err)
{
	struct buf svg;
	int rc;

	buf_init(&svg, SVG_BYTES_MAX);
	add_map_svg(m, &svg);
	rc = buf_failed(&svg) ? err_nomem(err, "the SVG") : file_replace(path, svg.data, svg.len, err);
	buf_done(&svg);
	return rc;
}

static void add_map_text(const struct map_cells *m, bool explain, struct buf *out)
{
	add_map_legend(m, out);
	for (int l = 0; l < PLAN_MAP_LINKS; l++)
		add_map_table(m, (enum plan_map_link)l, out);
	if (explain)
		add_map_reasons(m, out);
	else
		buf_adds(out, "\n--explain adds the reason of each cell, --out FILE.svg draws the map\n");
}

static void fill_map_cells(struct map_cells *m)
{
	for (int l = 0; l < PLAN_MAP_LINKS; l++)
		for (int s = 0; s < PLAN_MAP_SIZES; s++)
			for (int b = 0; b < PLAN_MAP_BATCHES; b++)
				plan_map_fill(&m->cell[l][s][b], &m->opts, s, b, (enum plan_map_link)l);
}

int map_plan(const struct run_config *cfg, struct buf *out, struct err *err)
{
	struct map_cells *m = mem_zalloc(sizeof(*m));
	struct hardware h;
	int rc = hardware_open_chosen(&h, cfg->hardware, err);

	if (rc) {
		free(m);
		return rc;
	}
	rc = fill_map_opts(&m->opts, cfg, &h, err);
	if (!rc) {
		fill_map_cells(m);
		if (cfg->json)
			add_map_json(m, out);
		else
			add_map_text(m, cfg->explain, out);
	}
	if (!rc && cfg->out)
		rc = write_map_svg(m, cfg->out, err);
	hardware_done(&h);
	free(m);
	return rc;
}
