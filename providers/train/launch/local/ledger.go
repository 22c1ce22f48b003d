package local

import (
	"context"
	"path/filepath"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

var _ launch.Bookkeeper = (*Launcher)(nil)

// ledgerTime is how long the coordinator may take to answer.
const ledgerTime = 2 * time.Second

// Ledger asks the run's coordinator, or reads the newest checkpoint of a run without
// one.
func (l *Launcher) Ledger(ctx context.Context, id string) (spec.Ledger, error) {
	f, err := l.find(id)
	if err != nil {
		return spec.Ledger{}, err
	}
	if Alive(f) {
		ctx, cancel := context.WithTimeout(ctx, ledgerTime)
		defer cancel()
		client, err := f.Client()
		if err != nil {
			return spec.Ledger{}, err
		}
		defer client.Close()
		return client.Ledger(ctx)
	}
	return savedLedger(f)
}

// savedLedger returns the ledger of the newest checkpoint whose manifest can be read.
func savedLedger(f run.Folder) (spec.Ledger, error) {
	folders, err := f.Finals()
	if err != nil {
		return spec.Ledger{}, err
	}
	saved, err := f.SavedSteps()
	if err != nil {
		return spec.Ledger{}, err
	}
	for path := range saved {
		folders = append(folders, path)
	}
	newest := spec.Ledger{Step: -1}
	for _, folder := range folders {
		var m struct {
			Step    int64              `json:"step"`
			Records int64              `json:"records"`
			Whole   int                `json:"whole"`
			Ledger  []spec.EpochLedger `json:"ledger"`
		}
		if run.ReadJSON(filepath.Join(folder, spec.ManifestFile), &m) == nil && m.Records > 0 && m.Step > newest.Step {
			newest = spec.Ledger{Records: m.Records, Step: m.Step, Whole: m.Whole, Epochs: m.Ledger}
		}
	}
	if newest.Step < 0 {
		return spec.Ledger{}, providers.ErrNoLedger
	}
	return newest, nil
}
