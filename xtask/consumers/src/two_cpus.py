"""Prints the events below each function of the exports in a folder, as flameshow and gprof2dot read them."""

import collections
import json
import pathlib
import sys

import gprof2dot
from flamegraph_textual.parsers import parse

FOLDER = pathlib.Path(sys.argv[1])


def flameshow(name):
    functions = collections.Counter()
    profile = parse((FOLDER / name).read_bytes(), name)
    # The profile of pprof has samples first, then events.
    kind = len(profile.sample_types) - 1
    frames = [(profile.root_stack, frozenset())]
    while frames:
        frame, callers = frames.pop()
        if frame.name not in callers:
            functions[frame.name] += frame.values[kind]
        frames += [(child, callers | {frame.name}) for child in frame.children]
    return functions


def dot(parser, name):
    with open(FOLDER / name, encoding="utf-8") as file:
        functions = parser(file).parse().functions.values()
    return {function.name: function[gprof2dot.TOTAL_SAMPLES] for function in functions}


folded = dot(gprof2dot.CollapseParser, "two-cpus.folded")
gprof2dot.totalMethod = "callstacks"
print(json.dumps({
    "flameshow of pprof": flameshow("two-cpus.pb.gz"),
    "flameshow of folded stacks": flameshow("two-cpus.folded"),
    "flameshow of speedscope": flameshow("two-cpus.speedscope.json"),
    "gprof2dot of the script": dot(gprof2dot.PerfParser, "two-cpus.txt"),
    "gprof2dot of folded stacks": folded,
}))
