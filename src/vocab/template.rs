//! Runs a chat template: Jinja as Hugging Face's `apply_chat_template` understands it. As there,
//! `tools` and `documents` are none, not undefined, where there are none. What is known to differ:
//! a tuple that the template writes prints as a list.
//!
//! A template comes with the model file and is not trusted: `screen` refuses what could make a
//! value that holds itself, it runs on a fuel of instructions, its calls do not nest deeply, what
//! it writes is capped, and it has a stack for the deepest nesting that its bytes and its fuel
//! can make. What it builds in variables has no cap of its own: a template made to double a
//! string or a list with every turn of a loop can take all memory, which the library gives no
//! means to prevent.

use std::sync::LazyLock;
use std::time::SystemTime;

use minijinja::{ErrorKind, Value, context};
use regex::Regex;

use crate::gguf::text::is_hostile;

use super::chat::Message;
use super::error::Error;
use super::jinja::environment;
use super::operators::with_filters;
use super::python::Capped;
use super::screen::screen;

/// Bytes of a template's source: the longest published ones have about 20 kB. Every few bytes
/// can nest an expression once more, and each level takes stack.
const SOURCE_BYTES_MAX: usize = 1 << 16;
/// Bytes that a template may write, over what the messages hold: room for its own text.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Instructions that a template may run: published ones take a few hundred, and fewer than a
/// hundred a turn.
const FUEL_BASE: u64 = 20_000;
const FUEL_PER_TURN: u64 = 2_000;
/// However many turns there are: a hundred each for ten thousand, more than a context holds.
const FUEL_MAX: u64 = 1_000_000;
/// Stack of the thread that runs a template, mostly address space that is never touched: for the
/// engine itself, for each byte of source (an operator is a byte, and nests parser, compiler and
/// tree by one), and for each instruction (which can put a list around a list).
const STACK_BYTES_BASE: usize = 16 << 20;
const STACK_BYTES_PER_SOURCE_BYTE: usize = 4 << 10;
const STACK_BYTES_PER_INSTRUCTION: usize = 1 << 10;
/// Characters shown of an error that a template raises: room for a few sentences.
const SHOWN_CHARS_MAX: usize = 400;

/// The texts of the special tokens that a template may write.
pub(super) struct SpecialTexts<'a> {
    pub(super) bos: &'a str,
    pub(super) eos: &'a str,
    pub(super) pad: &'a str,
}

/// A template that passed the checks, and what it may use.
pub(super) struct Program {
    source: String,
    fuel: u64,
    /// When it started: the same for all its runs.
    now: SystemTime,
}

impl Program {
    /// Checks a template that is to be run over `messages`.
    pub(super) fn new(source: &str, messages: &[Message]) -> Result<Program, Error> {
        if source.len() > SOURCE_BYTES_MAX {
            let found = source.len();
            let limit = format!("at most {SOURCE_BYTES_MAX} bytes");
            return Err(Error::Length { key: "tokenizer.chat_template", found, limit });
        }
        let source = without_generation_tags(source)?;
        screen(&source).map_err(Error::Template)?;
        let source = with_filters(&source).map_err(Error::Template)?;
        let fuel = FUEL_BASE.saturating_add(FUEL_PER_TURN.saturating_mul(messages.len() as u64));
        Ok(Program { source, fuel: fuel.min(FUEL_MAX), now: SystemTime::now() })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The conversation as the template writes it, up to where the assistant's answer starts.
    /// `source` is the template's, or that with other texts in its literals.
    pub(super) fn run(
        &self,
        source: &str,
        names: &SpecialTexts<'_>,
        messages: &[Message],
    ) -> Result<String, Error> {
        let stack_bytes = STACK_BYTES_BASE
            + self.source.len() * STACK_BYTES_PER_SOURCE_BYTE
            + self.fuel as usize * STACK_BYTES_PER_INSTRUCTION;
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("template".into());
            let builder = builder.stack_size(stack_bytes);
            let thread = builder.spawn_scoped(scope, || self.run_here(source, names, messages));
            let thread = thread.map_err(|error| {
                let need = format!("needs a thread with {stack_bytes} bytes of stack");
                Error::Template(format!("{need}: {error}"))
            })?;
            let broken = || Error::Template("breaks the template engine".into());
            thread.join().unwrap_or_else(|_| Err(broken()))
        })
    }

    /// Compiles and runs the template; all that nests is also dropped here, on this thread's
    /// stack.
    fn run_here(
        &self,
        source: &str,
        names: &SpecialTexts<'_>,
        messages: &[Message],
    ) -> Result<String, Error> {
        let mut environment = environment(self.now);
        environment.set_fuel(Some(self.fuel));
        let template = environment.template_from_named_str("chat", source).map_err(failed)?;
        let contents_bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let mut output = Capped::new(contents_bytes.saturating_mul(2) + OUTPUT_BYTES_MAX);
        let variables = context! {
            messages => Value::from_serialize(messages),
            add_generation_prompt => true,
            bos_token => names.bos,
            eos_token => names.eos,
            pad_token => names.pad,
            tools => (),
            documents => (),
        };
        let written = template.render_captured_to(variables, &mut output).map(|_| ());
        if output.full() {
            let reason =
                format!("writes more than {} bytes for this conversation", output.bytes_max());
            return Err(Error::Template(reason));
        }
        written.map_err(failed)?;
        output.into_text().map_err(failed)
    }
}

/// `{% generation %}` marks the assistant's words for training; here it only has to parse.
fn without_generation_tags(source: &str) -> Result<String, Error> {
    static TAGS: LazyLock<Result<[Regex; 2], regex::Error>> = LazyLock::new(|| {
        let tag = |name: &str| Regex::new(&format!(r"\{{%([-+]?)\s*{name}\s*([-+]?)%\}}"));
        Ok([tag("generation")?, tag("endgeneration")?])
    });
    let [open, close] = TAGS.as_ref().map_err(|error| Error::Library(error.to_string()))?;
    let opened = open.replace_all(source, "{%$1 if true $2%}");
    Ok(close.replace_all(&opened, "{%$1 endif $2%}").into_owned())
}

fn failed(error: minijinja::Error) -> Error {
    match error.kind() {
        ErrorKind::OutOfFuel => Error::Template("runs too many instructions".into()),
        _ => Error::Template(shown(&error.to_string())),
    }
}

/// What a template says of itself, cut and without characters that a terminal would obey.
fn shown(text: &str) -> String {
    let safe = |c| if is_hostile(c) { '\u{fffd}' } else { c };
    text.chars().take(SHOWN_CHARS_MAX).map(safe).collect()
}
