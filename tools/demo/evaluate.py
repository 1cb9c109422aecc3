"""Exact match on the held-out items, by LLaDA's sampler: blocks of 32, one token a step.

    python evaluate.py RUN/checkpoint.pt RUN/tokenizer.json [--items 40] [--canvas 32] [FAMILY...]

At each step the masked token of the block that the model is surest of is committed (temperature
0). A row is finished when everything in front of the first end token is committed; what would
come later cannot change the text. Infill tasks have the answer without its holes as their canvas.
"""

import argparse
import json
import time
from pathlib import Path

import torch

import tasks
from model import Config, Model, matrices
from quantize import kind_of
from tokens import END_OF_TEXT, END_OF_TURN, MASK, Coder

BLOCK = 32


def load(path, raw=False, rounded=False):
    """The averaged weights of a checkpoint (those last trained if `raw`), to compute in f32.

    `rounded`: each matrix is what a Q4_K_M file would hold.
    """
    state = torch.load(path, map_location="cpu")
    model = Model(Config(**state["config"]))
    model.load_state_dict(state["model"] if raw else state["average"])
    if rounded:
        with torch.no_grad():
            for name, weight in matrices(model):
                weight.copy_(kind_of(name, model.config.layers).of(weight).values().view_as(weight))
    return model.eval(), state["step"]


def canvas_of(coder, item, length):
    """(prompt ids, canvas ids): all masks, or for an infill task the answer with its holes."""
    prompt = coder.prompt(item.prompt)
    if not item.holes:
        return prompt, [MASK] * length
    answer, in_hole = coder.answer(item)
    return prompt, [MASK if hole else i for i, hole in zip(answer, in_hole)] + [END_OF_TURN]


@torch.no_grad()
def generate(model, canvases):
    """[(prompt ids, canvas ids)]: the canvases filled in, and the forward passes of each."""
    length = max(len(p) + len(c) for p, c in canvases)
    ids = torch.full((len(canvases), length), END_OF_TEXT)
    used = torch.zeros(ids.shape, dtype=torch.bool)
    start = torch.tensor([len(p) for p, _ in canvases])
    for row, (prompt, canvas) in enumerate(canvases):
        ids[row, : len(prompt) + len(canvas)] = torch.tensor(prompt + canvas)
        used[row, : len(prompt) + len(canvas)] = True
    # Which block of its canvas a place belongs to.
    block = (torch.arange(length) - start[:, None]).div(BLOCK, rounding_mode="floor")
    passes = torch.zeros(len(canvases), dtype=torch.long)
    live = unfinished(ids, start)
    while len(live):
        same = used[live][:, :, None] == used[live][:, None, :]
        mask = torch.zeros(same.shape).masked_fill_(~same, float("-inf"))[:, None]
        logits = model(ids[live], mask)
        logits[..., MASK] = float("-inf")
        sure, best = logits.softmax(-1).max(-1)
        open_ = ids[live] == MASK
        first = torch.where(open_, block[live], length).amin(1, keepdim=True)
        sure[~open_ | (block[live] != first)] = -1
        at = sure.argmax(1)
        ids[live, at] = best[torch.arange(len(live)), at]
        passes[live] += 1
        live = live[torch.isin(live, unfinished(ids, start))]
    filled = [ids[r, len(p) : len(p) + len(c)].tolist() for r, (p, c) in enumerate(canvases)]
    return filled, passes.tolist()


def unfinished(ids, start):
    """Rows with a mask in front of their first end token."""
    place = torch.arange(ids.shape[1])
    answer = place >= start[:, None]
    end = ((ids == END_OF_TURN) | (ids == END_OF_TEXT)) & answer
    first_end = torch.where(end, place, ids.shape[1]).amin(1)
    first_mask = torch.where(ids == MASK, place, ids.shape[1]).amin(1)
    return ((first_mask < first_end) & (first_mask < ids.shape[1])).nonzero()[:, 0]


def score(model, coder, name, count, length, show):
    """(right, items, forward passes) of a family; prints the first wrong answers."""
    items = tasks.held_items(name, count)
    filled, passes = generate(model, [canvas_of(coder, item, length) for item in items])
    said = [coder.text(ids) for ids in filled]
    wrong = [(item, text) for item, text in zip(items, said) if text != item.answer]
    for item, text in wrong[:show]:
        print(f"    {item.prompt!r}: {text!r}, not {item.answer!r}")
    return len(items) - len(wrong), len(items), sum(passes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("tokenizer")
    parser.add_argument("families", nargs="*", default=list(tasks.FAMILIES))
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--canvas", type=int, default=32, help="tokens of an answer that is to be "
                        "written whole; 32 hold every one")
    parser.add_argument("--show", type=int, default=2)
    parser.add_argument("--json", help="file to write the scores to as well")
    parser.add_argument("--raw", action="store_true", help="not the averaged weights")
    parser.add_argument("--rounded", action="store_true", help="matrices as in a Q4_K_M file")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model, step = load(args.checkpoint, args.raw, args.rounded)
    coder = Coder(args.tokenizer)
    print(f"step {step}")
    total, families = [0, 0, 0], {}
    for name in args.families:
        began = time.time()
        its = right, count, passes = score(model, coder, name, args.items, args.canvas, args.show)
        print(f"{name:12} {right:3} of {count:3} {100 * right / count:5.1f} %"
              f"  {passes / count:4.1f} passes  {time.time() - began:4.1f} s", flush=True)
        families[name] = counts(*its)
        total = [a + b for a, b in zip(total, its)]
    print(f"{'all':12} {total[0]} of {total[1]} {100 * total[0] / total[1]:.1f} %")
    if args.json:
        result = counts(*total) | {"step": step, "canvas": args.canvas, "per_family": families}
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")


def counts(right, items, passes):
    return {"items": items, "right": right, "forward_passes_per_answer": passes / items}


if __name__ == "__main__":
    main()
