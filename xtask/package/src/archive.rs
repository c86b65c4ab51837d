//! Zip files: that of a release, and the corpora of the fuzz targets.

use std::{
    fs,
    io::{Cursor, Write},
    path::Path,
};

use anyhow::{Context, Result};
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter, write::SimpleFileOptions};

use xtask::files;

/// Returns a zip file with the files of `from` in its only folder, `folder`. The same files give the same bytes: the
/// zip file has no times.
pub fn pack(from: &Path, folder: &str) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    for name in files::names(from)? {
        let pack = |writer: &mut ZipWriter<_>| -> Result<()> {
            writer.start_file(format!("{folder}/{name}"), options)?;
            Ok(writer.write_all(&files::read(&from.join(&name))?)?)
        };
        pack(&mut writer).with_context(|| format!("cannot pack {name}"))?;
    }
    Ok(writer.finish().context("cannot finish the zip file")?.into_inner())
}

/// Unpacks a zip file into a folder.
pub fn unpack(archive: &Path, into: &Path) -> Result<()> {
    let context = || format!("cannot unpack {}", archive.display());
    let file = fs::File::open(archive).with_context(context)?;
    ZipArchive::new(file).with_context(context)?.extract(into).with_context(context)
}
