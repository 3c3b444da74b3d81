//go:build !linux

package main

import "time"

var start = time.Now()

// cpuTime is wall-clock time: this system has no processor time of a process.
func cpuTime() time.Duration { return time.Since(start) }
