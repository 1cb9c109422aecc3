//! Builds of other programs: what tells one from another, and the driver compiled against one, in
//! a temporary folder.

use dllm_bench::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("driver.cpp");
/// Folders of a build are at most this deep: `ggml/src/` and one of its backends.
const DEPTH_MAX: usize = 6;
/// What of a build's cache changes the code that runs. Switches are kept where they are on.
const BUILD_KEYS: &[&str] = &["CMAKE_BUILD_TYPE", "CMAKE_CXX_FLAGS", "CMAKE_C_FLAGS"];
/// Beginnings of the switches for code that runs on this kind of CPU.
const BUILD_SWITCHES: &str = "GGML_NATIVE GGML_AVX GGML_AMX GGML_FMA GGML_F16C GGML_BMI2 GGML_BLAS \
                              GGML_OPENMP GGML_LLAMAFILE GGML_CPU_REPACK GGML_IQK_ GGML_LTO";

/// Where the user keeps another program: its source and a build of it with shared libraries.
pub struct Build {
    /// Holds `include/llama.h`.
    pub source: PathBuf,
    /// Holds `libllama.so` somewhere.
    pub build: PathBuf,
}

/// Compiles the driver for `build`, of ik_llama.cpp or else of llama.cpp, to `folder`/`name` and
/// gives its path. A build without headers or libraries is an error, and an interface that has
/// changed.
pub fn driver(build: &Build, is_ik: bool, folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let (source, out) = (folder.join(format!("{name}.cpp")), folder.join(name));
    fs::write(&source, SOURCE).map_err(Error::io(&source))?;
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    // It may be told with arguments, as in `ccache c++`.
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words).args(["-std=c++17", "-O2", "-o"]).arg(&out).arg(&source);
    if is_ik {
        command.arg("-DPEER_IK");
    }
    let header = build.source.join("include/llama.h");
    if !header.is_file() {
        return Err(Error::Argument(format!("{} does not exist", header.display())));
    }
    for folder in ["include", "ggml/include"] {
        command.arg("-I").arg(build.source.join(folder));
    }
    // The path of the program counts for the libraries' own libraries only in its older form.
    command.arg("-Wl,--disable-new-dtags");
    for folder in libraries(build)? {
        command.arg("-L").arg(&folder);
        command.args(["-Xlinker", "-rpath", "-Xlinker"]).arg(folder);
    }
    command.arg("-lllama");
    let output = command.output().map_err(Error::io(Path::new(&compiler)))?;
    match output.status.success() {
        true => Ok(out),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Error::program("the driver", format!("does not compile:\n{said}")))
        }
    }
}

/// The folders of `libllama.so` and of the libraries that it needs.
fn libraries(build: &Build) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let root = fs::canonicalize(&build.build).map_err(Error::io(&build.build))?;
    collect(&root, DEPTH_MAX, &mut found);
    let folder = |path: &PathBuf| path.parent().map(Path::to_path_buf);
    if !found.iter().any(|path| path.file_name().is_some_and(|name| name == "libllama.so")) {
        let text = "holds no libllama.so: build the target `llama` with BUILD_SHARED_LIBS=ON";
        return Err(Error::Argument(format!("{} {text}", build.build.display())));
    }
    let mut folders: Vec<PathBuf> = found.iter().filter_map(folder).collect();
    folders.sort();
    folders.dedup();
    Ok(folders)
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() && !path.is_symlink() && depth > 0 {
            collect(&path, depth - 1, found);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "libllama.so" || name.starts_with("libggml") && name.ends_with(".so") {
            found.push(path);
        }
    }
}

/// The commit of the source in `folder`, where git knows it; `more` are arguments of git's.
pub fn commit(folder: &Path, more: &[&str]) -> Option<String> {
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
    let is_switch = BUILD_SWITCHES.split(' ').any(|name| key.starts_with(name));
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
}
