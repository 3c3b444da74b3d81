//go:build !linux

package data

// Elsewhere the system reads pages when they are used.

func request([]byte, int, int)  {}
func resident([]byte, int) bool { return true }
func giveBack([]byte, bool)     {}
func majorFaults() int64        { return 0 }
