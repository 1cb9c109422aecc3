//! `run`'s flags: those that do not go together, and the generation's settings.

use super::Run;
use crate::cli::failure::Failure;
use crate::cli::later;
use dllm_rt::denoise::Settings;

impl Run {
    /// Refuses flags of later versions and flags that do not go together.
    ///
    /// # Errors
    /// The first such flag.
    pub fn check(&self) -> Result<(), Failure> {
        later::refuse_flags(&[
            ("--threshold", self.threshold.is_some()),
            ("--factor", self.factor.is_some()),
            ("--refresh", self.refresh.is_some()),
            ("--preset", self.preset.is_some()),
            ("--deadline-ms", self.deadline_ms.is_some()),
        ])?;
        match self.cache.as_deref() {
            None | Some("none") => {}
            Some(kind @ ("prefix" | "dual")) => {
                return Err(Failure::Later(format!("`--cache {kind}`")));
            }
            Some(kind) => {
                let message = format!("--cache `{kind}` is unknown; only none exists");
                return Err(Failure::Usage(message));
            }
        }
        if self.stop.iter().any(|stop| stop.0.is_empty()) {
            return Err(Failure::Usage("--stop is empty; give a text".into()));
        }
        if self.trace && !self.json {
            return Err(Failure::Usage("--trace is part of --json; give both".into()));
        }
        if self.interactive { self.check_interactive() } else { Ok(()) }
    }

    fn check_interactive(&self) -> Result<(), Failure> {
        let alone = [
            ("--prompt", self.prompt.is_some()),
            ("--prompt-file", self.prompt_file.is_some()),
            ("--messages", self.messages.is_some()),
            ("--tokens", self.tokens.is_some()),
            ("--no-chat", self.no_chat),
            ("--special", self.special),
            ("--holes", self.holes),
            ("--json", self.json),
        ];
        if self.max_tokens == Some(0) {
            let message = "--max-tokens 0 only fills holes, which --interactive has none of";
            return Err(Failure::Usage(message.into()));
        }
        match alone.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                Err(Failure::Usage(format!("{flag} and --interactive exclude each other")))
            }
            None => Ok(()),
        }
    }

    /// The settings; what was not given is left to the model's kind.
    pub fn settings(&self) -> Settings {
        let default = Settings::default();
        Settings {
            gen_length: self.max_tokens.unwrap_or(default.gen_length),
            steps: self.steps,
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
