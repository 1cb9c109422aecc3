//! A request's parameters, checked and completed for a kind of model.

use super::error::Error;
use super::policy::Policy;
use super::request::{Cache, DREAM_TEMPERATURE, RequestParameters};
use super::schedule::Blocks;
use crate::sample::{Algorithm, Kind, Rule, TokenSet};
use serde::Serialize;
use std::ops::Deref;

/// Longest canvas: eight times the longest context of any model known to load (131,072), and small
/// enough that counts of positions are exact in `f32`, which the times of Dream's loop need.
pub const CANVAS_MAX: u32 = 1 << 20;
/// Most steps: one a position.
pub const STEPS_MAX: u32 = CANVAS_MAX;
/// Highest temperature. Logits lie within a few hundred, so above it all tokens are equally likely.
pub const TEMPERATURE_MAX: f64 = 1e6;
/// Strongest guidance. Twenty times what anyone uses; keeps guided logits finite.
pub const CFG_SCALE_MAX: f64 = 100.0;
/// Highest factor: every position commits at once far below it, since (n + 1)(1 - c) is at most the
/// canvas's length and one.
pub const FACTOR_MAX: f64 = 1e7;
/// Positions a block by default.
const BLOCK_LENGTH: u32 = 32;

/// Parameters that are complete and valid for one kind of model; read as [`Values`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct GenerationParameters(Values);

/// The values of checked parameters, under the names of [`RequestParameters`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Values {
    /// The kind of loop.
    #[serde(skip)]
    pub kind: Kind,
    /// Positions to generate after the prompt.
    pub max_tokens: u32,
    /// Steps asked for. `None`: as many as there are masks with a threshold or factor, or as a
    /// prompt without a generated part has holes.
    pub steps: Option<u32>,
    /// Positions a block, at most `max_tokens` (1 when that is 0). Dream's plain loop:
    /// `max_tokens`.
    pub block_length: u32,
    /// How confidence is measured.
    pub algorithm: Algorithm,
    /// Temperature of the tokens.
    pub temperature: f64,
    /// Share of the probability that is kept; 1 keeps all.
    pub top_p: f64,
    /// Tokens that are kept; 0 keeps all.
    pub top_k: u32,
    /// Temperature of the positions; 0 takes the most confident.
    pub alg_temp: f64,
    /// The time at which Dream's last step ends.
    pub eps: f64,
    /// Weight of classifier-free guidance. Above 0 each step takes two forward passes.
    pub cfg_scale: f64,
    /// The certainty at which positions commit.
    pub threshold: Option<f64>,
    /// The factor within which positions commit.
    pub factor: Option<f64>,
    /// Which keys and values are kept from pass to pass.
    pub cache: Cache,
    /// Passes of a block from one refresh to the next; `None`: all of them.
    pub refresh: Option<u32>,
    /// Whether the canvas begins with one block and others are appended.
    pub grow: bool,
    /// Whether the run ends at the first end token.
    pub early_stop: bool,
    /// Whether end-of-text tokens are never chosen.
    pub forbid_end: bool,
    /// Whether end tokens count with confidence 0.
    pub distrust_end: bool,
    /// Key of the random numbers.
    pub seed: u64,
}

impl Deref for GenerationParameters {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0
    }
}

impl GenerationParameters {
    /// Completes a request's parameters with its preset's and the defaults of `kind`.
    ///
    /// # Errors
    /// A value out of range, an algorithm of the other kind, a field that `kind` does not know,
    /// fields that exclude each other.
    pub fn new(kind: Kind, request: &RequestParameters) -> Result<GenerationParameters, Error> {
        let given = request.with_preset(kind);
        let values = complete(kind, &given);
        if values.threshold.is_some() && values.factor.is_some() {
            return Err(Error::ThresholdAndFactor);
        }
        check_counts(&given)?;
        check_numbers(&values)?;
        check_kind(&values)?;
        check_together(&values)?;
        Ok(GenerationParameters(values))
    }
}

