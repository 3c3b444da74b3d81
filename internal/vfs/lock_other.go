//go:build !unix

package vfs

import "errors"

func (OS) Lock(File, bool) error { return errors.ErrUnsupported }
