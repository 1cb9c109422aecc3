#!/usr/bin/env python3
"""Breaks the kernels in known ways, one at a time, and demands that their tests notice.

The table is `mutants.toml` beside this file. Each mutant is applied to a copy of the tree under
target/mutants and tested there; the copy must pass unchanged first. A mutant whose text is not
found as often as the table says, or that does not compile, is an error of the table, not a catch.

Needs python 3.11 or newer; nothing outside its standard library.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Queue

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What a build of the package reads.
COPIED = ["Cargo.toml", "Cargo.lock", "src", "arena", "kernels", "benches", "tests", "tools"]
# A broken loop bound may never end; the tests themselves take seconds.
TIMEOUT_S = 300


class TableError(Exception):
    """Something to be mended in mutants.toml."""


@dataclass(frozen=True)
class Mutant:
    """One row of the table."""

    name: str
    file: str
    find: str
    replace: str
    times: int = 1
    package: str = "dllm-cpu"
    # Test files to run; all tests of the package where none are named.
    tests: tuple = ()

    def apply(self, text):
        if self.find == self.replace:
            raise TableError(f"{self.name}: changes nothing")
        found = text.count(self.find)
        if found != self.times:
            raise TableError(f"{self.name}: text found {found} times, expected {self.times}")
        return text.replace(self.find, self.replace)


class Tree:
    """The copy that mutants are applied to, and its build."""

    def __init__(self, folder):
        self.folder = folder / "tree"
        self.environment = os.environ | {
            "CARGO_TARGET_DIR": str(folder / "build"),
            "RUST_BACKTRACE": "0",
            "CARGO_INCREMENTAL": "1",  # most of the package stays as the last mutant left it
            "CARGO_PROFILE_DEV_DEBUG": "false",
        }
        shutil.rmtree(self.folder, ignore_errors=True)
        # With today's times: cargo must not take the last mutant's build for the copy's.
        self.folder.mkdir(parents=True)
        for name in COPIED:
            source, copy = ROOT / name, self.folder / name
            if source.is_dir():
                skip = shutil.ignore_patterns("target")
                shutil.copytree(source, copy, ignore=skip, copy_function=shutil.copy)
            elif source.exists():
                shutil.copy(source, copy)

    def cargo(self, package, tests, *more, timeout=None):
        which = [word for test in tests for word in ("--test", test)] or ["--lib", "--tests"]
        return subprocess.run(
            ["cargo", "test", "--quiet", "--package", package, *which, *more],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
        )

    def test(self, package, tests):
        """Whether the tests pass, and otherwise which failed first."""
        built = self.cargo(package, tests, "--no-run")
        if built.returncode != 0:
            raise TableError(f"does not compile:\n{built.stdout}")
        try:
            done = self.cargo(package, tests, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False, f"no end within {TIMEOUT_S} s"
        if done.returncode == 0:
            return True, "" if re.search(r"ok\. [1-9]\d* passed", done.stdout) else "no test ran"
        failed = re.search(r"^(?:test )?(\S+) (?:\.\.\.|---) FAILED", done.stdout, re.MULTILINE)
        return False, failed.group(1) if failed else done.stdout.strip()[-200:]


def judge(tree, mutant):
    """(verdict, what caught it or is wrong with it): caught, SURVIVED or BROKEN."""
    path = tree.folder / mutant.file
    try:
        original = path.read_text()
    except OSError as fault:
        return "BROKEN", str(fault)
    try:
        path.write_text(mutant.apply(original))
        passed, detail = tree.test(mutant.package, mutant.tests)
        return ("SURVIVED", detail) if passed else ("caught", detail)
    except TableError as fault:
        return "BROKEN", str(fault)
    finally:
        path.write_text(original)


def table(only):
    mutants = []
    for row in tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]:
        try:
            mutants.append(Mutant(**row))
        except TypeError as fault:
            raise TableError(f"{row.get('name', row)}: {fault}") from fault
    names = [mutant.name for mutant in mutants]
    if len(set(names)) != len(names):
        raise TableError("two mutants of one name")
    return [mutant for mutant in mutants if not only or any(word in mutant.name for word in only)]


def require_passing(tree, mutants):
    """The tests that are to notice must pass on the tree as it is."""
    for package in sorted({mutant.package for mutant in mutants}):
        lists = [mutant.tests for mutant in mutants if mutant.package == package]
        tests = sorted({test for tests in lists for test in tests}) if all(lists) else []
        passed, detail = tree.test(package, tests)
        if not passed or detail:
            raise TableError(f"{package} unchanged: {detail or 'fails its tests'}")


def judge_all(trees, mutants):
    """Judges as many at a time as there are trees; prints each verdict, in the table's order."""
    free, verdicts = Queue(), []
    for tree in trees:
        free.put(tree)

    def judge_one(mutant):
        tree, started = free.get(), time.monotonic()
        try:
            return *judge(tree, mutant), time.monotonic() - started
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        for mutant, (verdict, detail, seconds) in zip(mutants, pool.map(judge_one, mutants)):
            print(f"{verdict:9} {seconds:5.0f} s  {mutant.name:56} {detail}", flush=True)
            verdicts.append(verdict)
    return verdicts


def main():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("only", nargs="*", help="mutants whose names contain one of these words")
    parse.add_argument("--jobs", type=int, default=2, help="mutants tested at a time (default: 2)")
    chosen = parse.parse_args()
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
    try:
        mutants = table(chosen.only)
        if not mutants:
            raise TableError("no such mutant")
        trees = [Tree(folder / str(number)) for number in range(chosen.jobs)]
        require_passing(trees[0], mutants)
    except TableError as fault:
        sys.exit(f"mutants: {fault}")
    verdicts = judge_all(trees, mutants)
    print(f"{verdicts.count('caught')} of {len(verdicts)} mutants caught")
    sys.exit(0 if verdicts.count("caught") == len(verdicts) else 1)


if __name__ == "__main__":
    main()
