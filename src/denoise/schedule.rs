//! The schedule of the plain loops: how many masks a step commits (num_transfer_tokens), by LLaDA's
//! shares of a block or Dream's list of times.

/// The generated part cut into blocks, with the steps of each. Without a generated part: one block
/// of no positions of its own, which gets all steps (for the holes of the prompt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    max_tokens: u32,
    block_length: u32,
    steps: u32,
}

impl Blocks {
    /// `steps` are raised to one a block where they are fewer. `block_length` is at least 1.
    pub(super) fn new(max_tokens: u32, block_length: u32, steps: u32) -> Blocks {
        let blocks = max_tokens.div_ceil(block_length);
        Blocks { max_tokens, block_length, steps: steps.max(blocks) }
    }

    /// Steps of all blocks.
    pub(super) fn steps_total(self) -> u32 {
        self.steps
    }

    /// Generated positions up to the end of `block`.
    pub(super) fn end(self, block: u32) -> u32 {
        let end = (u64::from(block) + 1) * u64::from(self.block_length);
        end.min(u64::from(self.max_tokens)) as u32
    }

    /// Generated positions left of `block`.
    pub(super) fn start(self, block: u32) -> u32 {
        if block == 0 { 0 } else { self.end(block - 1) }
    }

    /// Steps of `block`: those that fall into it when all are spread evenly over the generated
    /// part. At least 1, since there is no less than a step a block.
    pub(super) fn steps(self, block: u32) -> u32 {
        if self.max_tokens == 0 {
            return self.steps;
        }
        let until = |end: u32| u64::from(self.steps) * u64::from(end) / u64::from(self.max_tokens);
        (until(self.end(block)) - until(self.start(block))) as u32
    }
}

/// Masks that step `index` of `steps` commits of the `masks` there were before the first: an equal
/// share, and one more for the earliest steps until the remainder is used up.
pub(super) fn share(masks: u32, steps: u32, index: u32) -> u32 {
    masks / steps + u32::from(index < masks % steps)
}

/// Dream: the part of the masks that leaves at `step` of `steps`, `1 - s/t` with t and s the times
/// before and after it; 1 at the last step. In `f32`, operation by operation, as the reference
/// computes it: the truncated product with the number of masks depends on the rounding.
pub(super) fn leaving(eps: f64, steps: u32, step: u32) -> f32 {
    if step + 1 >= steps {
        return 1.0;
    }
    1.0 - time(eps, steps, step + 1) / time(eps, steps, step)
}

/// Point `index` of `steps + 1` evenly spaced times from 1 down to `eps`; the lower half is counted
/// from 1 and the upper from `eps`, as PyTorch's `linspace` does.
fn time(eps: f64, steps: u32, index: u32) -> f32 {
    let end = eps as f32;
    let spacing = (end - 1.0) / steps as f32;
    if index < steps.div_ceil(2) {
        1.0 + spacing * index as f32
    } else {
        end - spacing * (steps - index) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_steps(max_tokens: u32, block_length: u32, steps: u32) -> Vec<u32> {
        let blocks = Blocks::new(max_tokens, block_length, steps);
        let count = max_tokens.div_ceil(block_length).max(1);
        (0..count).map(|block| blocks.steps(block)).collect()
    }

    #[test]
    fn steps_are_shared_in_proportion() {
        assert_eq!(block_steps(128, 32, 64), [16; 4]);
        assert_eq!(block_steps(40, 16, 20), [8, 8, 4]);
        assert_eq!(block_steps(33, 32, 33), [32, 1]);
        assert_eq!(block_steps(33, 32, 2), [1, 1]);
        assert_eq!(block_steps(128, 32, 6), [1, 2, 1, 2]);
        assert_eq!(block_steps(128, 32, 2), [1; 4]);
        assert_eq!(block_steps(0, 1, 5), [5]);
        let exact = block_steps(1 << 20, 3, 1 << 20);
        assert_eq!((exact[0], exact[1000], *exact.last().unwrap()), (3, 3, 1));
    }

    #[test]
    fn every_block_has_a_step_and_none_is_lost() {
        for max_tokens in 1..60 {
            for block_length in 1..=max_tokens {
                for steps in 1..70 {
                    let shares = block_steps(max_tokens, block_length, steps);
                    let blocks = shares.len() as u32;
                    let case = (max_tokens, block_length, steps);
                    assert!(shares.iter().all(|s| *s >= 1), "{case:?}: {shares:?}");
                    assert_eq!(shares.iter().sum::<u32>(), steps.max(blocks), "{case:?}");
                }
            }
        }
    }

    #[test]
    fn shares_add_up_and_never_grow() {
        assert_eq!([0, 1, 2, 3].map(|i| share(10, 4, i)), [3, 3, 2, 2]);
        assert_eq!([0, 1, 2].map(|i| share(2, 3, i)), [1, 1, 0]);
        for masks in 0..40 {
            for steps in 1..40 {
                let shares: Vec<u32> = (0..steps).map(|i| share(masks, steps, i)).collect();
                assert_eq!(shares.iter().sum::<u32>(), masks);
                assert!(shares.is_sorted_by(|a, b| a >= b));
            }
        }
    }

    /// Four steps of 0.24975, by hand.
    #[test]
    fn times_run_from_one_to_eps() {
        let times = [0, 1, 2, 3, 4].map(|i| time(1e-3, 4, i));
        assert_eq!(times, [1.0, 0.75025, 0.5005, 0.25075, 0.001]);
        assert_eq!(leaving(1e-3, 4, 3), 1.0);
        // As many steps as masks: the first commits none, 0.999 of a mask being none.
        assert_eq!((8.0 * leaving(1e-3, 8, 0)) as u32, 0);
        assert_eq!((8.0 * leaving(1e-3, 8, 1)) as u32, 1);
    }

    #[test]
    fn parts_stay_between_none_and_all() {
        for eps in [f64::from(f32::MIN_POSITIVE), 1e-3, 0.5, 1.0 - 1e-9] {
            for steps in [1, 2, 3, 7, 64, 1000] {
                for step in 0..steps {
                    let part = leaving(eps, steps, step);
                    assert!((0.0..=1.0).contains(&part), "{eps} {steps} {step}: {part}");
                }
            }
        }
    }
}
