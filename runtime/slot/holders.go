package slot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Bounds of the wait for the gate, which other processes have for moments.
const (
	gateTries = 50
	gatePause = 10 * time.Millisecond
)

// Holders returns the processes that have slots, for people, by the UUID of the device; a
// device without a UUID has its index. A slot without a holder is left out. It waits for
// the gate as Take does, so that it makes no process wait for a slot that is free. folder
// has the slots' files, as Options.Folder. Without the folder there are no holders.
func Holders(folder string) (map[string]string, error) {
	held := make(map[string]string)
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	root, err := openFolder(folder)
	if err != nil {
		return nil, fmt.Errorf("look for the holders of GPUs: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written to it
	gate, err := passGate(root)
	if err != nil {
		return nil, fmt.Errorf("look for the holders of GPUs: %w", err)
	}
	defer gate.Close() //nolint:errcheck // the lock ends with it
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("look for the holders of GPUs: %w", err)
	}
	for _, e := range entries {
		device, ok := strings.CutPrefix(e.Name(), devicePrefix)
		if !ok {
			continue
		}
		file, by, err := lock(root, e.Name())
		switch {
		case err != nil:
			return nil, fmt.Errorf("look for the holder of GPU %s: %w", device, err)
		case file != nil:
			file.Close() //nolint:errcheck // the lock ends with it
		default:
			held[device] = by.String()
		}
	}
	return held, nil
}

// passGate locks the gate. The caller closes it.
func passGate(folder *os.Root) (*os.File, error) {
	for range gateTries {
		gate, _, err := lock(folder, gateName)
		if err != nil || gate != nil {
			return gate, err
		}
		time.Sleep(gatePause)
	}
	return nil, errors.New("another process counts them for long")
}
