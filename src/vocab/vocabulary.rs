//! The vocabulary of a model: text to token ids and back, and conversations to token ids.

use crate::gguf::Gguf;
use std::borrow::Cow;
use std::collections::HashSet;

use super::chat::{self, Message};
use super::error::Error;
use super::parts::{self, VocabParts};
use super::pre::Pre;
use super::provenance::{self, Rendered};
use super::special::Finder;
use super::template;
use super::tokens::{self, TokenKind, TokenTable};
use super::words::Words;

/// Whether control tokens written in a text are tokens or plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `<|endoftext|>` in the text is that token.
    Parse,
    /// `<|endoftext|>` in the text is thirteen characters.
    AsText,
}

/// Whether decoding shows control tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Control and unused tokens show as they are written.
    All,
    /// Control and unused tokens are left out.
    TextOnly,
}

/// A checked vocabulary with its tokenizer and chat template.
#[derive(Debug)]
pub struct Vocab {
    table: TokenTable,
    words: Words,
    control: Finder,
    /// Finds user-defined tokens.
    defined: Finder,
    end_ids: Vec<u32>,
    warnings: Vec<String>,
    /// What the file says, less the arrays.
    parts: VocabParts,
}

/// Appends the ids of a stretch of text.
type Push<'a> = dyn FnMut(&str, &mut Vec<u32>) -> Result<(), Error> + 'a;

impl Vocab {
    /// The tokenizer and the chat template of a file; it needs no other keys.
    ///
    /// # Errors
    /// Whatever is wrong with its keys.
    pub fn from_gguf(gguf: &Gguf) -> Result<Vocab, Error> {
        Vocab::new(parts::parts_from_gguf(gguf)?)
    }

    /// Checks `parts` and builds the tokenizer.
    ///
    /// Harmless oddities are accepted: of duplicate tokens, text becomes the first; an empty token,
    /// or one that is not UTF-8, is never found in a text; of duplicate merges the first is used;
    /// a merge that gives a control token is ignored; a padding token out of range is none, which
    /// [`Vocab::warnings`] says.
    ///
    /// # Errors
    /// Another tokenizer model or an unknown pre-tokenizer; lengths that do not fit each other or
    /// pass a limit; ids out of range; a merge that is malformed or whose tokens do not exist.
    pub fn new(mut parts: VocabParts) -> Result<Vocab, Error> {
        let mut warnings = Vec::new();
        parts::check(&mut parts, &mut warnings)?;
        let pre = Pre::new(parts.pre.as_deref(), &parts.architecture)?;
        warnings.extend(pre.assumed(parts.pre.as_deref()));
        let add_bos = parts.add_bos.unwrap_or(pre.adds_bos());
        let kinds = tokens::kinds_of(&parts, pre.whole_words());
        let of = |wanted: &'static [TokenKind]| texts(&parts, &kinds, wanted);
        parts::check_special_bytes(of(&[TokenKind::Control, TokenKind::Defined]))?;
        let control = Finder::new(of(&[TokenKind::Control]))?;
        let defined = Finder::new(of(&[TokenKind::Defined]))?;
        let control_texts: HashSet<&str> =
            of(&[TokenKind::Control]).map(|(_, text)| text).collect();
        let words = Words::new(
            pre,
            of(&[TokenKind::Text, TokenKind::Defined, TokenKind::Unused]),
            &parts.merges,
            |token| control_texts.contains(token),
        )?;
        let end_ids = end_ids(&parts, of(&[TokenKind::Control]));
        let unspell = |text: &str, bytes: &mut Vec<u8>| words.unspell(text, bytes);
        let table = TokenTable::new(&parts, kinds, unspell)?;
        let (tokens, merges, token_types) = (Vec::new(), Vec::new(), Vec::new());
        let parts = VocabParts { tokens, merges, token_types, add_bos: Some(add_bos), ..parts };
        Ok(Vocab { table, words, control, defined, end_ids, warnings, parts })
    }

    /// Takes `source`, which is Jinja, in the place of the file's chat template. An empty one is as
    /// none.
    pub fn set_chat_template(&mut self, source: String) {
        self.parts.chat_template = Some(source);
    }

