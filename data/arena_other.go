//go:build !linux

package data

// adviseLarge: other systems choose their pages themselves.
func adviseLarge([]byte) {}
