//! What a request asks for: its own parameters, and presets under names that a person understands.

use crate::sample::{Algorithm, Kind, UnknownName};
use serde::Serialize;
use std::str::FromStr;

/// Temperature of Dream by default: greedy Dream-Instruct loses half its accuracy.
pub(super) const DREAM_TEMPERATURE: f64 = 0.2;

/// What a request asks for. `None` takes the preset's value, or the default of the model's kind.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestParameters {
    /// Where the values come from that are not given: threshold, cache and the like.
    pub preset: Preset,
    /// Positions to generate after the prompt; 0 only fills the prompt's holes.
    pub max_tokens: u32,
    /// Steps in all; raised to one a block where there are fewer. Default: `max_tokens`, or the
    /// number of holes when that is 0. With a threshold or a factor: the most steps, after which
    /// masks may remain; default as many as there are masks.
    pub steps: Option<u32>,
    /// Positions a block; more than `max_tokens` counts as `max_tokens`. Default 32. Dream's plain
    /// loop has no blocks and ignores it.
    pub block_length: Option<u32>,
    /// Commit every position whose certainty is at least this, always the surest one. Excludes
    /// `factor` and algorithms that pick positions by chance.
    pub threshold: Option<f64>,
    /// Commit the n surest, n the largest with `(n + 1)(1 - certainty of the n-th)` within this,
    /// always one (Wu et al., "Fast-dLLM", 2025).
    pub factor: Option<f64>,
    /// Which keys and values are kept from pass to pass; none under guidance. In Dream's plain
    /// loop the whole generated part is the block.
    pub cache: Option<Cache>,
    /// With a cache: compute every row again after so many passes of a block. Default: at its
    /// first step alone.
    pub refresh: Option<u32>,
    /// Begin with a canvas of one block and append others while the text has not ended;
    /// `max_tokens` is the most there can be.
    pub grow: Option<bool>,
    /// Default: `low_confidence` (LLaDA), `entropy` (Dream).
    pub algorithm: Option<Algorithm>,
    /// Default: 0 (LLaDA), 0.2 (Dream).
    pub temperature: Option<f64>,
    /// Dream. Default: 0.95, or 1 when a temperature is given.
    pub top_p: Option<f64>,
    /// Dream. Default 0: off.
    pub top_k: Option<u32>,
    /// Dream: above 0, positions are drawn from `softmax(confidence / alg_temp)`. Default 0.
    pub alg_temp: Option<f64>,
    /// Dream: the time at which the last step ends. Default 1e-3. LLaDA's loop ignores it.
    pub eps: Option<f64>,
    /// LLaDA: classifier-free guidance; above 0 every step needs a second forward pass.
    pub cfg_scale: f64,
    /// Key of the random numbers.
    pub seed: u64,
    /// Stop once everything left of the first end token of the generated part is committed.
    pub early_stop: bool,
    /// End-of-text tokens are never chosen.
    pub forbid_end: bool,
    /// LLaDA: end-of-text and end-of-turn tokens count with confidence 0, so they commit last.
    pub distrust_end: bool,
}

impl Default for RequestParameters {
    fn default() -> Self {
        RequestParameters {
            preset: Preset::Exact,
            max_tokens: 128,
            steps: None,
            block_length: None,
            threshold: None,
            factor: None,
            cache: None,
            refresh: None,
            grow: None,
            algorithm: None,
            temperature: None,
            top_p: None,
            top_k: None,
            alg_temp: None,
            eps: None,
            cfg_scale: 0.0,
            seed: 42,
            early_stop: true,
            forbid_end: false,
            distrust_end: false,
        }
    }
}

/// Which keys and values are kept from one pass to the next, so that fewer rows are computed.
///
/// They are as old as the last refresh, so the tokens are those of another, close, run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// None: every pass computes every row.
    #[default]
    None,
    /// Those left of the block.
    Prefix,
    /// Those on both sides of the block.
    Dual,
}

impl Cache {
    /// All of them.
    pub const ALL: [Cache; 3] = [Cache::None, Cache::Prefix, Cache::Dual];

    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Cache::None => "none",
            Cache::Prefix => "prefix",
            Cache::Dual => "dual",
        }
    }
}

impl FromStr for Cache {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Cache, UnknownName> {
        let found = Cache::ALL.into_iter().find(|cache| cache.name() == name);
        found.ok_or_else(|| UnknownName::new("cache", name, Cache::ALL.map(Cache::name)))
    }
}

/// How much of the plain loop's work to save; `benches/results` says what each gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Nothing: the loop that the model was published with.
    #[default]
    Exact,
    /// Several tokens a step where the model is sure of them.
    Balanced,
    /// The same with less certainty, on a canvas that grows, with a dual cache.
    Fast,
}

impl Preset {
    /// All of them, the slowest first.
    pub const ALL: [Preset; 3] = [Preset::Exact, Preset::Balanced, Preset::Fast];

    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Exact => "exact",
            Preset::Balanced => "balanced",
            Preset::Fast => "fast",
        }
    }

    /// The probability at which positions commit.
    fn certainty(self) -> Option<f64> {
        match self {
            Preset::Exact => None,
            Preset::Balanced => Some(0.9),
            Preset::Fast => Some(0.8),
        }
    }
}

