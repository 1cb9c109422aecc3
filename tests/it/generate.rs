//! The library's front door: text in, text out, alone and in batches, cut short and refused.

use dllm_rt::vocab::Special;
use dllm_rt::{
    Batch, Cache, Engine, Error, FinishReason, Generation, Message, Model, Preset, Prompt, Request,
    RequestParameters,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PARIS: &str = "What is the capital of France?";

fn built_in(sequences: usize) -> (Model, Engine) {
    let model = Model::built_in().unwrap();
    let engine = model.engine(sequences, 200).unwrap();
    (model, engine)
}

fn asked(model: &Model, engine: &mut Engine, request: &Request) -> String {
    model.generate(engine, request).unwrap().text
}

#[test]
fn an_engine_may_move_to_another_thread_and_a_model_is_shared() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<Engine>();
    is_send::<Generation>();
    is_shared::<Model>();
}

#[test]
fn a_question_is_answered() {
    let (model, mut engine) = built_in(1);
    let answer = model.generate(&mut engine, &Request::chat(PARIS)).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("Paris", FinishReason::Stop));
    let prompt = Prompt::user(PARIS).encode(model.vocab(), None).unwrap();
    assert_eq!(answer.usage.prompt_tokens, prompt.len());
    let ids = model.vocab().encode("Paris", Special::AsText).unwrap();
    assert_eq!(answer.usage.completion_tokens, ids.len());
    // The same from ids, and from a file in memory.
    assert_eq!(asked(&model, &mut engine, &Request::ids(prompt)), "Paris");
    let path = format!("{}/src/demo/model.gguf", env!("CARGO_MANIFEST_DIR"));
    let copied = Model::from_bytes(std::fs::read(&path).unwrap()).unwrap();
    let mut other = copied.engine(1, 200).unwrap();
    assert_eq!(asked(&copied, &mut other, &Request::chat(PARIS)), "Paris");
    assert_eq!(asked(&Model::open(path).unwrap(), &mut other, &Request::chat(PARIS)), "Paris");
}

#[test]
fn holes_are_filled_and_told_of() {
    let (model, mut engine) = built_in(1);
    let request = Request::infill("def above_78(x):\n    y = x [[1]] 78\n    return y");
    let answer = model.generate(&mut engine, &request).unwrap();
    assert_eq!(answer.holes.len(), 1);
    assert_eq!(answer.holes[0].tokens.len(), 1);
    assert_eq!(answer.usage.completion_tokens, 1);
    assert!(answer.text.starts_with("def above_78(x):\n    y = x"), "{}", answer.text);
    assert!(answer.text.contains(&answer.holes[0].text));
    let refused = model.prepare(&Request::infill("[[0]]")).unwrap_err();
    assert!(matches!(refused, Error::Hole(_)), "{refused}");
}

/// The turn with its holes filled, not the template around it.
#[test]
fn turns_with_holes_come_back_filled() {
    let (model, mut engine) = built_in(1);
    let record =
        ("{\"name\": \"Iris\", \"age\": 67, \"city\": \"", "\", \"text\": \"Iris is 67\"}");
    let holes = format!("{}[[2]]{}", record.0, record.1);
    let fill = |turns: Vec<Message>| {
        let mut request = Request { holes: true, ..Request::messages(turns) };
        request.parameters.max_tokens = 0;
        request
    };
    let user = Message::new("user", "Fill the gaps in the record.");
    let turns = vec![user.clone(), Message::new("assistant", &holes)];
    let prepared = model.prepare(&fill(turns.clone())).unwrap();
    // The template opens the model's own turn; its text follows as it is.
    let opened = Prompt::Chat(vec![user]).encode(model.vocab(), None).unwrap();
    assert_eq!(prepared.ids()[..opened.len()], opened);
    let before = model.vocab().encode(record.0, Special::AsText).unwrap();
    assert_eq!(prepared.ids()[opened.len()..][..before.len()], before);
    for turns in [turns, vec![Message::new("user", &holes)]] {
        let answer = model.generate(&mut engine, &fill(turns)).unwrap();
        let hole = &answer.holes[0].text;
        assert!(!hole.is_empty());
        assert_eq!(answer.text, format!("{}{hole}{}", record.0, record.1));
    }
    let request = Request { holes: false, ..fill(vec![Message::new("user", "Hello")]) };
    assert!(matches!(model.prepare(&request).unwrap_err(), Error::NothingToDo));
}

