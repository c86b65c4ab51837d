//! Adds the version resource, the manifest, and where imports are loaded from.

fn main() -> std::io::Result<()> {
    file_resources::program("client.exe")
}
