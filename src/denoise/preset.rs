//! Settings under names that a person understands.
use super::{Cache, Settings};
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

    /// The settings, for any kind of model.
    pub fn settings(self) -> Settings {
        let exact = Settings::default();
        match self {
            Preset::Exact => exact,
            Preset::Balanced => Settings { threshold: Some(0.9), ..exact },
            Preset::Fast => Settings {
                threshold: Some(0.8),
                cache: Cache::Dual,
                refresh: Some(4),
                grow: true,
                ..exact
            },
        }
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
