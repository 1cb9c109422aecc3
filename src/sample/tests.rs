//! Hand-made rows, and distributions against the softmax that they should follow.
use super::*;
use dllm_cpu::Kernels;

const ROW: [f32; 8] = [9.0, 1.0, -2.0, 3.5, 3.5, 0.25, 2.0, -9.0];
/// The softmax of `ROW` without token 0, computed apart from the code under test.
fn softmax(row: &[f32], heat: f64) -> Vec<f64> {
    let weights: Vec<f64> = row
        .iter()
        .enumerate()
        .map(|(i, &l)| if i == 0 { 0.0 } else { (f64::from(l) / heat).exp() })
        .collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

fn kernels() -> Kernels {
    Kernels::best().unwrap()
}

fn pick(rule: &Rule, step: u32, row: &[f32]) -> Choice {
    let mut logits = row.to_vec();
    let mut scratch = vec![0; scratch_len(rule, row.len())];
    choose(kernels(), rule, step, 5, &mut logits, None, &mut scratch)
}

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-12, "{got} {expected}");
}

#[test]
fn greedy_confidences() {
    let p = softmax(&ROW, 1.0);
    let entropy: f64 = p.iter().filter(|p| **p > 0.0).map(|p| p * (p + 1e-10).ln()).sum();
    let cases = [
        (Algorithm::LowConfidence, p[3]),
        (Algorithm::MaskgitPlus, p[3]),
        (Algorithm::TopkMargin, 0.0),
        (Algorithm::Entropy, entropy),
    ];
    for (algorithm, confidence) in cases {
        let choice = pick(&test_rule(algorithm), 0, &ROW);
        assert_eq!(choice.token, 3, "{algorithm}: the lower of two equal tokens, never the mask");
        near(choice.confidence, confidence);
    }
}

/// Chi-square of `draws` draws against `expected` probabilities.
fn chi_square(rule: &Rule, row: &[f32], expected: &[f64], draws: u32) -> f64 {
    let mut counts = vec![0_u32; row.len()];
    for step in 0..draws {
        counts[pick(rule, step, row).token as usize] += 1;
    }
    let mut sum = 0.0;
    for (count, p) in counts.iter().zip(expected) {
        let mean = p * f64::from(draws);
        if mean == 0.0 {
            assert_eq!(*count, 0, "a token of no probability was drawn");
        } else {
            sum += (f64::from(*count) - mean).powi(2) / mean;
        }
    }
    sum
}

/// 99.9 % of chi-square with 6 degrees of freedom (with fewer it is lower still).
const CHI_SQUARE_MAX: f64 = 22.46;

#[test]
fn draws_follow_the_softmax() {
    let row = [9.0, 1.0, -0.5, 1.5, 1.5, 0.25, 2.0, -1.0];
    for algorithm in [Algorithm::LowConfidence, Algorithm::Entropy] {
        for heat in [0.7, 1.0, 2.0] {
            let mut rule = test_rule(algorithm);
            rule.temperature = heat;
            let chi = chi_square(&rule, &row, &softmax(&row, heat), 20_000);
            assert!(chi < CHI_SQUARE_MAX, "{algorithm} {heat}: {chi}");
        }
    }
}

#[test]
fn draws_follow_the_filtered_softmax() {
    let row = [9.0, 1.0, -0.5, 1.5, 1.5, 0.25, 2.0, -1.0];
    let mut p = softmax(&row, 1.5);
    let mut rule = test_rule(Algorithm::MaskgitPlus);
    (rule.temperature, rule.top_k) = (1.5, 3);
    let kept: f64 = p[3] + p[4] + p[6];
    for (token, p) in p.iter_mut().enumerate() {
        *p = if [3, 4, 6].contains(&token) { *p / kept } else { 0.0 };
    }
    let chi = chi_square(&rule, &row, &p, 20_000);
    assert!(chi < CHI_SQUARE_MAX, "{chi}");
    near(pick(&rule, 0, &row).confidence, p[pick(&rule, 0, &row).token as usize]);
}

#[test]
fn noise_leaves_the_confidence_alone() {
    let mut rule = test_rule(Algorithm::LowConfidence);
    rule.temperature = 3.0;
    let p = softmax(&ROW, 1.0);
    for step in 0..50 {
        let choice = pick(&rule, step, &ROW);
        near(choice.confidence, p[choice.token as usize]);
    }
}

#[test]
fn random_confidence_ignores_the_logits() {
    let rule = test_rule(Algorithm::Random);
    let there = pick(&rule, 3, &ROW);
    let other = pick(&rule, 3, &[0.0; 8]);
    assert_eq!(there.confidence, other.confidence);
    assert_ne!(there.confidence, pick(&rule, 4, &ROW).confidence);
    assert!(there.confidence > 0.0 && there.confidence < 1.0);
}

/// The tokens that stay, by full sort and in plain words.
fn kept_by_sorting(rule: &Rule, row: &[f32]) -> Vec<u32> {
    let p = softmax(row, if rule.temperature > 0.0 { rule.temperature } else { 1.0 });
    let mut order: Vec<u32> = (1..row.len() as u32).collect();
    order.sort_by(|a, b| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b)));
    if rule.top_p < 1.0 {
        let mut mass = 0.0;
        let mut count = 0;
        while count < order.len() && mass <= rule.top_p {
            mass += p[order[count] as usize];
            count += 1;
        }
        order.truncate(count);
    }
    let k = rule.top_k as usize;
    if k > 0 && k < order.len() {
        let least = row[order[k - 1] as usize];
        order.retain(|t| row[*t as usize] >= least);
    }
    order
}

