//! Top-p and top-k: which tokens of a row stay, likeliest first.
use super::Rule;
use super::stats::{weight, weights};
use dllm_cpu::Kernels;

/// Whether the rule drops any token of a row of `vocab`.
pub(super) fn is_used(rule: &Rule, vocab: usize) -> bool {
    rule.top_p < 1.0 || (rule.top_k > 0 && (rule.top_k as usize) < vocab)
}

/// The tokens that stay, sorted by logit, then by token. At least one.
///
/// Top-p, then top-k over what it left. Both keep a prefix of the same order, so that the shorter
/// prefix is the answer, whichever is found first; top-k is the cheaper one.
///
/// `logits` are clean, `largest` is theirs and finite; `scratch` is as long as `logits`.
pub(super) fn kept<'s>(
    kernels: Kernels,
    rule: &Rule,
    logits: &[f32],
    largest: f32,
    scratch: &'s mut [u32],
) -> &'s [u32] {
    let k = rule.top_k as usize;
    if k == 0 || k >= logits.len() {
        return top_p(kernels, rule, logits, largest, scratch);
    }
    let kept = top_k(k, logits, scratch);
    if rule.top_p >= 1.0 {
        return kept;
    }
    let total: f64 = weights(kernels, logits, largest, rule.temperature).sum();
    let mut mass = Mass { sum: 0.0, limit: rule.top_p * total };
    let crossing = mass.crossing(rule, logits, largest, kept);
    &kept[..crossing.unwrap_or(kept.len())]
}

/// The weight of the tokens seen so far, on its way to a limit.
struct Mass {
    sum: f64,
    limit: f64,
}

impl Mass {
    /// Adds the weights of `tokens` until the limit is exceeded; how many that takes.
    fn crossing(
        &mut self,
        rule: &Rule,
        logits: &[f32],
        largest: f32,
        tokens: &[u32],
    ) -> Option<usize> {
        let crosses = |&token: &u32| {
            self.sum += weight(logits[token as usize], largest, rule.temperature);
            self.sum > self.limit
        };
        tokens.iter().position(crosses).map(|index| index + 1)
    }
}

/// Tokens sorted first. Most rows are decided within these.
const FIRST_SORTED: usize = 64;

/// The likeliest tokens, until their probabilities add up to more than `top_p`; the token that
/// crosses it stays. Sorts no more of the row than a few times what is kept.
fn top_p<'s>(
    kernels: Kernels,
    rule: &Rule,
    logits: &[f32],
    largest: f32,
    scratch: &'s mut [u32],
) -> &'s [u32] {
    let (pool, total) = pool(kernels, rule, logits, largest, scratch);
    let mut mass = Mass { sum: 0.0, limit: rule.top_p * total };
    let order = |a: &u32, b: &u32| by_logit(logits, *a, *b);
    let (mut seen, mut batch) = (0, FIRST_SORTED);
    while seen < pool.len() {
        let rest = &mut pool[seen..];
        let count = batch.min(rest.len());
        if count < rest.len() {
            rest.select_nth_unstable_by(count, order);
        }
        let next = &mut rest[..count];
        next.sort_unstable_by(order);
        if let Some(crossing) = mass.crossing(rule, logits, largest, next) {
            return &pool[..seen + crossing];
        }
        seen += count;
        batch *= 4;
    }
    pool
}

/// The tokens that top-p can need, in token order, and the weight of the whole row.
///
/// Tokens of a weight below `(1 - top_p) / vocab` are left out: together they weigh less than
/// `1 - top_p`, at most that share of the total, so the others exceed `top_p` by themselves.
fn pool<'s>(
    kernels: Kernels,
    rule: &Rule,
    logits: &[f32],
    largest: f32,
    scratch: &'s mut [u32],
) -> (&'s mut [u32], f64) {
    // A tenth of the bound, for rounding.
    let least = 0.1 * (1.0 - rule.top_p) / logits.len() as f64;
    let mut total = 0.0;
    let mut count = 0;
    for (token, weight) in (0..).zip(weights(kernels, logits, largest, rule.temperature)) {
        total += weight;
        if weight >= least && weight > 0.0 {
            scratch[count] = token;
            count += 1;
        }
    }
    (&mut scratch[..count], total)
}

/// The `k` largest and whatever equals the last of them, sorted.
fn top_k<'s>(k: usize, logits: &[f32], scratch: &'s mut [u32]) -> &'s [u32] {
    let all = &mut scratch[..logits.len()];
    all.iter_mut().zip(0..).for_each(|(slot, token)| *slot = token);
    let order = |a: &u32, b: &u32| by_logit(logits, *a, *b);
    let (_, &mut last, _) = all.select_nth_unstable_by(k - 1, order);
    let least = logits[last as usize];
    let mut count = k;
    for i in k..all.len() {
        if logits[all[i] as usize] == least {
            all.swap(i, count);
            count += 1;
        }
    }
    let all = &mut all[..count];
    all.sort_unstable_by(order);
    all
}

/// Larger logit first, then the lower token: a total order of clean logits, so unstable sorts have
/// one result.
fn by_logit(logits: &[f32], a: u32, b: u32) -> std::cmp::Ordering {
    logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b))
}