impl Values {
    /// How many candidates commit.
    pub fn policy(&self) -> Policy {
        let factor = || self.factor.map_or(Policy::Steps, Policy::Factor);
        self.threshold.map_or_else(factor, Policy::Threshold)
    }

    /// Whether the confidence says how many commit.
    pub fn is_adaptive(&self) -> bool {
        self.policy() != Policy::Steps
    }

    /// Steps of a run whose prompt has `holes`, unless it stops early: those asked for, at least
    /// one a block; the most there can be with a threshold or factor.
    pub fn steps_total(&self, holes: u32) -> u32 {
        if self.is_adaptive() {
            let masks = holes.saturating_add(self.max_tokens);
            return self.steps.map_or(masks, |steps| steps.min(masks));
        }
        self.blocks(holes).steps_total()
    }

    /// The blocks of a run whose prompt has `holes`.
    pub(super) fn blocks(&self, holes: u32) -> Blocks {
        Blocks::new(self.max_tokens, self.block_length, self.steps.unwrap_or(holes))
    }

    /// The most positions that want a token at one step, when the prompt has `holes` masks.
    pub fn candidates_max(&self, holes: usize) -> usize {
        holes + self.block_length.min(self.max_tokens) as usize
    }

    /// Whether choosing tokens takes whole rows of logits, rather than statistics of them.
    pub fn needs_logits(&self) -> bool {
        self.rule(0, TokenSet::default(), TokenSet::default()).needs_logits()
    }

    /// How a row of logits becomes a choice, given the tokens that the rule must know.
    pub(super) fn rule(
        &self,
        mask_token: u32,
        forbid_end: TokenSet,
        distrust_end: TokenSet,
    ) -> Rule {
        Rule {
            algorithm: self.algorithm,
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            mask_token,
            seed: self.seed,
            cfg_scale: self.cfg_scale,
            forbid_end,
            distrust_end,
        }
    }
}

fn complete(kind: Kind, given: &RequestParameters) -> Values {
    let (temperature, top_p) = match kind {
        Kind::Llada => (0.0, 1.0),
        Kind::Dream => (DREAM_TEMPERATURE, 0.95),
    };
    let is_adaptive = given.threshold.or(given.factor).is_some();
    let block_length = match kind {
        Kind::Dream if !is_adaptive => given.max_tokens,
        _ => given.block_length.unwrap_or(BLOCK_LENGTH),
    };
    let plain_steps = (given.max_tokens > 0 && !is_adaptive).then_some(given.max_tokens);
    // A temperature of the caller's own is not meant to be narrowed by our default.
    let top_p = if given.temperature.is_some() { 1.0 } else { top_p };
    Values {
        kind,
        max_tokens: given.max_tokens,
        steps: given.steps.or(plain_steps),
        threshold: given.threshold,
        factor: given.factor,
        cache: given.cache.unwrap_or_default(),
        refresh: given.refresh,
        grow: given.grow.unwrap_or(false),
        block_length: block_length.min(given.max_tokens).max(1),
        algorithm: given.algorithm.unwrap_or(kind.algorithms()[0]),
        temperature: given.temperature.unwrap_or(temperature),
        top_p: given.top_p.unwrap_or(top_p),
        top_k: given.top_k.unwrap_or(0),
        alg_temp: given.alg_temp.unwrap_or(0.0),
        eps: given.eps.unwrap_or(1e-3),
        cfg_scale: given.cfg_scale,
        seed: given.seed,
        early_stop: given.early_stop,
        forbid_end: given.forbid_end,
        distrust_end: given.distrust_end,
    }
}

