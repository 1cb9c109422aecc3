//! Text to token ids and back, and the chat template, from a GGUF file's metadata alone.
//!
//! [`VocabParts`] holds the metadata as it is, [`Vocab`] what has been checked. `pre` cuts text
//! into words, `words` merges a word's bytes into tokens, `special` finds the tokens that are
//! written out, `table` turns ids into bytes; `chat` and `template` render a conversation
//! (`jinja` is the engine's set-up, `screen` what it must not be given),
//! `shield` keeps control tokens out of user text.

use std::collections::HashSet;

mod bytes;
mod chat;
mod check;
mod fault;
mod from_gguf;
#[doc(hidden)]
pub mod fuzz;
mod jinja;
mod pre;
mod screen;
mod shield;
mod special;
mod table;
mod template;
mod words;

pub use chat::parse_messages;
pub use fault::Fault;
pub use from_gguf::parts_from_gguf;

use pre::Pre;
use shield::{Edges, Shield};
use special::{Finder, Piece};
use table::{Kind, Table};
use words::Words;

/// What a GGUF file says of its tokenizer, unchecked. [`Vocab::new`] checks it.
#[derive(Clone, Debug, Default)]
pub struct VocabParts {
    /// `tokenizer.ggml.model`; only `gpt2` (byte-level BPE) is supported.
    pub model: String,
    /// `tokenizer.ggml.pre`: the rule that splits text into words.
    pub pre: Option<String>,
    /// `general.architecture`: chooses the chat template of a file without one.
    pub architecture: String,
    /// `tokenizer.ggml.tokens`: bytes as stored; the position is the id.
    pub tokens: Vec<Vec<u8>>,
    /// `tokenizer.ggml.token_type`: one per token, or empty when the file has none.
    pub token_types: Vec<i32>,
    /// `tokenizer.ggml.merges`: `left right`, most preferred first.
    pub merges: Vec<Vec<u8>>,
    /// `tokenizer.ggml.bos_token_id`.
    pub bos_id: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos_id: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`.
    pub eot_id: Option<u32>,
    /// `tokenizer.ggml.mask_token_id`.
    pub mask_id: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub pad_id: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.chat_template`: Jinja source; an empty one is as none.
    pub chat_template: Option<String>,
}

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

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The turn's text; control tokens in it are text.
    pub content: String,
}

/// A checked vocabulary with its tokenizer and chat template.
#[derive(Debug)]
pub struct Vocab {
    table: Table,
    words: Words,
    /// Finds control tokens, user-defined tokens.
    control: Finder,
    defined: Finder,
    edges: Edges,
    end_ids: Vec<u32>,
    bos_id: Option<u32>,
    eos_id: Option<u32>,
    eot_id: Option<u32>,
    mask_id: Option<u32>,
    pad_id: Option<u32>,
    add_bos: bool,
    chat_template: Option<String>,
    architecture: String,
}

/// Appends the ids of a stretch of text.
type Push<'a> = dyn FnMut(&str, &mut Vec<u32>) -> Result<(), Fault> + 'a;

impl Vocab {
    /// Checks `parts` and builds the tokenizer.
    ///
    /// Harmless oddities are let through: of tokens written alike the first is the one that text
    /// becomes; an empty token, or one that is not UTF-8, is never found in a text; a repeated
    /// merge counts where it stands first; a merge that gives a control token is ignored.
    ///
    /// # Errors
    /// Another tokenizer model or an unknown pre-tokenizer; lengths that do not fit each other or
    /// pass a limit; ids out of range; a merge that is malformed or whose tokens do not exist.
    pub fn new(parts: VocabParts) -> Result<Vocab, Fault> {
        check::check(&parts)?;
        let pre = Pre::new(parts.pre.as_deref(), &parts.architecture)?;
        let kinds = table::kinds_of(&parts, pre.whole_words());
        let of = |wanted: &'static [Kind]| texts(&parts, &kinds, wanted);
        check::check_special_bytes(of(&[Kind::Control, Kind::Defined]))?;
        let control = Finder::new(of(&[Kind::Control]))?;
        let defined = Finder::new(of(&[Kind::Defined]))?;
        let edges = Edges::new(of(&[Kind::Control]).map(|(_, text)| text));
        let control_texts: HashSet<&str> = of(&[Kind::Control]).map(|(_, text)| text).collect();
        let words = Words::new(
            pre,
            of(&[Kind::Text, Kind::Defined, Kind::Unused]),
            &parts.merges,
            |token| control_texts.contains(token),
        )?;
        let end_ids = end_ids(&parts, of(&[Kind::Control]));
        let table = Table::new(&parts, kinds.clone(), |text, bytes| words.unspell(text, bytes));
        Ok(Vocab {
            table,
            words,
            control,
            defined,
            edges,
            end_ids,
            bos_id: parts.bos_id,
            eos_id: parts.eos_id,
            eot_id: parts.eot_id,
            mask_id: parts.mask_id,
            pad_id: parts.pad_id,
            add_bos: parts.add_bos.unwrap_or(false),
            chat_template: parts.chat_template,
            architecture: parts.architecture,
        })
    }

