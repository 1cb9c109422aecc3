"""Trains the demonstration model, from the newest checkpoint if there is one.

    python tokens.py RUN/tokenizer.json
    python train.py RUN --steps 20000

Every batch follows from the seed and the number of its step, so a run that was stopped goes on as
if it had not been. Nothing depends on the clock but how often a checkpoint is written. RUN gets
`pid`, `log.txt` (loss and loss by family) and `checkpoint.pt`.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import batches
import optimizer
import quantize
import tasks
from model import Config, Model
from tokens import Coder

SEED = 1
# Tokens of a batch, prompts and tails included: about 80 conversations.
BATCH_TOKENS = 3072
WARM_UP_STEPS = 100
GRADIENT_NORM_MAX = 1.0
CHECKPOINT_SECONDS = 180
LOG_STEPS = 25
FAMILY_LOG_STEPS = 100
# The averaged weights follow the trained ones over about this many steps.
AVERAGE_STEPS = 500


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder with tokenizer.json; gets everything else")
    parser.add_argument("--steps", type=int, default=20_000, help="length of the whole run")
    parser.add_argument("--decay-from", type=int, help="step from which the rate falls to 0; "
                        "80 percent of --steps unless given")
    parser.add_argument("--round-from", type=int, default=1 << 60, help="step from which weights "
                        "are rounded as the quantized file will hold them")
    parser.add_argument("--adam", type=float, default=1.5e-3, help="peak rate of AdamW")
    parser.add_argument("--muon", type=float, default=0.02, help="peak rate of Muon; 0: none")
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="ignore a checkpoint")
    return parser.parse_args()


class Log:
    """Means since the last line, over all and by family."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.names = list(tasks.FAMILIES)
        self.started, self.tokens = time.time(), 0
        self.total, self.count = np.zeros(len(self.names)), np.zeros(len(self.names))
        self.recent = []

    def add(self, step, loss, losses, weights, family, tokens):
        self.recent.append(loss)
        self.tokens += tokens
        self.total += np.bincount(family, losses * weights, len(self.names))
        self.count += np.bincount(family, weights, len(self.names))
        if step % LOG_STEPS == 0:
            speed = self.tokens / (time.time() - self.started)
            self.line(f"step {step} loss {np.mean(self.recent):.4f} {speed:.0f} tokens/s")
            self.recent, self.tokens, self.started = [], 0, time.time()
        if step % FAMILY_LOG_STEPS == 0:
            means = self.total / np.maximum(self.count, 1)
            self.line("  " + " ".join(f"{n} {m:.3f}" for n, m in zip(self.names, means)))
            self.total[:], self.count[:] = 0, 0

    def line(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")


def save(path, state):
    """Whole or not at all: a file that is being written never has the final name."""
    torch.save(state, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def state_of(model, average, optimizers, step):
    return {
        "config": model.config.to_dict(),
        "model": model.state_dict(),
        "average": average,
        "optimizers": [o.state_dict() for o in optimizers],
        "step": step,
    }


def train_step(model, optimizers, batch):
    """One update; the loss, and each masked token's loss with its weight and family."""
    hidden = model.hidden(batch.ids, batch.attention_mask()).flatten(0, 1)
    picked = batch.weight.flatten().nonzero()[:, 0]
    weight = batch.weight.flatten()[picked]
    logits = model.logits(hidden[picked])
    losses = F.cross_entropy(logits, batch.targets.flatten()[picked], reduction="none")
    loss = (losses * weight).sum() / weight.sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
    for one in optimizers:
        one.step()
        one.zero_grad(set_to_none=True)
    family = batch.family.reshape(-1)[picked.numpy()]
    return loss.item(), losses.detach().numpy(), weight.numpy(), family


def main():
    args = arguments()
    (args.run / "pid").write_text(f"{os.getpid()}\n")
    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    coder = Coder(args.run / "tokenizer.json")
    model = Model(Config(), half=True)
    optimizers = optimizer.build(model, args.adam, args.muon, args.weight_decay)
    average = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    path, step = args.run / "checkpoint.pt", 0
    if path.exists() and not args.fresh:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        average, step = state["average"], state["step"]
        for one, its in zip(optimizers, state["optimizers"], strict=True):
            one.load_state_dict(its)
    peaks = (args.adam, args.muon)
    decay_from = args.decay_from or args.steps * 8 // 10
    log, saved = Log(args.run / "log.txt"), time.time()
    log.line(f"from step {step}: {vars(args)}")
    while step < args.steps:
        if step >= args.round_from and model.rounding is None:
            model.round_with(quantize.rounding(model.config.layers))
        share = optimizer.rate(step, WARM_UP_STEPS, decay_from, args.steps)
        for one, peak in zip(optimizers, peaks):
            for group in one.param_groups:
                group["lr"] = peak * share
        batch = batches.make(coder, SEED, step, BATCH_TOKENS)
        result = train_step(model, optimizers, batch)
        step += 1
        log.add(step, *result, tokens=batch.ids.numel())
        # Sooner at the start, where the weights still change a lot.
        follow = 1 / min(AVERAGE_STEPS, 1 + step / 5)
        for name, weight in model.named_parameters():
            average[name].lerp_(weight.detach(), follow)
        if time.time() - saved > CHECKPOINT_SECONDS or step == args.steps:
            save(path, state_of(model, average, optimizers, step))
            saved = time.time()


if __name__ == "__main__":
    main()
