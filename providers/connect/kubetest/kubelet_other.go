//go:build !linux

package kubetest

import (
	"errors"
	"os"
)

// terminal is for Linux alone.
func terminal() (person, program *os.File, err error) {
	return nil, nil, errors.New("there are no pseudo-terminals for tests on this system")
}
