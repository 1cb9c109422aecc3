//! `bench`: what this machine can do, as share of what its registers could do.

mod forward;
mod gemm;
mod report;
mod subject;

use crate::cli::args::{Counts, Cpus, FilePath, LockMode, TypeList};
use crate::cli::failure::{End, Failure};
use crate::cli::flags::ModelFlags;
use crate::cli::output::{self, Progress};
use argh::FromArgs;
use dllm_rt::backend::cpu::threads::cpus;
use dllm_rt::synth::{Recipe, Shape, Types};
use dllm_rt::{Lock, Options, backend};
use forward::Passes;
use gemm::{Pair, Setup, Weights};
use report::{Forward, Gemm, Machine, Peak, Report, median};
use subject::Subject;

/// A block of 32 masks after a prompt, and a longer canvas.
const ROWS: [usize; 2] = [148, 512];
/// Enough for the layers to push each other out of the caches, as more of them would.
const LAYERS: usize = 2;
const REPS: usize = 5;
/// Far more than any median needs.
const REPS_MAX: usize = 10_000;

/// Measures the multiplication of matrices, alone and in whole forward passes, with random weights
/// of a model's shapes or the weights of a file, beside a loop over registers alone that has the
/// multiplies, adds and widenings of each type's arithmetic and nothing else.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "bench")]
pub struct Bench {
    /// whose shapes the random weights have: llada-8b, dream-7b or tiny (default: llada-8b)
    #[argh(option, arg_name = "name")]
    shape: Option<String>,
    /// layers of the random weights (default: 2)
    #[argh(option, arg_name = "n")]
    layers: Option<usize>,
    /// tokens of their vocabulary, which are the rows of the LM head (default: the shape's)
    #[argh(option, arg_name = "n")]
    vocab: Option<usize>,
    /// their types, separated by commas: Q4_K_M or tensor types (default: Q4_K_M for passes, Q4_K,
    /// Q6_K, Q8_0 and Q5_K for matrices)
    #[argh(option, long = "type", arg_name = "list")]
    types: Option<TypeList>,
    /// a GGUF file to measure instead, of architecture llada, dream or llama, whose passes run
    /// without a causal mask
    #[argh(option, arg_name = "path")]
    model: Option<FilePath>,
    /// tokens of the canvas, separated by commas (default: 148,512)
    #[argh(option, arg_name = "list")]
    rows: Option<Counts>,
    /// logit rows of a pass (default: all)
    #[argh(option, arg_name = "n")]
    output_rows: Option<usize>,
    /// thread counts, separated by commas (default: 1 and the physical cores that may be used)
    #[argh(option, arg_name = "list")]
    threads: Option<Counts>,
    /// measurements of each kind, of which the median is told (default: 5)
    #[argh(option, arg_name = "n")]
    reps: Option<usize>,
    /// the CPUs to pin the threads to, like 0,2-5 (default: physical cores first)
    #[argh(option, arg_name = "list")]
    cpus: Option<Cpus>,
    /// instruction set: auto, scalar, avx2, avxvnni or avx512vnni (default: what the
    /// environment's DLLM_ISA names, or auto)
    #[argh(option, arg_name = "name")]
    isa: Option<String>,
    /// auto or cpu (default: auto)
    #[argh(option, arg_name = "name")]
    device: Option<String>,
    /// ask for huge pages
    #[argh(switch)]
    huge_pages: bool,
    /// lock the model in memory: auto (where permitted), on (warn where it is not) or off
    /// (default: auto)
    #[argh(option, arg_name = "mode")]
    lock: Option<LockMode>,
    /// say more on standard error
    #[argh(switch)]
    verbose: bool,
    /// print one JSON object
    #[argh(switch)]
    json: bool,
}

/// Runs the command.
pub fn run(command: &Bench) -> Result<End, Failure> {
    let flags = command.model_flags();
    let mut passes = command.passes(flags.options()?)?;
    let threads_max = passes.threads.iter().copied().max().unwrap_or(1);
    // Chosen before any thread is pinned: a pinned one sees its own CPU alone.
    let pins = passes.options.cpus.clone().unwrap_or_else(|| cpus::choose(threads_max));
    passes.options.cpus = Some(pins.clone());
    let setup = command.setup(&passes.options, pins)?;
    let subject = command.subject(&passes.rows)?;
    let wants_warnings = flags.wants_warnings();
    let mut progress = Steps::new(&subject, &passes);
    let mut forward: Vec<Forward> = Vec::new();
    for pass in &subject.passes {
        let gguf = pass.open()?;
        let mut warn = |warning: &str| {
            if wants_warnings {
                output::say(&format!("warning: {warning}"));
            }
        };
        let mut done = || progress.done();
        forward.extend(forward::measure(&gguf, &pass.label, &passes, &mut warn, &mut done)?);
    }
    let (peak, gemm) = matrices(&subject, &setup, &passes, &mut progress)?;
    drop(progress);
    let machine = machine(&setup);
    let report = Report { machine, peak, gemm, forward };
    if command.json {
        output::json(&report)?;
    } else {
        output::results(|out| report.write(&subject.name, out))?;
    }
    Ok(End::Done)
}

impl Bench {
    fn model_flags(&self) -> ModelFlags {
        let largest = self.threads.as_ref().and_then(|threads| threads.0.iter().copied().max());
        ModelFlags {
            model: self.model.clone(),
            threads: largest,
            cpus: self.cpus.clone(),
            isa: self.isa.clone(),
            device: self.device.clone(),
            huge_pages: self.huge_pages,
            lock: self.lock,
            mask_token: None,
            verbose: self.verbose,
        }
    }

