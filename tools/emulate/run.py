#!/usr/bin/env python3
"""Runs the kernels' tests on emulated CPUs, so that every instruction set is tested on any host.

Builds one test binary statically, runs it on each CPU of the table below, and demands that it
passes and that it says that it ran exactly the kernels which that CPU has. A test says so with a
line that ends in `kernels run: scalar avx2 ...` on standard output. Emulation runs about 24 million
instructions a second: name the tests that are small enough.

Needs python 3.9 or newer, a C compiler, and the network once, for the emulator's wheel.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WHEEL = "bochscpu-python==0.4.0"
TARGET = "x86_64-unknown-linux-gnu"
# The emulator's loader takes neither shared libraries nor relocations.
STATIC = "-C target-feature=+crt-static -C relocation-model=static"

KERNELS = {
    "haswell": {"scalar", "avx2"},
    "arrow_lake": {"scalar", "avx2", "avxvnni"},
    "icelake": {"scalar", "avx2", "avx512vnni"},
    "sapphire_rapids": {"scalar", "avx2", "avxvnni", "avx512vnni"},
}


def options():
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--package", default="dllm-cpu")
    parse.add_argument("--test", default="kernels", help="the test file's name (default: kernels)")
    parse.add_argument("--cpus", default=",".join(KERNELS), help="comma-separated, default: all")
    parse.add_argument("--skip", action="append", default=[], help="tests to leave out")
    parse.add_argument("--jobs", type=int, default=2, help="CPUs emulated at a time (default: 2)")
    parse.add_argument("filters", nargs="*", help="run the tests whose names contain one of these")
    chosen = parse.parse_args()
    chosen.cpus = chosen.cpus.split(",")
    unknown = set(chosen.cpus) - set(KERNELS)
    if unknown:
        parse.error(f"no such CPU: {', '.join(sorted(unknown))}; there are {', '.join(KERNELS)}")
    return chosen


def install(folder):
    """The emulator in a virtual environment, and the small library that its wheel may miss."""
    python, names = folder / "venv/bin/python", folder / "libc_names.so"
    marker = folder / "installed"
    if not marker.exists() or marker.read_text() != WHEEL:
        shutil.rmtree(folder / "venv", ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", WHEEL], check=True)
        marker.write_text(WHEEL)
    source = HERE / "libc_names.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", names, source], check=True)
    return python, names


def build(folder, chosen):
    command = ["cargo", "test", "--package", chosen.package, "--test", chosen.test, "--no-run"]
    command += ["--target", TARGET, "--message-format", "json-render-diagnostics"]
    environment = os.environ | {"RUSTFLAGS": STATIC, "CARGO_TARGET_DIR": str(folder / "build")}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit("emulate: the test binary does not build")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    built = [m["executable"] for m in messages if m.get("executable")]
    if len(built) != 1:
        raise SystemExit(f"emulate: expected one test binary, cargo built {built}")
    return built[0]


def complaints(cpu, status, output):
    """What is wrong with a run, one line each; an empty list if all is well."""
    found = []
    if status != 0:
        found.append(f"exit status {status}")
    passed = re.search(r"^test result: ok\. (\d+) passed", output, re.MULTILINE)
    if passed is None or passed.group(1) == "0":
        found.append("no test passed")
    lines = re.findall(r"kernels run: ([a-z0-9 ]+)$", output, re.MULTILINE)
    ran = set(" ".join(lines).split())
    if ran != KERNELS[cpu]:
        names = " ".join(sorted(ran)) or "none"
        found.append(f"ran kernels {names}; this CPU has {' '.join(sorted(KERNELS[cpu]))}")
    return found


def emulate(cpu, python, names, binary, chosen):
    started = time.monotonic()
    command = [python, HERE / "linux.py", names, cpu, binary, "--test-threads=1", "--nocapture"]
    command += [word for name in chosen.skip for word in ("--skip", name)] + chosen.filters
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = done.stdout.decode(errors="replace")
    found = complaints(cpu, done.returncode, output)
    seconds = time.monotonic() - started
    passed = sum(int(n) for n in re.findall(r"^test result: ok\. (\d+)", output, re.MULTILINE))
    verdict = "; ".join(found) if found else f"{passed} tests, {' '.join(sorted(KERNELS[cpu]))}"
    report = f"{'FAILED' if found else 'ok':6} {cpu:16} {seconds:6.1f} s  {verdict}"
    return not found, f"{output}\n{report}" if found else report


def main():
    chosen = options()
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "emulate"
    folder.mkdir(parents=True, exist_ok=True)
    python, names = install(folder)
    binary = build(folder, chosen)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        runs = [pool.submit(emulate, c, python, names, binary, chosen) for c in chosen.cpus]
        failed = False
        for ok, report in (run.result() for run in runs):
            failed |= not ok
            print(report, flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