    /// What was assumed of the file, or left out, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Token ids of `text` as it is, nothing added. User-defined tokens are always found in it,
    /// control tokens only with [`Special::Parse`]. Decoding them gives the text, byte for byte.
    ///
    /// # Errors
    /// A byte of the text that no token spells.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>, Error> {
        self.encode_with(text, special, |text, ids| self.words.encode(text, ids))
    }

    /// As [`Vocab::encode`], of the text in the form in which the model was trained on it (see
    /// [`Vocab::normalized`]): that between tokens that are written out.
    ///
    /// # Errors
    /// As [`Vocab::encode`].
    pub fn encode_normalized(&self, text: &str, special: Special) -> Result<Vec<u32>, Error> {
        self.encode_with(text, special, |text, ids| self.push_words(text, ids))
    }

    /// `text` in Unicode's composed form (NFC) where the model's published tokenizer asks for it,
    /// which Qwen's does; else as it is.
    pub fn normalized<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.words.normalized(text)
    }

    fn encode_with(
        &self,
        text: &str,
        special: Special,
        mut encode: impl FnMut(&str, &mut Vec<u32>) -> Result<(), Error>,
    ) -> Result<Vec<u32>, Error> {
        let mut ids = Vec::new();
        match special {
            Special::AsText => self.defined.split(text, &mut ids, encode)?,
            Special::Parse => self
                .control
                .split(text, &mut ids, |text, ids| self.defined.split(text, ids, &mut encode))?,
        }
        Ok(ids)
    }

    /// Token ids of a prompt without a chat template: as [`Vocab::encode_normalized`], after a BOS
    /// where the file's `tokenizer.ggml.add_bos_token` is true (or is not there and Llama 3's
    /// pre-tokenizer means it) and the text does not start with one.
    ///
    /// # Errors
    /// As [`Vocab::encode`].
    pub fn encode_prompt(&self, text: &str, special: Special) -> Result<Vec<u32>, Error> {
        let ids = self.encode(text, special)?;
        Ok(self.with_bos(ids))
    }

    /// Token ids of a conversation, up to where the assistant's answer starts. Only the
    /// template's own control tokens are tokens; those in the messages are text. A BOS comes
    /// first where the file asks for one and the template writes none.
    ///
    /// # Errors
    /// A bad role, a template that is missing or fails, a byte that no token spells.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, Error> {
        self.encode_chat_with(messages, &mut |text, ids| self.push_text(text, ids))
    }

    /// As [`Vocab::encode_chat`], where every `marker` in the messages becomes the token `mask`:
    /// a hole to fill.
    ///
    /// # Errors
    /// As [`Vocab::encode_chat`].
    pub fn encode_chat_holes(
        &self,
        messages: &[Message],
        marker: char,
        mask: u32,
    ) -> Result<Vec<u32>, Error> {
        self.encode_chat_with(messages, &mut |text, ids| {
            for (index, piece) in text.split(marker).enumerate() {
                ids.extend((index > 0).then_some(mask));
                self.push_text(piece, ids)?;
            }
            Ok(())
        })
    }

    /// The conversation's ids; `push` adds those of a stretch of text between control tokens.
    fn encode_chat_with(
        &self,
        messages: &[Message],
        push: &mut Push<'_>,
    ) -> Result<Vec<u32>, Error> {
        let rendered = self.render(messages)?;
        let mut ids = Vec::new();
        let stretch = |text: &str, ids: &mut Vec<u32>| push(&rendered.uncover(text), ids);
        self.control.split(rendered.covered(), &mut ids, stretch)?;
        Ok(self.with_bos(ids))
    }

    /// The conversation as the chat template writes it, for people to read: what
    /// [`Vocab::encode_chat`] takes apart, without a BOS that the template does not write.
    ///
    /// # Errors
    /// A bad role, a template that is missing or fails.
    pub fn render_chat(&self, messages: &[Message]) -> Result<String, Error> {
        let rendered = self.render(messages)?;
        Ok(rendered.uncover(rendered.covered()))
    }

    /// Bytes of `ids`, exactly those that the tokens spell.
    ///
    /// # Errors
    /// An id that does not exist.
    pub fn decode(&self, ids: &[u32], show: Show) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for (index, &id) in ids.iter().enumerate() {
            let count = self.table.len();
            let token = self.table.bytes(id).ok_or(Error::TokenRange { index, id, count })?;
            let is_text = matches!(self.table.kind(id), Some(TokenKind::Text | TokenKind::Defined));
            if is_text || show == Show::All {
                bytes.extend_from_slice(token);
            }
        }
        Ok(bytes)
    }

    /// Text of `ids`; bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// An id that does not exist.
    pub fn decode_text(&self, ids: &[u32], show: Show) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.decode(ids, show)?).into_owned())
    }

    /// Number of tokens.
    pub fn token_count(&self) -> usize {
        self.table.len()
    }

    /// The bytes of one token, as decoding shows them; `None` for an id that does not exist.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.table.bytes(id)
    }

    /// The id of the control token that is written `text`.
    pub fn control_id(&self, text: &str) -> Option<u32> {
        self.control.id_of(text)
    }

    /// Whether the token is structure (a mask, an end of turn, ...) and not text.
    pub fn is_control(&self, id: u32) -> bool {
        self.table.kind(id) == Some(TokenKind::Control)
    }

    /// Whether the token ends a text or a turn: the file's end of text and end of turn, and
    /// control tokens with a name that published models use for these.
    pub fn is_end(&self, id: u32) -> bool {
        self.end_ids.contains(&id)
    }

    /// The tokens for which [`Vocab::is_end`] holds, in rising order.
    pub fn end_ids(&self) -> &[u32] {
        &self.end_ids
    }

    /// The mask token, where the file names one.
    pub fn mask_id(&self) -> Option<u32> {
        self.parts.mask_id
    }

    /// The token that starts a text.
    pub fn bos_id(&self) -> Option<u32> {
        self.parts.bos_id
    }

    /// The token that ends a text.
    pub fn eos_id(&self) -> Option<u32> {
        self.parts.eos_id
    }

    /// The token that ends a turn: what the file names, or the first control token so called.
    pub fn eot_id(&self) -> Option<u32> {
        let named = || ["<|eot_id|>", "<|im_end|>"].into_iter().find_map(|n| self.control_id(n));
        self.parts.eot_id.or_else(named)
    }

    /// The token that fills up.
    pub fn pad_id(&self) -> Option<u32> {
        self.parts.pad_id
    }

    fn push_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        self.defined.split(text, ids, |text, ids| self.push_words(text, ids))
    }

    fn push_words(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), Error> {
        self.words.encode(&self.words.normalized(text), ids)
    }

    fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let (Some(true), Some(bos)) = (self.parts.add_bos, self.parts.bos_id)
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    /// The template's output, and which control tokens in it are its own.
    fn render(&self, messages: &[Message]) -> Result<Rendered, Error> {
        chat::check_messages(messages)?;
        let program = template::Program::new(self.template_source()?, messages)?;
        let text = |id: Option<u32>| {
            let bytes = id.and_then(|id| self.table.bytes(id)).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let (bos, eos, pad) =
            (text(self.parts.bos_id), text(self.parts.eos_id), text(self.parts.pad_id));
        let names = template::SpecialTexts { bos: &bos, eos: &eos, pad: &pad };
        provenance::render(&program, &self.control, &names, messages)
    }

    fn template_source(&self) -> Result<&str, Error> {
        // An empty template would say nothing of what the messages hold.
        let own = self.parts.chat_template.as_deref().filter(|source| !source.trim().is_empty());
        if let Some(source) = own {
            return Ok(source);
        }
        let architecture = || self.parts.architecture.clone();
        let fallback = chat::fallback(&self.parts.architecture)
            .ok_or_else(|| Error::TemplateMissing { architecture: architecture() })?;
        for &token in fallback.tokens {
            if self.control_id(token).is_none() {
                return Err(Error::TemplateToken { architecture: architecture(), token });
            }
        }
        Ok(fallback.source)
    }
}

/// Tokens of the wanted kinds that are UTF-8, in id order.
fn texts<'a>(
    parts: &'a VocabParts,
    kinds: &'a [TokenKind],
    wanted: &'static [TokenKind],
) -> impl Iterator<Item = (u32, &'a str)> {
    let tokens = parts.tokens.iter().zip(kinds).enumerate();
    tokens.filter(move |(_, (_, kind))| wanted.contains(kind)).filter_map(|(id, (token, _))| {
        let text = std::str::from_utf8(token).ok().filter(|text| !text.is_empty())?;
        Some((id as u32, text))
    })
}

fn end_ids<'a>(parts: &VocabParts, control: impl Iterator<Item = (u32, &'a str)>) -> Vec<u32> {
    let named = control.filter(|(_, text)| tokens::END_NAMES.contains(text)).map(|(id, _)| id);
    let mut ids: Vec<u32> = named.chain(parts.eos_id).chain(parts.eot_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
