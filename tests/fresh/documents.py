# SPDX-License-Identifier: Apache-2.0
"""documents.py ADDRESS: a server has its documents, and everything that a page and its search load comes from it."""
import json
import re
import sys
import urllib.parse
import urllib.request


def get(address):
    with urllib.request.urlopen(address) as answer:
        return answer.read().decode(errors="replace")


def main(address):
    front = address + "/docs/index.html"
    page = get(front)
    config = json.loads(re.search(r'<script id="?__config"?[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    needed = re.findall(r"<(?:script|link|img)\b[^>]*?\b(?:src|href)=[\"']?([^\"' >]+)", page)
    assert len(needed) > 5, needed
    for path in [*needed, config["search"]]:
        where = urllib.parse.urljoin(front, path)
        assert where.startswith(address + "/docs/"), f"{front} needs another host: {where}"
        assert get(where), where
    entries = json.loads(get(address + "/docs/search/search_index.json"))["docs"]
    pages = {entry["location"].partition("#")[0] for entry in entries}
    assert len(pages) > 50, sorted(pages)
    titles = {entry["location"]: entry["title"] for entry in entries}
    assert titles["guides/ddp.html"] in get(address + "/docs/guides/ddp.html")
    print(f"documents: {len(pages)} pages, {len(entries)} entries of the search")


main(sys.argv[1])
