//! What a run's times depend on besides the programs: the CPU, and how each program was built.

use crate::report::Machine;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Instruction sets that some program here has code for.
const FLAGS: &[&str] = &[
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vbmi",
    "avx512_vnni",
    "avx512_bf16",
    "amx_int8",
];
/// What of a build's cache changes the code that runs. Switches are kept where they are on.
const BUILD_KEYS: &[&str] = &["CMAKE_BUILD_TYPE", "CMAKE_CXX_FLAGS", "CMAKE_C_FLAGS"];
/// Beginnings of the switches for code that runs on this kind of CPU.
const BUILD_SWITCHES: &[&str] = &[
    "GGML_NATIVE",
    "GGML_AVX",
    "GGML_AMX",
    "GGML_FMA",
    "GGML_F16C",
    "GGML_BMI2",
    "GGML_BLAS",
    "GGML_OPENMP",
    "GGML_LLAMAFILE",
    "GGML_CPU_REPACK",
    "GGML_IQK_",
    "GGML_LTO",
];

/// This machine now.
pub fn this() -> Machine {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line =
            info.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_string())
    };
    let cpu_flags = field("flags").unwrap_or_default();
    let has = |flag: &str| cpu_flags.split(' ').any(|word| word == flag);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    Machine {
        cpu: cpu_name(&field),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        flags: FLAGS.iter().filter(|flag| has(flag)).map(|flag| flag.to_string()).collect(),
        load: load.split(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0.0),
    }
}

/// The CPU's name with what tells its generation apart: virtual machines hide the rest.
fn cpu_name(field: &dyn Fn(&str) -> Option<String>) -> String {
    let name = field("model name").unwrap_or_else(|| "unknown CPU".into());
    match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name,
    }
}

/// The commit of the source in `folder`, where git knows it.
pub fn commit(folder: &Path) -> Option<String> {
    describe(folder, &[])
}

/// The same, with `-dirty` where files differ from it.
pub fn commit_and_changes(folder: &Path) -> Option<String> {
    describe(folder, &["--dirty"])
}

fn describe(folder: &Path, more: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["describe", "--always", "--exclude=*", "--abbrev=12"]);
    let output = command.args(more).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The choices of a CMake build, as far as they say nothing of places on this machine.
pub fn build_choices(build: &Path) -> Vec<String> {
    let cache = fs::read_to_string(build.join("CMakeCache.txt")).unwrap_or_default();
    cache.lines().filter_map(choice).collect()
}

/// `KEY=VALUE` of a line `KEY:TYPE=VALUE` that matters.
fn choice(line: &str) -> Option<String> {
    let (typed_key, value) = line.split_once('=')?;
    let (key, kind) = typed_key.split_once(':')?;
    let is_named = BUILD_KEYS.contains(&key) && !value.is_empty();
    let is_switch = BUILD_SWITCHES.iter().any(|name| key.starts_with(name));
    let is_on = kind == "BOOL" && is_switch && value == "ON";
    ((is_named || is_on) && !value.contains('/')).then(|| format!("{key}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_cut_down_to_choices_that_matter() {
        assert_eq!(choice("GGML_NATIVE:BOOL=ON").unwrap(), "GGML_NATIVE=ON");
        assert_eq!(choice("CMAKE_BUILD_TYPE:STRING=Release").unwrap(), "CMAKE_BUILD_TYPE=Release");
        for line in [
            "GGML_AVX512:BOOL=OFF",
            "GGML_CUDA_GRAPHS:BOOL=ON",
            "GGML_SOURCE_DIR:STATIC=/somewhere",
            "CMAKE_CXX_FLAGS:STRING=",
            "CMAKE_CXX_FLAGS:STRING=-I/somewhere",
            "// a comment=1",
        ] {
            assert_eq!(choice(line), None, "{line}");
        }
    }

    #[test]
    fn this_machine_has_a_cpu() {
        let machine = this();
        assert!(machine.cpus > 0 && !machine.cpu.is_empty());
    }
}
