#!/usr/bin/env node
// Starts the program of this system, with the same arguments, streams and exit code.
'use strict'
const { spawn } = require('node:child_process')
const path = require('node:path')

const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch]
const program = path.join(__dirname, `${process.platform}-${arch}`, 'swarm')
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
child.on('error', (err) => {
  console.error(`error: swarm has no program for ${process.platform}/${process.arch}: ${err.message}`)
  process.exit(2)
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal))
}
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  } else {
    process.exit(code)
  }
})