    /// Token ids of `text`, nothing added. User-defined tokens are always found in it, control
    /// tokens only with [`Special::Parse`].
    ///
    /// # Errors
    /// A byte of the text that no token spells.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>, Fault> {
        let mut ids = Vec::new();
        match special {
            Special::AsText => self.push_text(text, &mut ids)?,
            Special::Parse => self.control.split(text, |piece| match piece {
                Piece::Token(id) => {
                    ids.push(id);
                    Ok(())
                }
                Piece::Text(text) => self.push_text(text, &mut ids),
            })?,
        }
        Ok(ids)
    }

    /// Token ids of a prompt without a chat template: as [`Vocab::encode`], after a BOS where
    /// the file's `tokenizer.ggml.add_bos_token` is true and the text does not start with one.
    ///
    /// # Errors
    /// As [`Vocab::encode`].
    pub fn encode_prompt(&self, text: &str, special: Special) -> Result<Vec<u32>, Fault> {
        let ids = self.encode(text, special)?;
        Ok(self.with_bos(ids))
    }

    /// Token ids of a conversation, up to where the assistant's answer starts. Only the
    /// template's own control tokens are tokens; those in the messages are text. A BOS comes
    /// first where the file asks for one and the template writes none.
    ///
    /// # Errors
    /// A bad role, a template that is missing or fails, a byte that no token spells.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, Fault> {
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
    ) -> Result<Vec<u32>, Fault> {
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
    ) -> Result<Vec<u32>, Fault> {
        let (rendered, shield) = self.render(messages)?;
        let mut ids = Vec::new();
        self.control.split(&rendered, |piece| match piece {
            Piece::Token(id) => {
                ids.push(id);
                Ok(())
            }
            Piece::Text(text) => push(&shield.uncover(text), &mut ids),
        })?;
        Ok(self.with_bos(ids))
    }

    /// The conversation as the chat template writes it, for people to read: what
    /// [`Vocab::encode_chat`] takes apart, without a BOS that the template does not write.
    ///
    /// # Errors
    /// A bad role, a template that is missing or fails.
    pub fn render_chat(&self, messages: &[Message]) -> Result<String, Fault> {
        let (rendered, shield) = self.render(messages)?;
        Ok(shield.uncover(&rendered))
    }

    /// Bytes of `ids`, exactly those that the tokens spell.
    ///
    /// # Errors
    /// An id that does not exist.
    pub fn decode(&self, ids: &[u32], show: Show) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        for (index, &id) in ids.iter().enumerate() {
            let count = self.table.len();
            let token = self.table.bytes(id).ok_or(Fault::TokenRange { index, id, count })?;
            let is_text = matches!(self.table.kind(id), Some(Kind::Text | Kind::Defined));
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
    pub fn decode_text(&self, ids: &[u32], show: Show) -> Result<String, Fault> {
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
        self.table.kind(id) == Some(Kind::Control)
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
        self.mask_id
    }

    /// The token that starts a text.
    pub fn bos_id(&self) -> Option<u32> {
        self.bos_id
    }

    /// The token that ends a text.
    pub fn eos_id(&self) -> Option<u32> {
        self.eos_id
    }

    /// The token that ends a turn: what the file names, or the first control token so called.
    pub fn eot_id(&self) -> Option<u32> {
        let named = || ["<|eot_id|>", "<|im_end|>"].into_iter().find_map(|n| self.control_id(n));
        self.eot_id.or_else(named)
    }

    /// The token that fills up.
    pub fn pad_id(&self) -> Option<u32> {
        self.pad_id
    }

    fn push_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), Fault> {
        self.defined.split(text, |piece| match piece {
            Piece::Token(id) => {
                ids.push(id);
                Ok(())
            }
            Piece::Text(text) => self.words.encode(text, ids),
        })
    }

    fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let (true, Some(bos)) = (self.add_bos, self.bos_id)
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }

    /// The template's output, with stand-ins for characters of the messages, and what they mean.
    fn render(&self, messages: &[Message]) -> Result<(String, Shield), Fault> {
        chat::check_messages(messages)?;
        let source = self.template_source()?;
        let shield = Shield::new(&self.edges, messages, source)?;
        let text = |id: Option<u32>| {
            let bytes = id.and_then(|id| self.table.bytes(id)).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let (bos, eos, pad) = (text(self.bos_id), text(self.eos_id), text(self.pad_id));
        let names = template::Names { bos: &bos, eos: &eos, pad: &pad };
        let rendered = template::render(source, &names, &shield.cover(messages))?;
        Ok((rendered, shield))
    }

    fn template_source(&self) -> Result<&str, Fault> {
        // An empty template would say nothing of what the messages hold.
        let own = self.chat_template.as_deref().filter(|source| !source.trim().is_empty());
        if let Some(source) = own {
            return Ok(source);
        }
        let architecture = || self.architecture.clone();
        let fallback = chat::fallback(&self.architecture)
            .ok_or_else(|| Fault::TemplateMissing { architecture: architecture() })?;
        for &token in fallback.tokens {
            if self.control_id(token).is_none() {
                return Err(Fault::TemplateToken { architecture: architecture(), token });
            }
        }
        Ok(fallback.source)
    }
}

/// Tokens of the wanted kinds that are UTF-8, in id order.
fn texts<'a>(
    parts: &'a VocabParts,
    kinds: &'a [Kind],
    wanted: &'static [Kind],
) -> impl Iterator<Item = (u32, &'a str)> {
    let tokens = parts.tokens.iter().zip(kinds).enumerate();
    tokens.filter(move |(_, (_, kind))| wanted.contains(kind)).filter_map(|(id, (token, _))| {
        let text = std::str::from_utf8(token).ok().filter(|text| !text.is_empty())?;
        Some((id as u32, text))
    })
}

fn end_ids<'a>(parts: &VocabParts, control: impl Iterator<Item = (u32, &'a str)>) -> Vec<u32> {
    let named = control.filter(|(_, text)| table::END_NAMES.contains(text)).map(|(id, _)| id);
    let mut ids: Vec<u32> = named.chain(parts.eos_id).chain(parts.eot_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
