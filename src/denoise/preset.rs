//! Settings under names that a person understands.
use super::schedule::DREAM_TEMPERATURE;
use super::{Cache, Pace, Settings};
use crate::sample::{Algorithm, Kind, UnknownName};
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

    /// The settings for a kind of model and a temperature; `None` is the kind's default. Dream
    /// measures certainty after the temperature, so that its threshold depends on it, and after
    /// top-p, which is therefore off: a token that it keeps alone would be certain.
    pub fn settings(self, kind: Kind, temperature: Option<f64>) -> Settings {
        let exact = Settings { temperature, ..Settings::default() };
        let sure = |probability| match kind {
            Kind::Llada => Settings { pace: Pace::Threshold(probability), ..exact.clone() },
            Kind::Dream => {
                let temperature = temperature.unwrap_or(DREAM_TEMPERATURE);
                Settings {
                    pace: Pace::Threshold(sharpened(probability, temperature)),
                    algorithm: Some(Algorithm::MaskgitPlus),
                    temperature: Some(temperature),
                    top_p: Some(1.0),
                    ..Settings::default()
                }
            }
        };
        match self {
            Preset::Exact => exact,
            Preset::Balanced => sure(0.9),
            Preset::Fast => {
                let (cache, refresh) = (Cache::Dual, Some(4));
                Settings { cache, refresh, grow: true, ..sure(0.8) }
            }
        }
    }
}

/// What the larger of two probabilities becomes when a temperature divides their logits; without
/// one (0), where the best token is taken, confidence is measured as at 1.
fn sharpened(probability: f64, temperature: f64) -> f64 {
    if temperature <= 0.0 {
        return probability;
    }
    1.0 / (1.0 + libm::pow(1.0 / probability - 1.0, 1.0 / temperature))
}

impl FromStr for Preset {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Preset, UnknownName> {
        let found = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| UnknownName::new("preset", name, Preset::ALL.map(Preset::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denoise::Schedule;

    fn threshold(preset: Preset, kind: Kind, temperature: Option<f64>) -> f64 {
        let schedule = Schedule::new(kind, &preset.settings(kind, temperature)).unwrap();
        assert_eq!(temperature.unwrap_or(schedule.temperature()), schedule.temperature());
        assert_eq!(schedule.algorithm() == Algorithm::MaskgitPlus, kind == Kind::Dream);
        schedule.threshold().unwrap()
    }

    /// 1 / (1 + (1/9)^5), and (1/4)^5: by hand.
    #[test]
    fn dream_asks_for_what_llada_does_after_the_temperature() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-8, "{a} {b}");
        for (preset, plain, usual) in
            [(Preset::Balanced, 0.9, 59049.0 / 59050.0), (Preset::Fast, 0.8, 1024.0 / 1025.0)]
        {
            assert_eq!(threshold(preset, Kind::Llada, None), plain);
            assert_eq!(threshold(preset, Kind::Llada, Some(0.2)), plain);
            near(threshold(preset, Kind::Dream, None), usual);
            near(threshold(preset, Kind::Dream, Some(0.2)), usual);
            near(threshold(preset, Kind::Dream, Some(1.0)), plain);
            assert_eq!(threshold(preset, Kind::Dream, Some(0.0)), plain);
            assert_eq!(threshold(preset, Kind::Dream, Some(1e-6)), 1.0);
        }
        near(threshold(Preset::Balanced, Kind::Dream, Some(2.0)), 0.75);
        // So hot that nothing is ever sure: half, and ln(9) / 4 of 1e-6 more.
        let hot = threshold(Preset::Balanced, Kind::Dream, Some(1e6)) - 0.5;
        near(1e6 * hot, 9_f64.ln() / 4.0);
    }

    #[test]
    fn both_kinds_save_in_the_same_ways() {
        for preset in Preset::ALL {
            let [a, b] = [Kind::Llada, Kind::Dream].map(|kind| preset.settings(kind, None));
            assert_eq!((a.cache, a.refresh, a.grow), (b.cache, b.refresh, b.grow));
        }
    }
}
