//! A loaded model: load, seal, then run passes and steps.

mod lanes;
mod load;
mod names;
mod options;
mod pass;
mod stats;

pub use load::LoadReport;
pub use options::Options;
pub use pass::Logits;
pub use stats::{Milliseconds, SplitMs, StepStats};

use crate::device::Device;
use crate::error::Error;
use crate::gguf::Gguf;
use crate::model::{Architecture, Config, Model};
use crate::plan::{CHOICE_BYTES, Limits, Plan, Ports, RECORD_BYTES};
use crate::sample::stats::Record;
use crate::sample::{Choice, Kind};
use crate::step::{self, Job, Program};
use crate::team::{self, Report, Team};
use dllm_arena::{Leader, Region, Sealing, Step, Worker};
use dllm_cpu::FloatEnv;
use lanes::Lanes;
use names::OperatorNames;
use std::sync::Arc;

const _: () = assert!(size_of::<Choice>() == CHOICE_BYTES);
const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// A model in its arena with its threads. Everything was allocated by [`Engine::load`].
pub struct Engine {
    /// Gone before the team is joined, which ends the workers.
    leader: Option<Leader<Job>>,
    team: Option<Team>,
    program: Arc<Program>,
    config: Config,
    limits: Limits,
    ports: Ports,
    stats: StepStats,
    operators: OperatorNames,
    arena_bytes: usize,
    weight_bytes: usize,
    load: LoadReport,
    warnings: Vec<String>,
    counting: bool,
    canary: bool,
    full_logits: bool,
    lanes: Lanes,
}

/// The loop that models of an architecture were trained for; LLaDA's for those that generate
/// nothing, whose plans alone ask.
pub fn kind_of(architecture: Architecture) -> Kind {
    match architecture {
        Architecture::Llada | Architecture::Llama => Kind::Llada,
        Architecture::Dream => Kind::Dream,
    }
}

impl Engine {
    /// Loads the model of `gguf` for use within `limits`. `progress` is called with the bytes of
    /// the arena that are ready so far and their total.
    ///
    /// # Errors
    /// Whatever is wrong with the file, the limits or this machine, by name.
    pub fn load(
        gguf: &Gguf,
        limits: Limits,
        options: &Options,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Engine, Error> {
        let Device::Cpu = options.device;
        // Tables and scales are computed here, and threads inherit it.
        let _env = FloatEnv::enter();
        let kernels = options.kernels()?;
        let model = Model::from_gguf(gguf)?;
        let plan = Plan::new(&model, limits)?;
        let load::Filled { region, report, mut warnings } =
            load::fill(gguf, &model, &plan, options, progress)?;
        let (leader, workers) = seal(region, &plan);
        let Some(program) = Program::new(&plan, &model.config, kernels) else {
            unreachable!("every plan has rotary tables")
        };
        let Ok(operators) = OperatorNames::new(&program) else {
            unreachable!("operator names are few and short")
        };
        let program = Arc::new(program);
        let cpus = options.cpus(plan.limits.threads);
        if options.pin_caller && cpus.first().is_some_and(|cpu| !team::cpus::pin(*cpu)) {
            warnings.push(format!("cannot pin the calling thread to CPU {}", cpus[0]));
        }
        let shared = Arc::clone(&program);
        let work = move |pass: Step<'_, Job>, report: &Report| {
            step::run(pass, &shared, report, |_, _| ());
        };
        let team = Team::start(workers, &cpus, work).map_err(Error::Threads)?;
        warnings.extend_from_slice(team.warnings());
        Ok(Engine {
            leader: Some(leader),
            team: Some(team),
            stats: StepStats::new(program.ops().len()),
            operators,
            program,
            limits: plan.limits,
            ports: plan.ports,
            arena_bytes: plan.total_bytes,
            weight_bytes: plan.fixed_bytes,
            config: model.config,
            load: report,
            warnings,
            counting: false,
            canary: false,
            full_logits: false,
            lanes: Lanes::new(plan.limits.canvases, plan.row_capacity),
        })
    }

    /// Sizes and constants of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The loop that the model was trained for.
    pub fn kind(&self) -> Kind {
        kind_of(self.config.architecture)
    }

    /// What was planned for.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The name of the instruction set in use.
    pub fn isa(&self) -> &'static str {
        self.program.kernels().name()
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Bytes of weights and tables in the arena.
    pub fn weight_bytes(&self) -> usize {
        self.weight_bytes
    }

    /// How the load went.
    pub fn load_report(&self) -> &LoadReport {
        &self.load
    }

    /// What the system refused without preventing the load.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Without their leader the workers end, and only then can they be waited for.
        self.leader = None;
        if let Some(team) = self.team.take() {
            team.join();
        }
    }
}

fn seal(region: Region, plan: &Plan) -> (Leader<Job>, Vec<Worker<Job>>) {
    let sealing = Sealing {
        fixed_bytes: plan.fixed_bytes,
        slots: plan.buffers.iter().map(|b| b.span).collect(),
        phases: plan.ops.iter().map(|op| op.access.clone()).collect(),
        workers: plan.limits.threads,
    };
    match region.seal(sealing) {
        Ok(sealed) => sealed,
        // The table follows from the plan alone, and tests seal plans of every shape.
        Err(error) => unreachable!("the plan contradicts itself: {error}"),
    }
}
