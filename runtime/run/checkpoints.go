package run

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/stokehq/stoke/runtime/spec"
)

// Finals are the folders of finished models, the newest first: a run that was
// started again after its end may have had another one before.
func (f Folder) Finals() ([]string, error) {
	found, err := filepath.Glob(filepath.Join(f.Checkpoints(), spec.FinalPrefix+"*", spec.ManifestFile))
	for i, manifest := range found {
		found[i] = filepath.Dir(manifest)
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found, err
}

// SavedSteps lists the folders of a run's checkpoints, but for finished models, with
// their steps.
func (f Folder) SavedSteps() (map[string]int64, error) {
	entries, err := os.ReadDir(f.Checkpoints())
	if os.IsNotExist(err) {
		err = nil
	}
	found := make(map[string]int64)
	for _, e := range entries {
		step, ok := spec.StepOf(e.Name())
		path := filepath.Join(f.Checkpoints(), e.Name())
		if _, err := os.Stat(filepath.Join(path, spec.ManifestFile)); ok && err == nil {
			found[path] = step
		}
	}
	return found, err
}
