//! Sizes and constants of a model, valid by construction.

use super::error::Error;
use crate::gguf::{Gguf, Value};
use dllm_cpu::ops::RopeStyle;

/// Layers at most: ten times the deepest published model.
pub(crate) const LAYERS_MAX: usize = 1024;
/// Widths at most: far beyond published models, and small enough that products of two fit.
pub(crate) const WIDTH_MAX: usize = 1 << 20;
/// Token ids are u32 and published vocabularies are below 300,000.
const VOCAB_MAX: usize = 1 << 24;
/// Canvas positions at most: far beyond any published context, and small enough for sums.
pub(crate) const CONTEXT_MAX: usize = 1 << 30;
/// What the widths of activations must divide by: one cache line of f32, so that items of 16
/// output rows never share one.
pub(crate) const WIDTH_ALIGN: usize = 16;
/// What a head's width must divide by: the lanes of a vector.
pub(crate) const HEAD_ALIGN: usize = 8;

/// Base of the frequencies where the file names none, as everywhere.
const THETA_DEFAULT: f32 = 10_000.0;

/// The supported architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// LLaDA: position i predicts token i.
    Llada,
    /// Dream: row i - 1 predicts token i.
    Dream,
    /// Llama: the same tensors as LLaDA's, trained to predict the next token under a causal mask.
    /// Passes run without the mask, so they can be measured but generate nothing.
    Llama,
}

impl Architecture {
    /// Every one.
    pub const ALL: [Architecture; 3] =
        [Architecture::Llada, Architecture::Dream, Architecture::Llama];

    /// As `general.architecture` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Llada => "llada",
            Architecture::Dream => "dream",
            Architecture::Llama => "llama",
        }
    }

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Architecture> {
        Architecture::ALL.into_iter().find(|architecture| architecture.name() == name)
    }

    /// Refuses the architectures that can be measured only.
    ///
    /// # Errors
    /// [`Error::NoDiffusion`].
    pub fn check_generates(self) -> Result<(), Error> {
        match self {
            Architecture::Llada | Architecture::Dream => Ok(()),
            Architecture::Llama => Err(Error::NoDiffusion { architecture: self.name() }),
        }
    }
}

/// Rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Which elements turn together.
    pub style: RopeStyle,
    /// Base of the frequencies.
    pub theta: f32,
    /// Elements of a head that turn: even, at most the head's width.
    pub dimensions: usize,
}

/// Sizes and constants.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The architecture.
    pub architecture: Architecture,
    /// Layers, at least one.
    pub layers: usize,
    /// Width of the residual stream, a multiple of 16.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Elements of a head, a multiple of 8.
    pub head_width: usize,
    /// Width of the feed-forward, a multiple of 16.
    pub ff_width: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Positions that the model was trained for.
    pub context: usize,
    /// Added to the mean square of a norm.
    pub epsilon: f32,
    /// Rotary positions.
    pub rope: RopeConfig,
    /// Whether row i - 1 of the logits predicts token i.
    pub shift_logits: bool,
    /// What was assumed of the file, a sentence each.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads and checks the configuration; the vocabulary's size is the embedding's.
    pub(super) fn from_gguf(gguf: &Gguf) -> Result<Config, Error> {
        let found = gguf.str("general.architecture")?;
        let unknown = || Error::Architecture { found: found.into() };
        let architecture = Architecture::by_name(found).ok_or_else(unknown)?;
        let keys = Keys { gguf, prefix: architecture.name() };
        let mut warnings = Vec::new();
        keys.refuse_scaling()?;
        let width = keys.size("embedding_length", WIDTH_MAX, WIDTH_ALIGN)?;
        let heads = keys.size("attention.head_count", WIDTH_MAX, 1)?;
        let head_width = keys.head_width(width, heads)?;
        let default_shift = architecture == Architecture::Dream;
        Ok(Config {
            architecture,
            layers: keys.size("block_count", LAYERS_MAX, 1)?,
            width,
            heads,
            kv_heads: keys.kv_heads(heads)?,
            head_width,
            ff_width: keys.size("feed_forward_length", WIDTH_MAX, WIDTH_ALIGN)?,
            vocab: keys.vocab()?,
            context: keys.size("context_length", CONTEXT_MAX, 1)?,
            epsilon: keys.positive("attention.layer_norm_rms_epsilon")?,
            rope: keys.rope(architecture, head_width, &mut warnings)?,
            shift_logits: gguf.opt_bool("diffusion.shift_logits")?.unwrap_or(default_shift),
            warnings,
        })
    }
}

