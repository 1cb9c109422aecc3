//! What decides a row's token: the algorithm, its numbers, and the tokens that may never appear.
use std::fmt;
use std::str::FromStr;

/// Which of the two denoising loops a model was trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Block by block, a fixed share of the masks a step (`llada`).
    Llada,
    /// The whole canvas at once, along a list of times (`dream`).
    Dream,
}

impl Kind {
    /// The architecture's name in a GGUF file.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Llada => "llada",
            Kind::Dream => "dream",
        }
    }

    /// The algorithms that this kind of loop knows, the default first.
    pub fn algorithms(self) -> &'static [Algorithm] {
        match self {
            Kind::Llada => &[Algorithm::LowConfidence, Algorithm::Random],
            Kind::Dream => &[
                Algorithm::Entropy,
                Algorithm::MaskgitPlus,
                Algorithm::TopkMargin,
                Algorithm::Origin,
            ],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the confidence of a position is measured, which decides where tokens are committed first.
/// `p` is the row's softmax after temperature, top-p and top-k (`LowConfidence`: before all noise),
/// `y` the chosen token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// LLaDA: `p[y]`; the positions of low confidence stay masked.
    LowConfidence,
    /// LLaDA: uniform in (0, 1), whatever the logits.
    Random,
    /// Dream: `p[y]`, but positions commit by chance alone.
    Origin,
    /// Dream: `p[y]`.
    MaskgitPlus,
    /// Dream: the largest `p` less the second largest.
    TopkMargin,
    /// Dream: the negative entropy, `sum p ln(p + 1e-10)`.
    Entropy,
}

/// Every algorithm, LLaDA's first.
pub const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::LowConfidence,
    Algorithm::Random,
    Algorithm::Origin,
    Algorithm::MaskgitPlus,
    Algorithm::TopkMargin,
    Algorithm::Entropy,
];

impl Algorithm {
    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::LowConfidence => "low_confidence",
            Algorithm::Random => "random",
            Algorithm::Origin => "origin",
            Algorithm::MaskgitPlus => "maskgit_plus",
            Algorithm::TopkMargin => "topk_margin",
            Algorithm::Entropy => "entropy",
        }
    }

    /// A confidence of this algorithm on a scale from 0 to 1 that is 1 for a row that leaves no
    /// doubt: probabilities and their margin as they are, of an entropy its exponential, the
    /// probability of each of so many equally likely tokens.
    pub fn certainty(self, confidence: f64) -> f64 {
        match self {
            Algorithm::Entropy => libm::exp(confidence),
            _ => confidence,
        }
    }

    /// The loop that this algorithm belongs to.
    pub fn kind(self) -> Kind {
        match self {
            Algorithm::LowConfidence | Algorithm::Random => Kind::Llada,
            _ => Kind::Dream,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A field has no value of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {name:?} is unknown; there are {}", known.join(", "))]
pub struct UnknownName {
    field: &'static str,
    name: String,
    known: Vec<&'static str>,
}

impl UnknownName {
    /// `name` is none of `known`.
    pub(crate) fn new(
        field: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> UnknownName {
        UnknownName { field, name: name.to_owned(), known: known.into_iter().collect() }
    }
}

impl FromStr for Algorithm {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = ALGORITHMS.into_iter().find(|a| a.name() == name);
        found.ok_or_else(|| UnknownName::new("algorithm", name, ALGORITHMS.map(Algorithm::name)))
    }
}

/// Token ids that a [`TokenSet`] holds at most: files name one to three ends (of text, of turn, of
/// message), and a rule must stay small and `Copy`.
pub const TOKEN_SET_MAX: usize = 8;

/// A few token ids without a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenSet {
    ids: [u32; TOKEN_SET_MAX],
    count: usize,
}

impl TokenSet {
    /// The set of `ids`, repeated ones once; `None` when there are over [`TOKEN_SET_MAX`].
    pub fn new(ids: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut set = TokenSet::default();
        for id in ids {
            if set.contains(id) {
                continue;
            }
            *set.ids.get_mut(set.count)? = id;
            set.count += 1;
        }
        Some(set)
    }

    /// The ids, in the order given.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.count]
    }

    /// Whether `id` is one of them.
    pub fn contains(&self, id: u32) -> bool {
        self.ids().contains(&id)
    }
}

/// All that [`choose`](super::choose) needs to know besides the row. Plain data, the same for every
/// row of a request. The numbers are taken as valid: `GenerationParameters` has checked them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Sets the loop's arithmetic too ([`Algorithm::kind`]).
    pub algorithm: Algorithm,
    /// 0: the largest logit wins; above: tokens are drawn.
    pub temperature: f64,
    /// Dream only, in (0, 1]: the tokens kept are the likeliest until their sum exceeds it. 1: all.
    pub top_p: f64,
    /// Dream only: tokens below the k-th largest logit are dropped, equals of it stay. 0: none are.
    pub top_k: u32,
    /// Never chosen: its logit counts as minus infinity, in the softmax too.
    pub mask_token: u32,
    /// Key of the random numbers.
    pub seed: u64,
    /// LLaDA only: weight g of classifier-free guidance, `u + (g + 1)(l - u)`. 0: none.
    pub cfg_scale: f64,
    /// End-of-text tokens that are treated as the mask token is.
    pub forbid_end: TokenSet,
    /// Tokens whose choice counts with confidence 0 (LLaDA only), so that they are committed last.
    pub distrust_end: TokenSet,
}

impl Rule {
    /// Whether the largest logit wins and its confidence follows from the row's statistics: no
    /// temperature, no filter, and not algorithm `entropy`, whose `ln(p + 1e-10)` does not come
    /// apart into sums that could be kept instead of the row.
    pub fn is_greedy(&self) -> bool {
        let filters = self.top_p < 1.0 || self.top_k > 0;
        self.temperature == 0.0 && !filters && self.algorithm != Algorithm::Entropy
    }

    /// Whether [`choose`](super::choose) must see whole rows of logits: unless it is greedy, and
    /// under guidance.
    pub fn needs_logits(&self) -> bool {
        !self.is_greedy() || self.cfg_scale > 0.0
    }
}
