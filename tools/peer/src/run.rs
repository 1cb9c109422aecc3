//! Loads a model into all programs, opens the same canvases, checks that they agree, takes turns.

use crate::check::{self, MAX_MAX, RMS_MAX};
use crate::compile::{self, Build};
use crate::report::{Agreement, Case, FORMAT, ModelReport, Pass, Report, SideFacts};
use crate::side::Side;
use crate::turns::numbers;
use crate::{shape, twin};
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

/// Runs forward passes of all programs, in turn, and prints a table.
#[derive(FromArgs)]
#[argh(subcommand, name = "run")]
pub struct Run {
    /// a GGUF file; may be given several times
    #[argh(option, arg_name = "file")]
    model: Vec<PathBuf>,
    /// source and build folder of llama.cpp, built with shared libraries: SOURCE:BUILD
    #[argh(option, arg_name = "folders", from_str_fn(build))]
    llama: Option<Build>,
    /// the same of ik_llama.cpp
    #[argh(option, arg_name = "folders", from_str_fn(build))]
    ik: Option<Build>,
    /// another build of this program, such as one of an older dllm-rt: NAME:PROGRAM; may be given
    /// several times
    #[argh(option, arg_name = "program", from_str_fn(other))]
    other: Vec<(String, PathBuf)>,
    /// tokens of the canvas (default: 148,512)
    #[argh(option, arg_name = "list", default = "vec![148, 512]", from_str_fn(numbers))]
    rows: List,
    /// threads of every program (default: 1,2)
    #[argh(option, arg_name = "list", default = "vec![1, 2]", from_str_fn(numbers))]
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

/// One option with numbers in it; a `Vec` would be one that may be given several times.
type List = Vec<usize>;

fn build(text: &str) -> Result<Build, String> {
    let (source, build) = pair(text, "SOURCE_DIR:BUILD_DIR")?;
    Ok(Build { source: source.into(), build: build.into() })
}

fn other(text: &str) -> Result<(String, PathBuf), String> {
    pair(text, "NAME:PROGRAM").map(|(name, program)| (name.into(), program.into()))
}

/// The parts of `text`, which is of this `form`.
fn pair<'t>(text: &'t str, form: &str) -> Result<(&'t str, &'t str), String> {
    let parts = text.split_once(':').filter(|(a, b)| !a.is_empty() && !b.is_empty());
    parts.ok_or_else(|| format!("write {form}"))
}

/// Compares, with a line on standard error now and then.
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
    let positive = |list: &[usize]| list.iter().all(|n| *n > 0);
    if settings.model.is_empty() {
        return argument("give a model: --model FILE.gguf");
    }
    if settings.llama.is_none() && settings.ik.is_none() && settings.other.is_empty() {
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
    /// What stands in front of the model's path.
    arguments: Vec<String>,
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
    starters.extend(settings.other.iter().map(|(name, program)| own(name, program, settings)));
    Ok(starters)
}

/// A build of this program.
fn own(name: &str, program: &Path, settings: &Run) -> Starter {
    let mut arguments = vec!["turns".into()];
    arguments.extend(settings.isa.iter().flat_map(|isa| ["--isa".into(), isa.clone()]));
    arguments.push("--model".into());
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
        arguments: vec![flash.into()],
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
        command.args(&self.arguments).arg(path);
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
    for &tokens in &settings.rows {
        for &threads in &settings.threads {
            let title = format!("{}, {tokens} tokens, {threads} thread(s)", model.name);
            let ids = dllm_bench::canvas(tokens, model.vocab as u32, 0);
            let start = Instant::now();
            let agreement = open(sides, threads, &ids, folder)?;
            let distances = shown(sides, &agreement);
            eprintln!("{title}: {distances}");
            if !agreement.iter().flatten().all(check::is_close) {
                return Err(Error::Figures(format!(
                    "{title}: the programs do not compute the same: {distances}; at most {RMS_MAX} \
                     rms and {MAX_MAX} max, in standard deviations of the logits"
                )));
            }
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
    let text = |(side, agreement): (&Side, &Option<Agreement>)| {
        agreement.map(|Agreement { rms, max }| format!("{} {rms:.3} rms, {max:.2} max", side.name))
    };
    let texts: Vec<String> = pairs.filter_map(text).collect();
    format!("logits from those of {}: {}", sides[1].name, texts.join("; "))
}

/// One pass of each program. Who begins changes from turn to turn, so that nobody always runs
/// after the same neighbour.
fn turn(sides: &mut [Side], turn: usize) -> Result<Vec<Pass>, Error> {
    let first = turn % sides.len();
    let (before, after) = sides.split_at_mut(first);
    let passes = after.iter_mut().chain(before).map(Side::run);
    let mut passes = passes.collect::<Result<Vec<Pass>, Error>>()?;
    passes.rotate_right(first);
    Ok(passes)
}
