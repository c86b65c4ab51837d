"""Builds and runs a program, which it reads, with one version of a package for Rust: crate.py NAME VERSION < main.rs"""

import os
import pathlib
import subprocess
import sys
import tempfile

MANIFEST = """[package]
name = "finding"
version = "0.0.0"
edition = "2024"

[dependencies]
{} = "={}"
"""

with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    (root / "src").mkdir()
    (root / "Cargo.toml").write_text(MANIFEST.format(*sys.argv[1:]))
    (root / "src" / "main.rs").write_text(sys.stdin.read())
    environment = os.environ | {"CARGO_TARGET_DIR": str(root / "target")}
    subprocess.run(["cargo", "run", "--quiet"], cwd=root, env=environment, check=True)