#[test]
fn logits_that_are_no_numbers_end_the_request() {
    let path = format!("{}/src/demo/model.gguf", env!("CARGO_MANIFEST_DIR"));
    let whole = std::fs::read(path).unwrap();
    let facts = dllm_rt::gguf::Gguf::from_bytes(whole.clone()).unwrap();
    for name in ["output_norm.weight", "blk.0.attn_norm.weight"] {
        let tensor = facts.tensor(name).unwrap();
        let mut bytes = whole.clone();
        for (index, value) in bytes[tensor.offset..][..tensor.bytes].chunks_mut(4).enumerate() {
            let sign = if index % 2 == 0 { 3e38f32 } else { -3e38 };
            value.copy_from_slice(&sign.to_le_bytes());
        }
        let model = Model::from_bytes(bytes).unwrap();
        let mut engine = model.engine(1, 200).unwrap();
        for threshold in [None, Some(0.9)] {
            let mut request = Request::chat(PARIS);
            request.parameters.threshold = threshold;
            let first = model.prepare(&request).unwrap().ids().len() as u32;
            let error = model.generate(&mut engine, &request).unwrap_err();
            let Error::NotFinite { position } = error else { panic!("{name}: {error}") };
            assert_eq!(position, first, "{name}");
        }
    }
}

#[test]
fn stop_texts_end_the_answer() {
    let (model, mut engine) = built_in(1);
    let request = Request { stop: vec!["D-".into()], ..Request::chat("Spell GARDEN.") };
    let answer = model.generate(&mut engine, &request).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("G-A-R-", FinishReason::Stop));
}

#[test]
fn deadlines_and_cancellation_leave_the_text_so_far() {
    let (model, mut engine) = built_in(1);
    let request = Request { deadline: Some(Duration::ZERO), ..Request::chat(PARIS) };
    let answer = model.generate(&mut engine, &request).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish_reason), ("", FinishReason::Deadline));
    assert_eq!(engine.stats().passes, 0);

    let mut generation = model.start(&mut engine, &Request::chat(PARIS)).unwrap();
    let flag = generation.canceller();
    let committed = generation.step(&mut engine).unwrap().committed.len();
    assert!(committed > 0 && !generation.is_over());
    std::thread::spawn(move || flag.store(true, Ordering::Relaxed)).join().unwrap();
    assert!(generation.is_over());
    let answer = model.answer(&generation).unwrap();
    assert_eq!(answer.finish_reason, FinishReason::Interrupt);
    assert_eq!(answer.masks_left as usize, 128 - committed);

    // A flag of the caller's, for many.
    let flag = Arc::new(AtomicBool::new(true));
    let mut generation = model.start(&mut engine, &Request::chat(PARIS)).unwrap();
    generation.cancel_by(flag);
    assert!(generation.is_over());
}

/// One of another engine would make every later step of all the others fail.
#[test]
fn a_batch_is_of_one_engine() {
    let (model, mut one) = built_in(2);
    let mut other = model.engine(1, 200).unwrap();
    let request = Request::chat(PARIS);
    let mut batch = Batch::new(&one);
    batch.join(1, model.start(&mut one, &request).unwrap()).unwrap();
    let foreign = batch.join(2, model.start(&mut other, &request).unwrap());
    assert!(matches!(foreign.unwrap_err(), Error::ForeignSequence));
    batch.join(3, model.start(&mut one, &request).unwrap()).unwrap();
    batch.step(&mut one, |_, _| ()).unwrap();
}

