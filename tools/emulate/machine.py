"""An emulated x86-64 machine for one static Linux program: the CPU's model, memory and registers.

The program runs in ring 0 over an identity map of 4 KiB pages, so that a page which the program
protects faults as it would under Linux. There is one CPU and no operating system: a system call
lands on a stub whose first instruction (a prefetch of an odd address) calls back into Python.
"""
import ctypes
import struct

# Bochs' CPU models by the name used here. haswell: AVX2 alone; arrow_lake: AVX-VNNI;
# icelake: AVX512-VNNI; sapphire_rapids: all of them.
MODELS = {
    "haswell": "create_corei7_haswell_4770_cpuid",
    "arrow_lake": "create_arrow_lake_cpuid",
    "icelake": "create_corei7_icelake_u_cpuid",
    "sapphire_rapids": "create_sapphire_rapids_cpuid",
}
BUILT_IN = "create_corei3_cnl_cpuid"

PAGE = 4096
SPAN = 4 << 30  # identity-mapped addresses: all that a program gets
TABLES = 64 << 30  # the page tables' physical address, outside the map
DIRECTORIES = TABLES + 2 * PAGE  # four of them, 1 GiB each
LEAVES = TABLES + 16 * PAGE  # one page of entries for each 2 MiB
PRESENT_WRITABLE = 3

STUB = 0x1000
HINT = 0xF4F4  # the address that the stub prefetches
# prefetcht0 [HINT]; mov r11, cr3; mov cr3, r11 (forgets translations: a page may have been
# protected); jmp rcx (where `syscall` left the return address; the program stays in ring 0)
STUB_CODE = (
    bytes.fromhex("0f180c25") + struct.pack("<I", HINT) + bytes.fromhex("410f20db410f22dbffe1")
)


def load_library(names_so):
    """Imports the wheel, after the C library names that it may miss."""
    ctypes.CDLL(names_so, ctypes.RTLD_GLOBAL)
    import bochscpu
    import bochscpu.cpu
    import bochscpu.memory

    return bochscpu


def choose_model(bochscpu, model):
    """The wheel always makes a Cannon Lake: its factory is made to jump to the wanted model's."""
    library = ctypes.CDLL(bochscpu._bochscpu.__file__)

    def address(name):
        symbol = getattr(library, f"_Z{len(name)}{name}P8BX_CPU_C")
        return ctypes.cast(symbol, ctypes.c_void_p).value

    built_in, wanted = address(BUILT_IN), address(MODELS[model])
    page = ctypes.c_void_p(built_in & -PAGE)
    if ctypes.CDLL(None).mprotect(page, ctypes.c_size_t(2 * PAGE), 7) != 0:
        raise SystemExit("emulate: cannot make the CPU factory writable")
    jump = b"\x48\xb8" + struct.pack("<Q", wanted) + b"\xff\xe0"  # mov rax, wanted; jmp rax
    ctypes.memmove(built_in, jump, len(jump))


class Memory:
    """Pages that appear when touched. Nothing is readable until `map` has said so."""

    def __init__(self, bochscpu):
        self.pages = bochscpu.memory
        self.host = {}

    def host_page(self, address):
        page = address & -PAGE
        if page not in self.host:
            self.host[page] = self.pages.allocate_host_page()
            self.pages.page_insert(page, self.host[page])
            self._fill_table(page)
        return self.host[page] + (address & (PAGE - 1))

    def _fill_table(self, page):
        """The upper three levels are fixed; `map` writes the last one."""
        if page == TABLES:
            entries = [TABLES + PAGE]
        elif page == TABLES + PAGE:
            entries = [DIRECTORIES + i * PAGE for i in range(SPAN >> 30)]
        elif DIRECTORIES <= page < LEAVES:
            first = (page - DIRECTORIES) // PAGE * 512
            entries = [LEAVES + (first + i) * PAGE for i in range(512)]
        else:
            return
        packed = struct.pack(f"<{len(entries)}Q", *(e | PRESENT_WRITABLE for e in entries))
        ctypes.memmove(self.host[page], packed, len(packed))

    def map(self, start, length, present=True):
        """Makes the pages of `[start, start + length)` accessible, or not."""
        for page in range(start & -PAGE, start + length, PAGE):
            if not 0 <= page < SPAN:
                raise SystemExit(f"emulate: the program wants the address {page:#x}")
            entry = page | PRESENT_WRITABLE if present else 0
            ctypes.memmove(self.host_page(LEAVES + page // PAGE * 8), struct.pack("<Q", entry), 8)

    def forget(self, start, length):
        """Unmaps, and gives the pages' contents up: mapped again they read as zeros."""
        self.map(start, length, present=False)
        for page in range(start & -PAGE, start + length, PAGE):
            if page in self.host:
                ctypes.memset(self.host[page], 0, PAGE)

    def _chunks(self, address, length):
        done = 0
        while done < length:
            part = min(length - done, PAGE - ((address + done) & (PAGE - 1)))
            yield done, part, self.host_page(address + done)
            done += part

    def write(self, address, data):
        for done, part, host in self._chunks(address, len(data)):
            ctypes.memmove(host, data[done : done + part], part)

    def read(self, address, length):
        return b"".join(ctypes.string_at(h, part) for _, part, h in self._chunks(address, length))


def segment(bochscpu, selector, attributes, base=0):
    made = bochscpu.Segment()
    made.present, made.selector, made.limit = True, selector, 0xFFFFFFFF
    made.attr, made.base = attributes, base
    return made


def data_segment(bochscpu, base=0):
    return segment(bochscpu, 0x18, 0xC93, base)


def start_state(bochscpu, entry, stack):
    """Registers at the program's first instruction: 64-bit mode, all vector state enabled."""
    state = bochscpu.State()
    bochscpu.cpu.set_long_mode(state)
    state.cr0 = 0x80000033  # paging, protection, native floating-point errors
    # PAE, OSFXSR, OSXMMEXCPT, FSGSBASE, OSXSAVE
    state.cr4 = (1 << 5) | (1 << 9) | (1 << 10) | (1 << 16) | (1 << 18)
    state.efer = 0xD01  # long mode, no-execute, `syscall`
    state.cr3 = TABLES
    state.xcr0 = 0xE7  # x87, SSE, AVX, AVX-512
    state.lstar, state.star, state.sfmask = STUB, (0x10 << 32) | (0x23 << 48), 0
    state.rip, state.rsp, state.rflags = entry, stack, 2
    state.mxcsr, state.mxcsr_mask, state.fpcw = 0x1F80, 0xFFFF, 0x37F
    state.cs = segment(bochscpu, 0x10, 0x209B)
    data = data_segment(bochscpu)
    state.ds = state.ss = state.es = state.fs = state.gs = data
    return state
