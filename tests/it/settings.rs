//! A request's request: defaults by kind of model, and refusals that say what is wrong.
use dllm_rt::denoise::{Canvas, Error, GenerationParameters, RequestParameters, TokenFacts};
use dllm_rt::sample::{Algorithm, Kind};

const VOCAB: u32 = 24;

fn facts() -> TokenFacts {
    TokenFacts {
        mask_token: 23,
        vocab_size: VOCAB,
        shift_logits: false,
        end_of_text: vec![20],
        end_of_turn: vec![21],
    }
}

#[test]
fn defaults_by_kind() {
    let parameters =
        |kind, request: &RequestParameters| GenerationParameters::new(kind, request).unwrap();
    let plain = RequestParameters::default();
    let llada = parameters(Kind::Llada, &plain);
    assert_eq!((llada.algorithm, llada.temperature), (Algorithm::LowConfidence, 0.0));
    assert_eq!((llada.block_length, llada.steps, llada.max_tokens), (32, Some(128), 128));
    let dream = parameters(Kind::Dream, &plain);
    assert_eq!((dream.algorithm, dream.temperature), (Algorithm::Entropy, 0.2));
    assert_eq!((dream.top_p, dream.top_k, dream.eps), (0.95, 0, 1e-3));
    let hot = RequestParameters { temperature: Some(0.7), ..RequestParameters::default() };
    assert_eq!(parameters(Kind::Dream, &hot).top_p, 1.0);
    let both = RequestParameters { top_p: Some(0.8), ..hot };
    assert_eq!(parameters(Kind::Dream, &both).top_p, 0.8);
    let short = RequestParameters { max_tokens: 8, ..RequestParameters::default() };
    assert_eq!(parameters(Kind::Llada, &short).block_length, 8);
}

fn refusal(kind: Kind, change: impl Fn(&mut RequestParameters)) -> String {
    let mut request = RequestParameters::default();
    change(&mut request);
    GenerationParameters::new(kind, &request).expect_err("refused").to_string()
}

#[test]
fn refusals_name_the_setting() {
    use Kind::{Dream, Llada};
    let cases = [
        (refusal(Llada, |s| s.steps = Some(0)), "`steps` is 0"),
        (refusal(Llada, |s| s.block_length = Some(0)), "`block_length` is 0"),
        (refusal(Llada, |s| s.max_tokens = u32::MAX), "`max_tokens` is 4294967295"),
        (refusal(Llada, |s| s.temperature = Some(-0.5)), "`temperature` is -0.5"),
        (refusal(Llada, |s| s.temperature = Some(f64::NAN)), "`temperature` is NaN"),
        (refusal(Llada, |s| s.temperature = Some(f64::INFINITY)), "`temperature` is inf"),
        (refusal(Llada, |s| s.cfg_scale = -1.0), "`cfg_scale` is -1"),
        (refusal(Dream, |s| s.top_p = Some(0.0)), "`top_p` is 0"),
        (refusal(Dream, |s| s.top_p = Some(1.5)), "`top_p` is 1.5"),
        (refusal(Dream, |s| s.top_p = Some(f64::NAN)), "`top_p` is NaN"),
        (refusal(Dream, |s| s.alg_temp = Some(-1.0)), "`alg_temp` is -1"),
        (refusal(Dream, |s| s.eps = Some(0.0)), "`eps` is 0"),
        (refusal(Dream, |s| s.eps = Some(1.0)), "`eps` is 1"),
        (refusal(Llada, |s| s.top_k = Some(5)), "`top_k` has no meaning for llada"),
        (refusal(Llada, |s| s.top_p = Some(0.9)), "`top_p` has no meaning for llada"),
        (refusal(Llada, |s| s.alg_temp = Some(0.1)), "`alg_temp` has no meaning for llada"),
        (refusal(Dream, |s| s.cfg_scale = 1.0), "`cfg_scale` has no meaning for dream"),
    ];
    for (message, start) in cases {
        assert!(message.starts_with(start), "{message:?} should start with {start:?}");
    }
    let message = refusal(Llada, |s| s.algorithm = Some(Algorithm::Entropy));
    for part in ["entropy", "dream", "llada", "low_confidence, random"] {
        assert!(message.contains(part), "{message:?} should name {part:?}");
    }
    let message = refusal(Dream, |s| {
        s.algorithm = Some(Algorithm::Origin);
        s.alg_temp = Some(0.1);
    });
    assert!(message.contains("`alg_temp`") && message.contains("origin"), "{message}");
}

#[test]
fn canvases_refuse_what_does_not_fit_the_model() {
    let request =
        RequestParameters { max_tokens: 0, forbid_end: true, ..RequestParameters::default() };
    let parameters = GenerationParameters::new(Kind::Llada, &request).unwrap();
    let fault = |prompt: &[u32], change: &dyn Fn(&mut TokenFacts)| {
        let mut facts = facts();
        change(&mut facts);
        Canvas::new(prompt, &parameters, &facts).expect_err("refused")
    };
    let expected = Error::PromptToken { position: 1, token: 24, vocab_size: VOCAB };
    assert_eq!(fault(&[1, 24], &|_| ()), expected);
    assert_eq!(fault(&[], &|_| ()), Error::Empty);
    let expected = Error::MaskToken { token: 99, vocab_size: VOCAB };
    assert_eq!(fault(&[1], &|facts| facts.mask_token = 99), expected);
    let many = |facts: &mut TokenFacts| facts.end_of_text = (0..9).collect();
    assert!(matches!(fault(&[1], &many), Error::EndTokens { .. }));
    let two = |facts: &mut TokenFacts| {
        (facts.vocab_size, facts.mask_token, facts.end_of_text) = (2, 1, vec![0]);
    };
    assert_eq!(fault(&[1], &two), Error::NothingAllowed);
    let long = vec![0; (1 << 20) + 1];
    assert!(fault(&long, &|_| ()).to_string().contains("at most 1048576"));
}
