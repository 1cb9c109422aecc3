//! The flags of every command that runs a model, and of every command that generates.

use crate::cli::args::{Cpus, FilePath, LockMode};
use crate::cli::failure::Failure;
use dllm_rt::backend::cpu::threads::cpus;
use dllm_rt::{Device, Options};

/// Defines a command with its own fields and those of every command that runs a model: the
/// parser has no way to share fields between commands.
macro_rules! model_command {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        #[derive(argh::FromArgs, Debug)]
        $(#[$meta])*
        pub struct $name {
            $($own)*
            /// the model's GGUF file; any part of a split one (default: the demonstration model
            /// that is built in)
            #[argh(option, arg_name = "path")]
            pub model: Option<$crate::cli::args::FilePath>,
            /// worker threads (default: the physical cores that may be used)
            #[argh(option, arg_name = "n")]
            pub threads: Option<usize>,
            /// the CPUs to pin the threads to, like 0,2-5 (default: physical cores first)
            #[argh(option, arg_name = "list")]
            pub cpus: Option<$crate::cli::args::Cpus>,
            /// instruction set: auto, scalar, avx2, avxvnni or avx512vnni (default: what the
            /// environment's DLLM_ISA names, or auto)
            #[argh(option, arg_name = "name")]
            pub isa: Option<String>,
            /// auto or cpu (default: auto)
            #[argh(option, arg_name = "name")]
            pub device: Option<String>,
            /// ask for huge pages
            #[argh(switch)]
            pub huge_pages: bool,
            /// lock the model in memory: auto (where permitted), on (warn where it is not) or off
            /// (default: auto)
            #[argh(option, arg_name = "mode")]
            pub lock: Option<$crate::cli::args::LockMode>,
            /// the mask token's id, for files that name none
            #[argh(option, arg_name = "id")]
            pub mask_token: Option<u32>,
            /// say more on standard error
            #[argh(switch)]
            pub verbose: bool,
            /// print one JSON object
            #[argh(switch)]
            pub json: bool,
        }

        impl $name {
            /// The flags that are not this command's own.
            pub fn model_flags(&self) -> $crate::cli::flags::ModelFlags {
                $crate::cli::flags::ModelFlags {
                    model: self.model.clone(),
                    threads: self.threads,
                    cpus: self.cpus.clone(),
                    isa: self.isa.clone(),
                    device: self.device.clone(),
                    huge_pages: self.huge_pages,
                    lock: self.lock,
                    mask_token: self.mask_token,
                    verbose: self.verbose,
                }
            }
        }
    };
}
pub(in crate::cli) use model_command;

/// Defines a command as [`model_command!`] does, with the fields of every command that generates
/// beside its own.
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
                /// key of the random numbers, or random to have one drawn and printed (default: 42)
                #[argh(option, arg_name = "n")]
                pub seed: Option<$crate::cli::args::Seed>,
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
                /// a file with a Jinja chat template to use in the place of the model's
                #[argh(option, arg_name = "path")]
                pub chat_template: Option<$crate::cli::args::FilePath>,
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
                /// with --cache: compute all rows again after this many passes of a block (default:
                /// at its first pass alone)
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
            /// The parameters of these flags for so many tokens and steps.
            pub fn parameters(
                &self,
                max_tokens: Option<u32>,
                steps: Option<u32>,
            ) -> dllm_rt::RequestParameters {
                let default = dllm_rt::RequestParameters::default();
                dllm_rt::RequestParameters {
                    preset: self.preset.unwrap_or_default(),
                    max_tokens: max_tokens.unwrap_or(default.max_tokens),
                    steps,
                    block_length: self.block_length,
                    threshold: self.threshold,
                    factor: self.factor,
                    cache: self.cache,
                    refresh: self.refresh,
                    grow: self.grow,
                    algorithm: self.algorithm,
                    temperature: self.temperature,
                    top_p: self.top_p,
                    top_k: self.top_k,
                    alg_temp: self.alg_temp,
                    eps: self.eps,
                    cfg_scale: self.cfg_scale.unwrap_or(default.cfg_scale),
                    seed: self.seed.map_or(default.seed, |seed| seed.seed),
                    early_stop: self.early_stop.unwrap_or(default.early_stop),
                    forbid_end: self.forbid_end,
                    distrust_end: self.distrust_end,
                }
            }

            /// How long a generation may take.
            pub fn deadline(&self) -> Option<std::time::Duration> {
                self.deadline_ms.map(std::time::Duration::from_millis)
            }
        }
    };
}
pub(in crate::cli) use generation_command;

/// How to load a model.
#[derive(Clone, Debug)]
pub struct ModelFlags {
    pub model: Option<FilePath>,
    pub threads: Option<usize>,
    pub cpus: Option<Cpus>,
    pub isa: Option<String>,
    pub device: Option<String>,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    pub lock: Option<LockMode>,
    pub mask_token: Option<u32>,
    pub verbose: bool,
}

impl ModelFlags {
    /// Worker threads: as many as asked for, as there are `--cpus`, or as physical cores.
    pub fn threads(&self) -> usize {
        let listed = self.cpus.as_ref().map(|cpus| cpus.0.len());
        self.threads.or(listed).unwrap_or_else(cpus::physical_count)
    }

    /// How to load.
    ///
    /// # Errors
    /// An unknown device, no thread at all, fewer CPUs than threads.
    pub fn options(&self) -> Result<Options, Failure> {
        let threads = self.threads();
        if threads == 0 {
            return Err(Failure::Usage("--threads is 0; give at least 1".into()));
        }
        if let Some(Cpus(cpus)) = &self.cpus
            && cpus.len() < threads
        {
            let count = cpus.len();
            let message = format!("--cpus lists {count} CPUs for {threads} --threads");
            return Err(Failure::Usage(message));
        }
        let lock = self.lock.map_or(dllm_rt::Lock::Auto, |mode| mode.0);
        Ok(Options {
            device: device(self.device.as_deref())?,
            isa: self.isa.clone(),
            cpus: self.cpus.as_ref().map(|cpus| cpus.0.clone()),
            pin_caller: true,
            huge_pages: self.huge_pages,
            lock,
        })
    }

    /// Whether the user asked for something that the system may refuse with a warning.
    pub fn wants_warnings(&self) -> bool {
        let locks = self.lock.is_some_and(|mode| mode.0 == dllm_rt::Lock::On);
        let asked = self.huge_pages || self.cpus.is_some();
        self.verbose || asked || locks
    }
}

fn device(name: Option<&str>) -> Result<Device, Failure> {
    match name {
        Some("cuda") => Err(Failure::Later("device `cuda`".into())),
        Some(name) => name.parse().map_err(|unknown| Failure::Usage(format!("{unknown}"))),
        None => Ok(Device::Cpu),
    }
}
