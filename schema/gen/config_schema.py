#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes schema/config/run-config.schema.json from trainer/config/flags.def. Run it in the top folder after a change of
the flags; tests/config/config_test fails until then."""
import json
import re
import subprocess

SOURCE = ('#define FLAG(f, k, d, lo, hi, form, g, c, s, h) ROW #f #k d #lo #hi form g h\n'
          '#include "trainer/config/flags.def"\n')
ABOUT = ("Every flag of dptrain as a key; '-' and '_' are alike. null means: not given. Flags on the command line and "
         "environment variables win over the file. The output of `dptrain config --json` is accepted too.")


# Words that a registry owns: their name in flags.def, the registry's list, its macro.
REGISTRIES = [("STRATEGIES", "trainer/strategies/strategies.def", "STRATEGY"),
              ("OPTIMIZERS", "trainer/optimizers/optimizers.def", "OPTIMIZER")]


def preprocess(source):
    p = subprocess.run(["cc", "-E", "-P", "-I.", "-x", "c", "-"], input=source, text=True, capture_output=True, check=True)
    return p.stdout


def words_of(path, macro):
    return re.findall(r'WORD "(\w+)"', preprocess('#define %s(name, ...) WORD #name\n#include "%s"\n' % (macro, path)))


def property_of(kind, default, least, greatest, form, about):
    types = {"INT": "integer", "REAL": "number", "BOOL": "boolean"}
    p = {"type": [types.get(kind, "string"), "null"], "description": about}
    word = form.partition("|")[2] if kind == "INT" else ""
    if word:
        p["type"].insert(1, "string")
        p["pattern"] = "^%s$" % word
    if kind in ("INT", "REAL"):
        p["exclusiveMinimum" if least == "OPEN" else "minimum"] = 0 if least == "OPEN" else json.loads(least)
        p["maximum"] = json.loads(greatest)
    elif kind == "CHOICE":
        p["enum"] = form.split("|") + [None]
    elif kind == "SET":
        p["pattern"] = "^(none|(%s)(,(%s))*)$" % (form, form)
    if kind == "BOOL":
        p["default"] = default == "yes"
    elif default:
        p["default"] = json.loads(default) if kind in ("INT", "REAL") and default != word else default
    return p


for name, path, macro in REGISTRIES:
    SOURCE = '#define %s "%s"\n' % (name, "|".join(words_of(path, macro))) + SOURCE
properties = {}
for line in preprocess(SOURCE).splitlines():
    if line.startswith("ROW"):
        name, kind, default, least, greatest, form, _, about = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        if name not in ("config", "json"):
            properties[name] = property_of(kind, default, least, greatest, form, about)
with open("schema/config/run-config.schema.json", "w", encoding="utf-8") as out:
    json.dump({"$schema": "https://json-schema.org/draft/2020-12/schema",
               "title": "Configuration file of dptrain --config", "description": ABOUT, "type": "object",
               "additionalProperties": False, "properties": properties}, out, indent=1)
    out.write("\n")
