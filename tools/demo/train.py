"""Trains the demonstration model, from the newest checkpoint if there is one.

    python tokens.py RUN/tokenizer.json
    python train.py RUN --steps 20000

Every batch follows from the seed and the number of its step, so a run that was stopped goes on as
if it had not been, with the same number of workers. Nothing depends on the clock but how often a
checkpoint is written. RUN gets `log.txt` (loss and loss by family, of the first worker's rows) and
`checkpoint.pt`. Each of --workers processes takes
its share of a batch's rows, on one thread: faster than one process with as many threads.
"""

import argparse
import os
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
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
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--fresh", action="store_true", help="ignore a checkpoint")
    return parser.parse_args()


class Log:
    """Means since the last line, over all and by family, of the rows of this process."""

    def __init__(self, path, print_too):
        self.file, self.print_too = open(path, "a", buffering=1), print_too
        self.names = list(tasks.TRAINED)
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
        if self.print_too:
            print(text, flush=True)
        self.file.write(text + "\n")


def save(path, state):
    """Whole or not at all: a file that is being written never has the final name."""
    torch.save(state, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def state_of(model, average, optimizers, step):
    return {
        "config": asdict(model.config),
        "model": model.state_dict(),
        "average": average,
        "optimizers": [o.state_dict() for o in optimizers],
        "step": step,
    }


def train_step(model, optimizers, batch):
    """One update; the loss, and each masked token's loss with its weight and family.

    Both are those of this process's rows, the update that of all.
    """
    total = batch.weight.sum()
    batch = batch.rows(dist.get_rank(), dist.get_world_size())
    hidden = model.hidden(batch.ids, batch.attention_mask()).flatten(0, 1)
    picked = batch.weight.flatten().nonzero()[:, 0]
    weight = batch.weight.flatten()[picked]
    logits = model.logits(hidden[picked])
    losses = F.cross_entropy(logits, batch.targets.flatten()[picked], reduction="none")
    ((losses * weight).sum() / total).backward()
    sum_gradients(model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
    for one in optimizers:
        one.step()
        one.zero_grad(set_to_none=True)
    family = batch.family.reshape(-1)[picked.numpy()]
    losses, weight = losses.detach().numpy(), weight.numpy()
    return (losses * weight).sum() / weight.sum(), losses, weight, family


def sum_gradients(model):
    """Adds up the processes' gradients, in one message."""
    gradients = [weight.grad for weight in model.parameters()]
    whole = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(whole)
    parts = whole.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def work(rank, args, meeting):
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=args.workers
    )
    torch.set_num_threads(1)
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
    log = Log(args.run / "log.txt" if rank == 0 else os.devnull, print_too=rank == 0)
    log.line(f"from step {step}: {vars(args)}")
    saved = time.time()
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
        is_due = time.time() - saved > CHECKPOINT_SECONDS or step == args.steps
        if rank == 0 and is_due:
            save(path, state_of(model, average, optimizers, step))
            saved = time.time()


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        meeting = Path(folder).resolve() / "meeting"
        torch.multiprocessing.spawn(work, (args, meeting), nprocs=args.workers)


if __name__ == "__main__":
    main()
