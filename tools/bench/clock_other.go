//go:build !linux

package main

import "time"

var start = time.Now()

// cpuTime is wall-clock time: this system has no processor time of a process.
func cpuTime() time.Duration { return time.Since(start) }

// usage is unknown on this system.
func usage() (peak, faults int64) { return 0, 0 }
