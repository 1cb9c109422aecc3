//! Loads a model into all programs, opens the same canvases, checks that they agree, takes turns.

use crate::check;
use crate::compile::{self, Api, Build};
use crate::fault::Fault;
use crate::machine;
use crate::report::{Agreement, Case, FORMAT, ModelReport, Pass, Report, SideFacts};
use crate::shape;
use crate::side::Side;
use crate::twin;
use dllm_rt::gguf::{self, Gguf};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Turns that a case takes even when its time is up: a median of less says nothing.
const TURNS_MIN: usize = 3;
/// The seed of every canvas: any will do, as long as all programs get the same.
const SEED: u64 = 7;

/// What to compare and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Model files.
    pub models: Vec<PathBuf>,
    /// A build of llama.cpp.
    pub llama: Option<Build>,
    /// A build of ik_llama.cpp.
    pub ik: Option<Build>,
    /// Other builds of this program, by name: an older dllm-rt, for instance.
    pub others: Vec<(String, PathBuf)>,
    /// Tokens of the canvases.
    pub rows: Vec<usize>,
    /// Threads of every program.
    pub threads: Vec<usize>,
    /// Turns a case.
    pub reps: usize,
    /// Time after which a case takes no further turn once it has three.
    pub case_time: Option<Duration>,
    /// Instruction set of dllm-rt; its own choice if none.
    pub isa: Option<String>,
    /// llama.cpp's flash attention: `auto`, `on` or `off`.
    pub flash: String,
    /// This program.
    pub program: PathBuf,
}

/// Compares, calling `progress` with a line now and then.
///
/// # Errors
/// A build, model or program that cannot be used; programs that do not agree.
pub fn run(settings: &Settings, progress: &mut dyn FnMut(&str)) -> Result<Report, Fault> {
    check_settings(settings)?;
    let folder = tempfile::tempdir().map_err(Fault::io(&std::env::temp_dir()))?;
    progress("compiling drivers");
    let starters = starters(settings, &folder)?;
    let mut report =
        Report { format: FORMAT, machine: machine::this(), sides: vec![], models: vec![] };
    for (index, path) in settings.models.iter().enumerate() {
        let gguf = gguf::open(path).map_err(dllm_rt::Error::from)?;
        let mut model = shape::read(path, &gguf)?;
        progress(&format!("model {} of {}: {}", index + 1, settings.models.len(), model.name));
        let mut sides = Vec::new();
        for starter in &starters {
            sides.push(starter.start(path, &gguf, &model, &folder)?);
        }
        measure(settings, &mut model, &mut sides, &folder, progress)?;
        report.sides = starters.iter().zip(&mut sides).map(facts).collect::<Result<_, _>>()?;
        report.models.push(model);
    }
    Ok(report)
}

fn check_settings(settings: &Settings) -> Result<(), Fault> {
    let argument = |text: &str| Err(Fault::Argument(text.into()));
    let positive = |list: &[usize]| !list.is_empty() && list.iter().all(|n| *n > 0);
    if settings.models.is_empty() {
        return argument("give a model: --model FILE.gguf");
    }
    if settings.llama.is_none() && settings.ik.is_none() && settings.others.is_empty() {
        return argument("nothing to compare with: give --llama, --ik or --other");
    }
    if !positive(&settings.rows) || !positive(&settings.threads) || settings.reps == 0 {
        return argument("rows, threads and reps must be at least 1");
    }
    Ok(())
}

/// How a program is started, and what is known of it beforehand.
struct Starter {
    facts: SideFacts,
    program: PathBuf,
    /// Before and after the model's path.
    arguments: (Vec<String>, Vec<String>),
    /// Whether it needs the model under another architecture.
    wants_twin: bool,
    /// What it prints when it has repacked weights.
    repacks: Option<&'static str>,
}

/// All programs, dllm-rt first.
fn starters(settings: &Settings, folder: &TempDir) -> Result<Vec<Starter>, Fault> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut starters = vec![own("dllm-rt", &settings.program, settings)];
    starters[0].facts.commit = machine::commit_and_changes(ours);
    starters[0].facts.build = vec![format!("version={}", env!("CARGO_PKG_VERSION"))];
    let peers = [
        ("llama.cpp", Api::Llama, &settings.llama, settings.flash.as_str()),
        ("ik_llama.cpp", Api::Ik, &settings.ik, "on"),
    ];
    for (name, api, build, flash) in peers {
        if let Some(build) = build {
            let program = compile::driver(build, api, folder.path(), name)?;
            starters.push(peer(name, api, build, flash, program));
        }
    }
    starters.extend(settings.others.iter().map(|(name, program)| own(name, program, settings)));
    Ok(starters)
}

/// A build of this program.
fn own(name: &str, program: &Path, settings: &Settings) -> Starter {
    let isa = settings.isa.iter().flat_map(|isa| ["--isa".into(), isa.clone()]);
    let facts = SideFacts {
        name: name.into(),
        commit: None,
        build: vec![],
        settings: vec!["logits=all".into()],
        isa: String::new(),
    };
    let arguments = (vec!["turns".into(), "--model".into()], isa.collect());
    Starter { facts, program: program.into(), arguments, wants_twin: false, repacks: None }
}

fn peer(name: &str, api: Api, build: &Build, flash: &str, program: PathBuf) -> Starter {
    let mut settings = vec!["logits=all", "causal=false"];
    settings.push(match api {
        Api::Llama => "use_extra_bufts=true",
        Api::Ik => "repack_tensors=true",
    });
    let mut settings: Vec<String> = settings.into_iter().map(String::from).collect();
    settings.push(format!("flash_attn={flash}"));
    let facts = SideFacts {
        name: name.into(),
        commit: machine::commit(&build.source),
        build: machine::build_choices(&build.build),
        settings,
        isa: String::new(),
    };
    let repacks = match api {
        Api::Llama => "CPU_REPACK",
        Api::Ik => "epacked",
    };
    Starter {
        facts,
        program,
        arguments: (vec![], vec![flash.into()]),
        wants_twin: api == Api::Ik,
        repacks: Some(repacks),
    }
}