#[test]
fn filters_equal_sorting() {
    for vocab in [2, 3, 8, 65, 300, 5000_u32] {
        for (seed, spread) in (0..).zip([0.1, 1.0, 6.0, 30.0]) {
            let mut row: Vec<f32> = (0..vocab)
                .map(|i| rng::draw(seed, vocab, i, rng::Stream::Token, 0)[0] as f32 / 4.3e9)
                .map(|u| (u * spread * 16.0).round() / 16.0)
                .collect();
            for top_p in [1e-9, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0] {
                for top_k in [0, 1, 2, 7, 100, vocab] {
                    for temperature in [0.0, 0.2, 1.0, 4.0] {
                        let mut rule = test_rule(Algorithm::Entropy);
                        (rule.top_p, rule.top_k) = (top_p, top_k);
                        rule.temperature = temperature;
                        if !filter::is_used(&rule, row.len()) {
                            continue;
                        }
                        prepare(&rule, &mut row, None);
                        let mut scratch = vec![7; row.len()];
                        let largest = stats::row(kernels(), &row).peak.logit;
                        let got = filter::kept(kernels(), &rule, &row, largest, &mut scratch);
                        let expected = kept_by_sorting(&rule, &row);
                        assert_eq!(got, expected, "{vocab} {spread} {top_p} {top_k}");
                    }
                }
            }
        }
    }
}

#[test]
fn top_p_that_keeps_one_token_is_certain() {
    let mut row = ROW;
    row[3] = 4.0;
    for (algorithm, confidence) in [
        (Algorithm::MaskgitPlus, 1.0),
        (Algorithm::TopkMargin, 1.0),
        (Algorithm::Entropy, (1.0_f64 + 1e-10).ln()),
    ] {
        let mut rule = test_rule(algorithm);
        rule.top_p = 0.2;
        let choice = pick(&rule, 0, &row);
        assert_eq!(choice.token, 3);
        near(choice.confidence, confidence);
    }
}

#[test]
fn guidance() {
    let mut rule = test_rule(Algorithm::LowConfidence);
    rule.cfg_scale = 1.5;
    let mut logits = [0.0, 1.0, 2.0, 0.5];
    let unconditional = [0.0, 1.0, 3.0, -1.0];
    let choice = choose(kernels(), &rule, 0, 0, &mut logits, Some(&unconditional), &mut []);
    // u + 2.5 (l - u)
    assert_eq!(logits[1..], [1.0, 0.5, 2.75]);
    assert_eq!(choice.token, 3);
    near(choice.confidence, 1.0 / (1.0 + (-1.75_f64).exp() + (-2.25_f64).exp()));
}

#[test]
fn ends_can_be_forbidden_or_distrusted() {
    let mut rule = test_rule(Algorithm::LowConfidence);
    rule.forbid_end = TokenSet::new([3]).unwrap();
    rule.distrust_end = TokenSet::new([4]).unwrap();
    let choice = pick(&rule, 0, &ROW);
    assert_eq!(choice, Choice { confidence: 0.0, token: 4, pad: 0 });
    rule.distrust_end = TokenSet::default();
    let p = softmax(&ROW, 1.0);
    near(pick(&rule, 0, &ROW).confidence, p[4] / (1.0 - p[3]));
}

#[test]
fn odd_rows_give_allowed_tokens() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows: [&[f32]; 6] = [
        &[nan; 5],
        &[inf, -inf, -inf, -inf],
        &[0.0, nan, inf, inf, 1.0],
        &[inf, f32::MAX, f32::MIN, 0.0],
        &[0.0, 0.0],
        &[1.0, nan, -inf, -0.0, 0.0],
    ];
    let expected = [1, 1, 2, 1, 1, 3];
    for algorithm in ALGORITHMS {
        for (top_p, top_k) in [(1.0, 0), (0.5, 0), (1.0, 1), (0.9, 2)] {
            for (row, token) in rows.iter().zip(expected) {
                let mut rule = test_rule(algorithm);
                (rule.top_p, rule.top_k) = (top_p, top_k);
                let choice = pick(&rule, 0, row);
                assert_eq!(choice.token, token, "{algorithm} {row:?}");
                assert!(!choice.confidence.is_nan());
                // Some logit is plus infinity, or none is a number.
                let says_nothing = row.contains(&inf) || row.iter().all(|logit| logit.is_nan());
                assert_eq!(choice.confidence == -f64::INFINITY, says_nothing, "{row:?}");
                for temperature in [1e-300, 1.0, 1e6] {
                    rule.temperature = temperature;
                    let drawn = pick(&rule, 1, row);
                    assert!(drawn.token > 0 && (drawn.token as usize) < row.len());
                    assert!(!drawn.confidence.is_nan());
                }
            }
        }
    }
}

#[test]
fn names_parse_back() {
    for algorithm in ALGORITHMS {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert!(algorithm.kind().algorithms().contains(&algorithm));
    }
    let message = "greedy".parse::<Algorithm>().unwrap_err().to_string();
    assert!(message.contains("\"greedy\"") && message.contains("low_confidence, random"));
}

#[test]
fn token_sets_are_small() {
    assert_eq!(TokenSet::new([4, 4, 9]).unwrap().ids(), [4, 9]);
    assert_eq!(TokenSet::new(0..TOKEN_SET_MAX as u32 + 1), None);
}
