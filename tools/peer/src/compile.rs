//! Compiles the driver against a build of another program, into a temporary folder.

use crate::fault::Fault;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("driver.cpp");
/// Folders of a build are at most this deep: `ggml/src/` and one of its backends.
const DEPTH_MAX: usize = 6;

/// Where the user keeps another program: its source and a build of it with shared libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Holds `include/llama.h`.
    pub source: PathBuf,
    /// Holds `libllama.so` somewhere.
    pub build: PathBuf,
}

impl std::str::FromStr for Build {
    type Err = String;

    fn from_str(text: &str) -> Result<Build, String> {
        match text.split_once(':') {
            Some((source, build)) if !source.is_empty() && !build.is_empty() => {
                Ok(Build { source: source.into(), build: build.into() })
            }
            _ => Err("write SOURCE_DIR:BUILD_DIR".into()),
        }
    }
}

/// Which interface the driver is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// That of llama.cpp.
    Llama,
    /// That of ik_llama.cpp.
    Ik,
}

/// Compiles the driver for `build` to `folder`/`name` and gives its path.
///
/// # Errors
/// A build without headers or libraries, no compiler, or an interface that has changed.
pub fn driver(build: &Build, api: Api, folder: &Path, name: &str) -> Result<PathBuf, Fault> {
    let (source, out) = (folder.join(format!("{name}.cpp")), folder.join(name));
    fs::write(&source, SOURCE).map_err(Fault::io(&source))?;
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    // It may be told with arguments, as in `ccache c++`.
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words).args(["-std=c++17", "-O2", "-o"]).arg(&out).arg(&source);
    if api == Api::Ik {
        command.arg("-DPEER_IK");
    }
    for include in includes(build)? {
        command.arg("-I").arg(include);
    }
    // The path of the program counts for the libraries' own libraries only in its older form.
    command.arg("-Wl,--disable-new-dtags");
    for folder in libraries(build)? {
        command.arg("-L").arg(&folder);
        command.args(["-Xlinker", "-rpath", "-Xlinker"]).arg(folder);
    }
    command.arg("-lllama");
    let output = command.output().map_err(Fault::io(Path::new(&compiler)))?;
    match output.status.success() {
        true => Ok(out),
        false => Err(Fault::Compiler(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn includes(build: &Build) -> Result<Vec<PathBuf>, Fault> {
    let header = build.source.join("include/llama.h");
    if !header.is_file() {
        return Err(Fault::Build(format!("{} does not exist", header.display())));
    }
    Ok(["include", "ggml/include"].iter().map(|folder| build.source.join(folder)).collect())
}

/// The folders of `libllama.so` and of the libraries that it needs.
fn libraries(build: &Build) -> Result<Vec<PathBuf>, Fault> {
    let mut found = Vec::new();
    let root = fs::canonicalize(&build.build).map_err(Fault::io(&build.build))?;
    collect(&root, DEPTH_MAX, &mut found);
    let folder = |path: &PathBuf| path.parent().map(Path::to_path_buf);
    if !found.iter().any(|path| path.file_name().is_some_and(|name| name == "libllama.so")) {
        let text = "holds no libllama.so: build the target `llama` with BUILD_SHARED_LIBS=ON";
        return Err(Fault::Build(format!("{} {text}", build.build.display())));
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
