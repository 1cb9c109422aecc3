#!/usr/bin/env python3
"""linux.py NAMES_SO CPU PROGRAM [ARGUMENT...]: runs a static program on an emulated CPU.

Just enough of Linux for a test binary: memory, standard output, time, exit. A new thread runs at
once and to its end before the one that started it goes on, which is all that the test runner
needs. No files and no signals; what is missing says so. Exits with the program's status, 125
when the program faults or asks for what is not there.
"""
import os
import struct
import sys
import time

import machine

ENOENT, ENOMEM, ENOTTY, ENOSYS = -2, -12, -25, -38
GONE_WRONG = 125

STACK_TOP, STACK_BYTES = 0xF000_0000, 8 << 20
MAPPINGS = 0x4000_0000  # where anonymous mappings begin, above program and heap
MAP_FIXED, PROT_NONE = 0x10, 0
ARCH_SET_FS = 0x1002
FUTEX_WAIT_COMMANDS = (0, 9)
CLONE_VM, CLONE_SETTLS = 0x100, 0x80000
FIRST_THREAD = 100
# What a system call keeps; vector registers are the caller's to save.
KEPT = "rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()


class Program:
    """A static ELF file laid out in memory, with its stack as the kernel would leave it."""

    def __init__(self, memory, arguments):
        self.memory = memory
        with open(arguments[0], "rb") as file:
            elf = file.read()
        if elf[:4] != b"\x7fELF" or struct.unpack_from("<H", elf, 16)[0] != 2:
            raise SystemExit(f"emulate: {arguments[0]} is not a static, position-dependent ELF")
        self.entry, headers_at = struct.unpack_from("<QQ", elf, 24)
        self.headers, self.end = struct.unpack_from("<H", elf, 56)[0], 0
        for index in range(self.headers):
            self._load(elf, headers_at, index)
        self.stack = self._stack(arguments)

    def _load(self, elf, headers_at, index):
        kind, _, at, address, _, in_file, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", elf, headers_at + index * 56
        )
        if kind != 1:
            return
        self.memory.map(address, in_memory)
        self.memory.write(address, elf[at : at + in_file])
        self.end = max(self.end, address + in_memory)
        if at <= headers_at < at + in_file:
            self.headers_address = address + headers_at - at

    def _stack(self, arguments):
        self.memory.map(STACK_TOP - STACK_BYTES, STACK_BYTES)
        top, strings = STACK_TOP - 16, []
        random_bytes = top
        self.memory.write(random_bytes, bytes(range(16)))
        for text in arguments:
            top -= len(text) + 1
            self.memory.write(top, text.encode() + b"\0")
            strings.append(top)
        # AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_ENTRY, AT_RANDOM, AT_SECURE, AT_NULL
        auxiliary = [3, self.headers_address, 4, 56, 5, self.headers, 6, machine.PAGE]
        auxiliary += [9, self.entry, 25, random_bytes, 23, 0, 0, 0]
        words = [len(strings), *strings, 0, 0, *auxiliary]  # no environment
        top = (top - 8 * len(words)) & -16
        self.memory.write(top, struct.pack(f"<{len(words)}Q", *words))
        return top


