//! Writing: by several processes, over what a crash left, where nothing can be written.

use crate::models;
use crate::support::{Folder, load, load_path};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The file that is written to before it gets its name.
fn part(packed: &Path) -> std::path::PathBuf {
    let mut name = packed.to_owned().into_os_string();
    name.push(".part");
    name.into()
}

/// A run of the program in another process, by way of a shell where there is something to set.
fn program(setting: &str, folder: &Folder, args: &str) -> Command {
    let mut command = Command::new("sh");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models");
    command.arg("-c").arg(format!(
        "{setting} exec {} logits --model {}/{}.gguf --tokens 5,6,7 --out - \
         --packed-cache {} {args}",
        env!("CARGO_BIN_EXE_dllm-rt"),
        model.display(),
        models::LLADA,
        folder.cache().display()
    ));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(output: Output) -> (Vec<u8>, String) {
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (output.stdout, said)
}

#[test]
fn processes_that_write_at_once_do_no_harm() {
    let folder = Folder::new("processes");
    let alone = Folder::new("processes-alone");
    let (plain, _) = ended(program("", &alone, "").output().unwrap());
    for round in 0..4 {
        let start = |_| program("", &folder, "--verbose").spawn().unwrap();
        let children: Vec<_> = (0..4).map(start).collect();
        for child in children {
            let (out, said) = ended(child.wait_with_output().unwrap());
            assert!(out == plain, "round {round}: {said}");
            assert!(!said.contains("damaged"), "round {round}: {said}");
        }
        let (out, said) = ended(program("", &folder, "--verbose").output().unwrap());
        assert!(out == plain && said.contains("from a packed file"), "{said}");
        fs::remove_file(folder.packed()).unwrap();
    }
}

#[test]
fn who_comes_while_another_writes_goes_on_without() {
    let folder = Folder::new("busy");
    let gguf = models::open(models::LLADA);
    let plain = load(&gguf, Some(&folder.cache()));
    let packed = folder.packed();
    fs::remove_file(&packed).unwrap();
    let other = File::create(part(&packed)).unwrap();
    other.lock().unwrap();
    let loaded = load(&gguf, Some(&folder.cache()));
    assert!(!loaded.is_from_packed && loaded.logits == plain.logits);
    loaded.says(&["is being written by another process"]);
    assert!(loaded.warnings.is_empty());
    assert_eq!(folder.kept(), [part(&packed)]);
    // The other one dies; what it had written is nobody's.
    drop(other);
    fs::write(part(&packed), vec![0xa5; 10 << 20]).unwrap();
    assert!(!load(&gguf, Some(&folder.cache())).is_from_packed);
    assert_eq!(folder.kept(), std::slice::from_ref(&packed));
    assert!(load(&gguf, Some(&folder.cache())).is_from_packed);
}

#[test]
fn a_link_under_the_name_is_not_written_through() {
    let folder = Folder::new("link");
    let gguf = models::open(models::LLADA);
    let plain = load(&gguf, Some(&folder.cache()));
    let packed = folder.packed();
    fs::remove_file(&packed).unwrap();
    let precious = folder.0.join("precious");
    fs::write(&precious, "precious").unwrap();
    for target in [precious.clone(), folder.0.join("nothing")] {
        std::os::unix::fs::symlink(&target, part(&packed)).unwrap();
        let loaded = load(&gguf, Some(&folder.cache()));
        assert!(!loaded.is_from_packed && loaded.logits == plain.logits);
        assert!(loaded.warnings.iter().any(|w| w.contains("symbolic link")));
        assert_eq!(folder.kept(), [part(&packed)]);
        fs::remove_file(part(&packed)).unwrap();
    }
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(!folder.0.join("nothing").exists());
}

/// A load that reads while another one writes has the file that it opened.
#[test]
fn a_new_file_takes_the_place_of_the_old_one_at_once() {
    let folder = Folder::new("replaced");
    let gguf = models::open(models::LLADA);
    load(&gguf, Some(&folder.cache()));
    let packed = folder.packed();
    let old = File::open(&packed).unwrap();
    let before = old.metadata().unwrap();
    let mut bytes = fs::read(&packed).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&packed, &bytes).unwrap();
    load(&gguf, Some(&folder.cache()));
    let after = fs::metadata(&packed).unwrap();
    assert_eq!(old.metadata().unwrap().ino(), before.ino());
    assert_ne!(after.ino(), before.ino());
    assert_eq!(old.metadata().unwrap().len(), after.len());
}

/// As a full disk, a limit lets a write fail half-way.
#[test]
fn a_disk_without_room_is_a_warning() {
    let folder = Folder::new("full");
    let alone = Folder::new("full-alone");
    let (plain, _) = ended(program("", &alone, "").output().unwrap());
    let limited = program("trap '' XFSZ; ulimit -f 512;", &folder, "").output().unwrap();
    let (out, said) = ended(limited);
    assert!(out == plain);
    assert!(said.contains("warning: packed file") && said.contains("cannot write it"), "{said}");
    assert_eq!(folder.kept().len(), 0, "{:?}", folder.kept());
    let (out, said) = ended(program("", &folder, "").output().unwrap());
    assert!(out == plain && said.is_empty(), "{said}");
    folder.packed();
}

#[test]
fn a_folder_that_is_none_is_an_error_and_one_that_refuses_a_warning() {
    let folder = Folder::new("folders");
    fs::write(folder.cache(), "").unwrap();
    let output = program("", &folder, "").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot keep packed files in `") && said.lines().count() == 1, "{said}");
    fs::remove_file(folder.cache()).unwrap();
    // Nobody can make files there.
    let gguf = models::open(models::LLADA);
    let loaded = load(&gguf, Some(Path::new("/proc/self")));
    assert!(!loaded.is_from_packed && loaded.logits == load(&gguf, None).logits);
    loaded.says(&["was not written", "cannot create it"]);
    // A folder in a folder that is not there is made.
    let deep = folder.0.join("a/b");
    load(&gguf, Some(&deep));
    assert!(load_path(&folder.copy(models::LLADA), Some(&deep)).is_from_packed);
}
