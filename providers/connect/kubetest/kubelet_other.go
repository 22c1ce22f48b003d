//go:build !linux

package kubetest

import (
	"errors"
	"os"
)

// terminal is for Linux alone.
func terminal() (person, program *os.File, err error) {
	return nil, nil, errors.New("pseudo-terminals for tests do not exist on this system")
}
