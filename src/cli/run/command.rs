//! The flags of `run`, and what they ask for.

use crate::cli::args::{FilePath, Ids, Text};
use crate::cli::failure::Failure;
use crate::cli::flags::{ModelFlags, generation_command};
use crate::cli::prompt::PromptFlags;
use dllm_rt::denoise::{Cache, GenerationParameters};
use dllm_rt::{Error, Limits, Model, Prompt, Request};

generation_command! {
    /// Generates text. The prompt is one of --prompt, --prompt-file, --messages, --tokens or
    /// standard input; the text goes to standard output.
    #[argh(subcommand, name = "run")]
    pub struct Run {
        /// the user's turn, or with --no-chat the text to continue
        #[argh(option, arg_name = "text")]
        pub prompt: Option<Text>,
        /// a file with the same, or - for standard input; a last line end is not part of it without
        /// --no-chat
        #[argh(option, arg_name = "path")]
        pub prompt_file: Option<FilePath>,
        /// a JSON file with chat turns, or - for standard input
        #[argh(option, arg_name = "path")]
        pub messages: Option<FilePath>,
        /// token ids, separated by commas, taken as they are: no template, no BOS; the mask
        /// token's id is a hole to fill
        #[argh(option, arg_name = "ids")]
        pub tokens: Option<Ids>,
        /// a system turn before the others
        #[argh(option, arg_name = "text")]
        pub system: Option<Text>,
        /// end the text before this; may be given several times
        #[argh(option, arg_name = "text")]
        pub stop: Vec<Text>,
        /// chat in the terminal: a line is a turn, /clear forgets, /exit or end of input ends
        #[argh(switch)]
        pub interactive: bool,
        /// with --no-chat: control tokens written in the text are tokens
        #[argh(switch)]
        pub special: bool,
        /// read [[n]] in the prompt's text as a hole of n tokens to fill in place
        #[argh(switch)]
        pub holes: bool,
        /// tokens to generate after the prompt; 0 only fills holes (default: 128)
        #[argh(option, arg_name = "n")]
        pub max_tokens: Option<u32>,
        /// denoising steps (default: --max-tokens, or with 0 the number of holes)
        #[argh(option, arg_name = "n")]
        pub steps: Option<u32>,
        /// compute the logits of every position at each step, to compare times; the text is the
        /// same
        #[argh(switch)]
        pub full_logits: bool,
        /// with --json: the whole canvas after every step
        #[argh(switch)]
        pub trace: bool,
        /// show the canvas on standard error while it is filled
        #[argh(switch)]
        pub watch: bool,
    }
}

impl Run {
    /// Refuses flags that do not go together.
    pub fn check(&self) -> Result<(), Failure> {
        let usage = |message: &str| Err(Failure::Usage(message.into()));
        if self.stop.iter().any(|stop| stop.0.is_empty()) {
            return usage("--stop is empty; give a text");
        }
        if self.trace && !self.json {
            return usage("--trace is part of --json; give both");
        }
        if !self.interactive {
            return Ok(());
        }
        if self.max_tokens == Some(0) {
            return usage("--max-tokens 0 only fills holes, which --interactive has none of");
        }
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
        match alone.iter().find(|(_, given)| *given) {
            Some((flag, _)) => usage(&format!("{flag} and --interactive exclude each other")),
            None => Ok(()),
        }
    }

    pub fn prompt_flags(&self) -> PromptFlags<'_> {
        PromptFlags {
            prompt: self.prompt.as_ref(),
            file: self.prompt_file.as_ref(),
            messages: self.messages.as_ref(),
            tokens: self.tokens.as_ref(),
            system: self.system.as_ref(),
            no_chat: self.no_chat,
            special: self.special,
            holes: self.holes,
        }
    }

    /// What is asked of the model.
    pub fn request(&self, prompt: Prompt) -> Request {
        Request {
            prompt,
            holes: self.holes,
            parameters: self.parameters(self.max_tokens, self.steps),
            stop: self.stop.iter().map(|text| text.0.clone()).collect(),
            deadline: self.deadline(),
        }
    }

    /// The checked parameters.
    pub fn checked(&self, model: &Model) -> Result<GenerationParameters, Failure> {
        let request = self.parameters(self.max_tokens, self.steps);
        let parameters = GenerationParameters::new(model.kind(), &request)?;
        if self.full_logits && parameters.cache != Cache::None {
            return Err(Error::FullLogitsWithCache.into());
        }
        Ok(parameters)
    }

    /// Those limits, on the threads of the flags and for the logits that they ask for.
    pub fn limits(&self, limits: Limits, flags: &ModelFlags) -> Limits {
        let full = self.full_logits;
        let output_rows = if full { limits.rows } else { limits.output_rows };
        let logits = limits.logits || full;
        Limits { threads: flags.threads(), output_rows, logits, ..limits }
    }
}
