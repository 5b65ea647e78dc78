# SPDX-License-Identifier: Apache-2.0
# The page: bundled by node into UI_DIST_DIR. UI_DIST_STAMP exists, and is newer than every source, once the folder is
# complete; the rule that embeds the page depends on it. A release tarball carries the folder ready-made, with the file
# web/ui/prebuilt beside it. Nothing is ever written below a read-only source folder: node_modules lie in the build tree.
ui_files = \
	web/ui/package.json web/ui/package-lock.json web/ui/.npmrc web/ui/tsconfig.json web/ui/build.mjs web/ui/merge.mjs \
	web/ui/list-texts.mjs web/ui/packages.mjs web/ui/src/css.d.ts web/ui/src/index.html web/ui/src/main.tsx web/ui/src/pure.ts web/ui/src/style.css web/ui/src/tokens.css \
	web/ui/src/base/colour.ts web/ui/src/base/diff.ts web/ui/src/base/figure.ts web/ui/src/base/filter/edit.ts web/ui/src/base/filter/filter.ts \
	web/ui/src/base/format.ts web/ui/src/base/formula.ts web/ui/src/base/goal.ts web/ui/src/base/group.ts web/ui/src/base/heat.ts \
	web/ui/src/base/nest.ts web/ui/src/base/order.ts web/ui/src/base/panel.ts web/ui/src/base/params.ts \
	web/ui/src/base/progress.ts web/ui/src/base/rank.ts web/ui/src/base/ranks.ts \
	web/ui/src/base/registry.ts web/ui/src/base/repeats.ts web/ui/src/base/report.ts web/ui/src/base/series.ts \
	web/ui/src/base/side.ts web/ui/src/base/trace.ts web/ui/src/base/tree.ts \
	web/ui/src/base/types.ts web/ui/src/base/url.ts web/ui/src/base/words.ts \
	web/ui/src/base/text/ansi.ts web/ui/src/base/text/markdown.ts web/ui/src/base/text/merge.ts web/ui/src/base/text/texttable.ts \
	web/ui/src/base/why/forest.ts web/ui/src/base/why/importance.ts web/ui/src/base/why/neighbour.ts \
	web/ui/src/base/why/pareto.ts web/ui/src/base/why/relation.ts web/ui/src/base/why/pivot.ts web/ui/src/base/why/smooth.ts \
	web/ui/src/charts/heat.ts web/ui/src/charts/parallel.ts web/ui/src/charts/place.ts \
	web/ui/src/charts/scale.ts web/ui/src/charts/scatter.ts web/ui/src/charts/spark.ts \
	web/ui/src/charts/stack.ts web/ui/src/charts/timeline.ts \
	web/ui/src/charts/base/chart.ts web/ui/src/charts/base/ink.ts web/ui/src/charts/base/pick.ts web/ui/src/charts/base/ticks.ts \
	web/ui/src/charts/line/axes.ts web/ui/src/charts/line/cursor.ts web/ui/src/charts/line/geometry.ts \
	web/ui/src/charts/line/index.ts web/ui/src/charts/line/line.ts web/ui/src/charts/line/lines.ts \
	web/ui/src/charts/line/marks.ts web/ui/src/charts/line/names.ts web/ui/src/charts/line/near.ts web/ui/src/charts/line/pane.ts \
	web/ui/src/charts/line/picture.ts web/ui/src/charts/line/read.ts web/ui/src/charts/line/tip.ts \
	web/ui/src/charts/line/tiptext.ts \
	web/ui/src/state/access.ts web/ui/src/state/axis.ts web/ui/src/state/draft.ts web/ui/src/state/exact.ts web/ui/src/state/follow.ts \
	web/ui/src/state/saved/alerts.ts web/ui/src/state/saved/experiments.ts web/ui/src/state/saved/bulk.ts web/ui/src/state/saved/registry.ts \
	web/ui/src/state/saved/reports.ts web/ui/src/state/saved/saved.ts web/ui/src/state/saved/settings.ts web/ui/src/state/server/api.ts \
	web/ui/src/state/grouped.ts web/ui/src/state/groups.ts web/ui/src/state/index.ts web/ui/src/state/insight.ts web/ui/src/state/live.ts \
	web/ui/src/state/load.ts web/ui/src/state/parts.ts web/ui/src/state/phases.ts web/ui/src/state/points.ts \
	web/ui/src/state/removal.ts web/ui/src/state/run.ts web/ui/src/state/runs.ts web/ui/src/state/series.ts \
	web/ui/src/state/side.ts web/ui/src/state/sidebar.ts web/ui/src/state/shares.ts web/ui/src/state/tagging.ts web/ui/src/state/tags.ts \
	web/ui/src/state/records.ts web/ui/src/state/view.ts \
	web/ui/src/views/index.ts \
	web/ui/src/views/alerts/alerts.tsx \
	web/ui/src/views/base/asking.ts web/ui/src/views/base/bits.tsx web/ui/src/views/base/chooser.tsx web/ui/src/views/base/conflict.tsx web/ui/src/views/base/copytext.tsx web/ui/src/views/base/datatable.tsx web/ui/src/views/base/drag.ts \
	web/ui/src/views/base/fieldvalues.ts web/ui/src/views/base/focus.ts web/ui/src/views/base/afterwards.ts web/ui/src/views/base/share.tsx web/ui/src/views/base/keepfocus.ts web/ui/src/views/base/frame.ts web/ui/src/views/base/jump.tsx \
	web/ui/src/views/base/later.part.css web/ui/src/views/base/later.ts web/ui/src/views/base/lazy.tsx web/ui/src/views/base/lists/list.tsx \
	web/ui/src/views/base/markdown.tsx web/ui/src/views/base/nameform.tsx \
	web/ui/src/views/base/phases.tsx web/ui/src/views/base/save.ts web/ui/src/views/base/says.ts \
	web/ui/src/views/base/icon.tsx web/ui/src/views/base/menu.tsx web/ui/src/views/base/styles.ts web/ui/src/views/base/lists/tabs.tsx web/ui/src/views/base/theme.ts web/ui/src/views/base/lists/undo.tsx web/ui/src/views/base/lists/versions.tsx \
	web/ui/src/views/charts/addtoreport.tsx web/ui/src/views/charts/arrange.tsx web/ui/src/views/charts/bars.tsx web/ui/src/views/charts/layout.ts web/ui/src/views/charts/card.tsx web/ui/src/views/charts/figure.part.css web/ui/src/views/charts/figure.ts web/ui/src/views/charts/figurebutton.tsx web/ui/src/views/charts/figuredialog.tsx web/ui/src/views/charts/front.tsx web/ui/src/views/charts/grid.tsx web/ui/src/views/charts/grouping.tsx web/ui/src/views/charts/grouplines.ts \
	web/ui/src/views/charts/legend.tsx web/ui/src/views/charts/lines.ts web/ui/src/views/charts/paper.ts web/ui/src/views/charts/panels.tsx web/ui/src/views/charts/tools.tsx web/ui/src/views/charts/values.tsx \
	web/ui/src/views/compare/compare.tsx web/ui/src/views/compare/facts.tsx web/ui/src/views/compare/noruns.tsx \
	web/ui/src/views/compare/steptime.tsx \
	web/ui/src/views/experiments/best.tsx web/ui/src/views/experiments/experiments.tsx web/ui/src/views/experiments/trash.tsx \
	web/ui/src/views/header/keys.tsx \
	web/ui/src/views/header/also.tsx web/ui/src/views/header/brand.tsx web/ui/src/views/header/bulk.tsx \
	web/ui/src/views/header/completion.tsx web/ui/src/views/header/filter.tsx web/ui/src/views/header/suggest.ts \
	web/ui/src/views/header/nav.tsx web/ui/src/views/header/header.tsx web/ui/src/views/header/tools.tsx web/ui/src/views/header/viewshown.tsx web/ui/src/views/saved/saved.tsx \
	web/ui/src/views/insight/insight.part.css web/ui/src/views/insight/styles.ts \
	web/ui/src/views/insight/trace.tsx web/ui/src/views/insight/waterfall.tsx \
	web/ui/src/views/models/address.ts web/ui/src/views/models/model.tsx \
	web/ui/src/views/models/models.part.css web/ui/src/views/models/models.tsx \
	web/ui/src/views/report/document.tsx web/ui/src/views/report/editor.tsx \
	web/ui/src/views/report/offline.ts web/ui/src/views/report/panel.tsx \
	web/ui/src/views/report/report.part.css web/ui/src/views/report/report.tsx \
	web/ui/src/views/run/artifacts.tsx web/ui/src/views/run/comparewith.tsx web/ui/src/views/run/facts.tsx web/ui/src/views/run/failure.tsx web/ui/src/views/run/family.tsx \
	web/ui/src/views/run/register.tsx web/ui/src/views/run/tabs.ts \
	web/ui/src/views/run/files.tsx web/ui/src/views/run/folder.tsx \
	web/ui/src/views/run/head.tsx web/ui/src/views/run/metrics.tsx \
	web/ui/src/views/run/notes.tsx web/ui/src/views/run/preview.tsx web/ui/src/views/run/rankbars.tsx \
	web/ui/src/views/run/rankcharts.tsx web/ui/src/views/run/ranks.tsx web/ui/src/views/run/registered.tsx web/ui/src/views/run/run.tsx \
	web/ui/src/views/run/source.tsx web/ui/src/views/run/speed.tsx web/ui/src/views/run/tags.tsx \
	web/ui/src/views/run/versus.tsx \
	web/ui/src/views/settings/audit.tsx web/ui/src/views/settings/grants.tsx web/ui/src/views/settings/links.tsx \
	web/ui/src/views/settings/retention.tsx web/ui/src/views/settings/settings.part.css web/ui/src/views/settings/settings.tsx \
	web/ui/src/views/settings/tokens.tsx \
	web/ui/src/views/side/codediff.tsx web/ui/src/views/side/metrics.ts web/ui/src/views/side/side.part.css \
	web/ui/src/views/side/side.tsx \
	web/ui/src/views/table/arrange.ts web/ui/src/views/table/cards.tsx web/ui/src/views/table/column.ts web/ui/src/views/table/columns.tsx \
	web/ui/src/views/table/copy.tsx \
	web/ui/src/views/table/csv.ts web/ui/src/views/table/focus.ts web/ui/src/views/table/groupcells.tsx \
	web/ui/src/views/table/grouped.tsx web/ui/src/views/table/owncolour.tsx web/ui/src/views/table/headmenu.tsx web/ui/src/views/table/height.ts web/ui/src/views/table/picker.tsx web/ui/src/views/table/readout.ts \
	web/ui/src/views/table/row.tsx web/ui/src/views/table/rows.ts web/ui/src/views/table/table.tsx \
	web/ui/src/views/table/valuefilter.tsx web/ui/src/views/table/values.tsx web/ui/src/views/table/window.ts \
	web/ui/src/views/records/code.tsx web/ui/src/views/records/console.tsx web/ui/src/views/records/content.tsx \
	web/ui/src/views/records/edits.tsx web/ui/src/views/records/figure.tsx web/ui/src/views/records/heat.tsx web/ui/src/views/records/media.tsx \
	web/ui/src/views/records/styles.ts web/ui/src/views/records/told.part.css \
	web/ui/src/views/analysis/axes.ts web/ui/src/views/analysis/grade.ts web/ui/src/views/analysis/importance.tsx \
	web/ui/src/views/analysis/parallel.tsx web/ui/src/views/analysis/pivot.tsx web/ui/src/views/analysis/said.tsx web/ui/src/views/analysis/scatter.tsx web/ui/src/views/analysis/styles.ts \
	web/ui/src/views/analysis/why.part.css web/ui/src/views/analysis/why.tsx
