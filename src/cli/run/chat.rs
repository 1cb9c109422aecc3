//! A chat in the terminal: a line is a turn.

use super::command::Run;
use super::report;
use super::watch::{self, Watchers, say_cut};
use crate::cli::failure::{End, Failure};
use crate::cli::flags::ModelFlags;
use crate::cli::interrupt::Interrupt;
use crate::cli::model::{self, ModelSource};
use crate::cli::{args, output};
use dllm_rt::denoise::{Cache, GenerationParameters};
use dllm_rt::generate::{Generation, limits};
use dllm_rt::{Engine, Error, Message, Model, Prompt};
use std::io::{self, BufRead, IsTerminal, Read, Write};

/// Longest conversation in tokens, where the model's context is longer: the arena is planned for
/// it at the start, and an 8B model's buffers take under 1 GiB then.
const ROWS_MAX: usize = 4096;
/// The same where keys and values are kept, of which an 8B model has 1 MiB a token.
const ROWS_KEPT_MAX: usize = 1024;
/// Longest line in bytes: 64 a token of the longest conversation.
const LINE_BYTES_MAX: u64 = 64 * ROWS_MAX as u64;

/// Runs the chat until end of input, `/exit` or an interrupt at the prompt.
pub fn run(command: &Run, flags: &ModelFlags) -> Result<End, Failure> {
    let (source, options) = (flags.source(), flags.options()?);
    let model = model::open(flags, command.chat_template.as_ref())?;
    source.introduce();
    let parameters = command.checked(&model)?;
    let generated = parameters.max_tokens as usize;
    let shortest = Prompt::user("a").encode(model.vocab(), None)?.len();
    model.check_context(shortest + generated)?;
    let rows_max = if parameters.cache == Cache::None { ROWS_MAX } else { ROWS_KEPT_MAX };
    let rows = model.config().context.min(rows_max.max(2 * generated));
    let limits = command.limits(limits(&parameters, rows, 0), flags);
    let mut engine = model::load(model.gguf(), limits, &options, flags)?;
    engine.set_full_logits(command.full_logits);
    let interrupt = Interrupt::listen()?;
    let is_forgetful = source == ModelSource::BuiltIn;
    let mut chat = Chat { command, model: &model, parameters, turns: Vec::new(), is_forgetful };
    chat.clear();
    loop {
        // Nothing is to be saved here, so that an interrupt ends the process.
        interrupt.set(true);
        let line = match read_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(End::Done),
            // A line that is no text is no reason to lose the conversation.
            Err(failure @ (Failure::Encoding { .. } | Failure::TextTooLong { .. })) => {
                output::say(&args::one_line(&failure.to_string()));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        interrupt.set(false);
        match line.trim() {
            "" => {}
            "/exit" => return Ok(End::Done),
            "/clear" => chat.clear(),
            _ => match chat.answer(&line, &mut engine, &interrupt) {
                // Standard output is all that is written to.
                Err(failure @ (Failure::BrokenPipe | Failure::File { .. })) => return Err(failure),
                Err(failure) => output::say(&args::one_line(&failure.to_string())),
                Ok(()) => {}
            },
        }
    }
}

struct Chat<'a> {
    command: &'a Run,
    model: &'a Model,
    parameters: GenerationParameters,
    turns: Vec<Message>,
    /// Whether each turn stands alone: the demonstration model knows no longer conversations.
    is_forgetful: bool,
}

impl Chat<'_> {
    fn clear(&mut self) {
        let system = self.command.system.as_ref();
        self.turns = system.map(|text| Message::new("system", &text.0)).into_iter().collect();
    }

    /// Answers one turn. A turn that cannot be answered is forgotten.
    fn answer(
        &mut self,
        line: &str,
        engine: &mut Engine,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        self.turns.push(Message::new("user", line));
        match self.generate(engine, interrupt) {
            Ok(text) => {
                self.turns.push(Message::new("assistant", &text));
                if self.is_forgetful {
                    self.clear();
                }
                Ok(())
            }
            Err(failure) => {
                self.turns.pop();
                Err(failure)
            }
        }
    }

    fn generate(&self, engine: &mut Engine, interrupt: &Interrupt) -> Result<String, Failure> {
        let Chat { command, model, parameters, turns, .. } = self;
        let request = command.request(Prompt::Chat(turns.clone()));
        let prepared = match model.prepare(&request) {
            // Said below in the words of a conversation.
            Err(Error::Context { .. }) => None,
            prepared => Some(prepared?),
        };
        let rows_max = engine.limits().rows;
        let prepared = prepared.filter(|prepared| prepared.positions() <= rows_max);
        let Some(prepared) = prepared else {
            let rows =
                request.prompt.encode(model.vocab(), None)?.len() + parameters.max_tokens as usize;
            let message = format!("the conversation is full ({rows} of {rows_max} tokens): /clear");
            return Err(Failure::Usage(message));
        };
        let mut generation = Generation::start(engine, &prepared)?;
        generation.cancel_by(interrupt.flag());
        let mut watchers = Watchers::new(command, model);
        let outcome = watch::generate(engine, &mut generation, &mut watchers)?;
        watchers.finish();
        let answer = model.answer(&generation)?;
        say_cut(&answer);
        if command.verbose {
            report::say(engine, &outcome);
        }
        output::text(&answer.text)?;
        Ok(answer.text)
    }
}

/// The next line without its end; `None` at the end of input.
fn read_line() -> Result<Option<String>, Failure> {
    if io::stdin().is_terminal() {
        let _ = write!(io::stderr(), "> ");
    }
    let failed = |cause| Failure::File { doing: "read standard input".into(), cause };
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock().take(LINE_BYTES_MAX);
    if input.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
        // The lock that is held already: another would wait for it for ever.
        input.into_inner().skip_until(b'\n').map_err(failed)?;
        let name = "the line".into();
        return Err(Failure::TextTooLong { name, bytes_max: LINE_BYTES_MAX });
    }
    let line = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::Encoding { name: "the line".into(), offset }
    })?;
    Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()))
}
