//go:build !linux

package main

import "errors"

// try needs a chroot.
func try(string) error { return errors.New("-try: allowed on Linux, whose image it runs") }
