//! A request's settings: as given, and as checked and completed for a kind of model.
use super::fault::Fault;
use super::shares::Blocks;
use crate::sample::{Algorithm, Kind, Rule, TokenSet, UnknownName};

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
/// Temperature of Dream where nobody says: greedy Dream-Instruct loses half its accuracy.
pub(super) const DREAM_TEMPERATURE: f64 = 0.2;
/// Positions a block where nobody says.
const BLOCK_LENGTH: u32 = 32;

/// How many of a step's candidates commit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// The kind's own loop: shares of the steps asked for, whatever the confidence.
    #[default]
    Steps,
    /// All whose certainty is at least this; always the surest one.
    Threshold(f64),
    /// As many of the surest as keep `(n + 1)(1 - certainty of the n-th)` within this; always one
    /// (Wu et al., "Fast-dLLM", 2025).
    Factor(f64),
}

/// Which keys and values are kept from one pass to the next, so that fewer rows are computed.
///
/// What is kept is as old as the last whole pass, so the tokens are those of another, close, run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Cache::None => "none",
            Cache::Prefix => "prefix",
            Cache::Dual => "dual",
        }
    }
}

impl std::str::FromStr for Cache {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Cache, UnknownName> {
        let found = Cache::ALL.into_iter().find(|cache| cache.name() == name);
        found.ok_or_else(|| UnknownName::new("cache", name, Cache::ALL.map(Cache::name)))
    }
}

impl Pace {
    /// Whether the confidence says how many commit.
    pub fn is_adaptive(self) -> bool {
        self != Pace::Steps
    }
}

/// What a caller asks for. `None` takes the default of the model's kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Positions to generate after the prompt; 0 only fills the prompt's holes.
    pub gen_length: u32,
    /// Steps in all; raised to one a block where there are fewer. Default: `gen_length`, or the
    /// number of holes when that is 0. With a threshold or a factor: the most steps, after which
    /// masks may remain; default as many as there are masks.
    pub steps: Option<u32>,
    /// Positions a block; more than `gen_length` counts as `gen_length`. Default 32. Dream's plain
    /// loop has no blocks and takes no notice.
    pub block_length: Option<u32>,
    /// How many positions commit at a step. A threshold or factor not beside what picks positions
    /// by chance.
    pub pace: Pace,
    /// What is kept from pass to pass; nothing under guidance. In Dream's plain loop the whole
    /// generated part is the block.
    pub cache: Cache,
    /// With a cache: a whole pass after so many passes of a block. Default: at its first step
    /// alone.
    pub refresh: Option<u32>,
    /// Begin with a canvas of one block and append others while the text has not ended;
    /// `gen_length` is the most there can be.
    pub grow: bool,
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
    /// Dream: the time at which the last step ends. Default 1e-3. LLaDA's loop takes no notice.
    pub eps: Option<f64>,
    /// LLaDA: classifier-free guidance; above 0 every step needs a second forward pass.
    pub cfg_scale: f64,
    /// Key of the random numbers.
    pub seed: u64,
    /// Stop once everything left of the first end token of the generated part is committed.
    pub early_stop: bool,
    /// End-of-text tokens are never chosen.
    pub forbid_end_in_logits: bool,
    /// LLaDA: end-of-text and end-of-turn tokens count with confidence 0, so they commit last.
    pub zero_end_confidence: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            gen_length: 128,
            steps: None,
            block_length: None,
            pace: Pace::Steps,
            cache: Cache::None,
            refresh: None,
            grow: false,
            algorithm: None,
            temperature: None,
            top_p: None,
            top_k: None,
            alg_temp: None,
            eps: None,
            cfg_scale: 0.0,
            seed: 42,
            early_stop: true,
            forbid_end_in_logits: false,
            zero_end_confidence: false,
        }
    }
}

/// Settings that are complete and valid for one kind of model.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    kind: Kind,
    gen_length: u32,
    steps: Option<u32>,
    block_length: u32,
    pace: Pace,
    cache: Cache,
    refresh: Option<u32>,
    grow: bool,
    algorithm: Algorithm,
    temperature: f64,
    top_p: f64,
    top_k: u32,
    alg_temp: f64,
    eps: f64,
    cfg_scale: f64,
    seed: u64,
    early_stop: bool,
    forbid_end_in_logits: bool,
    zero_end_confidence: bool,
}

impl Schedule {
    /// Completes `settings` with the defaults of `kind`.
    ///
    /// # Errors
    /// A value out of range, an algorithm of the other kind, a setting that `kind` does not know,
    /// settings that exclude each other.
    pub fn new(kind: Kind, settings: &Settings) -> Result<Schedule, Fault> {
        let schedule = complete(kind, settings);
        check_counts(settings)?;
        check_numbers(&schedule)?;
        check_pace(settings.pace)?;
        check_kind(&schedule)?;
        check_together(&schedule)?;
        Ok(schedule)
    }

