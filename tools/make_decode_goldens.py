"""Writes kernels/cpu/tests/data/<TYPE>.golden: blocks and what the gguf package decodes them to.

    pip install gguf==0.19.0 numpy==2.4.6
    python tools/make_decode_goldens.py

A file is n blocks as they lie in a GGUF file, then the n * block_weights decoded f32,
little-endian. The blocks are the same on every run. The first of them are adversarial: zeros,
codes and scales at their largest, f16 scales that are subnormal, negative, the largest finite,
minus zero. NaN and infinity are left out, as a file that has one is refused.
"""

import random
import struct
from pathlib import Path

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

OUT = Path(__file__).resolve().parent.parent / "kernels" / "cpu" / "tests" / "data"

# Where a block keeps its f16 scale and, if it has one, its f16 min.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_XS": [0],
}

# f16 bits (scale, min) and the byte that fills the rest of the block, None for random bytes.
ADVERSARIAL = [
    (0x0000, 0x0000, 0x00),  # all zero
    (0x7BFF, 0x7BFF, 0xFF),  # the largest finite scale and min, everything else at its maximum
    (0xFBFF, 0x7BFF, 0x7F),  # the most negative scale; signed bytes at their maximum
    (0x3C00, 0xBC00, 0x80),  # 1 and -1; signed bytes at their minimum
    (0x0001, 0x8001, None),  # the smallest subnormals
    (0x83FF, 0x03FF, None),  # the largest subnormals
    (0x8000, 0x8000, None),  # minus zero
    (0x0400, 0x8400, None),  # the smallest normals
    (0xB5C3, 0xA91E, None),  # ordinary, negative
    (0x2E66, 0x3107, 0xF0),  # ordinary; nibbles that differ
]
RANDOM_BLOCKS = 4

# f16 bits at every edge of their range; for bf16 they are as good as any.
FLOAT_BITS = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF]
FLOATS = 64


def ordinary_half(rng: random.Random) -> int:
    """Bits of an f16 of either sign between 2^-13 and 2."""
    return rng.randrange(2) << 15 | rng.randrange(2, 16) << 10 | rng.randrange(1 << 10)


def make_block(rng: random.Random, size: int, halves: list[int], bits, fill) -> bytes:
    block = bytearray(rng.randbytes(size) if fill is None else bytes([fill]) * size)
    for offset, half in zip(halves, bits):
        struct.pack_into("<H", block, offset, half)
    return bytes(block)


def quant_blocks(name: str, size: int) -> bytes:
    rng = random.Random(f"decode {name}")
    halves = HALVES[name]
    blocks = [make_block(rng, size, halves, (d, m), fill) for d, m, fill in ADVERSARIAL]
    for _ in range(RANDOM_BLOCKS):
        bits = (ordinary_half(rng), ordinary_half(rng))
        blocks.append(make_block(rng, size, halves, bits, None))
    return b"".join(blocks)


def float_elements(name: str) -> bytes:
    rng = random.Random(f"decode {name}")
    bits = FLOAT_BITS + [ordinary_half(rng) for _ in range(FLOATS - len(FLOAT_BITS))]
    if name == "F32":
        return struct.pack(f"<{FLOATS}I", *[b << 16 | rng.randrange(1 << 16) for b in bits])
    return struct.pack(f"<{FLOATS}H", *bits)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in ["F32", "F16", "BF16", *HALVES]:
        qtype = GGMLQuantizationType[name]
        weights, size = GGML_QUANT_SIZES[qtype]
        blocks = quant_blocks(name, size) if name in HALVES else float_elements(name)
        raw = np.frombuffer(blocks, dtype=np.uint8).reshape(1, -1)
        values = np.asarray(dequantize(raw, qtype), dtype="<f4").ravel()
        assert values.size == len(blocks) // size * weights
        assert np.isfinite(values).all(), name
        (OUT / f"{name}.golden").write_bytes(blocks + values.tobytes())


if __name__ == "__main__":
    main()