#[test]
fn an_empty_stop_text_is_refused() {
    let (model, _) = built_in(1);
    let request = Request { stop: vec!["D-".into(), String::new()], ..Request::chat(PARIS) };
    assert!(matches!(model.prepare(&request).unwrap_err(), Error::EmptyStop));
}

/// Every way to save work, joining and leaving at different steps.
#[test]
fn a_batch_gives_each_what_it_gets_alone() {
    let (model, mut alone) = built_in(1);
    let presets = [Preset::Exact, Preset::Balanced, Preset::Fast];
    let request = |number: usize| {
        let prompt = ["Spell GARDEN.", PARIS, "What is 47 + 35?"][number % 3];
        let preset = presets[number / 3 % 3];
        let parameters = RequestParameters { preset, steps: Some(24), ..Default::default() };
        Request { parameters, ..Request::chat(prompt) }
    };
    let mut limits = model.prepare(&request(0)).unwrap().limits();
    for number in 1..9 {
        limits = limits.max(model.prepare(&request(number)).unwrap().limits());
    }
    let load = |sequences, limits| {
        let limits = dllm_rt::Limits { sequences, ..limits };
        model.load(limits, &dllm_rt::Options::default(), &mut |_, _| ()).unwrap()
    };
    let mut engine = load(3, limits);
    if limits.kv_cache {
        alone = load(1, limits);
    }
    let expected: Vec<String> = (0..9).map(|n| asked(&model, &mut alone, &request(n))).collect();
    let mut batch = Batch::new(&engine);
    let (mut next, mut answers) = (0, vec![String::new(); 9]);
    while next < 9 || !batch.is_empty() {
        // One joins a step, so that none is at the same place as another.
        if next < 9 && batch.has_room() {
            let prepared = model.prepare(&request(next)).unwrap();
            let generation = Generation::start(&mut engine, &prepared).unwrap();
            batch.join(next as u64, generation).unwrap();
            next += 1;
        }
        batch.step(&mut engine, |number, _| assert!(number < 9)).unwrap();
        for (number, generation) in batch.leave(&mut engine) {
            answers[number as usize] = model.answer(&generation).unwrap().text;
        }
    }
    assert_eq!(answers, expected);
}

#[test]
fn what_does_not_fit_is_refused_and_names_no_flag() {
    let (model, mut engine) = built_in(2);
    let long = |max_tokens| {
        let parameters = RequestParameters { max_tokens, ..Default::default() };
        Request { parameters, ..Request::chat(PARIS) }
    };
    let cached = RequestParameters { cache: Some(Cache::Dual), ..Default::default() };
    let mut refusals = vec![
        model.start(&mut engine, &long(190)).unwrap_err(),
        model.start(&mut engine, &long(100_000)).unwrap_err(),
        model.start(&mut engine, &long(2_000_000)).unwrap_err(),
        model.start(&mut engine, &Request { parameters: cached, ..long(0) }).unwrap_err(),
        model.engine(0, 64).err().unwrap(),
        model.engine(1, 1 << 30).err().unwrap(),
    ];
    let mut batch = Batch::new(&engine);
    for number in 0..2 {
        let generation = model.start(&mut engine, &Request::chat(PARIS)).unwrap();
        batch.join(number, generation).unwrap();
    }
    let third = model.start(&mut engine, &Request::chat(PARIS)).unwrap();
    refusals.push(batch.join(2, third).unwrap_err());
    // An engine that did not start it.
    let mut other = model.engine(1, 200).unwrap();
    let mut generation = model.start(&mut engine, &Request::chat(PARIS)).unwrap();
    refusals.push(generation.step(&mut other).unwrap_err());
    refusals.push(batch.step(&mut other, |_, _| ()).unwrap_err());
    for refusal in refusals {
        assert!(!refusal.to_string().contains("--"), "{refusal}");
    }
    // And nothing is lost by it.
    assert_eq!(asked(&model, &mut engine, &Request::chat(PARIS)), "Paris");
}
