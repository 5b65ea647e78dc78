# SPDX-License-Identifier: Apache-2.0
# The page: its pure parts under node --test (hermetic), and the complete page in a browser.
TESTS += tests/web/pure.sh
page_tests = tests/web/page.sh tests/web/shown/groups.sh tests/web/shown/media.sh tests/web/shown/paper.sh tests/web/recorded.sh tests/web/login.sh tests/web/oidc/share.sh tests/web/oidc/oidc.sh tests/web/restart.sh \
	tests/web/away.sh tests/web/parts.sh tests/web/tags.sh tests/web/charts.sh tests/web/reading.sh tests/web/wide.sh tests/web/manage.sh tests/web/view.sh \
	tests/web/handling/choose.sh tests/web/handling/table.sh tests/web/handling/lines.sh tests/web/handling/first.sh tests/web/handling/figure.sh tests/web/handling/grid.sh tests/web/handling/screens.sh tests/web/handling/layout.sh tests/web/handling/own.sh tests/web/handling/together.sh tests/web/handling/compared.sh tests/web/handling/review.sh tests/web/insight.sh tests/web/told.sh tests/web/saved_view/report.sh tests/web/saved_view/two_tabs.sh tests/web/saved_view/alerts.sh tests/web/saved_view/models.sh \
	tests/web/saved_view/many.sh tests/web/settings/settings.sh tests/web/tasks/tasks.sh tests/web/tasks/clicks.sh tests/web/design/design.sh
CHECK_EXTRA += $(page_tests)
check_PROGRAMS += tests/web/twelve_record tests/web/told_record tests/web/told_many
tests_web_told_record_SOURCES = tests/web/told_record.c
tests_web_told_record_LDADD = libtracker.la libtrackbase.la
tests_web_told_many_SOURCES = tests/web/told_many.c
tests_web_told_many_LDADD = libtracker.la libtrackbase.la
tests_web_twelve_record_SOURCES = tests/web/twelve_record.c
tests_web_twelve_record_LDADD = libtracker.la libtrackbase.la
EXTRA_DIST += \
	tests/web/design/design_test.mjs tests/web/design/page.tsx \
	tests/web/design/specimens.tsx tests/web/design/recorded.txt \
	tests/web/pure.sh $(page_tests) tests/web/tasks/tasks_test.mjs tests/web/tasks/clicks_test.mjs tests/web/tasks/tasks.mjs tests/web/prepare.sh \
	tests/web/package.json tests/web/package-lock.json tests/web/.npmrc \
	tests/web/twelve.py tests/web/devserver.mjs tests/web/serve.mjs tests/web/browser.mjs tests/web/stage.mjs \
	tests/web/pure_test.mjs tests/web/shown/groups_test.mjs tests/web/shown/media_test.mjs tests/web/shown/paper_test.mjs tests/web/page_test.mjs tests/web/login_test.mjs tests/web/oidc/share_test.mjs tests/web/oidc/oidc_test.mjs tests/web/oidc/oidc_provider.mjs tests/web/restart_test.mjs tests/web/away_test.mjs tests/web/parts_test.mjs tests/web/tags_test.mjs tests/web/charts_test.mjs tests/web/reading_test.mjs tests/web/wide_test.mjs tests/web/manage_test.mjs tests/web/view_test.mjs tests/web/handling/choose_test.mjs tests/web/handling/table_test.mjs tests/web/handling/lines_test.mjs tests/web/handling/first_test.mjs tests/web/handling/figure_test.mjs tests/web/handling/grid_test.mjs tests/web/handling/screens_test.mjs tests/web/handling/layout_test.mjs tests/web/handling/own_test.mjs tests/web/handling/together_test.mjs tests/web/handling/compared_test.mjs tests/web/handling/review_test.mjs tests/web/insight_test.mjs tests/web/told_test.mjs tests/web/saved_view/report_test.mjs tests/web/saved_view/two_tabs_test.mjs tests/web/saved_view/alerts_test.mjs tests/web/saved_view/models_test.mjs tests/web/saved_view/many_test.mjs tests/web/pictures.mjs tests/web/settings/settings_test.mjs \
	tests/bench/page tests/bench/page.mjs tests/bench/parts/fill.mjs tests/bench/parts/live.mjs \
	tests/bench/parts/shows.mjs tests/bench/wide.mjs
