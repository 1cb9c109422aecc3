//! The flags of every command that generates.

use crate::cli::failure::Failure;
use crate::cli::later;
use dllm_rt::denoise::Settings;
use dllm_rt::sample::Algorithm;

/// Defines a command as [`model_command!`](crate::cli::flags) does, with the fields of every
/// command that generates beside its own.
macro_rules! generation_command {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $crate::cli::flags::model_command! {
            $(#[$meta])*
            pub struct $name {
                $($own)*
                /// tokens a block (LLaDA; default: 32)
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
                /// only none exists in this version
                #[argh(option, arg_name = "kind")]
                cache: Option<String>,
                /// a later version's
                #[argh(option, hidden_help)]
                threshold: Option<String>,
                /// a later version's
                #[argh(option, hidden_help)]
                factor: Option<String>,
                /// a later version's
                #[argh(option, hidden_help)]
                refresh: Option<String>,
                /// a later version's
                #[argh(option, hidden_help)]
                preset: Option<String>,
                /// a later version's
                #[argh(option, hidden_help)]
                deadline_ms: Option<String>,
            }
        }

        impl $name {
            /// The flags of every command that generates.
            fn generation(&self) -> $crate::cli::generation::Generation<'_> {
                $crate::cli::generation::Generation {
                    block_length: self.block_length,
                    algorithm: self.algorithm,
                    temperature: self.temperature,
                    top_p: self.top_p,
                    top_k: self.top_k,
                    alg_temp: self.alg_temp,
                    eps: self.eps,
                    cfg_scale: self.cfg_scale,
                    seed: self.seed,
                    early_stop: self.early_stop,
                    forbid_end: self.forbid_end,
                    distrust_end: self.distrust_end,
                    cache: self.cache.as_deref(),
                    later: [
                        ("--threshold", self.threshold.is_some()),
                        ("--factor", self.factor.is_some()),
                        ("--refresh", self.refresh.is_some()),
                        ("--preset", self.preset.is_some()),
                        ("--deadline-ms", self.deadline_ms.is_some()),
                    ],
                }
            }
        }
    };
}
pub(in crate::cli) use generation_command;

/// How to generate, as far as every command that does may be told; as the flags of these names.
#[derive(Clone, Copy, Debug)]
pub struct Generation<'a> {
    /// `--block-length`
    pub block_length: Option<u32>,
    /// `--algorithm`
    pub algorithm: Option<Algorithm>,
    /// `--temperature`
    pub temperature: Option<f64>,
    /// `--top-p`
    pub top_p: Option<f64>,
    /// `--top-k`
    pub top_k: Option<u32>,
    /// `--alg-temp`
    pub alg_temp: Option<f64>,
    /// `--eps`
    pub eps: Option<f64>,
    /// `--cfg-scale`
    pub cfg_scale: Option<f64>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--early-stop`
    pub early_stop: Option<bool>,
    /// `--forbid-end`
    pub forbid_end: bool,
    /// `--distrust-end`
    pub distrust_end: bool,
    /// `--cache`
    pub cache: Option<&'a str>,
    /// Flags of later versions and whether they were given.
    pub later: [(&'static str, bool); 5],
}

impl Generation<'_> {
    /// Refuses flags of later versions.
    ///
    /// # Errors
    /// The first such flag.
    pub fn check(&self) -> Result<(), Failure> {
        later::refuse_flags(&self.later)?;
        match self.cache {
            None | Some("none") => Ok(()),
            Some(kind @ ("prefix" | "dual")) => Err(Failure::Later(format!("`--cache {kind}`"))),
            Some(kind) => {
                let message = format!("--cache `{kind}` is unknown; only none exists");
                Err(Failure::Usage(message))
            }
        }
    }

    /// The settings for so many tokens and steps; what was not given is left to the model's kind.
    pub fn settings(&self, max_tokens: Option<u32>, steps: Option<u32>) -> Settings {
        let default = Settings::default();
        Settings {
            gen_length: max_tokens.unwrap_or(default.gen_length),
            steps,
            block_length: self.block_length,
            algorithm: self.algorithm,
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            alg_temp: self.alg_temp,
            eps: self.eps,
            cfg_scale: self.cfg_scale.unwrap_or(default.cfg_scale),
            seed: self.seed.unwrap_or(default.seed),
            early_stop: self.early_stop.unwrap_or(default.early_stop),
            forbid_end_in_logits: self.forbid_end,
            zero_end_confidence: self.distrust_end,
        }
    }
}
