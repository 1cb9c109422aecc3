//! Records: JSON files, and what each says of the machine it was made on.

use crate::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The instruction sets that matter here, as the kernel names them.
const FLAGS: &str = "avx2 fma f16c avx_vnni avx512f avx512bw avx512vl avx512vbmi avx512_vnni \
                     avx512_bf16 amx_int8";

/// A machine, as far as times depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    /// Logical CPUs that the run could use.
    pub cpus: usize,
    pub flags: Vec<String>,
    /// Processes that wanted a CPU when the run began, averaged over a minute.
    pub load: f64,
}

impl Machine {
    pub fn this() -> Machine {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let mut fields = info.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_string())
        };
        let name = field("model name").unwrap_or_else(|| "unknown CPU".into());
        let cpu_flags = field("flags").unwrap_or_default();
        let has = |flag: &str| cpu_flags.split(' ').any(|word| word == flag);
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            // Virtual machines hide what else tells its generation.
            cpu: match (field("cpu family"), field("model")) {
                (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
                _ => name,
            },
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            flags: FLAGS.split(' ').filter(|flag| has(flag)).map(String::from).collect(),
            load: load.split(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0.0),
        }
    }
}

pub fn write_json(path: &Path, record: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(record).map_err(|error| wrong(path, &error))?;
    fs::write(path, text + "\n").map_err(Error::io(path))
}

pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    serde_json::from_str(&text).map_err(|error| wrong(path, &error))
}

/// The error of a record in the file at `path`.
pub fn wrong(path: &Path, what: &dyn std::fmt::Display) -> Error {
    Error::Record(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_cpu() {
        let machine = Machine::this();
        assert!(machine.cpus > 0 && !machine.cpu.is_empty());
    }
}
