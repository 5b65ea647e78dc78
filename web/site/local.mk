# SPDX-License-Identifier: Apache-2.0
# The static site of the documents, which the server serves at /docs. Its packages are installed once into the build folder.
site_sources = web/site/hooks.py web/site/make_site.py web/site/mkdocs.yml web/site/query.js web/site/requirements.txt
EXTRA_DIST += $(site_sources)

docs: site/index.html
site/index.html: $(addprefix $(srcdir)/,$(site_sources)) $(srcdir)/web/ui/src/index.html $(wildcard $(srcdir)/docs/*.md $(srcdir)/docs/*/*.md $(srcdir)/*.md)
	$(AM_V_GEN)python3 $(srcdir)/web/site/make_site.py venv/site site
.PHONY: docs

# Not in EXTRA_DIST: make would take the folder's name for the target and make the site before each tarball.
DIST_HOOKS += dist-docs
dist-docs:
	cp -pR $(srcdir)/docs $(distdir)/
.PHONY: dist-docs

# Installed where `make docs` has made it.
install-data-local: install-site
uninstall-local: uninstall-site
install-site:
	test ! -f site/index.html || { rm -rf $(DESTDIR)$(pkgdatadir)/docs && $(MKDIR_P) $(DESTDIR)$(pkgdatadir)/docs && \
		cp -R site/. $(DESTDIR)$(pkgdatadir)/docs && chmod -R u+w,go+rX $(DESTDIR)$(pkgdatadir)/docs; }
uninstall-site:
	rm -rf $(DESTDIR)$(pkgdatadir)/docs
CLEAN_HOOKS += clean-site
clean-site:
	rm -rf site site.new
.PHONY: install-site uninstall-site clean-site
