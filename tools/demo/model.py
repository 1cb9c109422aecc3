"""The demonstration model: LLaDA's architecture, a Llama block without a causal mask.

RMSNorm before attention and before the SwiGLU feed-forward, rotary positions on adjacent pairs
(as GGUF's `llada` expects them, so that no row is permuted when the weights are exported), no
biases, an output of its own. Rows hold several conversations one after the other; a mask keeps
them apart. Positions are relative, so a conversation may stand anywhere in a row.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Config:
    """Sizes. Widths are multiples of 256, the length of a Q4_K super-block."""

    vocab: int = 2048
    width: int = 256
    layers: int = 4
    heads: int = 8
    ff: int = 1024
    # Small: a conversation is some fifty tokens long, and places are told apart by the fast pairs.
    theta: float = 500.0
    norm_eps: float = 1e-5
    row_tokens: int = 256


# Matrices of a block, with the names that GGUF gives them.
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class Block(nn.Module):
    """One layer. `rounding(name, weight)`, where set, gives the weights that are computed with."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.rounding = None
        width, ff = config.width, config.ff
        shapes = {"ffn_gate": (ff, width), "ffn_up": (ff, width), "ffn_down": (width, ff)}
        for name in MATRICES:
            rows, columns = shapes.get(name, (width, width))
            std = 0.6 * columns**-0.5
            if name in ("attn_output", "ffn_down"):
                std /= (2 * config.layers) ** 0.5
            self.register_parameter(name, nn.Parameter(torch.randn(rows, columns) * std))
        self.attn_norm = nn.Parameter(torch.ones(width))
        self.ffn_norm = nn.Parameter(torch.ones(width))

    def linear(self, x, name):
        weight = getattr(self, name)
        return F.linear(x, self.rounding(name, weight) if self.rounding else weight)

    def forward(self, x, cos, sin, mask):
        """x: [rows, tokens, width]; mask: what a token may see, [rows, 1, tokens, tokens]."""
        rows, tokens, width = x.shape
        heads = (rows, tokens, self.config.heads, width // self.config.heads)
        h = norm(x, self.attn_norm, self.config.norm_eps)
        q = rotate(self.linear(h, "attn_q").view(heads), cos, sin).transpose(1, 2)
        k = rotate(self.linear(h, "attn_k").view(heads), cos, sin).transpose(1, 2)
        v = self.linear(h, "attn_v").view(heads).transpose(1, 2)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        seen = seen.transpose(1, 2).reshape(rows, tokens, width)
        x = x + self.linear(seen, "attn_output").float()
        h = norm(x, self.ffn_norm, self.config.norm_eps)
        gated = F.silu(self.linear(h, "ffn_gate")) * self.linear(h, "ffn_up")
        return x + self.linear(gated, "ffn_down").float()


class Model(nn.Module):
    """`half`: matrix products in bfloat16, the residual stream and the norms in f32."""

    def __init__(self, config, half=False):
        super().__init__()
        self.config = config
        self.half = half
        self.rounding = None
        # 0.5: with 0.02 the first layers see almost nothing and copying takes far longer.
        self.token_embd = nn.Parameter(torch.randn(config.vocab, config.width) * 0.5)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.output_norm = nn.Parameter(torch.ones(config.width))
        self.output = nn.Parameter(torch.randn(config.vocab, config.width) * 0.02)
        pairs = config.width // config.heads // 2
        frequency = config.theta ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
        angle = torch.outer(torch.arange(config.row_tokens, dtype=torch.float64), frequency)
        self.register_buffer("cos", angle.cos().float()[:, None], persistent=False)
        self.register_buffer("sin", angle.sin().float()[:, None], persistent=False)

    def hidden(self, ids, mask):
        """ids: [rows, tokens]; the last layer's residual stream, [rows, tokens, width] f32."""
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        table = self.token_embd
        x = F.embedding(ids, self.rounding("token_embd", table) if self.rounding else table)
        if self.half:
            mask = None if mask is None else mask.bfloat16()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            for block in self.blocks:
                x = block(x, cos, sin, mask)
        return x

    def logits(self, hidden):
        """hidden: [..., width]; f32 logits of all tokens, [..., vocab]."""
        h = norm(hidden, self.output_norm, self.config.norm_eps)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            weight = self.rounding("output", self.output) if self.rounding else self.output
            return F.linear(h, weight).float()

    def round_with(self, rounding):
        """Computes with `rounding(name, weight)` from now on; names as in the exported file."""
        self.rounding = rounding
        for index, block in enumerate(self.blocks):
            block.rounding = rounding and (
                lambda name, weight, index=index: rounding(f"blk.{index}.{name}", weight)
            )

    def forward(self, ids, mask=None):
        return self.logits(self.hidden(ids, mask))


def norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rotate(x, cos, sin):
    """x: [rows, tokens, heads, head width]; turns the pairs (0, 1), (2, 3), ..."""
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2).to(x.dtype)


def matrices(model):
    """(name, weight) in the order of the exported file."""
    yield "token_embd", model.token_embd
    for index, block in enumerate(model.blocks):
        for name in MATRICES:
            yield f"blk.{index}.{name}", getattr(block, name)
    yield "output", model.output
