# SPDX-License-Identifier: Apache-2.0
"""Hooks of MkDocs for the documents. The pages are written for readers of the repository; here links between them become links of the site,
links to sources become plain text, and the tables of docs/guides/README.md become the navigation."""
import gzip
import hashlib
import importlib.metadata
import importlib.util
import os
import posixpath
import re
import urllib.parse

from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTSIDE = {"README.md": "index.md", "ARCHITECTURE.md": "project/architecture.md", "CONTRIBUTING.md": "project/contributing.md",
           "STYLE.md": "project/style.md", "NEWS.md": "project/news.md", "SECURITY.md": "project/security.md"}
BOOST = {"guides/README": 0.3, "guides/": 3, "tutorial": 2, "internals/": 0.2, "project/": 0.2}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
LIST = re.compile(r"(?:[-*]|\d+\.) ")
DROPPED = re.compile(r"\.map$|^sitemap\.xml|^404\.html$|^assets/javascripts/lunr/|^assets/images/")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def guide_sections():
    """The navigation of the guides: [{heading: [page, ...]}] from the tables of their README.md."""
    sections = []
    for line in read("docs/guides/README.md").splitlines():
        heading, row = re.match(r"## (.*)", line), re.match(r"\| \[(.*?)\]\((.*?\.md)\)", line)
        if heading:
            sections.append({heading[1]: []})
        elif row and sections:
            sections[-1][next(iter(sections[-1]))].append({row[1]: posixpath.normpath("guides/" + row[2])})
    return [section for section in sections if next(iter(section.values()))]


def folder_pages(folder):
    return [f"{folder}/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "docs", folder))) if name.endswith(".md")]


def on_config(config):
    top = [name for name in ("study.md", "benchmarks.md") if os.path.exists(os.path.join(ROOT, "docs", name))]
    config.nav = [{"Home": "index.md"}, {"Tutorial": "tutorial.md"}, {"Guides": ["guides/README.md", *guide_sections()]},
                  {"Reference": [*folder_pages("reference"), *top]}, {"Internals": folder_pages("internals")},
                  {"Project": [path for name, path in OUTSIDE.items() if name != "README.md"]}]
    return config


def source_of(uri):
    """The path in the repository of a page of the site."""
    return next((name for name, path in OUTSIDE.items() if path == uri), "docs/" + uri)


def page_of(path):
    """The page of the site for a path in the repository, None if it has no page."""
    return path[5:] if path.startswith("docs/") and path.endswith(".md") else OUTSIDE.get(path)


def on_files(files, config):
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, path, content=read(name)))
    files.append(File.generated(config, "assets/query.js", content=read("web/site/query.js")))
    icon = re.search(r'<link rel="icon" href="data:image/svg\+xml,([^"]*)">', read("web/ui/src/index.html"))[1]
    files.append(File.generated(config, "assets/icon.svg", content=urllib.parse.unquote(icon)))
    return files


def add_picture(path, files, config):
    uri = "pictures/" + posixpath.basename(path)
    if not files.get_file_from_path(uri):
        files.append(File.generated(config, uri, abs_src_path=os.path.join(ROOT, path)))
    return uri


def rewritten(match, page, files, config):
    picture, text, target, anchor = match[1], match[2], match[3], match[4] or ""
    if not target or "://" in target:
        return match[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source_of(page.file.src_uri)), target))
    uri = add_picture(path, files, config) if picture else page_of(path)
    if not uri:
        return text
    return f"{picture}[{text}]({posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"


def on_page_markdown(markdown, page, config, files):
    """Links, and blank lines in front of lists, which Markdown on code hosts does without. Search prefers guides."""
    page.meta["search"] = {"boost": next((boost for start, boost in BOOST.items() if page.file.src_uri.startswith(start)), 1)}
    lines, fenced = [], False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        if not fenced and LIST.match(line) and lines and lines[-1].strip() and not LIST.match(lines[-1]) and not lines[-1].startswith(" "):
            lines.append("")
        lines.append(line if fenced else LINK.sub(lambda m: rewritten(m, page, files, config), line))
    return "\n".join(lines)


def on_post_page(output, page, config):
    """Moves scripts from the page into files, so that the server's content security policy needs no exception."""
    def moved(match):
        name = "assets/inline/%s.js" % hashlib.sha256(match[1].encode()).hexdigest()[:16]
        path = os.path.join(config.site_dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(match[1])
        return '<script src="%s"></script>' % posixpath.relpath(name, posixpath.dirname(page.url) or ".")
    return re.sub(r"<script>(.*?)</script>", moved, output, flags=re.S)


def write_licences(site):
    """Copies the licences of the code and icons in the pages, which their copies must have."""
    theme = os.path.dirname(importlib.util.find_spec("material").origin)
    (licence,) = [path for path in importlib.metadata.files("mkdocs-material") if path.name == "LICENSE" and "dist-info" in str(path)]
    with open(os.path.join(theme, "templates", ".icons", "material", "LICENSE"), encoding="utf-8") as f:
        icons = f.read()
    with open(os.path.join(site, "assets", "licences.txt"), "w", encoding="utf-8") as f:
        f.write("Material for MkDocs (theme and search)\n\n%s\n\nMaterial Design Icons\n\n%s" % (licence.read_text(), icons))


def on_post_build(config):
    write_licences(config.site_dir)
    for folder, _, names in os.walk(config.site_dir):
        for name in names:
            path = os.path.join(folder, name)
            if DROPPED.search(os.path.relpath(path, config.site_dir)):
                os.unlink(path)
            elif name.endswith((".html", ".css", ".js", ".json")):
                pack(path)


def pack(path):
    """Writes PATH.gz, which the server sends."""
    with open(path, "rb") as f, open(path + ".gz", "wb") as packed:
        packed.write(gzip.compress(f.read(), 9, mtime=0))
