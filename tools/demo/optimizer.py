"""The optimiser: Muon for the blocks' matrices, AdamW for the rest; and the schedule."""

import torch
import torch.distributed as dist

# Quintic that pulls all singular values towards 1 (Jordan et al., Muon, 2024).
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, for matrices; each process does a share of them."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            weights = group["params"]
            for weight, update in zip(weights, self.updates(group), strict=True):
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)

    def updates(self, group):
        """The orthogonal updates of all weights, on every process."""
        weights = group["params"]
        whole = torch.zeros(sum(weight.numel() for weight in weights))
        updates = whole.split([weight.numel() for weight in weights])
        for index, (weight, update) in enumerate(zip(weights, updates, strict=True)):
            state = self.state[weight]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(weight)
            state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
            if index % dist.get_world_size() == dist.get_rank():
                ahead = weight.grad.lerp(state["momentum"], group["momentum"])
                update.copy_(orthogonal(ahead).flatten())
        dist.all_reduce(whole)
        return [update.view_as(weight) for weight, update in zip(weights, updates, strict=True)]


def orthogonal(matrix):
    a, b, c = NEWTON_SCHULZ
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).bfloat16()
    x = x / (x.norm() + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x.T if tall else x).float()


def rate(step, warm_up, decay_from, steps):
    """Share of the peak rate: a linear rise, constant, and from `decay_from` a linear fall."""
    if step < warm_up:
        return (step + 1) / warm_up
    if step < decay_from:
        return 1.0
    return max(0.0, (steps - step) / (steps - decay_from))


def build(model, adam_rate, muon_rate, weight_decay):
    """Both optimisers; with a Muon rate of 0 AdamW does it all."""
    matrices = [p for n, p in model.named_parameters() if n.startswith("blocks.") and p.dim() == 2]
    inside = {id(p) for p in matrices} if muon_rate else set()
    rest = [p for p in model.parameters() if id(p) not in inside]
    both = [torch.optim.AdamW(rest, adam_rate, (0.9, 0.98), weight_decay=weight_decay, fused=True)]
    if muon_rate:
        both.append(Muon(matrices, muon_rate, weight_decay=weight_decay))
    return both
