package run

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/stokehq/stoke/runtime/durable"
)

// maxFile bounds the JSON files of a run: none is ever near it.
const maxFile = 16 << 20

// ReadJSON reads one JSON file of a run's folder.
func ReadJSON(path string, v any) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, maxFile)
	}
	return data, nil
}

// WriteJSON replaces a file so that a reader, or a crash at any moment, sees
// the old or the new content.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile is WriteJSON for content of any kind. Mode 0600; synced, its name
// too.
func WriteFile(path string, data []byte) error { return durable.Write(path, data) }

// WriteFrom is WriteFile for content that write writes piece by piece. After an error
// the file is as it was.
func WriteFrom(path string, write func(to io.Writer) error) error {
	f, err := durable.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// SyncDir makes the names in a folder durable.
func SyncDir(path string) error { return durable.SyncDir(path) }
