//! The flags of every command that generates.

use crate::cli::failure::Failure;
use dllm_rt::denoise::{Cache, Pace, Preset, Settings};
use dllm_rt::sample::Kind;

/// Defines a command as [`model_command!`](crate::cli::flags) does, with the fields of every
/// command that generates beside its own.
macro_rules! generation_command {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $crate::cli::flags::model_command! {
            $(#[$meta])*
            pub struct $name {
                $($own)*
                /// tokens a block (LLaDA, and Dream with a threshold or factor; default: 32)
                #[argh(option, arg_name = "n")]
                block_length: Option<u32>,
                /// low_confidence or random (LLaDA); entropy, maskgit_plus, topk_margin or origin
                /// (Dream)
                #[argh(option, arg_name = "name")]
                algorithm: Option<dllm_rt::sample::Algorithm>,
                /// randomness of the tokens (default: LLaDA 0; Dream 0.2 with --top-p 0.95)
                #[argh(option, arg_name = "t")]
                temperature: Option<f64>,
                /// share of the probability that is kept (Dream; default: 1 with --temperature)
                #[argh(option, arg_name = "p")]
                top_p: Option<f64>,
                /// number of tokens that are kept (Dream; default: 0, all)
                #[argh(option, arg_name = "k")]
                top_k: Option<u32>,
                /// randomness of the positions (Dream; default: 0)
                #[argh(option, arg_name = "t")]
                alg_temp: Option<f64>,
                /// the time at which the last step ends (Dream; default: 1e-3)
                #[argh(option, arg_name = "e")]
                eps: Option<f64>,
                /// weight of classifier-free guidance, which doubles the work (LLaDA; default: 0)
                #[argh(option, arg_name = "g")]
                cfg_scale: Option<f64>,
                /// key of the random numbers (default: 42)
                #[argh(option, arg_name = "n")]
                seed: Option<u64>,
                /// true or false: whether to stop once the text has ended (default: true)
                #[argh(option, arg_name = "bool")]
                early_stop: Option<bool>,
                /// never choose an end-of-text token
                #[argh(switch)]
                forbid_end: bool,
                /// commit end-of-text and end-of-turn tokens last (LLaDA)
                #[argh(switch)]
                distrust_end: bool,
                /// without the chat template; a BOS leads only where the file asks for one
                #[argh(switch)]
                no_chat: bool,
                /// settings under one name: exact, balanced or fast; flags that are given beside
                /// it count (default: exact)
                #[argh(option, arg_name = "name")]
                preset: Option<dllm_rt::denoise::Preset>,
                /// commit every position of the block whose certainty, from 0 to 1, is at least
                /// this
                #[argh(option, arg_name = "p")]
                threshold: Option<f64>,
                /// commit the n surest of the block, n the most with (n + 1)(1 - certainty) within
                /// this
                #[argh(option, arg_name = "f")]
                factor: Option<f64>,
                /// keep keys and values from step to step: none, those left of the block (prefix),
                /// or on both sides of it (dual) (default: none)
                #[argh(option, arg_name = "kind")]
                cache: Option<dllm_rt::denoise::Cache>,
                /// with --cache: compute all of them anew after so many steps of a block (default:
                /// at its first step alone)
                #[argh(option, arg_name = "n")]
                refresh: Option<u32>,
                /// true or false: whether to begin with one block and append others while the text
                /// has not ended, up to --max-tokens (default: false)
                #[argh(option, arg_name = "bool")]
                grow: Option<bool>,
                /// stop after so many milliseconds with the best text so far
                #[argh(option, arg_name = "n")]
                deadline_ms: Option<u64>,
            }
        }

        impl $name {
            /// The settings for a kind of model and so many tokens and steps; what was not given is
            /// the preset's, or the kind's own. Refuses flags that exclude each other.
            fn settings_of(
                &self,
                kind: dllm_rt::sample::Kind,
                max_tokens: Option<u32>,
                steps: Option<u32>,
            ) -> Result<dllm_rt::denoise::Settings, $crate::cli::failure::Failure> {
                let saving = $crate::cli::generation::Saving {
                    preset: self.preset.unwrap_or_default(),
                    temperature: self.temperature,
                    threshold: self.threshold,
                    factor: self.factor,
                    cache: self.cache,
                    refresh: self.refresh,
                    grow: self.grow,
                };
                let base = saving.settings(kind)?;
                Ok(dllm_rt::denoise::Settings {
                    gen_length: max_tokens.unwrap_or(base.gen_length),
                    steps: steps.or(base.steps),
                    block_length: self.block_length.or(base.block_length),
                    algorithm: self.algorithm.or(base.algorithm),
                    temperature: self.temperature.or(base.temperature),
                    top_p: self.top_p.or(base.top_p),
                    top_k: self.top_k.or(base.top_k),
                    alg_temp: self.alg_temp.or(base.alg_temp),
                    eps: self.eps.or(base.eps),
                    cfg_scale: self.cfg_scale.unwrap_or(base.cfg_scale),
                    seed: self.seed.unwrap_or(base.seed),
                    early_stop: self.early_stop.unwrap_or(base.early_stop),
                    forbid_end_in_logits: self.forbid_end,
                    zero_end_confidence: self.distrust_end,
                    ..base
                })
            }
        }
    };
}
pub(in crate::cli) use generation_command;

