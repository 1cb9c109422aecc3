//! Loads a model into all programs, opens the same canvases, checks that they agree, takes turns.

use crate::compile::{self, Build};
use crate::report::{Agreement, Case, FORMAT, ModelReport, Pass, Report, SideFacts};
use crate::side::Side;
use crate::{check, shape, twin};
use argh::FromArgs;
use dllm_bench::Error;
use dllm_bench::record::Machine;
use dllm_rt::gguf::{self, Gguf};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

/// Turns that a case takes even when its time is up: a median of less says nothing.
const TURNS_MIN: usize = 3;
/// The seed of every canvas: any will do, as long as all programs get the same.
const SEED: u64 = 7;

/// Runs forward passes of all programs, in turn, and prints a table.
#[derive(FromArgs)]
#[argh(subcommand, name = "run")]
pub struct Run {
    /// a GGUF file; may be given several times
    #[argh(option, arg_name = "file")]
    model: Vec<PathBuf>,
    /// source and build folder of llama.cpp, built with shared libraries: SOURCE:BUILD
    #[argh(option, arg_name = "folders")]
    llama: Option<Build>,
    /// the same of ik_llama.cpp
    #[argh(option, arg_name = "folders")]
    ik: Option<Build>,
    /// another build of this program, such as one of an older dllm-rt: NAME:PROGRAM; may be given
    /// several times
    #[argh(option, arg_name = "program")]
    other: Vec<Other>,
    /// tokens of the canvas (default: 148,512)
    #[argh(option, arg_name = "list", default = "List(vec![148, 512])")]
    rows: List,
    /// threads of every program (default: 1,2)
    #[argh(option, arg_name = "list", default = "List(vec![1, 2])")]
    threads: List,
    /// turns for each number of tokens and threads (default: 7)
    #[argh(option, arg_name = "n", default = "7")]
    reps: usize,
    /// seconds after which no further turn begins for a number of tokens and threads, once there
    /// are three (default: no limit)
    #[argh(option, arg_name = "n")]
    seconds: Option<u64>,
    /// instruction set of dllm-rt (default: the fastest)
    #[argh(option, arg_name = "name")]
    isa: Option<String>,
    /// flash attention of llama.cpp: auto, on or off (default: auto)
    #[argh(option, arg_name = "mode", default = "String::from(\"auto\")")]
    llama_flash: String,
    /// also write everything measured to this file
    #[argh(option, arg_name = "file")]
    pub json: Option<PathBuf>,
}

/// Numbers separated by commas.
pub struct List(Vec<usize>);

impl std::str::FromStr for List {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<List, Self::Err> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(List)
    }
}

/// A program by name.
pub struct Other(String, PathBuf);

impl std::str::FromStr for Other {
    type Err = String;

    fn from_str(text: &str) -> Result<Other, String> {
        match text.split_once(':') {
            Some((name, program)) if !name.is_empty() && !program.is_empty() => {
                Ok(Other(name.into(), program.into()))
            }
            _ => Err("write NAME:PROGRAM".into()),
        }
    }
}

/// Compares, with a line on standard error now and then.
///
/// # Errors
/// A build, model or program that cannot be used; programs that do not agree.
pub fn run(settings: &Run) -> Result<Report, Error> {
    check_settings(settings)?;
    let folder = tempfile::tempdir().map_err(Error::io(&std::env::temp_dir()))?;
    eprintln!("compiling drivers");
    let starters = starters(settings, &folder)?;
    let mut report =
        Report { format: FORMAT, machine: Machine::this(), sides: vec![], models: vec![] };
    for (index, path) in settings.model.iter().enumerate() {
        let gguf = gguf::open(path).map_err(dllm_rt::Error::from)?;
        let mut model = shape::read(path, &gguf)?;
        eprintln!("model {} of {}: {}", index + 1, settings.model.len(), model.name);
        let mut sides = Vec::new();
        for starter in &starters {
            sides.push(starter.start(path, &gguf, &model, &folder)?);
        }
        measure(settings, &mut model, &mut sides, &folder)?;
        report.sides = starters.iter().map(|starter| starter.facts.clone()).collect();
        for (facts, side) in report.sides.iter_mut().zip(&mut sides) {
            facts.isa = side.ask("facts")?;
        }
        report.models.push(model);
    }
    Ok(report)
}