    /// The kind of loop.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Positions to generate after the prompt.
    pub fn gen_length(&self) -> u32 {
        self.gen_length
    }

    /// Steps asked for. `None`: as many as there are masks where the pace is adaptive, or as a
    /// prompt without a generated part has holes.
    pub fn steps(&self) -> Option<u32> {
        self.steps
    }

    /// Steps of a run whose prompt has `holes`, unless it stops early: those asked for, at least
    /// one a block; the most there can be where the pace is adaptive.
    pub fn steps_total(&self, holes: u32) -> u32 {
        if self.pace.is_adaptive() {
            let masks = holes.saturating_add(self.gen_length);
            return self.steps.map_or(masks, |steps| steps.min(masks));
        }
        let steps = self.steps.unwrap_or(holes);
        Blocks::new(self.gen_length, self.block_length, steps).steps_total()
    }

    /// Positions a block, `gen_length` at most (1 when that is 0). Dream's plain loop:
    /// `gen_length`.
    pub fn block_length(&self) -> u32 {
        self.block_length
    }

    /// How many candidates commit.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The certainty at which positions commit.
    pub fn threshold(&self) -> Option<f64> {
        match self.pace {
            Pace::Threshold(threshold) => Some(threshold),
            _ => None,
        }
    }

    /// The factor within which positions commit.
    pub fn factor(&self) -> Option<f64> {
        match self.pace {
            Pace::Factor(factor) => Some(factor),
            _ => None,
        }
    }

    /// What is kept from pass to pass.
    pub fn cache(&self) -> Cache {
        self.cache
    }

    /// Whether the canvas begins with one block and others are appended.
    pub fn grows(&self) -> bool {
        self.grow
    }

    /// Passes of a block from one whole pass to the next; `None`: all of them.
    pub fn refresh(&self) -> Option<u32> {
        self.refresh
    }

    /// The most positions that want a token at one step, when the prompt has `holes` masks.
    pub fn wanted_max(&self, holes: usize) -> usize {
        holes + self.block_length.min(self.gen_length) as usize
    }

    /// How confidence is measured.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Temperature of the tokens.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// Share of the probability that is kept; 1 keeps all.
    pub fn top_p(&self) -> f64 {
        self.top_p
    }

    /// Tokens that are kept; 0 keeps all.
    pub fn top_k(&self) -> u32 {
        self.top_k
    }

    /// Temperature of the positions; 0 takes the most confident.
    pub fn alg_temp(&self) -> f64 {
        self.alg_temp
    }

    /// The time at which Dream's last step ends.
    pub fn eps(&self) -> f64 {
        self.eps
    }

    /// Weight of classifier-free guidance. Above 0 each step takes two forward passes.
    pub fn cfg_scale(&self) -> f64 {
        self.cfg_scale
    }

    /// Key of the random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether choosing tokens takes whole rows of logits, rather than statistics of them.
    pub fn needs_logits(&self) -> bool {
        self.rule(0, TokenSet::default(), TokenSet::default()).needs_logits()
    }

    /// How a row of logits becomes a choice, given the tokens that the rule must know.
    pub(super) fn rule(&self, mask_token: u32, forbidden: TokenSet, distrusted: TokenSet) -> Rule {
        Rule {
            algorithm: self.algorithm,
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            mask_token,
            seed: self.seed,
            cfg_scale: self.cfg_scale,
            forbidden,
            distrusted,
        }
    }

    /// Whether the run ends at the first end token.
    pub fn early_stop(&self) -> bool {
        self.early_stop
    }

    /// Whether end-of-text tokens are never chosen.
    pub fn forbid_end_in_logits(&self) -> bool {
        self.forbid_end_in_logits
    }

    /// Whether end tokens count with confidence 0.
    pub fn zero_end_confidence(&self) -> bool {
        self.zero_end_confidence
    }
}

fn complete(kind: Kind, given: &Settings) -> Schedule {
    let (temperature, top_p) = match kind {
        Kind::Llada => (0.0, 1.0),
        Kind::Dream => (DREAM_TEMPERATURE, 0.95),
    };
    let pace = given.pace;
    let block_length = match kind {
        Kind::Dream if !pace.is_adaptive() => given.gen_length,
        _ => given.block_length.unwrap_or(BLOCK_LENGTH),
    };
    let plain_steps = (given.gen_length > 0 && !pace.is_adaptive()).then_some(given.gen_length);
    // A temperature of the caller's own is not meant to be narrowed by our default.
    let top_p = if given.temperature.is_some() { 1.0 } else { top_p };
    Schedule {
        kind,
        gen_length: given.gen_length,
        steps: given.steps.or(plain_steps),
        pace,
        cache: given.cache,
        refresh: given.refresh,
        grow: given.grow,
        block_length: block_length.min(given.gen_length).max(1),
        algorithm: given.algorithm.unwrap_or(kind.algorithms()[0]),
        temperature: given.temperature.unwrap_or(temperature),
        top_p: given.top_p.unwrap_or(top_p),
        top_k: given.top_k.unwrap_or(0),
        alg_temp: given.alg_temp.unwrap_or(0.0),
        eps: given.eps.unwrap_or(1e-3),
        cfg_scale: given.cfg_scale,
        seed: given.seed,
        early_stop: given.early_stop,
        forbid_end_in_logits: given.forbid_end_in_logits,
        zero_end_confidence: given.zero_end_confidence,
    }
}

