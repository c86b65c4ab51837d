//! What an ordinary user can prepare for an elevated program, tried in a guest: scripts, and what their output means.

use super::{
    guest::Ran,
    proof::Outcome::{self, Failed, Passed},
};

/// Starts a copy of the client beside DLLs of the wrong content. Were one loaded, the client would not start.
pub const PLANTED_DLLS: &str = "\
    $d='C:\\halprof-vm\\planted'; [void](New-Item -Force -ItemType Directory $d); \
    Copy-Item C:\\halprof-vm\\package\\client.exe $d; \
    foreach($n in 'userenv','bcrypt','bcryptprimitives','secur32','version'){\
    Copy-Item C:\\Windows\\System32\\cabinet.dll ($d+'\\'+$n+'.dll')}; \
    & ($d+'\\client.exe') --version; 'exit '+$LASTEXITCODE; Remove-Item -Recurse -Force $d";

/// Imports events while the folder of the machine is a junction to another one.
pub const JUNCTION: &str = "\
    $p=$env:ProgramData+'\\halprof'; $t='C:\\halprof-vm\\target'; $m='C:\\halprof-vm\\events'; \
    if(Test-Path $p){Rename-Item $p halprof-kept}; \
    [void](New-Item -Force -ItemType Directory $t,$m); [void](New-Item -ItemType Junction -Path $p -Target $t); \
    Set-Content ($m+'\\mapfile.csv') 'Family-model,Version,Filename,EventType','GenuineIntel-6-5E,V1,/core.json,core'; \
    Set-Content ($m+'\\core.json') '[{\"EventCode\":\"0xA1\",\"UMask\":\"0x7F\",\"EventName\":\"A.B\",\"Counter\":\"0\"}]'; \
    cmd /c 'C:\\halprof-vm\\package\\client.exe events import C:\\halprof-vm\\events 2>&1'; \
    'written '+@(Get-ChildItem $t).Count; (Get-Item $p).Delete(); \
    if(Test-Path ($p+'-kept')){Rename-Item ($p+'-kept') halprof}";

/// Installs the agent with a configuration that every user can change, then with a protected one, and removes it.
pub const AGENT: &str = "\
    $c='C:\\halprof-vm\\package\\client.exe'; $d='C:\\halprof-vm\\agent'; \
    [void](New-Item -Force -ItemType Directory $d); \
    Set-Content ($d+'\\agent.toml') '[counting]','events = [\"cycles\"]'; \
    icacls $d /grant '*S-1-5-32-545:(OI)(CI)M'|Out-Null; \
    cmd /c ($c+' agent install --config '+$d+'\\agent.toml 2>&1')|Out-Null; 'exposed '+$LASTEXITCODE; \
    Remove-Item -Recurse -Force $d; $d='C:\\halprof-agent'; [void](New-Item -Force -ItemType Directory $d); \
    icacls $d /inheritance:r /grant:r '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F'|Out-Null; \
    Set-Content ($d+'\\agent.toml') '[counting]','events = [\"cycles\"]'; \
    cmd /c ($c+' agent install --config '+$d+'\\agent.toml 2>&1'); 'install '+$LASTEXITCODE; \
    Start-Sleep 5; 'state '+(Get-Service halprof-agent).Status; \
    'path '+(Get-CimInstance Win32_Service -Filter \"Name='halprof-agent'\").PathName; \
    cmd /c ($c+' agent uninstall 2>&1'); \
    'left '+(Test-Path ($env:ProgramFiles+'\\halprof\\halprof-agent.exe')); Remove-Item -Recurse -Force $d";

fn text(ran: &Ran) -> String {
    format!("exit code {}: {}{}", ran.code, ran.out.trim(), ran.err.trim())
}

fn has(ran: &Ran, line: &str) -> bool {
    ran.out.lines().any(|found| found.trim() == line)
}

fn pass_if(holds: bool, ran: &Ran) -> Outcome {
    if holds { Passed } else { Failed(text(ran)) }
}

/// Passes if the client starts beside the DLLs.
pub fn planted_dlls_ignored(ran: &Ran) -> Outcome {
    pass_if(has(ran, "exit 0"), ran)
}

/// Passes if the junction was refused, and nothing was written to where it leads.
pub fn junction_refused(ran: &Ran) -> Outcome {
    pass_if(ran.out.contains("leads to another place") && has(ran, "written 0"), ran)
}

/// Passes if the service ran from the folder for programs, and nothing of it is left.
pub fn agent_installed(ran: &Ran) -> Outcome {
    let path = ran.out.lines().find_map(|line| line.trim().strip_prefix("path "));
    let is_copy = path.is_some_and(|path| path.contains("\\Program Files\\halprof\\halprof-agent.exe"));
    let lines = ["exposed 2", "install 0", "state Running", "left False"];
    pass_if(is_copy && lines.iter().all(|line| has(ran, line)), ran)
}
