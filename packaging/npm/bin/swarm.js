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
// A terminal sends SIGINT and SIGHUP to the child as well. Two would kill the run instead of stopping it.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  } else {
    process.exit(code)
  }
})