fn check_counts(given: &Settings) -> Result<(), Fault> {
    let whole = |setting, value: u32, least: u32, most: u32, allowed| {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(Fault::OutOfRange { setting, value: f64::from(value), allowed })
        }
    };
    whole("max-tokens", given.gen_length, 0, CANVAS_MAX, "at most 1048576")?;
    whole("steps", given.steps.unwrap_or(1), 1, STEPS_MAX, "from 1 to 1048576")?;
    whole("refresh", given.refresh.unwrap_or(1), 1, u32::MAX, "at least 1")?;
    whole("block-length", given.block_length.unwrap_or(1), 1, u32::MAX, "at least 1")
}

fn check_pace(pace: Pace) -> Result<(), Fault> {
    let real = |setting, value: f64, most: f64, allowed| match value > 0.0 && value <= most {
        true => Ok(()),
        false => Err(Fault::OutOfRange { setting, value, allowed }),
    };
    match pace {
        Pace::Steps => Ok(()),
        Pace::Threshold(value) => real("threshold", value, 1.0, "above 0 and at most 1"),
        Pace::Factor(value) => real("factor", value, FACTOR_MAX, "above 0 and at most 10000000"),
    }
}

fn check_numbers(schedule: &Schedule) -> Result<(), Fault> {
    // Written so that NaN, which is in no range, is refused.
    let real = |setting, value: f64, holds: bool, allowed| {
        if holds { Ok(()) } else { Err(Fault::OutOfRange { setting, value, allowed }) }
    };
    let hot = |value: f64| (0.0..=TEMPERATURE_MAX).contains(&value);
    let Schedule { temperature, top_p, alg_temp, eps, cfg_scale, .. } = *schedule;
    real("temperature", temperature, hot(temperature), "from 0 to 1000000")?;
    real("top-p", top_p, top_p > 0.0 && top_p <= 1.0, "above 0 and at most 1")?;
    real("alg-temp", alg_temp, hot(alg_temp), "from 0 to 1000000")?;
    // The loop divides by times in f32, where a smaller eps would be 0.
    let eps_holds = eps >= f64::from(f32::MIN_POSITIVE) && eps < 1.0;
    real("eps", eps, eps_holds, "above 0 (at least 1.2e-38) and below 1")?;
    real("cfg-scale", cfg_scale, (0.0..=CFG_SCALE_MAX).contains(&cfg_scale), "from 0 to 100")
}

fn check_kind(schedule: &Schedule) -> Result<(), Fault> {
    let Schedule { kind, algorithm, .. } = *schedule;
    if algorithm.kind() != kind {
        return Err(Fault::WrongAlgorithm { algorithm, kind });
    }
    let foreign: &[(&str, bool)] = match kind {
        Kind::Llada => &[
            ("top-p", schedule.top_p < 1.0),
            ("top-k", schedule.top_k > 0),
            ("alg-temp", schedule.alg_temp > 0.0),
        ],
        Kind::Dream => &[
            ("cfg-scale", schedule.cfg_scale > 0.0),
            ("distrust-end", schedule.zero_end_confidence),
        ],
    };
    match foreign.iter().find(|(_, used)| *used) {
        Some((setting, _)) => Err(Fault::NotForKind { setting, kind }),
        None => Ok(()),
    }
}

/// Refuses settings that exclude each other.
fn check_together(schedule: &Schedule) -> Result<(), Fault> {
    let Schedule { kind, algorithm, .. } = *schedule;
    if algorithm == Algorithm::Origin && schedule.alg_temp > 0.0 {
        return Err(Fault::AlgTempWithOrigin);
    }
    if schedule.cache == Cache::None && schedule.refresh.is_some() {
        return Err(Fault::RefreshWithoutCache);
    }
    if schedule.cache != Cache::None && schedule.cfg_scale > 0.0 {
        return Err(Fault::CacheWithGuidance);
    }
    if schedule.grow && kind == Kind::Dream && !schedule.pace.is_adaptive() {
        return Err(Fault::GrowWithoutBlocks);
    }
    if schedule.pace.is_adaptive() {
        let by_chance = [Algorithm::Random, Algorithm::Origin].contains(&algorithm);
        if by_chance || schedule.alg_temp > 0.0 {
            let other = if by_chance { algorithm.name() } else { "alg-temp" };
            return Err(Fault::PaceByChance { other });
        }
    }
    Ok(())
}
