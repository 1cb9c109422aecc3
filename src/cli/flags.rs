//! The flags of every command that runs a model.

use crate::cli::args::{Cpus, FilePath, LockMode};
use crate::cli::failure::Failure;
use crate::cli::source::Source;
use dllm_rt::team::cpus;
use dllm_rt::{Device, Options};

/// Defines a command with its own fields and those of every command that runs a model: the
/// parser has no way to share fields between commands.
macro_rules! model_command {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        #[derive(argh::FromArgs, Debug)]
        $(#[$meta])*
        pub struct $name {
            $($own)*
            /// the model's GGUF file; any part of a split one (default: the demonstration model
            /// that is built in)
            #[argh(option, arg_name = "path")]
            pub model: Option<$crate::cli::args::FilePath>,
            /// worker threads (default: the physical cores that may be used)
            #[argh(option, arg_name = "n")]
            pub threads: Option<usize>,
            /// the CPUs to pin the threads to, like 0,2-5 (default: physical cores first)
            #[argh(option, arg_name = "list")]
            pub cpus: Option<$crate::cli::args::Cpus>,
            /// instruction set: auto, scalar, avx2, avxvnni or avx512vnni (default: what the
            /// environment's DLLM_ISA names, or auto)
            #[argh(option, arg_name = "name")]
            pub isa: Option<String>,
            /// auto or cpu (default: auto)
            #[argh(option, arg_name = "name")]
            pub device: Option<String>,
            /// ask for huge pages
            #[argh(switch)]
            pub huge_pages: bool,
            /// lock the model in memory: auto (where permitted), on (warn where it is not) or off
            /// (default: auto)
            #[argh(option, arg_name = "mode")]
            pub lock: Option<$crate::cli::args::LockMode>,
            /// keep packed weights in this folder, so that later loads are cheaper
            #[argh(option, arg_name = "folder")]
            pub packed_cache: Option<$crate::cli::args::FilePath>,
            /// the mask token's id, for files that name none
            #[argh(option, arg_name = "id")]
            pub mask_token: Option<u32>,
            /// say more on standard error
            #[argh(switch)]
            pub verbose: bool,
            /// print one JSON object
            #[argh(switch)]
            pub json: bool,
        }

        impl $name {
            /// The flags that are not this command's own.
            fn model_flags(&self) -> $crate::cli::flags::ModelFlags {
                $crate::cli::flags::ModelFlags {
                    model: self.model.clone(),
                    threads: self.threads,
                    cpus: self.cpus.clone(),
                    isa: self.isa.clone(),
                    device: self.device.clone(),
                    huge_pages: self.huge_pages,
                    lock: self.lock,
                    packed_cache: self.packed_cache.clone(),
                    mask_token: self.mask_token,
                    verbose: self.verbose,
                }
            }
        }
    };
}
pub(in crate::cli) use model_command;

/// How to load a model.
#[derive(Clone, Debug)]
pub struct ModelFlags {
    /// Where it is.
    pub model: Option<FilePath>,
    /// Worker threads.
    pub threads: Option<usize>,
    /// Where to pin them.
    pub cpus: Option<Cpus>,
    /// Instruction set.
    pub isa: Option<String>,
    /// Device.
    pub device: Option<String>,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// Whether to lock.
    pub lock: Option<LockMode>,
    /// Where to keep packed weights.
    pub packed_cache: Option<FilePath>,
    /// For files that name none.
    pub mask_token: Option<u32>,
    /// Whether to say more.
    pub verbose: bool,
}

impl ModelFlags {
    /// Where the model comes from.
    pub fn source(&self) -> Source<'_> {
        Source::new(self.model.as_ref())
    }

    /// Worker threads: as many as asked for, as there are `--cpus`, or as physical cores.
    pub fn threads(&self) -> usize {
        let listed = self.cpus.as_ref().map(|cpus| cpus.0.len());
        self.threads.or(listed).unwrap_or_else(cpus::physical_count)
    }

    /// How to load.
    ///
    /// # Errors
    /// An unknown device, no thread at all, fewer CPUs than threads.
    pub fn options(&self) -> Result<Options, Failure> {
        let threads = self.threads();
        if threads == 0 {
            return Err(Failure::Usage("--threads is 0; give at least 1".into()));
        }
        if let Some(Cpus(cpus)) = &self.cpus
            && cpus.len() < threads
        {
            let count = cpus.len();
            let message = format!("--cpus lists {count} CPUs for {threads} --threads");
            return Err(Failure::Usage(message));
        }
        let lock = self.lock.map_or(dllm_rt::Lock::Auto, |mode| mode.0);
        Ok(Options {
            device: device(self.device.as_deref())?,
            isa: self.isa.clone(),
            cpus: self.cpus.as_ref().map(|cpus| cpus.0.clone()),
            pin_caller: true,
            huge_pages: self.huge_pages,
            lock,
            packed_cache: self.packed_cache.as_ref().map(|path| path.0.clone()),
        })
    }

    /// Whether the user asked for something that the system may refuse with a warning.
    pub fn wants_warnings(&self) -> bool {
        let locks = self.lock.is_some_and(|mode| mode.0 == dllm_rt::Lock::On);
        let asked = self.huge_pages || self.cpus.is_some() || self.packed_cache.is_some();
        self.verbose || asked || locks
    }
}

fn device(name: Option<&str>) -> Result<Device, Failure> {
    match name {
        Some("cuda") => Err(Failure::Later("device `cuda`".into())),
        Some(name) => name.parse().map_err(|unknown| Failure::Usage(format!("{unknown}"))),
        None => Ok(Device::Cpu),
    }
}