/// The keys of one architecture.
struct Keys<'a> {
    gguf: &'a Gguf,
    prefix: &'static str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    /// A positive integer up to `max` that `align` divides.
    fn size(&self, name: &str, max: usize, align: usize) -> Result<usize, Error> {
        match self.opt_size(name, max, align)? {
            Some(size) => Ok(size),
            // The key is not there, which its getter says.
            None => check_size(self.key(name), self.gguf.u32(&self.key(name))?, max, align),
        }
    }

    fn opt_size(&self, name: &str, max: usize, align: usize) -> Result<Option<usize>, Error> {
        let key = self.key(name);
        let value = match self.gguf.opt_get(&key)? {
            Some(Value::Array(_)) => Some(self.same(&key)?),
            _ => self.gguf.opt_u32(&key)?,
        };
        value.map(|value| check_size(key, value, max, align)).transpose()
    }

    /// The number that an array, of one for each layer, has in all its places.
    fn same(&self, key: &str) -> Result<u32, Error> {
        let mut items = self.gguf.i32s(key)?;
        let first = items.next();
        match first.and_then(|first| u32::try_from(first).ok()) {
            Some(value) if items.all(|item| u32::try_from(item) == Ok(value)) => Ok(value),
            _ => Err(Error::Unsupported {
                name: key.into(),
                found: "an array that is empty or of unlike or negative numbers".into(),
            }),
        }
    }

    fn positive(&self, name: &str) -> Result<f32, Error> {
        let key = self.key(name);
        let value = self.gguf.f32(&key)?;
        if value.is_finite() && value > 0.0 {
            return Ok(value);
        }
        Err(Error::Value { key, found: value.to_string(), need: "a positive number".into() })
    }

    fn head_width(&self, width: usize, heads: usize) -> Result<usize, Error> {
        let explicit = self.opt_size("attention.key_length", WIDTH_MAX, HEAD_ALIGN)?;
        let values = self.opt_size("attention.value_length", WIDTH_MAX, HEAD_ALIGN)?;
        if explicit.is_none() && !width.is_multiple_of(heads * HEAD_ALIGN) {
            return Err(Error::Value {
                key: self.key("attention.head_count"),
                found: heads.to_string(),
                need: format!("a divisor of the width {width} into multiples of {HEAD_ALIGN}"),
            });
        }
        let head_width = explicit.unwrap_or(width / heads);
        if values.is_some_and(|v| v != head_width) {
            return Err(Error::Unsupported {
                name: self.key("attention.value_length"),
                found: format!("not the keys' {head_width}"),
            });
        }
        if heads.checked_mul(head_width).is_none_or(|cols| cols > WIDTH_MAX) {
            return Err(Error::Value {
                key: self.key("attention.head_count"),
                found: heads.to_string(),
                need: format!("such that all heads together are at most {WIDTH_MAX} wide"),
            });
        }
        Ok(head_width)
    }

    fn kv_heads(&self, heads: usize) -> Result<usize, Error> {
        let kv_heads = self.opt_size("attention.head_count_kv", WIDTH_MAX, 1)?.unwrap_or(heads);
        if heads.is_multiple_of(kv_heads) {
            return Ok(kv_heads);
        }
        Err(Error::Value {
            key: self.key("attention.head_count_kv"),
            found: kv_heads.to_string(),
            need: format!("a divisor of the {heads} heads"),
        })
    }

    /// Rows of the embedding, which the file's own count must equal where it gives one.
    fn vocab(&self) -> Result<usize, Error> {
        let name = "token_embd.weight";
        let missing = || Error::MissingTensor { name: name.into() };
        let rows = self.gguf.tensor(name).ok_or_else(missing)?.rows();
        let key = self.key("vocab_size");
        let stated = self.gguf.opt_u32(&key)?;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        if rows > VOCAB_MAX || stated.is_some_and(|stated| stated as usize != rows) {
            let found = stated.map_or("absent".into(), |stated| stated.to_string());
            let need = format!("the {rows} rows of `{name}`, and at most {VOCAB_MAX}");
            return Err(Error::Value { key, found, need });
        }
        Ok(rows)
    }

    fn rope(
        &self,
        arch: Architecture,
        head_width: usize,
        warnings: &mut Vec<String>,
    ) -> Result<RopeConfig, Error> {
        let dimensions = self.opt_size("rope.dimension_count", head_width, 2)?;
        let style = match arch {
            Architecture::Llada | Architecture::Llama => RopeStyle::Norm,
            Architecture::Dream => RopeStyle::Neox,
        };
        let name = "rope.freq_base";
        let theta = if self.gguf.contains(&self.key(name)) {
            self.positive(name)?
        } else {
            let key = self.key(name);
            warnings.push(format!("{key} is missing: {THETA_DEFAULT} is assumed"));
            THETA_DEFAULT
        };
        Ok(RopeConfig { style, theta, dimensions: dimensions.unwrap_or(head_width) })
    }

    /// Context extension changes the angles; a file that asks for it would run, but wrongly.
    /// Linear scaling by one, which is what it is without a factor, changes nothing.
    fn refuse_scaling(&self) -> Result<(), Error> {
        let name = self.key("rope.scaling.type");
        if let Some(found) = self.gguf.opt_str(&name)?
            && !matches!(found, "none" | "linear")
        {
            return Err(Error::Unsupported { name, found: found.into() });
        }
        for suffix in ["rope.scaling.factor", "rope.scale_linear"] {
            let name = self.key(suffix);
            if let Some(found) = self.gguf.opt_f32(&name)?
                && found != 1.0
                && found != 0.0
            {
                return Err(Error::Unsupported { name, found: found.to_string() });
            }
        }
        Ok(())
    }
}

fn check_size(key: String, value: u32, max: usize, align: usize) -> Result<usize, Error> {
    let size = value as usize;
    if size == 0 || size > max || !size.is_multiple_of(align) {
        let of = if align > 1 { format!(" and a multiple of {align}") } else { String::new() };
        let need = format!("between 1 and {max}{of}");
        return Err(Error::Value { key, found: value.to_string(), need });
    }
    Ok(size)
}
