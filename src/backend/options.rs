//! Where and how a model is loaded, apart from its limits.

use super::cpu::threads::cpus;
use super::error::Error;
use dllm_arena::Lock;
use dllm_cpu::Kernels;
use std::fmt;
use std::str::FromStr;

/// How a model is loaded, apart from its limits. The default pins the workers but not the caller,
/// locks memory where permitted and takes the fastest instruction set.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it runs.
    pub device: Device,
    /// Name of an instruction set; `None` or `auto`: the fastest, or what the environment's
    /// `DLLM_ISA` names.
    pub isa: Option<String>,
    /// CPUs to pin the workers to, the caller's thread first; `None`: physical cores first.
    pub cpus: Option<Vec<usize>>,
    /// Whether to pin the calling thread as well.
    pub pin_caller: bool,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// Whether to lock the arena in memory.
    pub lock: Lock,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            device: Device::Cpu,
            isa: None,
            cpus: None,
            pin_caller: false,
            huge_pages: false,
            lock: Lock::Auto,
        }
    }
}

impl Options {
    /// The kernels asked for.
    ///
    /// # Errors
    /// [`Error::Isa`] where this CPU lacks what the field or the environment names.
    pub fn kernels(&self) -> Result<Kernels, Error> {
        let asked = |name: &String| !name.is_empty() && name != "auto";
        let field = self.isa.clone().filter(asked).map(|name| (name, "isa"));
        let variable = || std::env::var("DLLM_ISA").ok().filter(asked);
        let named = field.or_else(|| variable().map(|name| (name, "DLLM_ISA")));
        match named {
            Some((name, origin)) => Kernels::by_name(&name).ok_or(Error::Isa { name, origin }),
            None => Kernels::best().ok_or_else(|| unreachable!("scalar code runs everywhere")),
        }
    }

    /// The CPUs to pin `threads` workers to.
    pub(super) fn cpus(&self, threads: usize) -> Vec<usize> {
        self.cpus.clone().unwrap_or_else(|| cpus::choose(threads))
    }
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The CPU.
    Cpu,
}

/// A device that this build cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// One of a later version.
    #[error("device `cuda` is not part of this version: use `cpu` or `auto`")]
    Cuda,
    /// Any other name.
    #[error("device `{0}` is unknown: use `cpu` or `auto`")]
    Unknown(String),
}

impl FromStr for Device {
    type Err = Unavailable;

    /// `cpu` or `auto`.
    fn from_str(name: &str) -> Result<Device, Unavailable> {
        match name {
            "cpu" | "auto" => Ok(Device::Cpu),
            "cuda" => Err(Unavailable::Cuda),
            other => Err(Unavailable::Unknown(other.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cpu")
    }
}