impl Starter {
    fn start(
        &self,
        path: &Path,
        gguf: &Gguf,
        model: &ModelReport,
        folder: &TempDir,
    ) -> Result<Side, Fault> {
        let twin_arch = twin::of(&model.arch).filter(|_| self.wants_twin);
        let twin_path = folder.path().join("twin.gguf");
        if let Some(arch) = twin_arch {
            twin::write(path, gguf, &model.arch, arch, &twin_path)?;
        }
        let path = if twin_arch.is_some() { &twin_path } else { path };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments.0).arg(path).args(&self.arguments.1);
        let log = folder.path().join(format!("{}.log", self.facts.name));
        let side = Side::start(&self.facts.name, &mut command, log)?;
        if twin_arch.is_some() {
            // It has been read, not mapped.
            std::fs::remove_file(&twin_path).map_err(Fault::io(&twin_path))?;
        }
        if let Some(text) = self.repacks
            && !side.has_said(text)
        {
            let what = "was told to repack weights and does not say that it did";
            return Err(Fault::side(&self.facts.name, what));
        }
        Ok(side)
    }
}

fn facts((starter, side): (&Starter, &mut Side)) -> Result<SideFacts, Fault> {
    Ok(SideFacts { isa: side.facts()?, ..starter.facts.clone() })
}

/// All cases of a model, in `model`.
fn measure(
    settings: &Settings,
    model: &mut ModelReport,
    sides: &mut [Side],
    folder: &TempDir,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Fault> {
    for &tokens in &settings.rows {
        for &threads in &settings.threads {
            let title = format!("{}, {tokens} tokens, {threads} thread(s)", model.name);
            let ids = canvas(tokens, model.vocab);
            let start = Instant::now();
            let agreement = open(sides, threads, &ids, folder)?;
            progress(&format!("{title}: {}", shown(sides, &agreement)));
            disagreement(sides, &agreement, &title)?;
            let mut turns = Vec::new();
            let is_over = || settings.case_time.is_some_and(|time| start.elapsed() >= time);
            while turns.len() < settings.reps && (turns.len() < TURNS_MIN || !is_over()) {
                turns.push(turn(sides, turns.len())?);
                let ms = turns.last().into_iter().flatten();
                let ms: Vec<String> = ms.map(|pass| format!("{:.1}", pass.ms)).collect();
                progress(&format!("{title}: turn {}, {} ms", turns.len(), ms.join(" / ")));
            }
            let macs = model.macs_per_token as f64 * tokens as f64;
            let summary = Case::summarize(&turns, threads, macs);
            model.cases.push(Case { tokens, threads, agreement, turns, summary });
        }
    }
    Ok(())
}

/// Opens the canvas everywhere, runs it once, which warms up, and compares the logits.
fn open(
    sides: &mut [Side],
    threads: usize,
    ids: &[u32],
    folder: &TempDir,
) -> Result<Vec<Option<Agreement>>, Fault> {
    let positions = check::positions(ids.len());
    let file = folder.path().join("logits");
    let mut logits = Vec::new();
    for side in &mut *sides {
        side.open(threads, ids)?;
        side.run()?;
        logits.push(side.logits(&positions, &file)?);
    }
    let reference = &logits[1];
    let distance = |(side, rows): (usize, &Vec<Vec<f32>>)| {
        (side != 1).then(|| check::distance(rows, reference))
    };
    Ok(logits.iter().enumerate().map(distance).collect())
}

fn shown(sides: &[Side], agreement: &[Option<Agreement>]) -> String {
    let pairs = sides.iter().zip(agreement);
    let texts: Vec<String> = pairs
        .filter_map(|(side, agreement)| {
            let Agreement { rms, max } = (*agreement)?;
            Some(format!("{} {rms:.3} rms, {max:.2} max", side.name()))
        })
        .collect();
    format!("logits from those of {}: {}", sides[1].name(), texts.join("; "))
}

fn disagreement(sides: &[Side], agreement: &[Option<Agreement>], title: &str) -> Result<(), Fault> {
    let far = |agreement: &Option<Agreement>| agreement.is_some_and(|a| !check::is_close(&a));
    match agreement.iter().any(far) {
        false => Ok(()),
        true => Err(Fault::Disagree(format!(
            "{title}: the programs do not compute the same: {}; at most {} rms and {} max, in \
             standard deviations of the logits",
            shown(sides, agreement),
            check::RMS_MAX,
            check::MAX_MAX,
        ))),
    }
}

/// One pass of each program. Who begins changes from turn to turn, so that nobody always runs
/// after the same neighbour.
fn turn(sides: &mut [Side], turn: usize) -> Result<Vec<Pass>, Fault> {
    let count = sides.len();
    let mut passes = vec![None; count];
    for place in 0..count {
        let side = (place + turn) % count;
        passes[side] = Some(sides[side].run()?);
    }
    Ok(passes.into_iter().flatten().collect())
}

/// A canvas of pseudo-random tokens.
fn canvas(tokens: usize, vocab: u64) -> Vec<u32> {
    let mut state = SEED;
    let mut next = || {
        // Knuth's linear congruential generator for 64 bits; the high half is the random one.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 32) % vocab.max(1)) as u32
    };
    (0..tokens).map(|_| next()).collect()
}
