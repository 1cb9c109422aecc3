//! Text to token ids and back, and the chat template, from a GGUF file's metadata alone.
//!
//! `parts` holds the raw metadata, `Vocab` what has been checked. `pre` splits text into words,
//! `words` merges a word's bytes into tokens, `special` finds control tokens, `chat` and
//! `template` render a conversation, `shield` keeps control tokens out of user text.

mod fault;

pub use fault::Fault;

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
    /// `tokenizer.chat_template`: Jinja source.
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

/// Reads a conversation: a JSON array of turns, or an object with such an array as `messages`.
pub fn parse_messages(_json: &str) -> Result<Vec<Message>, Fault> {
    Err(Fault::NotYet)
}

/// A checked vocabulary with its tokenizer and chat template.
#[derive(Debug)]
pub struct Vocab {}

impl Vocab {
    /// Checks `parts` and builds the tokenizer.
    pub fn new(_parts: VocabParts) -> Result<Vocab, Fault> {
        Err(Fault::NotYet)
    }

    /// Token ids of `text`, nothing added.
    pub fn encode(&self, _text: &str, _special: Special) -> Result<Vec<u32>, Fault> {
        Err(Fault::NotYet)
    }

    /// Token ids of a prompt without a chat template: a BOS first where the file asks for one.
    pub fn encode_prompt(&self, _text: &str, _special: Special) -> Result<Vec<u32>, Fault> {
        Err(Fault::NotYet)
    }

    /// Token ids of a conversation, up to where the assistant's answer starts.
    pub fn encode_chat(&self, _messages: &[Message]) -> Result<Vec<u32>, Fault> {
        Err(Fault::NotYet)
    }

    /// Bytes of `ids`.
    pub fn decode(&self, _ids: &[u32], _show: Show) -> Result<Vec<u8>, Fault> {
        Err(Fault::NotYet)
    }

    /// Text of `ids`; bytes that are no UTF-8 become U+FFFD.
    pub fn decode_text(&self, _ids: &[u32], _show: Show) -> Result<String, Fault> {
        Err(Fault::NotYet)
    }

    /// Whether the token ends a text or a turn.
    pub fn is_end(&self, _id: u32) -> bool {
        false
    }

    /// Number of tokens.
    pub fn token_count(&self) -> usize {
        0
    }

    /// The id of the token written `text`, control tokens included.
    pub fn token_id(&self, _text: &str) -> Option<u32> {
        None
    }

    /// The mask token, where the file names one.
    pub fn mask_id(&self) -> Option<u32> {
        None
    }

    /// The token that starts a text.
    pub fn bos_id(&self) -> Option<u32> {
        None
    }

    /// The token that ends a text.
    pub fn eos_id(&self) -> Option<u32> {
        None
    }
}