    fn passes(&self, options: Options) -> Result<Passes, Failure> {
        let reps = self.reps.unwrap_or(REPS);
        if reps == 0 || reps > REPS_MAX {
            return Err(Failure::Usage(format!("--reps is {reps}; give 1 to {REPS_MAX}")));
        }
        if self.output_rows == Some(0) {
            return Err(Failure::Usage("--output-rows is 0; give at least 1".into()));
        }
        let mut default_threads = vec![1, self.model_flags().threads()];
        default_threads.dedup();
        Ok(Passes {
            rows: self.rows.as_ref().map_or(ROWS.to_vec(), |rows| rows.0.clone()),
            output_rows: self.output_rows,
            threads: self.threads.as_ref().map_or(default_threads, |threads| threads.0.clone()),
            reps,
            options,
        })
    }

    fn setup(&self, options: &Options, pins: Vec<usize>) -> Result<Setup, Failure> {
        // What is in use all the time is not taken away; locking would only warn again.
        let memory = dllm_arena::Options { huge_pages: self.huge_pages, lock: Lock::Off };
        Ok(Setup { kernels: options.kernels()?, pins, memory })
    }

    fn subject(&self, rows: &[usize]) -> Result<Subject, Failure> {
        let rows_max = rows.iter().copied().max().unwrap_or(1);
        if let Some(path) = &self.model {
            let of_random_weights = [
                ("--shape", self.shape.is_some()),
                ("--layers", self.layers.is_some()),
                ("--vocab", self.vocab.is_some()),
                ("--type", self.types.is_some()),
            ];
            if let Some((flag, _)) = of_random_weights.iter().find(|(_, given)| *given) {
                let message = format!("{flag} is for random weights; --model brings its own");
                return Err(Failure::Usage(message));
            }
            return Subject::file(&path.0, rows_max);
        }
        let name = self.shape.as_deref().unwrap_or("llada-8b");
        let (architecture, named) = Shape::named(name).ok_or_else(|| {
            let names = Shape::NAMES.join(", ");
            Failure::Usage(format!("--shape `{name}` is unknown: there are {names}"))
        })?;
        let shape = Shape {
            layers: self.layers.unwrap_or(LAYERS),
            vocab: self.vocab.unwrap_or(named.vocab),
            context: named.context.max(rows_max),
            ..named
        };
        let recipe = Recipe { architecture, shape, types: Types::Q4KM, seed: 0 };
        Subject::random(name, recipe, self.types.as_ref().map(|types| types.0.as_slice()))
    }
}

/// Measures every matrix on its own; the peaks of a type are those measured beside any of them.
fn matrices(
    subject: &Subject,
    setup: &Setup,
    passes: &Passes,
    progress: &mut Steps,
) -> Result<(Vec<Peak>, Vec<Gemm>), Failure> {
    let mut gemm = Vec::new();
    let mut peaks: Vec<(&'static str, usize, Vec<f64>)> = Vec::new();
    for &matrix in &subject.matrices {
        let weights = Weights::new(setup, matrix).map_err(backend::Error::from)?;
        for &tokens in &passes.rows {
            for &threads in &passes.threads {
                let done = || progress.done();
                let pairs = weights.measure(tokens, threads, passes.reps, done);
                let pairs = pairs.map_err(backend::Error::from)?;
                let r#type = matrix.dtype.name();
                let known = peaks.iter_mut().find(|(t, n, _)| (*t, *n) == (r#type, threads));
                let speeds = pairs.iter().map(|pair| pair.peak);
                match known {
                    Some((_, _, list)) => list.extend(speeds),
                    None => peaks.push((r#type, threads, speeds.collect())),
                }
                gemm.push(row(matrix, tokens, threads, &pairs));
            }
        }
    }
    let peak = |(r#type, threads, speeds): &(&'static str, usize, Vec<f64>)| Peak {
        r#type,
        threads: *threads,
        macs_per_s: median(speeds),
    };
    Ok((peaks.iter().map(peak).collect(), gemm))
}

fn row(matrix: subject::Matrix, tokens: usize, threads: usize, pairs: &[Pair]) -> Gemm {
    let speeds: Vec<f64> = pairs.iter().map(|pair| pair.gemm).collect();
    let shares: Vec<f64> = pairs.iter().map(|pair| pair.gemm / pair.peak).collect();
    Gemm {
        r#type: matrix.dtype.name(),
        rows: matrix.rows,
        cols: matrix.cols,
        tokens,
        threads,
        macs_per_s: median(&speeds),
        of_peak: median(&shares),
    }
}

fn machine(setup: &Setup) -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name"));
    let cpu = name.map_or("unknown CPU", |name| name.trim_start_matches([' ', '\t', ':']).trim());
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    Machine { cpu: cpu.to_owned(), isa: setup.kernels.name(), threads }
}

/// How many measurements are done.
struct Steps {
    bar: Progress,
    done: u64,
    total: u64,
}

impl Steps {
    fn new(subject: &Subject, passes: &Passes) -> Steps {
        let each = passes.rows.len() * passes.threads.len();
        let forward = subject.passes.len() * (passes.reps + 1);
        let total = each * (forward + subject.matrices.len() * passes.reps);
        Steps { bar: Progress::measurements(), done: 0, total: total as u64 }
    }

    fn done(&mut self) {
        self.done += 1;
        self.bar.set(self.done, self.total);
    }
}
