//! Adds the version resource.

fn main() -> std::io::Result<()> {
    version_resource::link(version_resource::Kind::Program, "client.exe")
}
