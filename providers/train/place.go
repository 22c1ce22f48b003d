package train

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// stateFolder is a folder below $XDG_STATE_HOME/stoke, or what the user named
// instead; absolute.
func stateFolder(given, name string) (string, error) {
	if given != "" {
		path, err := expandHome(given)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	// XDG base directories: a relative value is to be ignored.
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "stoke", name), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "stoke", name), nil
}

func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok && path != "~" {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home folder that ~ could mean")
	}
	return filepath.Join(home, rest), nil
}
