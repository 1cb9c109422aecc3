"""Batches of masked conversations.

A row holds several conversations, one after the other, the last one's end-of-text tail reaching to
the row's end. The prompt stays visible. Of half of the conversations the answer, its end of turn
and its tail are masked at a rate that is uniform over a batch, of most infill tasks just the holes.
The others are masked as a sampler finds them that commits first what it is surest of: where an
answer has steps, all of them from one on, with or without some of what can be read off the prompt;
others at a high rate. Without that a sum is hardly ever learned: it stands in an answer twice, and
as long as either place is visible the other is a copy.
"""

import random
from dataclasses import dataclass

import numpy as np
import torch

import tasks
from tokens import END_OF_TEXT, END_OF_TURN, MASK

# Tokens of a row, and where a sampler's canvas may end in one so long: a share of the
# conversations is padded to exactly that.
CANVASES = {128: (32, 64), 256: (64, 128, 128)}
CANVAS_SHARE = 0.3
# Tail of the others: enough to learn to stop.
TAIL_MAX = 6
# A tail is easy and long: it counts less than an answer.
TAIL_WEIGHT = 0.1
# One step in this many has long rows: a tail of a hundred is another matter than one of thirty.
LONG_EVERY = 3
# Conversations that are masked from a step on.
STEP_SHARE = 0.5
# Of those, what can be read off the prompt is visible altogether.
READ_OFF_SHARE = 0.5
# Lowest rate of those of them that have no steps.
STEPLESS_RATE_MIN = 0.5
# The first of those steps (and, with the last, the end of the turn) follows from what is visible,
# the others from what is not.
NEXT_STEP_WEIGHT = 4
# Infill tasks that have just their holes masked.
HOLE_SHARE = 0.9
# Conversations looked through for one that fits into what is left of a row. Short ones fit more
# often, so they come more often than their family's share says.
QUEUE = 48


@dataclass
class Conversation:
    family: int
    ids: list
    prompt_len: int
    # Index of the first token of the tail.
    tail: int
    in_hole: list
    # For each token of the answer and the end of turn the number of its step, from 1, or 0.
    step: list
    by_steps: bool


@dataclass
class Batch:
    """ids, targets, weight, family, group: [rows, tokens]; weight is 0 where nothing is masked."""

    ids: torch.Tensor
    targets: torch.Tensor
    weight: torch.Tensor
    family: np.ndarray
    group: torch.Tensor

    def attention_mask(self):
        """0 between tokens of one conversation, -inf elsewhere: [rows, 1, tokens, tokens]."""
        same = self.group[:, None, :, None] == self.group[:, None, None, :]
        return torch.zeros(same.shape).masked_fill_(~same, float("-inf"))

    def rows(self, first, every):
        """The row `first` and every `every`-th after it."""
        parts = (self.ids, self.targets, self.weight, self.family, self.group)
        return Batch(*(part[first::every] for part in parts))


def make(coder, seed, step, tokens):
    """The batch of a step, the same whenever and on whichever run it is made."""
    rng = random.Random(f"{seed} {step}")
    length = max(CANVASES) if step % LONG_EVERY == LONG_EVERY - 1 else min(CANVASES)
    names, weights = list(tasks.TRAINED), tasks.shares(step)
    queue, rows = [], []
    for _ in range(tokens // length):
        row, room = [], length
        while True:
            while len(queue) < QUEUE:
                queue.append(conversation(coder, rng, names, weights, CANVASES[length]))
            fits = next((i for i, c in enumerate(queue) if len(c.ids) <= room), None)
            if fits is None:
                break
            row.append(queue.pop(fits))
            room -= len(row[-1].ids)
        row[-1].ids += [END_OF_TEXT] * room
        rows.append(row)
    return masked(rows, length, np.random.default_rng([seed, step]))


def conversation(coder, rng, names, weights, canvases):
    name, item = tasks.training_item(rng, names, weights)
    prompt = coder.prompt(item.prompt)
    answer, in_hole = coder.answer(item)
    steps = coder.steps(item)
    # Where the last step is masked, its end must not show how long it is.
    steps = [*steps, max(steps)]
    answer = answer + [END_OF_TURN]
    tail = rng.randint(0, TAIL_MAX)
    if rng.random() < CANVAS_SHARE:
        tail = max(0, rng.choice(canvases) - len(answer))
    return Conversation(
        family=names.index(name),
        ids=prompt + answer + [END_OF_TEXT] * tail,
        prompt_len=len(prompt),
        tail=len(prompt) + len(answer),
        in_hole=in_hole if item.holes and rng.random() < HOLE_SHARE else [],
        step=steps,
        by_steps=rng.random() < STEP_SHARE,
    )


def masked(rows, length, rng):
    count = sum(map(len, rows))
    # Stratified: rates lie evenly between 0 and 1, in random order.
    rates = (rng.permutation(count) + rng.random()) / count
    shape = (len(rows), length)
    targets = np.empty(shape, np.int64)
    group, family = np.empty(shape, np.int64), np.empty(shape, np.int64)
    weight = np.zeros(shape, np.float32)
    index = 0
    for row, conversations in enumerate(rows):
        start = 0
        for talk in conversations:
            here = slice(start, start + len(talk.ids))
            targets[row, here] = talk.ids
            group[row, here] = index
            family[row, here] = talk.family
            weight[row, here] = weights_of(talk, rates[index], rng)
            start, index = start + len(talk.ids), index + 1
    ids = np.where(weight > 0, MASK, targets)
    tensors = [torch.from_numpy(part) for part in (ids, targets, weight, group)]
    return Batch(*tensors[:3], family, tensors[3])


def weights_of(talk, rate, rng):
    """What each token counts: 0 where it is visible, at least one token is masked."""
    weight = np.zeros(len(talk.ids), np.float32)
    if talk.in_hole:
        weight[talk.prompt_len :][: len(talk.in_hole)] = talk.in_hole
        return weight
    if talk.by_steps and not max(talk.step):
        rate = STEPLESS_RATE_MIN + (1 - STEPLESS_RATE_MIN) * rate
    elif talk.by_steps and rng.random() < READ_OFF_SHARE:
        rate = 0
    chosen = rng.random(len(talk.ids)) < rate
    next_step = []
    if talk.by_steps and max(talk.step):
        step = np.array(talk.step)
        known = rng.integers(max(step))
        chosen[talk.prompt_len : talk.tail][step > 0] = False
        chosen[talk.prompt_len : talk.tail][step > known] = True
        chosen[talk.tail :] = True
        next_step = step == known + 1
    chosen[: talk.prompt_len] = False
    if not chosen[: talk.tail].any():
        chosen[rng.integers(talk.prompt_len, talk.tail)] = True
    weight[chosen] = 1
    weight[talk.prompt_len : talk.tail][next_step] = NEXT_STEP_WEIGHT
    weight[talk.tail :] *= TAIL_WEIGHT
    return weight
