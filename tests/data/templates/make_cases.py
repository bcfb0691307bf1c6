"""Render templates with the reference implementation of Jinja and store what comes out.

    python make_cases.py > cases.json

Each case of cases.json: `name`, `template`, `variables`, and either `expected` (the text), or
`raises` (the text given to raise_exception), or `fails` (true: a render error of another kind), or
`rejects` (true: not a template). The environment is the one in which chat templates are rendered:
sandboxed, trim_blocks and lstrip_blocks on, loop controls, no escaping, json.dumps as `tojson`, a
clock fixed at 2026-01-15 12:00:00.
"""
import datetime
import json
import sys

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cases import CASES

NOW = datetime.datetime(2026, 1, 15, 12, 0, 0)


class Raised(jinja2.exceptions.TemplateError):
    pass


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise Raised(str(message))

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, name, text, variables):
    case = {"name": name, "template": text, "variables": variables}
    try:
        template = env.from_string(text)
    except jinja2.exceptions.TemplateAssertionError:  # an unknown filter or test: here found when it is reached
        return {**case, "fails": True}
    except (jinja2.exceptions.TemplateSyntaxError, SyntaxError):
        return {**case, "rejects": True}
    try:
        full = {"tools": None, "documents": None, **json.loads(json.dumps(variables))}
        return {**case, "expected": template.render(**full)}
    except Raised as e:
        return {**case, "raises": str(e)}
    except Exception as e:  # errors of Jinja and of Python alike
        print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
        return {**case, "fails": True}


def main():
    env = environment()
    cases = [render(env, *case) for case in CASES]
    names = [c["name"] for c in cases]
    assert len(set(names)) == len(names), "names must differ"
    json.dump(cases, sys.stdout, ensure_ascii=True, indent=1)
    print()


if __name__ == "__main__":
    main()