EXTRA_DIST += $(ui_files) \
	web/ui/pictures/compare.png web/ui/pictures/compare-dark.png web/ui/pictures/compare-hover.png \
	web/ui/pictures/run.png web/ui/pictures/phone.png

if WITH_UI
if UI_PREBUILT
UI_DIST_DIR = $(srcdir)/web/ui/dist
UI_DIST_STAMP = $(srcdir)/web/ui/dist/index.html
else
UI_DIST_DIR = $(builddir)/web/ui/dist
UI_DIST_STAMP = $(builddir)/web/ui/dist.stamp
UI_WORK = $(builddir)/web/ui/work

$(UI_WORK)/modules.stamp: web/ui/package-lock.json web/ui/packages.mjs
	$(AM_V_at)$(MKDIR_P) $(UI_WORK)
	$(AM_V_GEN)$(NODE) $(srcdir)/web/ui/packages.mjs $(UI_WORK) || { \
		echo 'The page needs its npm packages; without network: configure --without-ui' >&2; exit 1; }
	$(AM_V_at)touch $@

$(UI_DIST_STAMP): $(UI_WORK)/modules.stamp $(ui_files) schema/insight/goals.def schema/insight/param_follows.def
	$(AM_V_at)rm -rf $(UI_WORK)/src && cp -R $(srcdir)/web/ui/src $(UI_WORK)/src && chmod -R u+w $(UI_WORK)/src
	$(AM_V_at)cp -f $(srcdir)/web/ui/package.json $(srcdir)/web/ui/tsconfig.json $(srcdir)/web/ui/build.mjs \
		$(srcdir)/web/ui/merge.mjs $(UI_WORK)/
	$(AM_V_GEN)cd $(UI_WORK) && $(NODE) node_modules/typescript/bin/tsc --noEmit && $(NODE) build.mjs --out .. --top $(abs_srcdir)
	$(AM_V_at)touch $@

all-local: $(UI_DIST_STAMP)
CLEAN_HOOKS += clean-ui
clean-ui:
	rm -rf $(UI_WORK) $(builddir)/web/ui/dist $(builddir)/web/ui/dist.stamp $(builddir)/web/ui/pure.mjs
endif

# A tarball holds the page that this build made.
DIST_HOOKS += dist-ui
dist-ui: $(UI_DIST_STAMP)
	$(MKDIR_P) $(distdir)/web/ui
	cp -R $(UI_DIST_DIR) $(distdir)/web/ui/dist
	echo 'The page in dist was built when the release was made.' >$(distdir)/web/ui/prebuilt
endif
