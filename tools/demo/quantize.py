"""Q4_K and Q6_K, the block formats of Q4_K_M: rounding, and packing as GGUF stores them.

A super-block is 256 weights of a row. Q4_K has 8 sub-blocks of 32 weights with
`value = d * scale * code - dmin * min` (code 0 to 15; scale and min 0 to 63; d, dmin f16); Q6_K has
16 sub-blocks of 16 with `value = d * scale * code` (code -32 to 31, scale a signed byte, d f16).
Formats as the package `gguf` decodes them.
"""

from dataclasses import dataclass

import torch

SUPER_BLOCK = 256
# Ranges tried for a sub-block, as shares of the one that reaches its outermost weights: a smaller
# one clips these and rounds all others finer.
SHARES = (1.0, 0.96, 0.92, 0.88, 0.84)


@dataclass
class Q4K:
    """d, dmin: [n, 1, 1] f32; scale, min: [n, 8, 1]; code: [n, 8, 32]."""

    d: torch.Tensor
    dmin: torch.Tensor
    scale: torch.Tensor
    min: torch.Tensor
    code: torch.Tensor

    @staticmethod
    def of(weights):
        """weights: [..., columns], columns a multiple of 256."""
        x = weights.reshape(-1, 8, 32)
        scale, low = best_range(x)
        d = half(scale.amax(1, keepdim=True) / 63)
        dmin = half(low.amax(1, keepdim=True) / 63)
        scale = quotient(scale, d).round().clamp(0, 63)
        low = quotient(low, dmin).round().clamp(0, 63)
        code = quotient(x + dmin * low, d * scale).round().clamp(0, 15)
        return Q4K(d, dmin, scale, low, code)

    def values(self):
        return self.d * self.scale * self.code - self.dmin * self.min

    def packed(self):
        """[n, 144] bytes."""
        scale, low, code = (part.to(torch.uint8) for part in (self.scale, self.min, self.code))
        scale, low = scale[..., 0], low[..., 0]
        scales = torch.cat(
            [
                scale[:, :4] | (scale[:, 4:] >> 4) << 6,
                low[:, :4] | (low[:, 4:] >> 4) << 6,
                scale[:, 4:] & 15 | (low[:, 4:] & 15) << 4,
            ],
            1,
        )
        pairs = code.view(-1, 4, 2, 32)
        codes = (pairs[:, :, 0] | pairs[:, :, 1] << 4).view(-1, 128)
        return torch.cat([f16_bytes(self.d), f16_bytes(self.dmin), scales, codes], 1)


@dataclass
class Q6K:
    """d: [n, 1, 1] f32; scale: [n, 16, 1]; code: [n, 16, 16]."""

    d: torch.Tensor
    scale: torch.Tensor
    code: torch.Tensor

    @staticmethod
    def of(weights):
        """weights: [..., columns], columns a multiple of 256."""
        x = weights.reshape(-1, 16, 16)
        index = x.abs().argmax(-1, keepdim=True)
        # The outermost weight gets code -32, so that the range is used in full.
        scale = best_scale(x, x.gather(-1, index) / -32)
        d = half(scale.abs().amax(1, keepdim=True) / 127)
        scale = quotient(scale, d).round().clamp(-127, 127)
        code = quotient(x, d * scale).round().clamp(-32, 31)
        return Q6K(d, scale, code)

    def values(self):
        return self.d * self.scale * self.code

    def packed(self):
        """[n, 210] bytes."""
        code = (self.code + 32).to(torch.uint8).view(-1, 2, 4, 32)
        one, two, three, four = code.unbind(2)
        low = torch.cat([one & 15 | (three & 15) << 4, two & 15 | (four & 15) << 4], -1)
        high = one >> 4 | (two >> 4) << 2 | (three >> 4) << 4 | (four >> 4) << 6
        scale = self.scale[..., 0].to(torch.int8).view(torch.uint8)
        return torch.cat([low.reshape(-1, 128), high.reshape(-1, 64), scale, f16_bytes(self.d)], 1)


def kind_of(name, layers):
    """The format of a matrix in a Q4_K_M file: llama.cpp's rule, as real files have it."""
    if name == "output":
        return Q6K
    if not name.endswith(("attn_v", "ffn_down")):
        return Q4K
    layer, eighth = int(name.split(".")[1]), layers // 8
    finer = layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
    return Q6K if finer else Q4K


def rounding(layers):
    """For `Model.round_with`: what the file will hold; gradients pass as if nothing were done."""

    def rounded(name, weight):
        with torch.no_grad():
            values = kind_of(name, layers).of(weight).values().view_as(weight)
        return weight + (values - weight).detach()

    return rounded


def best_range(x):
    """The scale and the (positive) min of sub-blocks that lose least: [..., 1] each."""
    low = x.amin(-1, keepdim=True).clamp(max=0)
    width = (x.amax(-1, keepdim=True) - low).clamp(min=0)
    best = None
    for share in SHARES:
        scale, least = fit(x, quotient(x - low, width * share / 15).round().clamp(0, 15))
        code = quotient(x + least, scale).round().clamp(0, 15)
        loss = (scale * code - least - x).square().sum(-1, keepdim=True)
        found = (loss, scale, least)
        best = found if best is None else pick(loss < best[0], found, best)
    return best[1], best[2]


def fit(x, code):
    """Least squares of `x = scale * code - min` over a sub-block, with min and scale >= 0."""
    mean_code, mean_x = code.mean(-1, keepdim=True), x.mean(-1, keepdim=True)
    spread = (code - mean_code).square().sum(-1, keepdim=True)
    scale = quotient(((code - mean_code) * (x - mean_x)).sum(-1, keepdim=True), spread)
    low = scale * mean_code - mean_x
    through_zero = quotient((code * x).sum(-1, keepdim=True), code.square().sum(-1, keepdim=True))
    return torch.where(low < 0, through_zero, scale).clamp(min=0), low.clamp(min=0)


def best_scale(x, widest):
    """The signed scale of sub-blocks that loses least, [..., 1]."""
    best = None
    for share in SHARES:
        code = quotient(x, widest * share).round().clamp(-32, 31)
        scale = quotient((code * x).sum(-1, keepdim=True), code.square().sum(-1, keepdim=True))
        loss = (scale * code - x).square().sum(-1, keepdim=True)
        found = (loss, scale)
        best = found if best is None else pick(loss < best[0], found, best)
    return best[1]


def pick(better, found, best):
    return tuple(torch.where(better, new, old) for new, old in zip(found, best))


def quotient(a, b):
    """a / b, and 0 where b is 0."""
    return torch.where(b == 0, 0.0, a / torch.where(b == 0, 1.0, b))


def half(x):
    return x.half().float()


def f16_bytes(x):
    return x.view(-1, 1).half().view(torch.uint8)
