//! The arguments of `vm`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `vm`.
#[derive(Debug, Clone, Args)]
pub struct VmArguments {
    /// Name of the virtual machine in Hyper-V, and of the folder below target/vm with the report
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    pub name: Option<String>,
    /// Reach the guest by SSH instead of PowerShell Direct: with any hypervisor, and from Linux
    #[arg(long, value_name = "USER@HOST", conflicts_with = "credential")]
    pub address: Option<String>,
    /// File with the account of the guest, for PowerShell Direct: Get-Credential | Export-Clixml FILE
    #[arg(long, value_name = "FILE")]
    pub credential: Option<PathBuf>,
    /// Take this package instead of building one
    #[arg(long, value_name = "FOLDER")]
    pub package: Option<PathBuf>,
    /// Begin a new run, even if the last one has not ended
    #[arg(long)]
    pub fresh: bool,
    /// Print the plan, check that it can use the package that is named, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Parses a name that is also one of a folder.
fn machine_name(text: &str) -> Result<String, String> {
    let plain = !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\\', ':']);
    plain
        .then(|| text.to_owned())
        .ok_or_else(|| "a name has no slashes and colons, and does not begin with a dot".into())
}
