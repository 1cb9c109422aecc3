//! What a file is to hold: architecture, sizes (the named ones among them), types, seed.

use super::error::Error;
use super::tokens;
use crate::model::{Architecture, CONTEXT_MAX, HEAD_ALIGN, LAYERS_MAX, WIDTH_ALIGN, WIDTH_MAX};
use dllm_cpu::dtype::Dtype;
use std::fmt;
use std::str::FromStr;

/// Tokens at most: what the tokenizer of the file takes.
const VOCAB_MAX: usize = 1 << 20;

/// What a file is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Names the keys, and decides on biases, rotary positions and the vocabulary.
    pub architecture: Architecture,
    /// The sizes.
    pub shape: Shape,
    /// The types of the matrices.
    pub types: Types,
    /// Another seed gives other weights.
    pub seed: u64,
}

/// Sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Query heads; the width of a head is `width / heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of the feed-forward.
    pub ff_width: usize,
    /// Tokens.
    pub vocab: usize,
    /// Positions.
    pub context: usize,
}

impl Shape {
    /// LLaDA-8B.
    pub const LLADA_8B: Shape = Shape {
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 32,
        ff_width: 12_288,
        vocab: 126_464,
        context: 4096,
    };
    /// Dream-7B.
    pub const DREAM_7B: Shape = Shape {
        layers: 28,
        width: 3584,
        heads: 28,
        kv_heads: 4,
        ff_width: 18_944,
        vocab: 152_064,
        context: 131_072,
    };
    /// Small enough to be made and measured in no time.
    pub const TINY: Shape = Shape {
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 4,
        ff_width: 512,
        vocab: 512,
        context: 4096,
    };
    /// The names that [`Shape::named`] knows.
    pub const NAMES: [&str; 3] = ["llada-8b", "dream-7b", "tiny"];

    /// The shape of that name, with the architecture that it belongs to.
    pub fn named(name: &str) -> Option<(Architecture, Shape)> {
        match name {
            "llada-8b" => Some((Architecture::Llada, Shape::LLADA_8B)),
            "dream-7b" => Some((Architecture::Dream, Shape::DREAM_7B)),
            "tiny" => Some((Architecture::Llada, Shape::TINY)),
            _ => None,
        }
    }

    /// Elements of a head.
    pub fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// Rows of the keys' and values' matrices.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width()
    }

    /// Refuses sizes that no model of the architecture could have.
    pub(super) fn check(&self, architecture: Architecture) -> Result<(), Error> {
        check("layers", self.layers, 1, LAYERS_MAX, 1)?;
        check("width", self.width, WIDTH_ALIGN, WIDTH_MAX, WIDTH_ALIGN)?;
        check("ff_width", self.ff_width, WIDTH_ALIGN, WIDTH_MAX, WIDTH_ALIGN)?;
        check("vocab", self.vocab, tokens::vocab_min(architecture), VOCAB_MAX, 1)?;
        check("context", self.context, 1, CONTEXT_MAX, 1)?;
        let Shape { width, heads, kv_heads, .. } = *self;
        if heads == 0 || !width.is_multiple_of(heads.saturating_mul(HEAD_ALIGN)) {
            let need = format!("a divisor of the width {width} into multiples of {HEAD_ALIGN}");
            return Err(Error::Size { name: "heads", found: heads, need });
        }
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            let need = format!("a divisor of the {heads} heads");
            return Err(Error::Size { name: "kv_heads", found: kv_heads, need });
        }
        Ok(())
    }
}

fn check(
    name: &'static str,
    found: usize,
    min: usize,
    max: usize,
    align: usize,
) -> Result<(), Error> {
    if (min..=max).contains(&found) && found.is_multiple_of(align) {
        return Ok(());
    }
    let of = if align > 1 { format!(" and a multiple of {align}") } else { String::new() };
    Err(Error::Size { name, found, need: format!("between {min} and {max}{of}") })
}

/// The types of the matrices. Norms and biases are F32 always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// One for all.
    One(Dtype),
    /// As llama.cpp's quantizer mixes them for `Q4_K_M`: Q6_K for the LM head and, in half of the
    /// layers, for `attn_v` and `ffn_down`; Q4_K for the rest.
    Q4KM,
}

impl Types {
    /// The type of the embedding.
    pub fn embedding(self) -> Dtype {
        self.plain()
    }

    /// The type of the LM head.
    pub fn output(self) -> Dtype {
        self.finer(true)
    }

    /// The type of `attn_v` and `ffn_down` in a layer.
    pub fn sensitive(self, layer: usize, layers: usize) -> Dtype {
        self.finer(uses_more_bits(layer, layers))
    }

    /// The type of the other matrices.
    pub fn plain(self) -> Dtype {
        self.finer(false)
    }

    /// Every type in use.
    pub fn dtypes(self) -> Vec<Dtype> {
        match self {
            Types::One(dtype) => vec![dtype],
            Types::Q4KM => vec![Dtype::Q4_K, Dtype::Q6_K],
        }
    }

    fn finer(self, finer: bool) -> Dtype {
        match self {
            Types::One(dtype) => dtype,
            Types::Q4KM if finer => Dtype::Q6_K,
            Types::Q4KM => Dtype::Q4_K,
        }
    }

    /// `general.file_type`: the number that llama.cpp gives to a file of mostly this type.
    pub(super) fn file_type(self) -> u32 {
        match self {
            Types::Q4KM => 15,
            Types::One(Dtype::F32) => 0,
            Types::One(Dtype::F16) => 1,
            Types::One(Dtype::Q4_0) => 2,
            Types::One(Dtype::Q4_1) => 3,
            Types::One(Dtype::Q8_0) => 7,
            Types::One(Dtype::Q5_0) => 8,
            Types::One(Dtype::Q5_1) => 9,
            Types::One(Dtype::Q2_K) => 10,
            Types::One(Dtype::Q3_K) => 11,
            Types::One(Dtype::Q4_K) => 14,
            Types::One(Dtype::Q5_K) => 16,
            Types::One(Dtype::Q6_K) => 18,
            Types::One(Dtype::IQ4_NL) => 25,
            Types::One(Dtype::IQ4_XS) => 30,
            Types::One(Dtype::BF16) => 32,
        }
    }
}

/// Which layers get the finer type: the first and last eighth and every third one between. The
/// rule, with its rounding, is that of llama.cpp's quantizer.
fn uses_more_bits(layer: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

impl FromStr for Types {
    type Err = Error;

    /// `Q4_K_M` or the name of a type, in any case.
    fn from_str(name: &str) -> Result<Types, Error> {
        if name.eq_ignore_ascii_case("Q4_K_M") {
            return Ok(Types::Q4KM);
        }
        let found = Dtype::ALL.into_iter().find(|d| d.name().eq_ignore_ascii_case(name));
        found.map(Types::One).ok_or_else(|| Error::Types { found: name.into() })
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Types::One(dtype) => f.pad(dtype.name()),
            Types::Q4KM => f.pad("Q4_K_M"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers of the published LLaDA-8B and Dream-7B Q4_K_M files that hold Q6_K.
    #[test]
    fn half_of_the_layers_get_more_bits() {
        let finer = |layers| (0..layers).filter(|l| uses_more_bits(*l, layers)).collect::<Vec<_>>();
        assert_eq!(finer(32), [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]);
        assert_eq!(finer(28), [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27]);
        assert_eq!(finer(2), [1]);
        assert_eq!(finer(1), [0]);
    }
}