fn check_settings(settings: &Run) -> Result<(), Error> {
    let argument = |text: &str| Err(Error::Argument(text.into()));
    if !["auto", "on", "off"].contains(&settings.llama_flash.as_str()) {
        return argument("--llama-flash must be auto, on or off");
    }
    let positive = |list: &[usize]| !list.is_empty() && list.iter().all(|n| *n > 0);
    if settings.model.is_empty() {
        return argument("give a model: --model FILE.gguf");
    }
    if settings.llama.is_none() && settings.ik.is_none() && settings.other.is_empty() {
        return argument("nothing to compare with: give --llama, --ik or --other");
    }
    if !positive(&settings.rows.0) || !positive(&settings.threads.0) || settings.reps == 0 {
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
fn starters(settings: &Run, folder: &TempDir) -> Result<Vec<Starter>, Error> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = std::env::current_exe().map_err(Error::io(Path::new("this program")))?;
    let mut starters = vec![own("dllm-rt", &program, settings)];
    starters[0].facts.commit = compile::commit(ours, &["--dirty"]);
    starters[0].facts.build = vec![format!("version={}", env!("CARGO_PKG_VERSION"))];
    if let Some(build) = &settings.llama {
        starters.push(peer("llama.cpp", false, build, &settings.llama_flash, folder)?);
    }
    if let Some(build) = &settings.ik {
        starters.push(peer("ik_llama.cpp", true, build, "on", folder)?);
    }
    starters.extend(settings.other.iter().map(|Other(name, program)| own(name, program, settings)));
    Ok(starters)
}

/// A build of this program.
fn own(name: &str, program: &Path, settings: &Run) -> Starter {
    let isa = settings.isa.iter().flat_map(|isa| ["--isa".into(), isa.clone()]);
    let arguments = (vec!["turns".into(), "--model".into()], isa.collect());
    let settings = vec!["logits=all".into()];
    let facts = SideFacts { name: name.into(), settings, ..SideFacts::default() };
    Starter { facts, program: program.into(), arguments, wants_twin: false, repacks: None }
}

/// Another program, driven by way of its library.
fn peer(
    name: &str,
    is_ik: bool,
    build: &Build,
    flash: &str,
    folder: &TempDir,
) -> Result<Starter, Error> {
    let (repacking, repacks) = match is_ik {
        false => ("use_extra_bufts=true", "CPU_REPACK"),
        true => ("repack_tensors=true", "epacked"),
    };
    let flash_attn = format!("flash_attn={flash}");
    let settings = ["logits=all", "causal=false", repacking, &flash_attn].map(String::from);
    let facts = SideFacts {
        name: name.into(),
        commit: compile::commit(&build.source, &[]),
        build: compile::build_choices(&build.build),
        settings: settings.to_vec(),
        isa: String::new(),
    };
    Ok(Starter {
        facts,
        program: compile::driver(build, is_ik, folder.path(), name)?,
        arguments: (vec![], vec![flash.into()]),
        wants_twin: is_ik,
        repacks: Some(repacks),
    })
}

impl Starter {
    fn start(
        &self,
        path: &Path,
        gguf: &Gguf,
        model: &ModelReport,
        folder: &TempDir,
    ) -> Result<Side, Error> {
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
            std::fs::remove_file(&twin_path).map_err(Error::io(&twin_path))?;
        }
        if let Some(text) = self.repacks
            && !side.has_said(text)
        {
            let what = "was told to repack weights and does not say that it did";
            return Err(Error::program(&self.facts.name, what));
        }
        Ok(side)
    }
}

/// All cases of a model, in `model`.
fn measure(
    settings: &Run,
    model: &mut ModelReport,
    sides: &mut [Side],
    folder: &TempDir,
) -> Result<(), Error> {
    for &tokens in &settings.rows.0 {
        for &threads in &settings.threads.0 {
            let title = format!("{}, {tokens} tokens, {threads} thread(s)", model.name);
            let ids = canvas(tokens, model.vocab);
            let start = Instant::now();
            let agreement = open(sides, threads, &ids, folder)?;
            eprintln!("{title}: {}", shown(sides, &agreement));
            disagreement(sides, &agreement, &title)?;
            let mut turns = Vec::new();
            let is_over = || settings.seconds.is_some_and(|n| start.elapsed().as_secs() >= n);
            while turns.len() < settings.reps && (turns.len() < TURNS_MIN || !is_over()) {
                turns.push(turn(sides, turns.len())?);
                let ms = turns.last().into_iter().flatten();
                let ms: Vec<String> = ms.map(|pass| format!("{:.1}", pass.ms)).collect();
                eprintln!("{title}: turn {}, {} ms", turns.len(), ms.join(" / "));
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
) -> Result<Vec<Option<Agreement>>, Error> {
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

fn disagreement(sides: &[Side], agreement: &[Option<Agreement>], title: &str) -> Result<(), Error> {
    let far = |agreement: &Option<Agreement>| agreement.is_some_and(|a| !check::is_close(&a));
    match agreement.iter().any(far) {
        false => Ok(()),
        true => Err(Error::Figures(format!(
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
fn turn(sides: &mut [Side], turn: usize) -> Result<Vec<Pass>, Error> {
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