impl FromStr for Preset {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Preset, UnknownName> {
        let found = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| UnknownName::new("preset", name, Preset::ALL.map(Preset::name)))
    }
}

impl RequestParameters {
    /// The same with the preset's values where none are given.
    ///
    /// Dream measures certainty after the temperature, so that its threshold depends on it, and
    /// after top-p, which is therefore off: a token that it keeps alone would be certain.
    pub(super) fn with_preset(&self, kind: Kind) -> RequestParameters {
        let mut made = self.clone();
        if let Some(certainty) = self.preset.certainty() {
            let temperature = self.temperature.unwrap_or(DREAM_TEMPERATURE);
            let threshold = match kind {
                Kind::Llada => certainty,
                Kind::Dream => sharpened(certainty, temperature),
            };
            if self.factor.is_none() {
                made.threshold = self.threshold.or(Some(threshold));
            }
            if kind == Kind::Dream {
                made.algorithm = self.algorithm.or(Some(Algorithm::MaskgitPlus));
                made.temperature = Some(temperature);
                made.top_p = self.top_p.or(Some(1.0));
            }
        }
        if self.preset == Preset::Fast {
            let cache = self.cache.unwrap_or(Cache::Dual);
            made.cache = Some(cache);
            made.refresh = self.refresh.or((cache != Cache::None).then_some(4));
            made.grow = self.grow.or(Some(true));
        }
        made
    }
}

/// What the larger of two probabilities becomes when a temperature divides their logits; without
/// one (0), where the best token is taken, confidence is measured as at 1.
fn sharpened(probability: f64, temperature: f64) -> f64 {
    if temperature <= 0.0 {
        return probability;
    }
    1.0 / (1.0 + libm::pow(1.0 / probability - 1.0, 1.0 / temperature))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(preset: Preset, kind: Kind, temperature: Option<f64>) -> RequestParameters {
        RequestParameters { preset, temperature, ..Default::default() }.with_preset(kind)
    }

    fn threshold(preset: Preset, kind: Kind, temperature: Option<f64>) -> f64 {
        let made = of(preset, kind, temperature);
        assert_eq!(made.algorithm == Some(Algorithm::MaskgitPlus), kind == Kind::Dream);
        made.threshold.unwrap()
    }

    /// 1 / (1 + (1/9)^5), and (1/4)^5: by hand.
    #[test]
    fn dream_asks_for_what_llada_does_after_the_temperature() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-8, "{a} {b}");
        for (preset, plain, usual) in
            [(Preset::Balanced, 0.9, 59049.0 / 59050.0), (Preset::Fast, 0.8, 1024.0 / 1025.0)]
        {
            assert_eq!(threshold(preset, Kind::Llada, None), plain);
            assert_eq!(threshold(preset, Kind::Llada, Some(0.2)), plain);
            near(threshold(preset, Kind::Dream, None), usual);
            near(threshold(preset, Kind::Dream, Some(0.2)), usual);
            near(threshold(preset, Kind::Dream, Some(1.0)), plain);
            assert_eq!(threshold(preset, Kind::Dream, Some(0.0)), plain);
            assert_eq!(threshold(preset, Kind::Dream, Some(1e-6)), 1.0);
        }
        near(threshold(Preset::Balanced, Kind::Dream, Some(2.0)), 0.75);
        // So hot that nothing is ever sure: half, and ln(9) / 4 of 1e-6 more.
        let hot = threshold(Preset::Balanced, Kind::Dream, Some(1e6)) - 0.5;
        near(1e6 * hot, 9_f64.ln() / 4.0);
    }

    #[test]
    fn both_kinds_save_in_the_same_ways() {
        for preset in Preset::ALL {
            let [a, b] = [Kind::Llada, Kind::Dream].map(|kind| of(preset, kind, None));
            assert_eq!((a.cache, a.refresh, a.grow), (b.cache, b.refresh, b.grow));
        }
    }

    #[test]
    fn what_is_given_beside_a_preset_counts() {
        let fast = RequestParameters { preset: Preset::Fast, ..Default::default() };
        let made = |given: RequestParameters| given.with_preset(Kind::Llada);
        let plain = made(fast.clone());
        assert_eq!((plain.cache, plain.refresh), (Some(Cache::Dual), Some(4)));
        assert_eq!(made(RequestParameters::default()), RequestParameters::default());
        let factor = made(RequestParameters { factor: Some(1.0), ..fast.clone() });
        assert_eq!((factor.threshold, factor.cache), (None, plain.cache));
        let threshold = made(RequestParameters { threshold: Some(0.5), ..fast.clone() });
        assert_eq!((threshold.threshold, threshold.grow), (Some(0.5), Some(true)));
        let none = made(RequestParameters { cache: Some(Cache::None), ..fast.clone() });
        assert_eq!((none.cache, none.refresh), (Some(Cache::None), None));
        let prefix = made(RequestParameters { cache: Some(Cache::Prefix), ..fast.clone() });
        assert_eq!((prefix.cache, prefix.refresh), (Some(Cache::Prefix), Some(4)));
        let often = made(RequestParameters { refresh: Some(1), ..fast.clone() });
        assert_eq!((often.cache, often.refresh), (plain.cache, Some(1)));
        assert_eq!(made(RequestParameters { grow: Some(false), ..fast }).grow, Some(false));
    }
}
