//go:build !linux

package main

import "time"

var start = time.Now()

// cpuTime is the time on the wall, where the system has no other.
func cpuTime() time.Duration { return time.Since(start) }
