//go:build !linux

package journal

import "errors"

func (f *osFile) Allocate(size int64) error { return f.extend(size) }

func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
