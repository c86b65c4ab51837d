//! `include/halprof.h` is what cbindgen makes of this crate, and every C and C++ compiler accepts it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What rewrites the header, if it is set.
const UPDATE: &str = "HALPROF_UPDATE_GENERATED";

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn header() -> PathBuf {
    folder().join("include/halprof.h")
}

#[test]
fn the_header_is_that_of_the_functions() {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let sources = ["outcome", "functions"].map(|name| folder().join("src").join(name).with_extension("rs"));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(source);
    }
    let mut bytes = Vec::new();
    builder.generate().unwrap().write(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    if env::var_os(UPDATE).is_some() {
        fs::write(header(), &text).unwrap();
    }
    let written = fs::read_to_string(header()).unwrap_or_default().replace("\r\n", "\n");
    assert!(written == text, "{} is outdated: run the test with {UPDATE}=1", header().display());
}

#[test]
fn every_function_is_described_with_its_errors() {
    let text = fs::read_to_string(header()).unwrap();
    for name in ["open", "open_cpu", "availability", "calibrate", "begin", "checkpoint", "end", "count", "close"] {
        let (before, _) = text.split_once(&format!("\nhalprof_status halprof_{name}(")).unwrap();
        let (_, comment) = before.rsplit_once("/**").unwrap();
        assert!(comment.contains("Errors: HALPROF_BAD_"), "{name}: {comment}");
    }
}

/// The DLL exports what the header declares; the header declares no name of Rust.
#[test]
fn the_header_has_no_rust() {
    let text = fs::read_to_string(header()).unwrap();
    for word in ["# Safety", "Option", "Vec<", "`crate", "GroupHandle", "Outcome"] {
        assert!(!text.contains(word), "{word}");
    }
}

/// Compiles a file that only includes the header, with the compilers for Linux and for Windows that are installed.
#[cfg(target_os = "linux")]
#[test]
fn compilers_accept_the_header_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let c = folder.path().join("only.c");
    fs::write(&c, "#include \"halprof.h\"\n").unwrap();
    let mut checked = 0;
    for (program, language, standards) in [
        ("cc", "c", ["c99", "c11", "c17"]),
        ("x86_64-w64-mingw32-gcc", "c", ["c99", "c11", "c17"]),
        ("c++", "c++", ["c++11", "c++17", "c++20"]),
        ("x86_64-w64-mingw32-g++", "c++", ["c++11", "c++17", "c++20"]),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            continue;
        }
        for standard in standards {
            let mut command = Command::new(program);
            command.args(["-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
            let output =
                command.arg(format!("-std={standard}")).arg("-I").arg(folder_of_header()).arg(&c).output().unwrap();
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            checked += 1;
        }
    }
    assert!(checked >= 3, "no compiler for C is installed");
}

#[cfg(target_os = "linux")]
fn folder_of_header() -> PathBuf {
    folder().join("include")
}
