//! Settings under names that a person understands.
use super::{Cache, Settings};
use crate::sample::{Algorithm, Kind};
use std::str::FromStr;

/// How much of the plain loop's work to save. The README says what each gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Nothing: the loop that the model was published with.
    #[default]
    Exact,
    /// Several tokens a step where the model is sure of them.
    Balanced,
    /// The same with less certainty, on a canvas that grows, with kept keys and values.
    Fast,
}

impl Preset {
    /// All of them, the slowest first.
    pub const ALL: [Preset; 3] = [Preset::Exact, Preset::Balanced, Preset::Fast];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Exact => "exact",
            Preset::Balanced => "balanced",
            Preset::Fast => "fast",
        }
    }

    /// The settings for a kind of model.
    pub fn settings(self, kind: Kind) -> Settings {
        let exact = Settings::default();
        match self {
            Preset::Exact => exact,
            Preset::Balanced => sure(kind, 0.9, 0.99998),
            Preset::Fast => Settings {
                cache: Cache::Dual,
                refresh: Some(4),
                grow: true,
                ..sure(kind, 0.8, 0.999)
            },
        }
    }
}

/// Positions commit from a probability of the token on, which Dream measures after its temperature.
fn sure(kind: Kind, probability: f64, sharpened: f64) -> Settings {
    match kind {
        Kind::Llada => Settings { threshold: Some(probability), ..Settings::default() },
        Kind::Dream => Settings {
            threshold: Some(sharpened),
            algorithm: Some(Algorithm::MaskgitPlus),
            ..Settings::default()
        },
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Preset, String> {
        let found = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| {
            format!("preset {name:?} is unknown; there are exact, balanced and fast")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denoise::Schedule;

    /// Of two tokens, one with the probability that LLaDA asks for, has Dream's after a
    /// temperature.
    #[test]
    fn both_kinds_ask_for_the_same_certainty() {
        for preset in [Preset::Balanced, Preset::Fast] {
            let of = |kind| Schedule::new(kind, &preset.settings(kind)).unwrap();
            let (llada, dream) = (of(Kind::Llada), of(Kind::Dream));
            let odds = 1.0 / llada.threshold().unwrap() - 1.0;
            let sharpened = 1.0 / (1.0 + odds.powf(1.0 / dream.temperature()));
            let asked = dream.threshold().unwrap();
            assert!((1.0 - asked) / (1.0 - sharpened) > 1.0, "{asked} {sharpened}");
            assert!((1.0 - asked) / (1.0 - sharpened) < 1.2, "{asked} {sharpened}");
            assert_eq!((llada.cache(), llada.grows()), (dream.cache(), dream.grows()));
            assert_eq!(dream.algorithm(), Algorithm::MaskgitPlus);
        }
    }
}
