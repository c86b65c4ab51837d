
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'client', 'halprof' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'client'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'client' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('install', 'install', [CompletionResultType]::ParameterValue, 'Install the driver and start it; needs an elevated prompt')
            [CompletionResult]::new('uninstall', 'uninstall', [CompletionResultType]::ParameterValue, 'Stop the driver and remove it; needs an elevated prompt')
            [CompletionResult]::new('status', 'status', [CompletionResultType]::ParameterValue, 'Show whether the driver is running, and its sessions')
            [CompletionResult]::new('info', 'info', [CompletionResultType]::ParameterValue, 'Show the profile interface, why it was chosen, and the processors')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the profile sources that can be counted here, or search all events')
            [CompletionResult]::new('query', 'query', [CompletionResultType]::ParameterValue, 'Show one source')
            [CompletionResult]::new('encode', 'encode', [CompletionResultType]::ParameterValue, 'Show how an event is encoded, and which counters count it; needs no driver')
            [CompletionResult]::new('events', 'events', [CompletionResultType]::ParameterValue, 'Import the makers'' files of events, with descriptions; needs no driver')
            [CompletionResult]::new('interval', 'interval', [CompletionResultType]::ParameterValue, 'Set the interval of a source: events between two interrupts')
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start counting until `stop`, even if this prompt is closed')
            [CompletionResult]::new('stop', 'stop', [CompletionResultType]::ParameterValue, 'Stop what `start` started, and show its final counts')
            [CompletionResult]::new('read', 'read', [CompletionResultType]::ParameterValue, 'Show the counts of what `start` started')
            [CompletionResult]::new('stat', 'stat', [CompletionResultType]::ParameterValue, 'Count while a command runs, as `perf stat -a` does')
            [CompletionResult]::new('record', 'record', [CompletionResultType]::ParameterValue, 'Sample where events occur on processors, as `perf record -a` does')
            [CompletionResult]::new('top', 'top', [CompletionResultType]::ParameterValue, 'Show where events occur while they occur, as `perf top` does')
            [CompletionResult]::new('branches', 'branches', [CompletionResultType]::ParameterValue, 'Show which branches processors take most often, from a record of each')
            [CompletionResult]::new('control-area', 'control-area', [CompletionResultType]::ParameterValue, 'Show, allocate or free the control areas of Intel''s Debug Store')
            [CompletionResult]::new('report', 'report', [CompletionResultType]::ParameterValue, 'Show the samples of a recording by columns, as `perf report` does')
            [CompletionResult]::new('annotate', 'annotate', [CompletionResultType]::ParameterValue, 'Show the instructions of a function with their samples, as `perf annotate` does')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Convert a recording for other programs')
            [CompletionResult]::new('diff', 'diff', [CompletionResultType]::ParameterValue, 'Compare two recordings, or two files of `stat --json`, with statistical errors')
            [CompletionResult]::new('script', 'script', [CompletionResultType]::ParameterValue, 'Print the samples of a recording as `perf script` does')
            [CompletionResult]::new('flamegraph', 'flamegraph', [CompletionResultType]::ParameterValue, 'Draw a recording as a flame graph')
            [CompletionResult]::new('selftest', 'selftest', [CompletionResultType]::ParameterValue, 'Count and sample work whose numbers are known, and compare')
            [CompletionResult]::new('diagnose', 'diagnose', [CompletionResultType]::ParameterValue, 'Show what the driver would do on a processor; needs no driver')
            [CompletionResult]::new('agent', 'agent', [CompletionResultType]::ParameterValue, 'Count and sample all the time, for Prometheus, OpenTelemetry and profile servers')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'client;install' {
            [CompletionResult]::new('--driver', '--driver', [CompletionResultType]::ParameterName, 'The driver''s file [default: halprof.sys beside client.exe]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--no-start', '--no-start', [CompletionResultType]::ParameterName, 'Install without starting')
            [CompletionResult]::new('--end-sessions', '--end-sessions', [CompletionResultType]::ParameterName, 'Replace the driver although detached sessions run, which ends them')
            [CompletionResult]::new('--any-signature', '--any-signature', [CompletionResultType]::ParameterName, 'Let Windows judge the signature, even if it is expected to refuse it')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;uninstall' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;status' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;info' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;list' {
            [CompletionResult]::new('--interface', '--interface', [CompletionResultType]::ParameterName, 'The whole table of a profile interface instead; needs no driver')
            [CompletionResult]::new('--cpuid', '--cpuid', [CompletionResultType]::ParameterName, 'With PATTERN: a CPUID dump; - is standard input [default: this processor]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Also those that this machine does not support, and why; with PATTERN, deprecated names too')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'client;query' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;encode' {
            [CompletionResult]::new('--cpuid', '--cpuid', [CompletionResultType]::ParameterName, 'A CPUID dump; - is standard input [default: this processor]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;events' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Import the makers'' files of events, with descriptions')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Show what is imported, and how to get newer files')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'client;events;import' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;events;update' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;events;help' {
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Import the makers'' files of events, with descriptions')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Show what is imported, and how to get newer files')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'client;events;help;import' {
            break
        }
        'client;events;help;update' {
            break
        }
        'client;events;help;help' {
            break
        }
        'client;interval' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;start' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Take counters that another program has enabled without reserving them')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;stop' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Stop everything that `start` started')
            [CompletionResult]::new('-A', '-A ', [CompletionResultType]::ParameterName, 'A row for each processor as well')
            [CompletionResult]::new('--per-cpu', '--per-cpu', [CompletionResultType]::ParameterName, 'A row for each processor as well')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;read' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-A', '-A ', [CompletionResultType]::ParameterName, 'A row for each processor as well')
            [CompletionResult]::new('--per-cpu', '--per-cpu', [CompletionResultType]::ParameterName, 'A row for each processor as well')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;stat' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Sources to count, with commas; each can end in :u or :k, and in :D to have a counter all the time; {A,B} are counted at the same time')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Sources to count, with commas; each can end in :u or :k, and in :D to have a counter all the time; {A,B} are counted at the same time')
            [CompletionResult]::new('-M', '-M ', [CompletionResultType]::ParameterName, 'Metrics or groups of metrics to compute, with commas; .\client list metrics lists them')
            [CompletionResult]::new('--metrics', '--metrics', [CompletionResultType]::ParameterName, 'Metrics or groups of metrics to compute, with commas; .\client list metrics lists them')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('-I', '-I ', [CompletionResultType]::ParameterName, 'Print the counts of every 100 (milliseconds), 100ms or 5s')
            [CompletionResult]::new('--interval', '--interval', [CompletionResultType]::ParameterName, 'Print the counts of every 100 (milliseconds), 100ms or 5s')
            [CompletionResult]::new('-r', '-r', [CompletionResultType]::ParameterName, 'Count N times; print the mean of each count and its standard error')
            [CompletionResult]::new('--repeat', '--repeat', [CompletionResultType]::ParameterName, 'Count N times; print the mean of each count and its standard error')
            [CompletionResult]::new('-D', '-D ', [CompletionResultType]::ParameterName, 'Begin to count 100 (milliseconds), 100ms or 5s after the command')
            [CompletionResult]::new('--delay', '--delay', [CompletionResultType]::ParameterName, 'Begin to count 100 (milliseconds), 100ms or 5s after the command')
            [CompletionResult]::new('--duration', '--duration', [CompletionResultType]::ParameterName, 'End after this time: 5 (seconds), 5s or 250ms')
            [CompletionResult]::new('-x', '-x', [CompletionResultType]::ParameterName, 'As --csv, with another character between the fields; \t is a tab')
            [CompletionResult]::new('--field-separator', '--field-separator', [CompletionResultType]::ParameterName, 'As --csv, with another character between the fields; \t is a tab')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the counts to FILE; - is standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the counts to FILE; - is standard output')
            [CompletionResult]::new('--baseline', '--baseline', [CompletionResultType]::ParameterName, 'Compare the counts with those of FILE, which .\client stat --json -o wrote, as .\client diff does')
            [CompletionResult]::new('--fail-above', '--fail-above', [CompletionResultType]::ParameterName, 'End with exit code 27 if a count rose by more than P percent, significantly; see .\client diff --help')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Take counters that another program has enabled without reserving them')
            [CompletionResult]::new('-A', '-A ', [CompletionResultType]::ParameterName, 'A row for each processor instead of the total')
            [CompletionResult]::new('--per-cpu', '--per-cpu', [CompletionResultType]::ParameterName, 'A row for each processor instead of the total')
            [CompletionResult]::new('--per-core', '--per-core', [CompletionResultType]::ParameterName, 'A row for each core, with the number of its processors')
            [CompletionResult]::new('--per-socket', '--per-socket', [CompletionResultType]::ParameterName, 'A row for each package of processors')
            [CompletionResult]::new('--per-core-type', '--per-core-type', [CompletionResultType]::ParameterName, 'A row for each core type')
            [CompletionResult]::new('--summary', '--summary', [CompletionResultType]::ParameterName, 'With --interval, print the counts of the whole time as well')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Run no command; end with Ctrl-C or after --duration')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Run no command; end with Ctrl-C or after --duration')
            [CompletionResult]::new('--metric-only', '--metric-only', [CompletionResultType]::ParameterName, 'Print the metrics of -M without counts; without -M, the shares and frequencies beside the counts')
            [CompletionResult]::new('--no-scale', '--no-scale', [CompletionResultType]::ParameterName, 'Print what was counted of events that took turns, not what it is scaled to')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON: one object, or one in a line for each interval')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Print a line per event, its fields separated by commas')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;record' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Sources to sample, with commas')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Sources to sample, with commas')
            [CompletionResult]::new('-F', '-F ', [CompletionResultType]::ParameterName, 'Samples per second on each processor, for events without an interval')
            [CompletionResult]::new('--freq', '--freq', [CompletionResultType]::ParameterName, 'Samples per second on each processor, for events without an interval')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Records of :p events that a processor writes before it interrupts [default: 1]')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the samples to FILE')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the samples to FILE')
            [CompletionResult]::new('--max-size', '--max-size', [CompletionResultType]::ParameterName, 'Keep the newest samples, of at most SIZE bytes such as 500M or 10G')
            [CompletionResult]::new('--keep-last', '--keep-last', [CompletionResultType]::ParameterName, 'Keep the samples of at least the last TIME, such as 60s')
            [CompletionResult]::new('--call-graph', '--call-graph', [CompletionResultType]::ParameterName, 'Record the callers in kernel mode, in user mode, or both')
            [CompletionResult]::new('--etl', '--etl', [CompletionResultType]::ParameterName, 'Let Windows write the call stacks to FILE, for Windows Performance Analyzer, and not to the recording')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--ring', '--ring', [CompletionResultType]::ParameterName, 'Capacity of the ring of each processor in records: a power of two [default: room for 2 s]')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Maximum share of a processor''s time for its interrupts [default: 25]')
            [CompletionResult]::new('--duration', '--duration', [CompletionResultType]::ParameterName, 'End after this time: 5 (seconds), 5s or 250ms; COMMAND continues')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-g', '-g', [CompletionResultType]::ParameterName, 'Record call stacks: --call-graph both')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Take counters that another program has enabled without reserving them')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Run no command; end with Ctrl-C or after --duration')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Run no command; end with Ctrl-C or after --duration')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'client;top' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Sources to sample, with commas [default: cycles]')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Sources to sample, with commas [default: cycles]')
            [CompletionResult]::new('-F', '-F ', [CompletionResultType]::ParameterName, 'Samples per second on each processor, for events without an interval')
            [CompletionResult]::new('--freq', '--freq', [CompletionResultType]::ParameterName, 'Samples per second on each processor, for events without an interval')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('-d', '-d', [CompletionResultType]::ParameterName, 'Time between two updates')
            [CompletionResult]::new('--delay', '--delay', [CompletionResultType]::ParameterName, 'Time between two updates')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'End after N updates')
            [CompletionResult]::new('--iterations', '--iterations', [CompletionResultType]::ParameterName, 'End after N updates')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'Rows of each event in text')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('--ring', '--ring', [CompletionResultType]::ParameterName, 'Capacity of the ring of each processor in records: a power of two [default: room for 2 s]')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Maximum share of a processor''s time for its interrupts [default: 25]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-b', '-b', [CompletionResultType]::ParameterName, 'Print each update as text')
            [CompletionResult]::new('--batch', '--batch', [CompletionResultType]::ParameterName, 'Print each update as text')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Take counters that another program has enabled without reserving them')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;branches' {
            [CompletionResult]::new('--buffer', '--buffer', [CompletionResultType]::ParameterName, 'Records that a processor writes before it interrupts')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the records to FILE as well, for `report` and `export`')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the records to FILE as well, for `report` and `export`')
            [CompletionResult]::new('--top', '--top', [CompletionResultType]::ParameterName, 'Show the N branches that were taken most often')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--budget', '--budget', [CompletionResultType]::ParameterName, 'Maximum share of a processor''s time for its interrupts [default: 25]')
            [CompletionResult]::new('--duration', '--duration', [CompletionResultType]::ParameterName, 'End after this time: 5 (seconds), 5s or 250ms; COMMAND continues')
            [CompletionResult]::new('--ring', '--ring', [CompletionResultType]::ParameterName, 'Capacity of the ring of each processor in records: a power of two [default: 8 buffers]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'Branches in user mode only')
            [CompletionResult]::new('--kernel', '--kernel', [CompletionResultType]::ParameterName, 'Branches in kernel mode only')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Print a line for each row, its fields separated by commas')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Take counters that another program has enabled without reserving them')
            [CompletionResult]::new('-a', '-a', [CompletionResultType]::ParameterName, 'Run no command; end with Ctrl-C or after --duration')
            [CompletionResult]::new('--all', '--all', [CompletionResultType]::ParameterName, 'Run no command; end with Ctrl-C or after --duration')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;control-area' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: every active one]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--current', '--current', [CompletionResultType]::ParameterName, 'The processor on which the request happens to run')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'client;report' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Only samples in processes with this name or ID; can be repeated')
            [CompletionResult]::new('--thread', '--thread', [CompletionResultType]::ParameterName, 'Only samples in these threads')
            [CompletionResult]::new('--module', '--module', [CompletionResultType]::ParameterName, 'Only samples in this module; can be repeated')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'Only samples in this function; can be repeated')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only samples of this time since the start: 1s-2s, 1.5s- or -250ms')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('--sort', '--sort', [CompletionResultType]::ParameterName, 'The names by which samples are grouped: process, module, symbol, address, thread, processor [default: those in --fields, or process,module,symbol]')
            [CompletionResult]::new('--fields', '--fields', [CompletionResultType]::ParameterName, 'The columns to show, in this order: overhead, children, error, samples, events, and names as in --sort')
            [CompletionResult]::new('-g', '-g', [CompletionResultType]::ParameterName, 'Show what each row calls (caller; implies --children), or from where it is called (callee)')
            [CompletionResult]::new('--call-graph', '--call-graph', [CompletionResultType]::ParameterName, 'Show what each row calls (caller; implies --children), or from where it is called (callee)')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'At most N rows of each source, or processor [default: 40 in text]')
            [CompletionResult]::new('--percent-limit', '--percent-limit', [CompletionResultType]::ParameterName, 'Only rows with this overhead or more')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--children', '--children', [CompletionResultType]::ParameterName, 'Add the samples of the functions that a row calls, and sort by these')
            [CompletionResult]::new('--stack', '--stack', [CompletionResultType]::ParameterName, 'Show the call stack of each sample')
            [CompletionResult]::new('--merge', '--merge', [CompletionResultType]::ParameterName, 'Show single samples in order, with the precise records')
            [CompletionResult]::new('--error', '--error', [CompletionResultType]::ParameterName, 'Show the uncertainty of the overhead')
            [CompletionResult]::new('--wide', '--wide', [CompletionResultType]::ParameterName, 'Do not shorten names to fit 80 columns')
            [CompletionResult]::new('--inline', '--inline', [CompletionResultType]::ParameterName, 'The symbol is the innermost function, even if it is inlined')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('--csv', '--csv', [CompletionResultType]::ParameterName, 'Print a line for each row, its fields separated by commas')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'client;annotate' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Only samples in processes with this name or ID; can be repeated')
            [CompletionResult]::new('--thread', '--thread', [CompletionResultType]::ParameterName, 'Only samples in these threads')
            [CompletionResult]::new('--module', '--module', [CompletionResultType]::ParameterName, 'Only samples in this module; can be repeated')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'Only samples in this function; can be repeated')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only samples of this time since the start: 1s-2s, 1.5s- or -250ms')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;export' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Only samples in processes with this name or ID; can be repeated')
            [CompletionResult]::new('--thread', '--thread', [CompletionResultType]::ParameterName, 'Only samples in these threads')
            [CompletionResult]::new('--module', '--module', [CompletionResultType]::ParameterName, 'Only samples in this module; can be repeated')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'Only samples in this function; can be repeated')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only samples of this time since the start: 1s-2s, 1.5s- or -250ms')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'The format')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write to FILE [default: standard output]')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write to FILE [default: standard output]')
            [CompletionResult]::new('--max-samples', '--max-samples', [CompletionResultType]::ParameterName, 'Maximum number of samples in a profile for firefox [default: 2000000]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--pid', '--pid', [CompletionResultType]::ParameterName, 'Show the numbers of processes in folded stacks')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'client;diff' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Only samples in processes with this name or ID; can be repeated')
            [CompletionResult]::new('--thread', '--thread', [CompletionResultType]::ParameterName, 'Only samples in these threads')
            [CompletionResult]::new('--module', '--module', [CompletionResultType]::ParameterName, 'Only samples in this module; can be repeated')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'Only samples in this function; can be repeated')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only samples of this time since the start: 1s-2s, 1.5s- or -250ms')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('--sort', '--sort', [CompletionResultType]::ParameterName, 'The names by which samples are grouped')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'At most N rows of each event [default: 40 in text]')
            [CompletionResult]::new('--fail-above', '--fail-above', [CompletionResultType]::ParameterName, 'End with exit code 27 if something became worse by more than P percent, significantly')
            [CompletionResult]::new('--work', '--work', [CompletionResultType]::ParameterName, 'Units of work that OLD and NEW did; changes are those of one unit')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--wide', '--wide', [CompletionResultType]::ParameterName, 'Do not shorten names to fit 80 columns')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'client;script' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Only samples in processes with this name or ID; can be repeated')
            [CompletionResult]::new('--thread', '--thread', [CompletionResultType]::ParameterName, 'Only samples in these threads')
            [CompletionResult]::new('--module', '--module', [CompletionResultType]::ParameterName, 'Only samples in this module; can be repeated')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'Only samples in this function; can be repeated')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only samples of this time since the start: 1s-2s, 1.5s- or -250ms')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write to FILE [default: standard output]')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write to FILE [default: standard output]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;flamegraph' {
            [CompletionResult]::new('-e', '-e', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('--event', '--event', [CompletionResultType]::ParameterName, 'Only samples of this source')
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Only samples on these processors, such as 0,2-3')
            [CompletionResult]::new('--process', '--process', [CompletionResultType]::ParameterName, 'Only samples in processes with this name or ID; can be repeated')
            [CompletionResult]::new('--thread', '--thread', [CompletionResultType]::ParameterName, 'Only samples in these threads')
            [CompletionResult]::new('--module', '--module', [CompletionResultType]::ParameterName, 'Only samples in this module; can be repeated')
            [CompletionResult]::new('--symbol', '--symbol', [CompletionResultType]::ParameterName, 'Only samples in this function; can be repeated')
            [CompletionResult]::new('--time', '--time', [CompletionResultType]::ParameterName, 'Only samples of this time since the start: 1s-2s, 1.5s- or -250ms')
            [CompletionResult]::new('--symbols', '--symbols', [CompletionResultType]::ParameterName, 'A folder with symbols; can be repeated')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the SVG to FILE; - is standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the SVG to FILE; - is standard output')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;selftest' {
            [CompletionResult]::new('-C', '-C ', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: the first one, on hybrids of each core type]')
            [CompletionResult]::new('--cpu', '--cpu', [CompletionResultType]::ParameterName, 'Processors, such as 0,2-3 [default: the first one, on hybrids of each core type]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--stacks', '--stacks', [CompletionResultType]::ParameterName, 'Also test call stacks')
            [CompletionResult]::new('--threads', '--threads', [CompletionResultType]::ParameterName, 'Also test counts of threads, and save whether they are right')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Take counters that another program has enabled without reserving them')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;diagnose' {
            [CompletionResult]::new('--cpuid', '--cpuid', [CompletionResultType]::ParameterName, 'A CPUID dump; - is standard input [default: this processor]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--live', '--live', [CompletionResultType]::ParameterName, 'Let the driver read the registers of this machine; it writes none')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print one JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;agent' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run until Ctrl-C')
            [CompletionResult]::new('install', 'install', [CompletionResultType]::ParameterValue, 'Run as a service of Windows that starts with it; needs an elevated prompt')
            [CompletionResult]::new('uninstall', 'uninstall', [CompletionResultType]::ParameterValue, 'Stop and delete the service; needs an elevated prompt')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check a configuration; needs no driver')
            [CompletionResult]::new('example', 'example', [CompletionResultType]::ParameterValue, 'Print a configuration with every option; needs no driver')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'client;agent;run' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The configuration')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('--service', '--service', [CompletionResultType]::ParameterName, 'Windows has started this process as the service')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;agent;install' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The configuration')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;agent;uninstall' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;agent;check' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'The configuration')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;agent;example' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'Controls when to use color')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'client;agent;help' {
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run until Ctrl-C')
            [CompletionResult]::new('install', 'install', [CompletionResultType]::ParameterValue, 'Run as a service of Windows that starts with it; needs an elevated prompt')
            [CompletionResult]::new('uninstall', 'uninstall', [CompletionResultType]::ParameterValue, 'Stop and delete the service; needs an elevated prompt')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check a configuration; needs no driver')
            [CompletionResult]::new('example', 'example', [CompletionResultType]::ParameterValue, 'Print a configuration with every option; needs no driver')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'client;agent;help;run' {
            break
        }
        'client;agent;help;install' {
            break
        }
        'client;agent;help;uninstall' {
            break
        }
        'client;agent;help;check' {
            break
        }
        'client;agent;help;example' {
            break
        }
        'client;agent;help;help' {
            break
        }
        'client;help' {
            [CompletionResult]::new('install', 'install', [CompletionResultType]::ParameterValue, 'Install the driver and start it; needs an elevated prompt')
            [CompletionResult]::new('uninstall', 'uninstall', [CompletionResultType]::ParameterValue, 'Stop the driver and remove it; needs an elevated prompt')
            [CompletionResult]::new('status', 'status', [CompletionResultType]::ParameterValue, 'Show whether the driver is running, and its sessions')
            [CompletionResult]::new('info', 'info', [CompletionResultType]::ParameterValue, 'Show the profile interface, why it was chosen, and the processors')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the profile sources that can be counted here, or search all events')
            [CompletionResult]::new('query', 'query', [CompletionResultType]::ParameterValue, 'Show one source')
            [CompletionResult]::new('encode', 'encode', [CompletionResultType]::ParameterValue, 'Show how an event is encoded, and which counters count it; needs no driver')
            [CompletionResult]::new('events', 'events', [CompletionResultType]::ParameterValue, 'Import the makers'' files of events, with descriptions; needs no driver')
            [CompletionResult]::new('interval', 'interval', [CompletionResultType]::ParameterValue, 'Set the interval of a source: events between two interrupts')
            [CompletionResult]::new('start', 'start', [CompletionResultType]::ParameterValue, 'Start counting until `stop`, even if this prompt is closed')
            [CompletionResult]::new('stop', 'stop', [CompletionResultType]::ParameterValue, 'Stop what `start` started, and show its final counts')
            [CompletionResult]::new('read', 'read', [CompletionResultType]::ParameterValue, 'Show the counts of what `start` started')
            [CompletionResult]::new('stat', 'stat', [CompletionResultType]::ParameterValue, 'Count while a command runs, as `perf stat -a` does')
            [CompletionResult]::new('record', 'record', [CompletionResultType]::ParameterValue, 'Sample where events occur on processors, as `perf record -a` does')
            [CompletionResult]::new('top', 'top', [CompletionResultType]::ParameterValue, 'Show where events occur while they occur, as `perf top` does')
            [CompletionResult]::new('branches', 'branches', [CompletionResultType]::ParameterValue, 'Show which branches processors take most often, from a record of each')
            [CompletionResult]::new('control-area', 'control-area', [CompletionResultType]::ParameterValue, 'Show, allocate or free the control areas of Intel''s Debug Store')
            [CompletionResult]::new('report', 'report', [CompletionResultType]::ParameterValue, 'Show the samples of a recording by columns, as `perf report` does')
            [CompletionResult]::new('annotate', 'annotate', [CompletionResultType]::ParameterValue, 'Show the instructions of a function with their samples, as `perf annotate` does')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Convert a recording for other programs')
            [CompletionResult]::new('diff', 'diff', [CompletionResultType]::ParameterValue, 'Compare two recordings, or two files of `stat --json`, with statistical errors')
            [CompletionResult]::new('script', 'script', [CompletionResultType]::ParameterValue, 'Print the samples of a recording as `perf script` does')
            [CompletionResult]::new('flamegraph', 'flamegraph', [CompletionResultType]::ParameterValue, 'Draw a recording as a flame graph')
            [CompletionResult]::new('selftest', 'selftest', [CompletionResultType]::ParameterValue, 'Count and sample work whose numbers are known, and compare')
            [CompletionResult]::new('diagnose', 'diagnose', [CompletionResultType]::ParameterValue, 'Show what the driver would do on a processor; needs no driver')
            [CompletionResult]::new('agent', 'agent', [CompletionResultType]::ParameterValue, 'Count and sample all the time, for Prometheus, OpenTelemetry and profile servers')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'client;help;install' {
            break
        }
        'client;help;uninstall' {
            break
        }
        'client;help;status' {
            break
        }
        'client;help;info' {
            break
        }
        'client;help;list' {
            break
        }
        'client;help;query' {
            break
        }
        'client;help;encode' {
            break
        }
        'client;help;events' {
            [CompletionResult]::new('import', 'import', [CompletionResultType]::ParameterValue, 'Import the makers'' files of events, with descriptions')
            [CompletionResult]::new('update', 'update', [CompletionResultType]::ParameterValue, 'Show what is imported, and how to get newer files')
            break
        }
        'client;help;events;import' {
            break
        }
        'client;help;events;update' {
            break
        }
        'client;help;interval' {
            break
        }
        'client;help;start' {
            break
        }
        'client;help;stop' {
            break
        }
        'client;help;read' {
            break
        }
        'client;help;stat' {
            break
        }
        'client;help;record' {
            break
        }
        'client;help;top' {
            break
        }
        'client;help;branches' {
            break
        }
        'client;help;control-area' {
            break
        }
        'client;help;report' {
            break
        }
        'client;help;annotate' {
            break
        }
        'client;help;export' {
            break
        }
        'client;help;diff' {
            break
        }
        'client;help;script' {
            break
        }
        'client;help;flamegraph' {
            break
        }
        'client;help;selftest' {
            break
        }
        'client;help;diagnose' {
            break
        }
        'client;help;agent' {
            [CompletionResult]::new('run', 'run', [CompletionResultType]::ParameterValue, 'Run until Ctrl-C')
            [CompletionResult]::new('install', 'install', [CompletionResultType]::ParameterValue, 'Run as a service of Windows that starts with it; needs an elevated prompt')
            [CompletionResult]::new('uninstall', 'uninstall', [CompletionResultType]::ParameterValue, 'Stop and delete the service; needs an elevated prompt')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Check a configuration; needs no driver')
            [CompletionResult]::new('example', 'example', [CompletionResultType]::ParameterValue, 'Print a configuration with every option; needs no driver')
            break
        }
        'client;help;agent;run' {
            break
        }
        'client;help;agent;install' {
            break
        }
        'client;help;agent;uninstall' {
            break
        }
        'client;help;agent;check' {
            break
        }
        'client;help;agent;example' {
            break
        }
        'client;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
