#!/usr/bin/env python3
"""sampler_cases.py CASES.json OUT.json: the reference sampler cases, one a line, for the tests.

Whole numbers lose their ".0" and keys are sorted; nothing else changes. Standard library only.
"""
import json
import sys


def short(value):
    if isinstance(value, list):
        return [short(v) for v in value]
    if isinstance(value, dict):
        return {k: short(v) for k, v in sorted(value.items())}
    return int(value) if isinstance(value, float) and value.is_integer() else value


source, target = sys.argv[1:]
with open(source) as f:
    cases = json.load(f)
lines = [json.dumps(short(case), separators=(",", ":")) for case in cases]
with open(target, "w") as f:
    f.write("[\n" + ",\n".join(lines) + "\n]\n")
