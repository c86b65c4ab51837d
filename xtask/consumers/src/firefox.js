// Prints the events below each function of a profile, as Firefox's own code reads it: PROFILER-CLI FILE.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const [program, file] = process.argv.slice(1);
// A daemon keeps the profile between calls.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'firefox-'));
const env = { ...process.env, PROFILER_CLI_SESSION_DIR: folder };
const call = words => execFileSync(process.execPath, [program, ...words], { env, encoding: 'utf8', maxBuffer: 1 << 28 });

try {
  call(['load', file]);
  const found = {};
  for (const { threadHandle } of JSON.parse(call(['thread', 'list', '--json'])).threads) {
    const words = ['thread', 'functions', '--thread', threadHandle, '--limit', '0', '--include-idle', '--json'];
    for (const { name, totalSamples } of JSON.parse(call(words)).functions) found[name] = (found[name] ?? 0) + totalSamples;
  }
  console.log(JSON.stringify(found));
} finally {
  call(['stop', '--all']);
  fs.rmSync(folder, { recursive: true });
}