class Kernel:
    """System calls, by number. A handler takes the CPU and the six arguments."""

    def __init__(self, bochscpu, session, memory, program):
        self.bochscpu, self.session, self.memory = bochscpu, session, memory
        self.heap = self.heap_start = (program.end + 0xFFFF) & -0x10000
        self.next_mapping, self.freed = MAPPINGS, {}
        self.suspended, self.threads = [], 0
        self.status = None
        quiet = {number: 0 for number in (13, 14, 24, 28, 131, 157, 273, 302)}
        quiet |= {39: 1, 186: 1, 218: 1, 16: ENOTTY, 25: ENOMEM, 7: 0}
        quiet |= {number: ENOENT for number in (2, 21, 89, 257, 262, 267)}
        quiet |= {number: ENOSYS for number in (17, 72, 332, 334, 435)}
        self.handlers = {number: lambda *_, r=result: r for number, result in quiet.items()}
        self.handlers |= {
            1: self.write, 20: self.writev, 9: self.mmap, 10: self.mprotect, 11: self.munmap,
            12: self.brk, 158: self.arch_prctl, 202: self.futex, 204: self.affinity,
            228: self.clock, 318: self.random, 56: self.clone, 60: self.exit,
            231: self.exit_group,
        }  # fmt: skip

    def call(self, cpu):
        number = cpu.rax
        arguments = (cpu.rdi, cpu.rsi, cpu.rdx, cpu.r10, cpu.r8, cpu.r9)
        handler = self.handlers.get(number)
        if handler is None:
            self.stop(f"system call {number} is not emulated (234: the program aborted)")
            return
        cpu.rax = handler(cpu, *arguments) & (2**64 - 1)

    def stop(self, why):
        print(f"emulate: {why}", file=sys.stderr)
        self.status = GONE_WRONG
        self.session.stop()

    def write(self, _cpu, file, address, length, *_):
        os.write(file, self.memory.read(address, length))
        return length

    def writev(self, cpu, file, vectors, count, *_):
        parts = struct.unpack(f"<{2 * count}Q", self.memory.read(vectors, 16 * count))
        pairs = zip(parts[::2], parts[1::2])
        return sum(self.write(cpu, file, address, length) for address, length in pairs)

    def mmap(self, _cpu, address, length, protection, flags, *_):
        length = (length + machine.PAGE - 1) & -machine.PAGE
        if flags & MAP_FIXED:
            self.memory.forget(address, length)
        elif self.freed.get(length):
            address = self.freed[length].pop()
        else:
            address, self.next_mapping = self.next_mapping, self.next_mapping + length
            if self.next_mapping > STACK_TOP - STACK_BYTES:
                return ENOMEM
        self.memory.map(address, length, protection != PROT_NONE)
        return address

    def munmap(self, _cpu, address, length, *_):
        length = (length + machine.PAGE - 1) & -machine.PAGE
        self.memory.forget(address, length)
        self.freed.setdefault(length, []).append(address)
        return 0

    def mprotect(self, _cpu, address, length, protection, *_):
        self.memory.map(address, length, protection != PROT_NONE)
        return 0

    def brk(self, _cpu, address, *_):
        if address >= self.heap:
            self.memory.map(self.heap, address - self.heap)
        if self.heap_start <= address < MAPPINGS:
            self.heap = address
        return self.heap

    def arch_prctl(self, cpu, code, base, *_):
        if code != ARCH_SET_FS:
            return ENOSYS
        cpu.fs = machine.data_segment(self.bochscpu, base)
        return 0

    def futex(self, _cpu, _address, command, *_):
        if command & 0x7F in FUTEX_WAIT_COMMANDS:
            self.stop("the program waits for another thread, and there is none")
        return 0

    def affinity(self, _cpu, _pid, length, mask, *_):
        self.memory.write(mask, struct.pack("<Q", 1))
        return 8 if length >= 8 else ENOSYS

    def clock(self, _cpu, _clock, where, *_):
        now = time.monotonic_ns()
        self.memory.write(where, struct.pack("<QQ", now // 10**9, now % 10**9))
        return 0

    def random(self, _cpu, where, length, *_):
        # Fixed bytes: a run is to be repeatable.
        self.memory.write(where, bytes(i * 151 % 256 for i in range(length)))
        return length

    def clone(self, cpu, flags, stack, parent_tid, child_tid, thread_base, *_):
        if flags & (CLONE_VM | CLONE_SETTLS) != CLONE_VM | CLONE_SETTLS:
            return ENOSYS
        self.threads += 1
        thread = FIRST_THREAD + self.threads
        kept = {name: getattr(cpu, name) for name in KEPT}
        self.suspended.append((thread, kept, cpu.fs, child_tid))
        self.memory.write(parent_tid, struct.pack("<I", thread))
        cpu.rsp, cpu.fs = stack, machine.data_segment(self.bochscpu, thread_base)
        return 0

    def exit(self, cpu, status, *_):
        if not self.suspended:
            return self.exit_group(cpu, status)
        thread, kept, cpu.fs, child_tid = self.suspended.pop()
        self.memory.write(child_tid, bytes(4))
        for name, value in kept.items():
            setattr(cpu, name, value)
        return thread

    def exit_group(self, _cpu, status, *_):
        self.status = status & 0xFF
        self.session.stop()
        return 0

    def fault(self, vector):
        cpu = self.session.cpu
        kind = {6: "undefined instruction", 13: "protection", 14: "page fault"}.get(vector, vector)
        where = f" at {cpu.cr2:#x}" if vector == 14 else ""
        self.stop(f"{kind}{where}, instruction {cpu.rip:#x}")


def main():
    names_so, model, *arguments = sys.argv[1:]
    bochscpu = machine.load_library(names_so)
    machine.choose_model(bochscpu, model)
    session = bochscpu.Session()
    memory = machine.Memory(bochscpu)
    session.missing_page_handler = memory.host_page
    memory.map(machine.STUB, machine.PAGE)
    memory.write(machine.STUB, machine.STUB_CODE)
    program = Program(memory, arguments)
    session.cpu.state = machine.start_state(bochscpu, program.entry, program.stack)
    kernel = Kernel(bochscpu, session, memory, program)
    hook = bochscpu.Hook()

    def prefetched(_session, _cpu_id, _what, _segment, offset):
        if offset == machine.HINT:
            kernel.call(session.cpu)

    hook.prefetch_hint = prefetched
    hook.exception = lambda _session, _cpu_id, vector, _error: kernel.fault(int(vector))
    session.run([hook])
    sys.stderr.flush()
    # The wheel's own tear-down is slow and nothing is left to save.
    os._exit(GONE_WRONG if kernel.status is None else kernel.status)


main()
