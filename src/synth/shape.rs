//! Sizes of a model, the named ones among them.

use super::{Fault, tokens};
use crate::model::Architecture;

/// Layers, widths and rows at most: what a reader of the file takes.
const LAYERS_MAX: usize = 1024;
const WIDTH_MAX: usize = 1 << 20;
/// Tokens at most: what the tokenizer of the file takes.
const VOCAB_MAX: usize = 1 << 20;
const CONTEXT_MAX: usize = 1 << 30;
/// What widths must divide by: a cache line of f32.
const WIDTH_ALIGN: usize = 16;
/// What a head's width must divide by: the lanes of a vector.
const HEAD_ALIGN: usize = 8;

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
    pub(super) fn check(&self, architecture: Architecture) -> Result<(), Fault> {
        check("layers", self.layers, 1, LAYERS_MAX, 1)?;
        check("width", self.width, WIDTH_ALIGN, WIDTH_MAX, WIDTH_ALIGN)?;
        check("ff", self.ff_width, WIDTH_ALIGN, WIDTH_MAX, WIDTH_ALIGN)?;
        check("vocab", self.vocab, tokens::vocab_min(architecture), VOCAB_MAX, 1)?;
        check("context", self.context, 1, CONTEXT_MAX, 1)?;
        let Shape { width, heads, kv_heads, .. } = *self;
        if heads == 0 || !width.is_multiple_of(heads.saturating_mul(HEAD_ALIGN)) {
            let need = format!("a divisor of the width {width} into multiples of {HEAD_ALIGN}");
            return Err(Fault::Size { name: "heads", found: heads, need });
        }
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            let need = format!("a divisor of the {heads} heads");
            return Err(Fault::Size { name: "kv-heads", found: kv_heads, need });
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
) -> Result<(), Fault> {
    if (min..=max).contains(&found) && found.is_multiple_of(align) {
        return Ok(());
    }
    let of = if align > 1 { format!(" and a multiple of {align}") } else { String::new() };
    Err(Fault::Size { name, found, need: format!("between {min} and {max}{of}") })
}