/// A preset and the flags that count beside it, by their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saving {
    /// `--preset`
    pub preset: Preset,
    /// `--temperature`, on which the preset's threshold may depend
    pub temperature: Option<f64>,
    /// `--threshold`
    pub threshold: Option<f64>,
    /// `--factor`
    pub factor: Option<f64>,
    /// `--cache`
    pub cache: Option<Cache>,
    /// `--refresh`
    pub refresh: Option<u32>,
    /// `--grow`
    pub grow: Option<bool>,
}

impl Saving {
    /// The preset's settings, with what was given in their place.
    ///
    /// # Errors
    /// A threshold beside a factor.
    pub fn settings(self, kind: Kind) -> Result<Settings, Failure> {
        let preset = self.preset.settings(kind, self.temperature);
        let pace = match (self.threshold, self.factor) {
            (None, None) => preset.pace,
            (Some(threshold), None) => Pace::Threshold(threshold),
            (None, Some(factor)) => Pace::Factor(factor),
            (Some(_), Some(_)) => {
                let message = "--threshold and --factor exclude each other; give one";
                return Err(Failure::Usage(message.into()));
            }
        };
        let cache = self.cache.unwrap_or(preset.cache);
        let refresh = preset.refresh.filter(|_| cache != Cache::None);
        let refresh = self.refresh.or(refresh);
        let grow = self.grow.unwrap_or(preset.grow);
        Ok(Settings { pace, cache, refresh, grow, ..preset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(preset: Preset) -> Saving {
        Saving { preset, ..Saving::default() }
    }

    #[test]
    fn what_is_given_beside_a_preset_counts() {
        let fast = Preset::Fast.settings(Kind::Llada, None);
        let made = |saving: Saving| saving.settings(Kind::Llada).unwrap();
        assert_eq!(made(given(Preset::Fast)), fast);
        assert_eq!(made(given(Preset::Exact)), Settings::default());
        let factor = made(Saving { factor: Some(1.0), ..given(Preset::Fast) });
        assert_eq!((factor.pace, factor.cache), (Pace::Factor(1.0), fast.cache));
        let threshold = made(Saving { threshold: Some(0.5), ..given(Preset::Fast) });
        assert_eq!((threshold.pace, threshold.grow), (Pace::Threshold(0.5), true));
        let none = made(Saving { cache: Some(Cache::None), ..given(Preset::Fast) });
        assert_eq!((none.cache, none.refresh), (Cache::None, None));
        let prefix = made(Saving { cache: Some(Cache::Prefix), ..given(Preset::Fast) });
        assert_eq!((prefix.cache, prefix.refresh), (Cache::Prefix, fast.refresh));
        let often = made(Saving { refresh: Some(1), ..given(Preset::Fast) });
        assert_eq!((often.cache, often.refresh), (fast.cache, Some(1)));
        assert!(!made(Saving { grow: Some(false), ..given(Preset::Fast) }).grow);
        assert!(made(Saving { grow: Some(true), ..given(Preset::Exact) }).grow);
        let both = Saving { threshold: Some(0.5), factor: Some(1.0), ..Saving::default() };
        assert!(both.settings(Kind::Llada).is_err());
    }
}