fn check_counts(given: &RequestParameters) -> Result<(), Error> {
    let whole = |field, value: u32, least: u32, most: u32, allowed| match value {
        value if (least..=most).contains(&value) => Ok(()),
        value => Err(Error::OutOfRange { field, value: f64::from(value), allowed }),
    };
    whole("max_tokens", given.max_tokens, 0, CANVAS_MAX, "at most 1048576")?;
    whole("steps", given.steps.unwrap_or(1), 1, STEPS_MAX, "from 1 to 1048576")?;
    whole("refresh", given.refresh.unwrap_or(1), 1, u32::MAX, "at least 1")?;
    whole("block_length", given.block_length.unwrap_or(1), 1, u32::MAX, "at least 1")
}

fn check_numbers(values: &Values) -> Result<(), Error> {
    // Written so that NaN, which is in no range, is refused.
    let real = |field, value: f64, holds: bool, allowed| {
        if holds { Ok(()) } else { Err(Error::OutOfRange { field, value, allowed }) }
    };
    let hot = |value: f64| (0.0..=TEMPERATURE_MAX).contains(&value);
    let Values { temperature, top_p, alg_temp, eps, cfg_scale, .. } = *values;
    real("temperature", temperature, hot(temperature), "from 0 to 1000000")?;
    real("top_p", top_p, top_p > 0.0 && top_p <= 1.0, "above 0 and at most 1")?;
    real("alg_temp", alg_temp, hot(alg_temp), "from 0 to 1000000")?;
    // The loop divides by times in f32, where a smaller eps would be 0.
    let eps_holds = eps >= f64::from(f32::MIN_POSITIVE) && eps < 1.0;
    real("eps", eps, eps_holds, "above 0 (at least 1.2e-38) and below 1")?;
    real("cfg_scale", cfg_scale, (0.0..=CFG_SCALE_MAX).contains(&cfg_scale), "from 0 to 100")?;
    let (threshold, factor) = (values.threshold.unwrap_or(1.0), values.factor.unwrap_or(1.0));
    let threshold_holds = threshold > 0.0 && threshold <= 1.0;
    real("threshold", threshold, threshold_holds, "above 0 and at most 1")?;
    let factor_holds = factor > 0.0 && factor <= FACTOR_MAX;
    real("factor", factor, factor_holds, "above 0 and at most 10000000")
}

fn check_kind(values: &Values) -> Result<(), Error> {
    let Values { kind, algorithm, .. } = *values;
    if algorithm.kind() != kind {
        return Err(Error::WrongAlgorithm { algorithm, kind });
    }
    let foreign: &[(&str, bool)] = match kind {
        Kind::Llada => &[
            ("top_p", values.top_p < 1.0),
            ("top_k", values.top_k > 0),
            ("alg_temp", values.alg_temp > 0.0),
        ],
        Kind::Dream => {
            &[("cfg_scale", values.cfg_scale > 0.0), ("distrust_end", values.distrust_end)]
        }
    };
    match foreign.iter().find(|(_, used)| *used) {
        Some((field, _)) => Err(Error::NotForKind { field, kind }),
        None => Ok(()),
    }
}

/// Refuses fields that exclude each other.
fn check_together(values: &Values) -> Result<(), Error> {
    let Values { kind, algorithm, .. } = *values;
    if algorithm == Algorithm::Origin && values.alg_temp > 0.0 {
        return Err(Error::AlgTempWithOrigin);
    }
    if values.cache == Cache::None && values.refresh.is_some() {
        return Err(Error::RefreshWithoutCache);
    }
    if values.cache != Cache::None && values.cfg_scale > 0.0 {
        return Err(Error::CacheWithGuidance);
    }
    if values.grow && kind == Kind::Dream && !values.is_adaptive() {
        return Err(Error::GrowWithoutBlocks);
    }
    let by_chance = [Algorithm::Random, Algorithm::Origin].contains(&algorithm);
    if values.is_adaptive() && (by_chance || values.alg_temp > 0.0) {
        let other = if by_chance { algorithm.name() } else { "`alg_temp`" };
        return Err(Error::PolicyByChance { other });
    }
    Ok(())
}
